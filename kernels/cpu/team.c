#include "kernels/cpu/team.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define LOOK_AGAIN() _mm_pause()
#else
#define LOOK_AGAIN() ((void)0)
#endif

// Looks before a thread sleeps, some 100 microseconds: longer makes everything slow where other
// programs want the processor, and waking one costs as much as many calls take.
#define LOOKS 8192
#define LINE 64 // bytes; what one thread writes and others look at has a cache line of its own

struct team {
    // The latest order: number of the call << 16 | its threads, LEAVE of them to end the workers.
    _Alignas(LINE) _Atomic uint64_t order;
    void (*work)(void *call, int thread, int n);
    void *call;
    _Alignas(LINE) atomic_int busy; // workers that are not done with the call
    _Alignas(LINE) atomic_int met;  // threads that have come to the meeting
    _Alignas(LINE) atomic_uint meetings;
    _Alignas(LINE) pthread_mutex_t lock;
    pthread_cond_t ordered, done;
    atomic_int sleeping;       // workers
    atomic_bool caller_sleeps; // until they are done
    int threads, looks;
    struct worker {
        struct team *team;
        pthread_t thread;
        int index;
    } workers[];
};

#define LEAVE 0xffff

static uint64_t next_order(struct team *t, uint64_t seen) {
    uint64_t order;
    for (int i = 0; i < t->looks; i++) {
        order = atomic_load_explicit(&t->order, memory_order_acquire);
        if (order != seen) return order;
        LOOK_AGAIN();
    }
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->sleeping, 1); // before the last look, as the caller orders before it looks
    while ((order = atomic_load(&t->order)) == seen) pthread_cond_wait(&t->ordered, &t->lock);
    atomic_fetch_sub(&t->sleeping, 1);
    pthread_mutex_unlock(&t->lock);
    return order;
}

static void *serve(void *argument) {
    struct worker *w = argument;
    struct team *t = w->team;
    for (uint64_t seen = 0;;) {
        seen = next_order(t, seen);
        int n = (int)(seen & 0xffff);
        if (n == LEAVE) return NULL;
        if (w->index >= n) continue;
        t->work(t->call, w->index, n);
        if (atomic_fetch_sub(&t->busy, 1) == 1 && atomic_load(&t->caller_sleeps)) {
            pthread_mutex_lock(&t->lock);
            pthread_cond_signal(&t->done);
            pthread_mutex_unlock(&t->lock);
        }
    }
}

static void give_order(struct team *t, int n) {
    uint64_t number = (atomic_load_explicit(&t->order, memory_order_relaxed) >> 16) + 1;
    atomic_store(&t->order, number << 16 | (uint64_t)n);
    if (atomic_load(&t->sleeping) == 0) return;
    pthread_mutex_lock(&t->lock);
    pthread_cond_broadcast(&t->ordered);
    pthread_mutex_unlock(&t->lock);
}

static void await_workers(struct team *t) {
    for (int i = 0; i < t->looks; i++) {
        if (atomic_load_explicit(&t->busy, memory_order_acquire) == 0) return;
        LOOK_AGAIN();
    }
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->caller_sleeps, true);
    while (atomic_load(&t->busy) != 0) pthread_cond_wait(&t->done, &t->lock);
    atomic_store(&t->caller_sleeps, false);
    pthread_mutex_unlock(&t->lock);
}

void team_run(struct team *t, int n, void (*work)(void *call, int thread, int n), void *call) {
    if (n == 1) {
        work(call, 0, 1);
        return;
    }
    assert(n > 1 && n <= t->threads);
    t->work = work;
    t->call = call;
    atomic_store_explicit(&t->busy, n - 1, memory_order_relaxed);
    give_order(t, n);
    work(call, 0, n);
    await_workers(t);
}

void team_meet(struct team *t, int n) {
    if (n == 1) return;
    unsigned meeting = atomic_load_explicit(&t->meetings, memory_order_acquire);
    if (atomic_fetch_add_explicit(&t->met, 1, memory_order_acq_rel) + 1 == n) {
        atomic_store_explicit(&t->met, 0, memory_order_relaxed);
        atomic_store_explicit(&t->meetings, meeting + 1, memory_order_release);
        return;
    }
    for (int i = 0; atomic_load_explicit(&t->meetings, memory_order_acquire) == meeting; i++) {
        if (i < t->looks)
            LOOK_AGAIN();
        else
            sched_yield();
    }
}

int team_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN); // more processors than a cpu_set_t has room for
    return online > 0 ? (int)online : 1;
}

// Starts the workers with signals blocked: handlers run on the program's own threads. Returns how
// many there are then.
static int start_workers(struct team *t) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int started = 0, failed = 0;
    for (; started < t->threads - 1; started++) {
        struct worker *w = &t->workers[started];
        *w = (struct worker){.team = t, .index = started + 1};
        failed = pthread_create(&w->thread, NULL, serve, w);
        if (failed != 0) break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failed;
    return started;
}

static void end_workers(struct team *t, int started) {
    give_order(t, LEAVE);
    for (int i = 0; i < started; i++) pthread_join(t->workers[i].thread, NULL);
    pthread_cond_destroy(&t->done);
    pthread_cond_destroy(&t->ordered);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

struct team *team_open(int threads) {
    assert(threads >= 1 && threads <= TEAM_THREADS_MAX);
    size_t bytes = sizeof(struct team) + (size_t)(threads - 1) * sizeof(struct worker);
    struct team *t = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
    if (t == NULL) return NULL;
    *t = (struct team){.threads = threads};
    // With fewer processors than threads, whoever looks keeps another from working.
    t->looks = threads <= team_processors() ? LOOKS : 0;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->ordered, NULL);
    pthread_cond_init(&t->done, NULL);
    int started = start_workers(t);
    if (started == threads - 1) return t;
    int why = errno;
    end_workers(t, started);
    errno = why;
    return NULL;
}

void team_close(struct team *t) {
    if (t != NULL) end_workers(t, t->threads - 1);
}

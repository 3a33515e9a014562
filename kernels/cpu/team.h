// Threads that work together on one call after another, the caller's own among them. The calls of a
// pass follow each other within microseconds: who waits for the next one, or for the others to be
// done, looks for a short time without giving its processor away, then sleeps until it is woken.
#ifndef LACUNA_KERNELS_CPU_TEAM_H
#define LACUNA_KERNELS_CPU_TEAM_H

#include <stdatomic.h>
#include <stdint.h>

#define TEAM_THREADS_MAX 4096

struct team;

// A team of `threads`, 1 .. TEAM_THREADS_MAX: so many less one are started. NULL, with errno set,
// when the system gives no more threads. The caller closes it, while no call is running.
struct team *team_open(int threads);
void team_close(struct team *t); // NULL is well

// Runs work(call, i, n) for each i in [0, n) at once, n at most the team's threads, i = 0 on the
// caller's thread, and returns when all are done. One call at a time. With n = 1 no other thread
// takes notice, and t may be NULL.
void team_run(struct team *t, int n, void (*work)(void *call, int thread, int n), void *call);

// Within a call, on each of its n threads: returns when all have come here.
void team_meet(struct team *t, int n);

// Part `thread` of n nearly equal parts of [0, count): [*from, *to).
static inline void team_part(uint32_t count, int thread, int n, uint32_t *from, uint32_t *to) {
    *from = (uint32_t)((uint64_t)count * (uint32_t)thread / (uint32_t)n);
    *to = (uint32_t)((uint64_t)count * ((uint32_t)thread + 1) / (uint32_t)n);
}

// Of what the threads of a call report the lowest stays.
static inline void team_report(_Atomic uint32_t *lowest, uint32_t x) {
    uint32_t before = atomic_load(lowest);
    while (x < before && !atomic_compare_exchange_weak(lowest, &before, x)) continue;
}

// Processors that this program may run on.
int team_processors(void);

#endif

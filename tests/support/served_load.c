#include "tests/support/served_load.h"

#include "tests/support/served_model.h"
#include "tests/support/support.h"

#include "engine/base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLE_MS = 100, REPLY_MOST = 1024 };

struct watch {
    const struct served_load *load;
    pid_t child;
    clockid_t clock; // of the child's CPU time
    _Atomic uint64_t first_ns, last_ns, first_cpu_ns, last_cpu_ns;
};

static uint64_t cpu_ns(clockid_t clock) {
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Refused for the moment, or dropped without a word.
static void disturb(int number, struct http_server_answer *a) {
    if (number % 53 == 17) {
        a->status = number % 2 == 0 ? 429 : 503;
    }
    a->drop = number % 97 == 31;
}

static void look(void *context, int number, struct http_server_answer *a) {
    struct watch *w = context;
    if (number == 0) {
        atomic_store(&w->first_cpu_ns, cpu_ns(w->clock));
        atomic_store(&w->first_ns, clock_ns());
    }
    atomic_store(&w->last_cpu_ns, cpu_ns(w->clock));
    atomic_store(&w->last_ns, clock_ns());
    a->delay_ms = w->load->delay_ms;
    if (w->load->faults) disturb(number, a);
}

// Without the pages of mapped files: what the run reads of its prompts is not its own.
static long own_bytes(pid_t child) {
    char path[64], line[128];
    long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)child);
    FILE *f = fopen(path, "r");
    if (f == NULL) return 0;
    while (kib == 0 && fgets(line, sizeof line, f) != NULL) sscanf(line, "RssAnon: %ld", &kib);
    fclose(f);
    return kib * 1024;
}

static int open_files(pid_t child) {
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)child);
    DIR *d = opendir(path);
    if (d == NULL) return 0;
    for (const struct dirent *entry; (entry = readdir(d)) != NULL;) n += entry->d_name[0] != '.';
    closedir(d);
    return n;
}

static void sample(const struct watch *w, struct served_load_result *r) {
    const struct served_load_sample s = {
        .seconds = CLOCK_MS(clock_ns() - atomic_load(&w->first_ns)) / 1000,
        .own_bytes = own_bytes(w->child),
        .files = open_files(w->child)};
    if (s.own_bytes == 0) return; // it has ended
    r->samples = realloc(r->samples, ((size_t)r->sample_count + 1) * sizeof s);
    assert_non_null(r->samples);
    r->samples[r->sample_count++] = s;
    if (w->load->progress && r->sample_count % (60000 / SAMPLE_MS) == 0)
        fprintf(stderr, "%5.0f s  %6.1f MiB  %3d files\n", s.seconds,
                (double)s.own_bytes / (1 << 20), s.files);
}

static void become(const struct served_load *load, const char *experiment, struct arena *a) {
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    const char *lengths = arena_printf(a, "lengths.tokens=[%d]", load->prompt_tokens);
    const char *context =
        arena_printf(a, "models[0].context_tokens=%d", load->prompt_tokens + REPLY_MOST);
    const char *budget = arena_printf(a, "generation.max_tokens=%d", REPLY_MOST);
    execl(load->program, "lacuna", "run", experiment, "-o",
          arena_printf(a, "%s/load", load->folder), "--set", lengths, "--set", context, "--set",
          "arms=[placed]", "--set", budget, (char *)NULL);
    _exit(9);
}

// Until the child ends, which it does last.
static void watch_child(struct watch *w, struct served_load_result *r) {
    struct rusage used;
    int status;
    while (wait4(w->child, &status, WNOHANG, &used) == 0) {
        usleep(1000 * SAMPLE_MS);
        if (atomic_load(&w->first_ns) > 0) sample(w, r);
    }
    const double asked_for = CLOCK_MS(atomic_load(&w->last_ns) - atomic_load(&w->first_ns)) / 1000;
    while (r->sample_count > 0 && r->samples[r->sample_count - 1].seconds > asked_for)
        r->sample_count--; // reports read the whole record again
    r->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    const double all = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
                       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
    const double first = CLOCK_MS(atomic_load(&w->first_cpu_ns)),
                 last = CLOCK_MS(atomic_load(&w->last_cpu_ns));
    r->plan_cpu_ms = first;
    r->ask_cpu_ms = last - first;
    r->rest_cpu_ms = all - last;
}

struct served_load_result served_load_run(const struct served_load *load) {
    struct arena *a = arena_create("load");
    struct watch w = {.load = load};
    struct buf words = {0};
    for (int i = 0; i < load->reply_tokens; i++) buf_add_c(&words, " word");
    struct served_model m = {.fault = look, .context = &w, .tail = words.p};
    struct served_load_result r = {0};
    served_model_open(&m);
    const char *settings =
        arena_printf(a, "in_flight: %d, attempts: 20, shortfall: 90%%", load->in_flight);
    const char *experiment =
        served_experiment(a, load->folder, "load", &m, load->requests / 3, settings);
    w.child = fork();
    assert_true(w.child >= 0);
    if (w.child == 0) become(load, experiment, a);
    // The child reads its experiment first, so that no request comes before this.
    assert_int_equal(clock_getcpuclockid(w.child, &w.clock), 0);
    watch_child(&w, &r);
    r.requests = http_server_requests(m.server);
    r.most_at_once = http_server_most_at_once(m.server);
    served_model_close(&m);
    buf_free(&words);
    arena_destroy(a);
    return r;
}

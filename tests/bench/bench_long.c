// Prefill at 8K, 32K and 128K positions: does time grow as the arithmetic says, and memory as KV
// does? On a small model with random weights, where attention is nearly all of the work.
//
//     cmake --build build/release --target bench_long && build/release/bench_long [THREADS]
//
// Figures: reports/baselines/long.md.
#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "engine/bench_work.h"
#include "engine/session.h"
#include "tests/support/gguf_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 131072 };

static const struct tiny_model_options MODEL = {.L = 2,
                                                .D = 128,
                                                .H = 2,
                                                .G = 1,
                                                .E = 64,
                                                .F = 256,
                                                .context = MOST,
                                                .type = TENSOR_F16,
                                                .rope_base = 500000};

static double resident_mib(void) {
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL || fscanf(f, "%*u %lu", &pages) != 1) abort();
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}

static int measure(struct session *s, const struct model_config *c, struct kv_sequence *q,
                   const int32_t *ids, uint32_t n, double base_mib, struct err *e) {
    struct session_item item = {.sequence = q, .ids = ids, .count = n, .logits = SESSION_LAST};
    kv_truncate(session_kv(s), q, 0);
    uint64_t begun = clock_ns();
    TRY(session_forward(s, &item, 1, NULL, e));
    double seconds = (double)(clock_ns() - begun) * 1e-9;
    const struct bench_shape shape = {.config = c, .chunk_tokens = session_plan(s)->chunk_tokens};
    double flop = (double)bench_prefill_work(&shape, n).flop;
    printf("| %6u | %7.2f | %8.0f | %8.1f | %6.1f | %7.1f | %7.1f |\n", n, seconds, n / seconds,
           flop * 1e-9, flop / seconds * 1e-9, (double)kv_bytes_used(session_kv(s)) / 1048576.0,
           resident_mib() - base_mib);
    return 0;
}

static int run(const char *path, int threads, struct arena *a, struct err *e) {
    static const uint32_t lengths[] = {1024, 8192, 32768, MOST}; // the first one warms up
    struct model *m;
    struct session *s;
    struct kv_sequence *q;
    const struct session_options o = {.threads = threads};
    TRY(model_open(path, a, &m, e));
    TRY(session_open(m, &o, &s, e));
    TRY(kv_sequence_open(session_kv(s), &q, e));
    int32_t *ids = arena_array(a, MOST, sizeof *ids);
    struct rng r = rng_open(1, "bench", "long");
    for (uint32_t i = 0; i < MOST; i++) ids[i] = (int32_t)rng_below(&r, m->config.V);
    const struct backend *b = session_backend(s);
    printf("%s, op table %s, %d threads; KV %llu bytes a token, planned for %u: %.1f MiB\n\n",
           b->name, b->op_table, b->threads, (unsigned long long)m->config.kv_bytes_per_token,
           (unsigned)MOST, (double)session_plan(s)->kv_bytes / 1048576.0);
    printf("| tokens | seconds | tokens/s | GFLOP | GFLOP/s | KV MiB | grown MiB |\n"
           "|---|---|---|---|---|---|---|\n");
    double base = resident_mib();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        TRY(measure(s, &m->config, q, ids, lengths[i], base, e));
    kv_sequence_close(session_kv(s), q);
    session_close(s);
    model_close(m);
    return 0;
}

int main(int argc, char **argv) {
    char path[] = "/tmp/bench_long.XXXXXX";
    int file = mkstemp(path);
    if (file < 0) return 1;
    close(file);
    tiny_model_write(path, &MODEL);
    struct arena *a = arena_create("bench");
    struct err e = {0};
    int result = run(path, argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0, a, &e);
    if (result != 0) fprintf(stderr, "%s\n", e.text);
    arena_destroy(a);
    unlink(path);
    return result == 0 ? 0 : 1;
}

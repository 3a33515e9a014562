// What watching costs: prefill of a prompt and decoding behind it, with and without a watch on
// three spans of twelve tokens, in alternation. Usage: bench_watch MODEL [THREADS [PAIRS]]. Medians
// of the pairs' ratios.
#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "engine/session.h"

#include <stdio.h>
#include <stdlib.h>

enum { REPLY = 64, SPANS = 3, SPAN_TOKENS = 12, PAIRS_MOST = 99, LONGEST = 4096 };

// One thread is timed by its own CPU time, so that other work on the machine disturbs less.
static int threads = 1;

static double seconds(void) {
    return (double)(threads == 1 ? clock_cpu_ns() : clock_ns()) * 1e-9;
}

struct bench {
    struct session *session;
    int32_t ids[LONGEST + REPLY];
    float *shares;
};

static void stop(const struct err *e) {
    fprintf(stderr, "%s\n", e->text);
    exit(1);
}

static void feed(struct bench *b, struct kv_sequence *s, uint32_t at, uint32_t count,
                 const struct session_watch *watch) {
    struct session_item item = {
        .sequence = s, .ids = b->ids + at, .count = count, .logits = SESSION_LAST, .watch = watch};
    struct err e = {0};
    if (session_forward(b->session, &item, 1, NULL, &e) != 0) stop(&e);
}

static struct session_watch watch_of(struct bench *b, uint32_t depth,
                                     struct backend_key_range ranges[SPANS]) {
    for (uint32_t i = 0; i < SPANS; i++) {
        ranges[i].first = (depth - SPAN_TOKENS) * i / (SPANS - 1);
        ranges[i].end = ranges[i].first + SPAN_TOKENS;
    }
    return (struct session_watch){ranges, SPANS, b->shares};
}

// Seconds for the prompt and for the tokens behind it; `s` is left with the prompt.
static double prefill(struct bench *b, struct kv_sequence *s, uint32_t depth, bool watched) {
    struct backend_key_range ranges[SPANS];
    const struct session_watch watch = watch_of(b, depth, ranges);
    kv_truncate(session_kv(b->session), s, 0);
    double start = seconds();
    feed(b, s, 0, depth, watched ? &watch : NULL);
    return seconds() - start;
}

static double decode(struct bench *b, struct kv_sequence *s, uint32_t depth, bool watched) {
    struct backend_key_range ranges[SPANS];
    const struct session_watch watch = watch_of(b, depth, ranges);
    kv_truncate(session_kv(b->session), s, depth);
    double start = seconds();
    for (uint32_t i = 0; i < REPLY; i++) feed(b, s, depth + i, 1, watched ? &watch : NULL);
    double spent = seconds() - start;
    kv_truncate(session_kv(b->session), s, depth);
    return spent;
}

typedef double step(struct bench *b, struct kv_sequence *s, uint32_t depth, bool watched);

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, by_size);
    return values[n / 2];
}

// Median seconds without a watch, and the median of the pairs' ratios.
static double compare(struct bench *b, struct kv_sequence *s, step *run, uint32_t depth, int pairs,
                      double *ratio) {
    double off[PAIRS_MOST], ratios[PAIRS_MOST];
    run(b, s, depth, true);
    for (int i = 0; i < pairs; i++) {
        double t[2];
        for (int k = 0; k < 2; k++) t[(i + k) % 2] = run(b, s, depth, (i + k) % 2 == 1);
        off[i] = t[0];
        ratios[i] = t[1] / t[0];
    }
    *ratio = median(ratios, pairs);
    return median(off, pairs);
}

static void measure(struct bench *b, struct kv_sequence *s, uint32_t depth, int pairs) {
    double of_prefill, of_decode;
    double first = compare(b, s, prefill, depth, pairs, &of_prefill);
    double then = compare(b, s, decode, depth, pairs, &of_decode);
    double together = (first * of_prefill + then * of_decode) / (first + then);
    printf("%6u  %11.1f  %10.1f  %+16.2f %%  %+6.2f %%  %+6.2f %%\n", depth, depth / first,
           REPLY / then, 100 * (of_prefill - 1), 100 * (of_decode - 1), 100 * (together - 1));
    fflush(stdout);
}

int main(int argc, char **argv) {
    threads = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
    int pairs = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 7;
    if (argc < 2 || threads < 1 || pairs < 1 || pairs > PAIRS_MOST) {
        fprintf(stderr, "usage: bench_watch MODEL [THREADS [PAIRS]]\n");
        return 2;
    }
    struct arena *a = arena_create("bench");
    struct err e = {0};
    struct model *m;
    struct bench b;
    const struct session_options o = {
        .threads = threads, .context_tokens = LONGEST + REPLY, .watched = SPANS};
    if (model_open(argv[1], a, &m, &e) != 0 || session_open(m, &o, &b.session, &e) != 0) stop(&e);
    b.shares = arena_array(a, (size_t)m->config.L * m->config.H * SPANS, sizeof *b.shares);
    struct rng r = rng_open(1, "bench", "ids");
    for (int i = 0; i < LONGEST + REPLY; i++) b.ids[i] = (int32_t)rng_below(&r, m->config.V);
    printf("prompt  prefill t/s  decode t/s  watching: prefill    decode  together\n");
    struct kv_sequence *s;
    if (kv_sequence_open(session_kv(b.session), &s, &e) != 0) stop(&e);
    measure(&b, s, 512, pairs);
    measure(&b, s, LONGEST, pairs);
    kv_sequence_close(session_kv(b.session), s);
    session_close(b.session);
    model_close(m);
    arena_destroy(a);
    return 0;
}

// lacuna bench: how fast a model is read (prefill), continued (decode) and continued several times
// at once (batch), each beside what the machine could do at most.
#include "evals/cli.h"

#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "engine/base/str.h"
#include "engine/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS_MOST (1 << 22) // of each option

struct settings {
    const char *path;
    struct session_options session;
    uint32_t prompt_tokens, reply_tokens, batch, depth;
    int repeats;
    bool json;
};

// One line of the table. A share is of the ceiling that binds it: arithmetic, or reading memory.
struct measure {
    const char *name;
    uint32_t tokens, depth, sequences;
    double tokens_per_s;           // the median of the repeats
    double slowest, fastest;       // tokens a second
    double flop_per_s, read_per_s; // what that amounts to
    double flop_share, read_share; // of the ceilings; 0 where unknown
};

struct bench {
    const struct settings *set;
    struct model *model;
    struct session *session;
    int32_t *ids; // [context], seeded
    double ceiling_flop_per_s, ceiling_read_per_s;
};

static int ignore_row(void *context, struct session *s, const struct session_row *row,
                      struct err *e) {
    (void)context, (void)s, (void)row, (void)e;
    return 0;
}

// Multiply-adds of one token behind `position` others, x 2. The output layer is counted apart.
static double layer_flop(const struct model_config *c, double position) {
    double qkv = (double)c->D * (c->H + 2.0 * c->G) * c->E, o = (double)c->H * c->E * c->D;
    double ffn = 3.0 * c->D * c->F, attention = 2.0 * c->H * c->E * (position + 1);
    return 2 * c->L * (qkv + o + ffn + attention);
}

static double head_flop(const struct model_config *c) {
    return 2.0 * c->D * c->V;
}

// Bytes that one decoding pass must read at least: all weights, and the keys and values.
static double pass_bytes(const struct bench *b, double position, uint32_t sequences) {
    const struct session_plan *p = session_plan(b->session);
    double weights = (double)(p->storage == BACKEND_UNPACKED ? p->weights_bytes
                                                             : model_weight_bytes(b->model, false));
    return weights + sequences * position * (double)p->page_bytes / BACKEND_PAGE;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarize(struct measure *m, double *rates, int n) {
    qsort(rates, (size_t)n, sizeof *rates, by_value);
    m->slowest = rates[0];
    m->fastest = rates[n - 1];
    m->tokens_per_s = n % 2 ? rates[n / 2] : (rates[n / 2 - 1] + rates[n / 2]) / 2;
}

static void add_shares(const struct bench *b, struct measure *m, double flop_per_token,
                       double bytes_per_token) {
    m->flop_per_s = m->tokens_per_s * flop_per_token;
    m->read_per_s = m->tokens_per_s * bytes_per_token;
    if (b->ceiling_flop_per_s > 0) m->flop_share = m->flop_per_s / b->ceiling_flop_per_s;
    if (b->ceiling_read_per_s > 0) m->read_share = m->read_per_s / b->ceiling_read_per_s;
}

static int feed(struct bench *b, struct kv_sequence *s, const int32_t *ids, uint32_t count,
                enum session_logits logits, struct err *e) {
    struct session_item item = {.sequence = s, .ids = ids, .count = count, .logits = logits};
    struct session_sink sink = {ignore_row, NULL};
    return session_forward(b->session, &item, 1, &sink, e);
}

static int bench_prefill(struct bench *b, struct measure *m, struct err *e) {
    uint32_t n = b->set->prompt_tokens;
    double rates[64];
    struct kv_sequence *s;
    TRY(kv_sequence_open(session_kv(b->session), &s, e));
    for (int i = -1; i < b->set->repeats; i++) { // the first one warms up
        kv_truncate(session_kv(b->session), s, 0);
        uint64_t begun = clock_ns();
        TRY(feed(b, s, b->ids, n, SESSION_LAST, e));
        if (i >= 0) rates[i] = n / ((double)(clock_ns() - begun) * 1e-9);
    }
    kv_sequence_close(session_kv(b->session), s);
    *m = (struct measure){.name = "prefill", .tokens = n, .sequences = 1};
    summarize(m, rates, b->set->repeats);
    const struct model_config *c = &b->model->config;
    // All rows but the last need no more of the last layer than keys and values.
    double spared =
        (n - 1.0) / n * (layer_flop(c, n / 2.0) / c->L - 2.0 * c->D * (2.0 * c->G) * c->E);
    add_shares(b, m, layer_flop(c, (n - 1) / 2.0) - spared + head_flop(c) / n,
               pass_bytes(b, 0, 1) / n);
    return 0;
}

// Continues `sequences` texts of `depth` tokens, all in one pass a token.
static int bench_decode(struct bench *b, uint32_t sequences, struct measure *m, struct err *e) {
    struct kv_pool *kv = session_kv(b->session);
    uint32_t depth = b->set->depth, n = b->set->reply_tokens;
    struct kv_sequence *s[64];
    struct session_item items[64];
    struct session_sink sink = {ignore_row, NULL};
    double rates[64];
    TRY(kv_sequence_open(kv, &s[0], e));
    TRY(feed(b, s[0], b->ids, depth, SESSION_NONE, e));
    for (uint32_t i = 1; i < sequences; i++) TRY(kv_fork(kv, s[0], depth, &s[i], e));
    for (int r = -1; r < b->set->repeats; r++) {
        for (uint32_t i = 0; i < sequences; i++) kv_truncate(kv, s[i], depth);
        uint64_t begun = clock_ns();
        for (uint32_t t = 0; t < n; t++) {
            for (uint32_t i = 0; i < sequences; i++)
                items[i] = (struct session_item){.sequence = s[i],
                                                 .ids = b->ids + depth + t,
                                                 .count = 1,
                                                 .logits = SESSION_LAST};
            TRY(session_forward(b->session, items, sequences, &sink, e));
        }
        if (r >= 0) rates[r] = n * sequences / ((double)(clock_ns() - begun) * 1e-9);
    }
    for (uint32_t i = 0; i < sequences; i++) kv_sequence_close(kv, s[i]);
    *m = (struct measure){.name = sequences > 1 ? "batch" : "decode",
                          .tokens = n,
                          .depth = depth,
                          .sequences = sequences};
    summarize(m, rates, b->set->repeats);
    const struct model_config *c = &b->model->config;
    double position = depth + n / 2.0;
    add_shares(b, m, layer_flop(c, position) + head_flop(c),
               pass_bytes(b, position, sequences) / sequences);
    return 0;
}

// Reads as much as the weights, so that caches help here as much as they do there.
static int measure_ceilings(struct bench *b, struct err *e) {
    struct backend *backend = session_backend(b->session);
    return backend->ops->ceilings(backend, (size_t)pass_bytes(b, 0, 1), &b->ceiling_flop_per_s,
                                  &b->ceiling_read_per_s, e);
}

static void print_json(const struct bench *b, const struct measure *m, int count) {
    const struct backend *k = session_backend(b->session);
    const struct session_plan *p = session_plan(b->session);
    printf("{\"backend\":\"%s\",\"numerics\":\"%s\",\"op_table\":\"%s\",\"threads\":%d,"
           "\"weights\":\"%s\",\"weight_bytes\":%llu,\"ceiling_flop_per_s\":%.4g,"
           "\"ceiling_read_bytes_per_s\":%.4g,\"tests\":[",
           k->name, k->numerics, k->op_table, k->threads,
           p->storage == BACKEND_UNPACKED ? "unpacked" : "stored",
           (unsigned long long)p->weights_bytes, b->ceiling_flop_per_s, b->ceiling_read_per_s);
    for (int i = 0; i < count; i++, m++)
        printf("%s{\"test\":\"%s\",\"tokens\":%u,\"depth\":%u,\"sequences\":%u,"
               "\"tokens_per_s\":%.2f,\"slowest\":%.2f,\"fastest\":%.2f,\"flop_per_s\":%.4g,"
               "\"flop_share\":%.3f,\"read_bytes_per_s\":%.4g,\"read_share\":%.3f}",
               i > 0 ? "," : "", m->name, m->tokens, m->depth, m->sequences, m->tokens_per_s,
               m->slowest, m->fastest, m->flop_per_s, m->flop_share, m->read_per_s, m->read_share);
    printf("]}\n");
}

static void print_table(const struct bench *b, const struct measure *m, int count) {
    const struct backend *k = session_backend(b->session);
    printf("%s: %s %s, op table %s, %d threads, weights %s\n", b->set->path, k->name, k->numerics,
           k->op_table, k->threads,
           session_plan(b->session)->storage == BACKEND_UNPACKED ? "unpacked" : "stored");
    if (b->ceiling_flop_per_s > 0)
        printf("measured ceilings: %.1f GFLOP/s, reading %.1f GB/s\n", b->ceiling_flop_per_s / 1e9,
               b->ceiling_read_per_s / 1e9);
    printf("\n%-8s %7s %6s %5s %12s %18s %10s %6s %8s %6s\n", "test", "tokens", "depth", "seqs",
           "tokens/s", "(range)", "GFLOP/s", "share", "GB/s", "share");
    for (int i = 0; i < count; i++, m++) {
        char range[32];
        snprintf(range, sizeof range, "%.1f-%.1f", m->slowest, m->fastest);
        printf("%-8s %7u %6u %5u %12.1f %18s %10.1f %5.0f%% %8.1f %5.0f%%\n", m->name, m->tokens,
               m->depth, m->sequences, m->tokens_per_s, range, m->flop_per_s / 1e9,
               100 * m->flop_share, m->read_per_s / 1e9, 100 * m->read_share);
    }
}

static int measure_all(struct bench *b, struct err *e) {
    struct measure m[3];
    TRY(measure_ceilings(b, e));
    TRY(bench_prefill(b, &m[0], e));
    TRY(bench_decode(b, 1, &m[1], e));
    TRY(bench_decode(b, b->set->batch, &m[2], e));
    if (b->set->json)
        print_json(b, m, 3);
    else
        print_table(b, m, 3);
    return 0;
}

static int run(struct settings *set, struct arena *a, struct err *e) {
    struct bench b = {.set = set};
    TRY(model_open(set->path, a, &b.model, e));
    struct session_options *o = &set->session;
    uint32_t reply_end = set->depth + set->reply_tokens;
    o->context_tokens = set->prompt_tokens > reply_end ? set->prompt_tokens : reply_end;
    o->sequences = set->batch + 1;
    o->pages_least = set->batch * (kv_pages_of(o->context_tokens) + 1);
    int result = session_open(b.model, o, &b.session, e);
    if (result == 0) {
        b.ids = arena_array(a, o->context_tokens, sizeof *b.ids);
        struct rng r = rng_open(1, "bench", "ids");
        for (uint32_t i = 0; i < o->context_tokens; i++)
            b.ids[i] = (int32_t)rng_below(&r, b.model->config.V);
        result = measure_all(&b, e);
        session_close(b.session);
    }
    model_close(b.model);
    return result;
}

struct numbers {
    int64_t prompt, reply, depth, batch, repeats, threads, chunk; // as typed
};

static int settle(const struct numbers *n, struct settings *set, struct err *e) {
    const struct cli_range ranges[] = {
        {"--prompt", n->prompt, 1, TOKENS_MOST},
        {"--reply", n->reply, 1, TOKENS_MOST},
        {"--depth", n->depth, 1, TOKENS_MOST},
        {"--chunk", n->chunk, 0, TOKENS_MOST},
        {"--batch", n->batch, 2, 64},
        {"--repeats", n->repeats, 1, 64},
        {"--threads", n->threads, 0, 4096},
    };
    TRY(cli_check_ranges(ranges, sizeof ranges / sizeof *ranges, e));
    set->prompt_tokens = (uint32_t)n->prompt;
    set->reply_tokens = (uint32_t)n->reply;
    set->depth = (uint32_t)n->depth;
    set->batch = (uint32_t)n->batch;
    set->repeats = (int)n->repeats;
    set->session.threads = (int)n->threads;
    set->session.chunk_tokens = (uint32_t)n->chunk;
    return 0;
}

int cli_bench(int argc, char **argv) {
    struct settings set = {0};
    struct session_options *o = &set.session;
    struct numbers n = {.prompt = 512, .reply = 64, .depth = 16, .batch = 8, .repeats = 5};
    const struct cli_option options[] = {
        {.name = "--prompt",
         .value = "N",
         .help = "tokens of the prefill (512)",
         .number = &n.prompt},
        {.name = "--reply", .value = "N", .help = "tokens to decode (64)", .number = &n.reply},
        {.name = "--depth",
         .value = "N",
         .help = "tokens in front of these (16)",
         .number = &n.depth},
        {.name = "--batch",
         .value = "N",
         .help = "sequences at once, 2 to 64 (8)",
         .number = &n.batch},
        {.name = "--repeats",
         .value = "N",
         .help = "of each test, 1 to 64 (5)",
         .number = &n.repeats},
        {.name = "--chunk", .value = "N", .help = "tokens of one pass (512)", .number = &n.chunk},
        CLI_MODEL_OPTIONS(o, &n.threads),
        {.name = "--op-table",
         .value = "NAME",
         .help = "c, avx2, avx512f, avx512_bf16",
         .text = &o->op_table},
        {.name = "--beyond-trained",
         .help = "lengths may exceed the trained context",
         .flag = &o->beyond_trained},
        {.name = "--json", .help = "for programs", .flag = &set.json},
    };
    struct err e = {0};
    int count;
    bool helped;
    if (cli_parse(argc, argv, options, sizeof options / sizeof *options, &set.path, 1, 1, &count,
                  &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    if (settle(&n, &set, &e) != 0) return cli_fail(argv[0], &e);
    struct arena *a = arena_create("model");
    int result = run(&set, a, &e);
    arena_destroy(a);
    return result == 0 ? EXIT_DONE : cli_fail(argv[0], &e);
}

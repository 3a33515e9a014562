#include "engine/bench.h"

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "engine/bench_ops.h"
#include "engine/bench_work.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

// Above this a large cache serves no better than memory does.
#define CEILING_BYTES_MOST ((uint64_t)1 << 30)
#define PRODUCTS_FLOP ((uint64_t)20e9) // of the products of many rows of a round, about
#define ISSUE_ROWS_MOST 4              // with more rows the arithmetic hides what a weight takes

const char *const bench_bound_names[] = {"compute", "memory", "issue"};

struct bench;

struct test {
    struct bench_line line;
    int (*run)(struct bench *b, struct test *t, double *seconds, struct err *e);
    uint64_t set_bytes;     // memory that it reads again and again
    uint64_t weights, keys; // that pass by, for the issue bound
    enum weights_matrix matrix;
    uint32_t layers; // of a product's call
    struct kv_sequence *sequence[BENCH_BATCH_MOST];
    double seconds[BENCH_REPEATS_MOST], share[BENCH_REPEATS_MOST];
    double allowed_s[BENCH_BOUNDS][BENCH_REPEATS_MOST];
};

struct bench {
    const struct model *model;
    const struct bench_options *options;
    struct session *session;
    struct backend *backend;
    struct arena *arena;
    struct bench_shape shape;
    struct bench_ops *ops;
    int32_t *ids;             // [context], seeded
    struct kv_sequence *text; // as many of `ids` as any test has asked for since it began anew
    void *memory;             // device, to be read for the ceiling
    uint64_t memory_bytes;
    struct test *tests;
    int count;
    const struct test *reads; // the one of the most memory
    double flop_per_s[BENCH_REPEATS_MOST], read_per_s[BENCH_REPEATS_MOST];
};

static double seconds_since(uint64_t begun) {
    return 1e-9 * (double)(clock_ns() - begun);
}

// Lengthens the text to `length` tokens.
static int read_text(struct bench *b, uint32_t length, enum session_logits logits, struct err *e) {
    uint32_t done = b->text->length;
    struct session_item item = {
        .sequence = b->text, .ids = b->ids + done, .count = length - done, .logits = logits};
    return length > done ? session_forward(b->session, &item, 1, NULL, e) : 0;
}

static int run_prefill(struct bench *b, struct test *t, double *seconds, struct err *e) {
    kv_truncate(session_kv(b->session), b->text, 0);
    uint64_t begun = clock_ns();
    TRY(read_text(b, t->line.tokens, SESSION_LAST, e));
    *seconds = seconds_since(begun);
    return 0;
}

static int decode(struct bench *b, struct test *t, uint32_t passes, struct err *e) {
    struct session_item items[BENCH_BATCH_MOST];
    for (uint32_t p = 0; p < passes; p++) {
        for (uint32_t i = 0; i < t->line.rows; i++)
            items[i] = (struct session_item){.sequence = t->sequence[i],
                                             .ids = b->ids + t->line.depth + p,
                                             .count = 1,
                                             .logits = SESSION_LAST};
        TRY(session_forward(b->session, items, t->line.rows, NULL, e));
    }
    return 0;
}

static int open_sequences(struct bench *b, struct test *t, struct err *e) {
    struct kv_pool *kv = session_kv(b->session);
    TRY(read_text(b, t->line.depth, SESSION_NONE, e));
    for (uint32_t i = 0; i < t->line.rows; i++)
        TRY(kv_fork(kv, b->text, t->line.depth, &t->sequence[i], e));
    return decode(b, t, 1, e);
}

static int run_decode(struct bench *b, struct test *t, double *seconds, struct err *e) {
    if (t->sequence[0] == NULL) TRY(open_sequences(b, t, e));
    for (uint32_t i = 0; i < t->line.rows; i++)
        kv_truncate(session_kv(b->session), t->sequence[i], t->line.depth);
    uint64_t begun = clock_ns();
    TRY(decode(b, t, b->options->reply_tokens, e));
    *seconds = seconds_since(begun);
    return 0;
}

static int run_product(struct bench *b, struct test *t, double *seconds, struct err *e) {
    (void)e;
    uint64_t begun = clock_ns();
    bench_ops_product(b->ops, t->matrix, t->layers, t->line.rows);
    *seconds = seconds_since(begun);
    return 0;
}

// The rows of one layer, chunk by chunk, as a long prefill asks for them.
static int run_attention(struct bench *b, struct test *t, double *seconds, struct err *e) {
    uint64_t begun = clock_ns();
    for (uint32_t done = t->line.depth; done < BENCH_ATTENTION_TOKENS;) {
        uint32_t left = BENCH_ATTENTION_TOKENS - done;
        uint32_t rows = left < t->line.rows ? left : t->line.rows;
        TRY(bench_ops_attention(b->ops, done, rows, e));
        done += rows;
    }
    *seconds = seconds_since(begun);
    return 0;
}

static struct test *add_test(struct bench *b, const char *kind, const char *name) {
    b->tests = arena_more(b->arena, b->tests, (size_t)b->count, sizeof *b->tests);
    struct test *t = &b->tests[b->count++];
    t->line.kind = kind;
    t->line.name = name;
    return t;
}

static void add_prefill(struct bench *b, uint32_t tokens) {
    struct test *t = add_test(b, "prefill", arena_printf(b->arena, "pp%u", tokens));
    struct bench_work w = bench_prefill_work(&b->shape, tokens);
    t->run = run_prefill;
    t->line.tokens = tokens;
    t->line.rows = tokens < b->shape.chunk_tokens ? tokens : b->shape.chunk_tokens;
    t->line.flop = w.flop;
    t->line.bytes = w.bytes;
    t->set_bytes = b->shape.many.layer_bytes;
}

static void add_decode(struct bench *b, uint32_t depth, uint32_t sequences) {
    uint32_t n = b->options->reply_tokens;
    char behind[32] = "", together[32] = "";
    if (depth > 0) snprintf(behind, sizeof behind, "@%u", depth);
    if (sequences > 1) snprintf(together, sizeof together, " x %u", sequences);
    struct test *t = add_test(b, "decode", arena_printf(b->arena, "tg%u%s%s", n, behind, together));
    struct bench_work w = bench_decode_work(&b->shape, depth, n, sequences);
    t->run = run_decode;
    t->line.tokens = n * sequences;
    t->line.depth = depth;
    t->line.rows = sequences;
    t->line.flop = w.flop;
    t->line.bytes = w.bytes;
    t->set_bytes = w.bytes / n;
    t->weights = w.weights;
    t->keys = w.keys;
}

// Products with few rows take all layers in turn, as decoding does, so that they find their weights
// where decoding finds them; with many rows as many layers as keep the whole short.
static uint32_t layers_of(const struct bench *b, uint32_t rows) {
    uint64_t flop = bench_layer_flop(&b->model->config, rows);
    uint64_t enough = PRODUCTS_FLOP / flop + 1;
    return rows > BENCH_FEW_ROWS && enough < b->model->config.L ? (uint32_t)enough
                                                                : b->model->config.L;
}

static void add_product(struct bench *b, enum weights_matrix which, uint32_t rows) {
    struct bench_product p =
        bench_product_of(b->model, b->backend, session_storage(b->session, rows), which);
    struct test *t =
        add_test(b, "product",
                 arena_printf(b->arena, "%s %ux%u, %u row%s", weights_matrix_name(which), p.K, p.N,
                              rows, rows == 1 ? "" : "s"));
    t->run = run_product;
    t->matrix = which;
    t->layers = which == WEIGHTS_HEAD ? 1 : layers_of(b, rows);
    t->line.rows = rows;
    t->weights = (uint64_t)p.N * p.K * t->layers;
    t->line.flop = 2 * rows * t->weights;
    t->line.bytes = p.bytes * t->layers;
    t->set_bytes = t->line.bytes;
}

static void add_attention(struct bench *b, uint32_t first, uint32_t rows, const char *name) {
    struct test *t = add_test(b, "attention", name);
    const struct model_config *c = &b->model->config;
    uint32_t seen = BENCH_ATTENTION_TOKENS - first;
    t->run = run_attention;
    t->line.depth = first;
    t->line.rows = rows;
    t->line.flop = bench_keys(c, first, seen) * 4 * c->H * c->E;
    for (uint32_t end = first + rows; end <= BENCH_ATTENTION_TOKENS; end += rows)
        t->line.bytes += end * (b->shape.kv_bytes / c->L);
    t->set_bytes = BENCH_ATTENTION_TOKENS * (b->shape.kv_bytes / c->L);
    if (rows == 1) t->keys = bench_keys(c, first, 1);
}

static void add_tests(struct bench *b) {
    const struct bench_options *o = b->options;
    for (uint32_t i = 0; i < o->prompt_count; i++) add_prefill(b, o->prompts[i]);
    for (uint32_t i = 0; i < o->depth_count; i++) add_decode(b, o->depths[i], 1);
    if (o->batch > 0) add_decode(b, o->depths[0], o->batch);
    if (!o->ops) return;
    uint32_t most = b->shape.chunk_tokens < BENCH_ROWS ? b->shape.chunk_tokens : BENCH_ROWS;
    const uint32_t rows[] = {most, 1, 4, BENCH_FEW_ROWS};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        if (rows[r] > most || (r > 0 && rows[r] == most)) continue;
        for (int m = 0; m < WEIGHTS_MATRICES; m++)
            if (m != WEIGHTS_HEAD || rows[r] <= BENCH_FEW_ROWS)
                add_product(b, (enum weights_matrix)m, rows[r]);
    }
    add_attention(b, 0, most,
                  arena_printf(b->arena, "%u causal, %u rows", BENCH_ATTENTION_TOKENS, most));
    add_attention(b, BENCH_ATTENTION_TOKENS - 1, 1,
                  arena_printf(b->arena, "%u keys, 1 row", BENCH_ATTENTION_TOKENS));
}

// What the machine gives now, the better of this measurement and those before it.
struct ceilings {
    struct backend_ceilings device;
    struct bench_issue issue;
};

static int measure_ceilings(struct bench *b, const struct test *t, struct ceilings *c,
                            struct err *e) {
    struct backend_ceilings now;
    uint64_t bytes = t->set_bytes < b->memory_bytes ? t->set_bytes : b->memory_bytes;
    b->backend->ops->ceilings(b->backend, b->memory, bytes / 64 * 64, &now);
    if (now.flop_per_s > c->device.flop_per_s) c->device.flop_per_s = now.flop_per_s;
    if (now.read_bytes_per_s > c->device.read_bytes_per_s)
        c->device.read_bytes_per_s = now.read_bytes_per_s;
    if (t->weights + t->keys == 0 || t->line.rows > ISSUE_ROWS_MOST) return 0;
    struct bench_issue issue;
    TRY(bench_ops_issue(b->ops, t->line.rows, &issue, e));
    if (c->issue.s_per_weight == 0 || issue.s_per_weight < c->issue.s_per_weight)
        c->issue.s_per_weight = issue.s_per_weight;
    if (c->issue.s_per_key == 0 || issue.s_per_key < c->issue.s_per_key)
        c->issue.s_per_key = issue.s_per_key;
    return 0;
}

static double allowed_by(double work, double per_s) {
    return per_s > 0 ? work / per_s : 0;
}

// A machine whose speed changes has at least one of two measurements at the speed of what is
// between them.
static int run_test(struct bench *b, struct test *t, int round, struct err *e) {
    struct ceilings c = {0};
    TRY(measure_ceilings(b, t, &c, e));
    TRY(t->run(b, t, &t->seconds[round], e));
    TRY(measure_ceilings(b, t, &c, e));
    const double allowed_s[BENCH_BOUNDS] = {
        allowed_by((double)t->line.flop, c.device.flop_per_s),
        allowed_by((double)t->line.bytes, c.device.read_bytes_per_s),
        (double)t->weights * c.issue.s_per_weight + (double)t->keys * c.issue.s_per_key,
    };
    double most = 0;
    for (int i = 0; i < BENCH_BOUNDS; i++) {
        t->allowed_s[i][round] = allowed_s[i];
        if (allowed_s[i] > most) most = allowed_s[i];
    }
    t->share[round] = most / t->seconds[round];
    if (t == b->tests) b->flop_per_s[round] = c.device.flop_per_s;
    if (t == b->reads) b->read_per_s[round] = c.device.read_bytes_per_s;
    return 0;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Sorts the values.
static struct bench_range range_of(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, by_value);
    return (struct bench_range){(values[(n - 1) / 2] + values[n / 2]) / 2, values[0],
                                values[n - 1]};
}

static void summarize(struct test *t, int rounds) {
    struct bench_line *l = &t->line;
    double rates[BENCH_REPEATS_MOST];
    for (int i = 0; i < rounds; i++) rates[i] = l->tokens / t->seconds[i];
    l->tokens_per_s = range_of(rates, rounds);
    l->seconds = range_of(t->seconds, rounds);
    l->share = range_of(t->share, rounds);
    l->held_by = -1;
    for (int i = 0; i < BENCH_BOUNDS; i++) {
        l->allowed_s[i] = range_of(t->allowed_s[i], rounds).median;
        if (l->allowed_s[i] > (l->held_by < 0 ? 0 : l->allowed_s[l->held_by])) l->held_by = i;
    }
}

// Memory of the size that the tests read, for the ceiling; written, so that it is really there.
static int take_memory(struct bench *b, struct err *e) {
    uint64_t free_bytes;
    for (int i = 0; i < b->count; i++) {
        if (b->tests[i].set_bytes <= b->memory_bytes) continue;
        b->memory_bytes = b->tests[i].set_bytes;
        b->reads = &b->tests[i];
    }
    TRY(b->backend->ops->memory_free_bytes(b->backend, &free_bytes, e));
    if (b->memory_bytes > CEILING_BYTES_MOST) b->memory_bytes = CEILING_BYTES_MOST;
    if (b->memory_bytes > free_bytes / 4) b->memory_bytes = free_bytes / 4;
    TRY(b->backend->ops->alloc(b->backend, b->memory_bytes, "memory to read", &b->memory, e));
    static uint8_t block[1 << 16];
    memset(block, 1, sizeof block);
    for (uint64_t at = 0; at < b->memory_bytes; at += sizeof block) {
        uint64_t left = b->memory_bytes - at;
        b->backend->ops->upload(b->backend, (uint8_t *)b->memory + at, block,
                                left < sizeof block ? left : sizeof block);
    }
    return 0;
}

static void add_bytes(const struct bench *b, enum backend_storage storage,
                      struct bench_weights *to) {
    for (int m = 0; m < WEIGHTS_MATRICES; m++) {
        struct bench_product product =
            bench_product_of(b->model, b->backend, storage, (enum weights_matrix)m);
        *(m == WEIGHTS_HEAD ? &to->head_bytes : &to->layer_bytes) += product.bytes * product.count;
    }
}

static void describe_shape(struct bench *b) {
    const struct session_plan *p = session_plan(b->session);
    b->shape = (struct bench_shape){.config = &b->model->config,
                                    .kv_bytes = p->page_bytes / BACKEND_PAGE,
                                    .chunk_tokens = p->chunk_tokens};
    b->shape.few_rows = session_weights(b->session)->few_rows;
    add_bytes(b, session_storage(b->session, 1), &b->shape.few);
    add_bytes(b, session_storage(b->session, p->chunk_tokens), &b->shape.many);
}

// Wakes threads and brings code and weights in.
static int warm_up(struct bench *b, struct err *e) {
    uint32_t context = session_plan(b->session)->context_tokens;
    uint32_t n = context < b->shape.chunk_tokens ? context : b->shape.chunk_tokens;
    TRY(read_text(b, n, SESSION_LAST, e));
    kv_truncate(session_kv(b->session), b->text, 0);
    return 0;
}

static int measure(struct bench *b, struct bench_result *out, struct err *e) {
    struct backend_ceilings c;
    uint32_t context = session_plan(b->session)->context_tokens;
    b->ids = arena_array(b->arena, context, sizeof *b->ids);
    struct rng r = rng_open(1, "bench", "ids");
    for (uint32_t i = 0; i < context; i++) b->ids[i] = (int32_t)rng_below(&r, b->model->config.V);
    describe_shape(b);
    add_tests(b);
    TRY(take_memory(b, e));
    b->backend->ops->ceilings(b->backend, b->memory, b->memory_bytes / 64 * 64, &c);
    TRY(bench_ops_open(b->model, b->session, c.near_bytes, &b->ops, e));
    TRY(kv_sequence_open(session_kv(b->session), &b->text, e));
    TRY(warm_up(b, e));
    int rounds = b->options->repeats;
    for (int i = 0; i < rounds; i++) {
        if (b->options->progress != NULL) b->options->progress(i, rounds);
        for (int k = 0; k < b->count; k++) TRY(run_test(b, &b->tests[k], i, e));
    }
    out->lines = arena_array(b->arena, (size_t)b->count, sizeof *out->lines);
    out->count = b->count;
    for (int i = 0; i < b->count; i++) {
        summarize(&b->tests[i], rounds);
        out->lines[i] = b->tests[i].line;
    }
    out->flop_per_s = range_of(b->flop_per_s, rounds);
    out->read_bytes_per_s = range_of(b->read_per_s, rounds);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    out->peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    return 0;
}

// Context, sequences and pages that the tests take.
static int settle(const struct model *m, const struct bench_options *o, struct session_options *s,
                  struct err *e) {
    uint32_t trained = m->config.trained_context, context = 1, deepest = 0;
    for (uint32_t i = 0; i < o->depth_count; i++)
        if (o->depths[i] > deepest) deepest = o->depths[i];
    if (o->depth_count > 0) context = deepest + o->reply_tokens;
    for (uint32_t i = 0; i < o->prompt_count; i++)
        if (o->prompts[i] > context) context = o->prompts[i];
    if (context > trained && !s->beyond_trained)
        FAIL(e, ERR_CONFIG,
             "%s: the tests take %u tokens (the longest prompt, or the deepest depth with its "
             "reply), and the model was trained for %u; ask for less, or say that lengths may go "
             "beyond (--beyond-trained)",
             m->file->path, context, trained);
    s->context_tokens = context;
    s->sequences = 1 + o->depth_count + o->batch;
    // The text, what is left of it when it begins anew, and what each sequence has for itself.
    s->pages_least = kv_pages_of(context) + kv_pages_of(deepest) +
                     (s->sequences - 1) * (kv_pages_of(o->reply_tokens) + 1);
    s->lower = o->depth_count == 0 ? "--prompt or --chunk"
               : o->batch == 0     ? "--prompt, --depth or --chunk"
                                   : "--prompt, --depth, --batch or --chunk";
    return 0;
}

int bench_run(const struct model *m, const struct bench_options *o, struct arena *a,
              struct session **session, struct bench_result *out, struct err *e) {
    struct session_options options = o->session;
    *session = NULL;
    *out = (struct bench_result){0};
    TRY(settle(m, o, &options, e));
    uint64_t begun = clock_ns();
    TRY(session_open(m, &options, session, e));
    out->load_s = seconds_since(begun);
    struct bench b = {.model = m,
                      .options = o,
                      .session = *session,
                      .backend = session_backend(*session),
                      .arena = a};
    int result = measure(&b, out, e);
    bench_ops_close(b.ops);
    b.backend->ops->free(b.backend, b.memory);
    return result;
}

#include "engine/bench_ops.h"

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/base/rng.h"

#include <stdlib.h>
#include <string.h>

#define PAGES (BENCH_ATTENTION_TOKENS / BACKEND_PAGE)
#define ISSUE_TRIES 3
#define ISSUE_CALLS 20 // of a try

struct bench_ops {
    const struct model *model;
    struct backend *b;
    const struct weights *weights;
    uint32_t chunk, ld;          // rows of the largest call; stride of operand rows
    float *random;               // [chunk][ld], device
    void *x, *out;               // operands [chunk][ld], device
    float *y;                    // outputs of a product, device
    uint8_t *page[PAGES];        // of one layer, device
    struct backend_matrix *near; // [near_rows][D], fits the caches
    uint32_t near_rows, near_keys;
};

// A matrix that takes no memory of its own is read where the file is mapped.
struct bench_product bench_product_of(const struct model *m, struct backend *b,
                                      enum backend_storage storage, enum weights_matrix which) {
    struct weights_stack s = weights_stack_of(m, 0, which);
    return (struct bench_product){.N = s.N,
                                  .K = s.K,
                                  .count = which == WEIGHTS_HEAD ? 1 : m->config.L,
                                  .bytes = weights_stack_bytes(b, &s, storage)};
}

static struct backend_attention attention_of(const struct bench_ops *o) {
    const struct model_config *c = &o->model->config;
    return (struct backend_attention){.H = c->H,
                                      .G = c->G,
                                      .E = c->E,
                                      .scale = c->attention_scale,
                                      .softcap = c->attention_softcap,
                                      .window = c->window};
}

static int check_fault(struct bench_ops *o, struct err *e) {
    struct backend_fault fault;
    if (o->b->ops->fault(o->b, &fault))
        FAIL(e, ERR_NUMERIC, "the attention of random numbers is not finite");
    return 0;
}

static struct backend_pass pass_of(const struct backend_span *span) {
    return (struct backend_pass){.rows = span->rows, .spans = span, .span_count = 1};
}

// Keys and values of all positions, from the random operands.
static int fill_pages(struct bench_ops *o, struct err *e) {
    const struct backend_attention a = attention_of(o);
    size_t bytes = o->b->ops->kv_layer_bytes(o->b, a.G, a.E);
    for (int i = 0; i < PAGES; i++) {
        void *page;
        TRY(o->b->ops->alloc(o->b, bytes, "keys and values of the benchmark", &page, e));
        o->page[i] = page;
    }
    for (uint32_t done = 0; done < BENCH_ATTENTION_TOKENS;) {
        uint32_t left = BENCH_ATTENTION_TOKENS - done;
        struct backend_span span = {
            .rows = left < o->chunk ? left : o->chunk, .first_position = done, .pages = o->page};
        struct backend_pass pass = pass_of(&span);
        o->b->ops->begin(o->b, &pass);
        o->b->ops->kv_append(o->b, &a, o->x, o->x, o->ld);
        TRY(check_fault(o, e));
        done += span.rows;
    }
    return 0;
}

// As many rows of the first layer's gate as the caches hold with room to spare, in whole panels.
static int load_near(struct bench_ops *o, enum backend_storage storage, size_t near_bytes,
                     struct err *e) {
    const struct model_config *c = &o->model->config;
    struct backend_part part = weights_stack_of(o->model, 0, WEIGHTS_GATE_UP).part[0];
    while (part.rows > 64 &&
           o->b->ops->matrix_bytes(o->b, &part, 1, c->D, storage) > near_bytes / 2)
        part.rows = (part.rows * 3 / 4 + 15) / 16 * 16;
    o->near_rows = part.rows;
    return o->b->ops->matrix_load(o->b, &part, 1, c->D, storage, &o->near, e);
}

static int open_parts(struct bench_ops *o, enum backend_storage storage, size_t near_bytes,
                      struct err *e) {
    const struct model_config *c = &o->model->config;
    const struct backend_ops *ops = o->b->ops;
    size_t n = (size_t)o->chunk * o->ld, operands = n * o->b->operand_bytes;
    size_t outputs = (size_t)o->chunk * model_output_width(c);
    if ((size_t)BENCH_FEW_ROWS * c->V > outputs) outputs = (size_t)BENCH_FEW_ROWS * c->V;
    void *random, *y;
    TRY(ops->alloc(o->b, n * sizeof(float), "operands of the benchmark", &random, e));
    o->random = random;
    TRY(ops->alloc(o->b, operands, "operands of the benchmark", &o->x, e));
    TRY(ops->alloc(o->b, operands, "operands of the benchmark", &o->out, e));
    TRY(ops->alloc(o->b, outputs * sizeof(float), "results of the benchmark", &y, e));
    o->y = y;
    float *host = calloc(n, sizeof *host);
    if (host == NULL) mem_exhausted("operands of the benchmark", n * sizeof *host);
    struct rng r = rng_open(1, "bench", "operands");
    for (size_t i = 0; i < n; i++) host[i] = (float)(rng_unit(&r) - 0.5);
    ops->upload(o->b, o->random, host, n * sizeof *host);
    free(host);
    ops->round(o->b, o->random, o->ld, o->chunk, o->ld, o->x, o->ld);
    TRY(load_near(o, storage, near_bytes, e));
    size_t page_bytes = ops->kv_layer_bytes(o->b, c->G, c->E);
    o->near_keys = BACKEND_PAGE * (uint32_t)(near_bytes / 2 / page_bytes);
    if (o->near_keys < BACKEND_PAGE) o->near_keys = BACKEND_PAGE;
    if (o->near_keys > BENCH_ATTENTION_TOKENS) o->near_keys = BENCH_ATTENTION_TOKENS;
    return fill_pages(o, e);
}

int bench_ops_open(const struct model *m, const struct session *s, size_t near_bytes,
                   struct bench_ops **out, struct err *e) {
    struct bench_ops *o = calloc(1, sizeof *o);
    if (o == NULL) mem_exhausted("ops of the benchmark", sizeof *o);
    o->model = m;
    o->b = session_backend(s);
    o->weights = session_weights(s);
    o->chunk = session_plan(s)->chunk_tokens;
    if (o->chunk > BENCH_ROWS) o->chunk = BENCH_ROWS;
    o->ld = backend_row_stride(o->b, model_input_width(&m->config));
    if (open_parts(o, session_storage(s, 1), near_bytes, e) != 0) {
        bench_ops_close(o);
        return -1;
    }
    *out = o;
    return 0;
}

void bench_ops_close(struct bench_ops *o) {
    if (o == NULL) return;
    o->b->ops->matrix_free(o->b, o->near);
    for (int i = 0; i < PAGES; i++) o->b->ops->free(o->b, o->page[i]);
    o->b->ops->free(o->b, o->y);
    o->b->ops->free(o->b, o->out);
    o->b->ops->free(o->b, o->x);
    o->b->ops->free(o->b, o->random);
    free(o);
}

void bench_ops_product(struct bench_ops *o, enum weights_matrix which, uint32_t layers,
                       uint32_t rows) {
    uint32_t N = weights_stack_of(o->model, 0, which).N;
    for (uint32_t i = 0; i < layers; i++)
        o->b->ops->matmul(o->b, o->x, o->ld, rows, weights_matrix_of(o->weights, i, which), NULL,
                          false, o->y, N);
    o->b->ops->sync(o->b);
}

int bench_ops_attention(struct bench_ops *o, uint32_t first, uint32_t rows, struct err *e) {
    const struct backend_attention a = attention_of(o);
    struct backend_span span = {.rows = rows, .first_position = first, .pages = o->page};
    struct backend_pass pass = pass_of(&span);
    o->b->ops->begin(o->b, &pass);
    o->b->ops->attention(o->b, &a, false, o->x, o->ld, o->out, o->ld);
    return check_fault(o, e);
}

int bench_ops_issue(struct bench_ops *o, uint32_t rows, struct bench_issue *out, struct err *e) {
    uint64_t weights = (uint64_t)o->near_rows * o->model->config.D;
    *out = (struct bench_issue){1, 1};
    for (int try = 0; try < ISSUE_TRIES; try++) {
        uint64_t begun = clock_ns();
        for (int i = 0; i < ISSUE_CALLS; i++)
            o->b->ops->matmul(o->b, o->x, o->ld, rows, o->near, NULL, false, o->y, o->near_rows);
        o->b->ops->sync(o->b);
        uint64_t between = clock_ns();
        for (int i = 0; i < ISSUE_CALLS; i++) TRY(bench_ops_attention(o, o->near_keys - 1, 1, e));
        double weight_s = 1e-9 * (double)(between - begun) / ISSUE_CALLS / (double)weights;
        double key_s = 1e-9 * (double)(clock_ns() - between) / ISSUE_CALLS / o->near_keys;
        if (weight_s < out->s_per_weight) out->s_per_weight = weight_s;
        if (key_s < out->s_per_key) out->s_per_key = key_s;
    }
    return 0;
}

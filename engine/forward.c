#include "engine/forward.h"

#include "engine/base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// Logits of this many rows are held at once; more wanted rows are done block by block.
#define LOGIT_ROWS 64

enum buffer {
    BUFFER_X,        // residual stream, fp32 [R][D]
    BUFFER_X_WANTED, // the wanted rows of it
    BUFFER_NORM,     // operands [R][D]
    BUFFER_QKV,      // fp32 [R][(H + 2G) E]
    BUFFER_Q,        // operands [R][H E], rotated
    BUFFER_K,        // operands [R][G E], rotated
    BUFFER_V,        // operands [R][G E]
    BUFFER_ATTENDED, // operands [R][H E]
    BUFFER_ATTENDED_WANTED,
    BUFFER_GATE_UP, // fp32 [R][2F]
    BUFFER_HIDDEN,  // operands [R][F]
    BUFFER_ANGLES,  // fp32 [R][rotary/2][2]
    BUFFER_LOGITS,  // fp32 [LOGIT_ROWS][V]
    BUFFER_SHARES,  // fp32 [L][H][watched], watch behind watch in a layer
    BUFFER_COUNT
};

struct forward {
    struct backend *b;
    const struct model_config *c;
    const struct weights *w;
    uint32_t rows, watched;
    uint32_t ld_model, ld_heads, ld_groups, ld_hidden; // strides of operand rows, in elements
    uint32_t qkv_width;
    size_t layer_bytes; // of one layer in a KV page
    void *buffer[BUFFER_COUNT];
    float *shares;            // host, as BUFFER_SHARES
    struct backend_pass pass; // the one that is run
};

static void buffer_sizes(const struct backend *b, const struct model_config *c, uint32_t rows,
                         uint32_t watched, uint64_t bytes[BUFFER_COUNT]) {
    uint64_t f = sizeof(float), o = b->operand_bytes, r = rows;
    bytes[BUFFER_X] = r * c->D * f;
    bytes[BUFFER_X_WANTED] = bytes[BUFFER_X];
    bytes[BUFFER_NORM] = r * backend_row_stride(b, c->D) * o;
    bytes[BUFFER_QKV] = r * model_qkv_width(c) * f;
    bytes[BUFFER_Q] = r * backend_row_stride(b, c->H * c->E) * o;
    bytes[BUFFER_K] = r * backend_row_stride(b, c->G * c->E) * o;
    bytes[BUFFER_V] = bytes[BUFFER_K];
    bytes[BUFFER_ATTENDED] = bytes[BUFFER_Q];
    bytes[BUFFER_ATTENDED_WANTED] = bytes[BUFFER_Q];
    bytes[BUFFER_GATE_UP] = r * 2 * c->F * f;
    bytes[BUFFER_HIDDEN] = r * backend_row_stride(b, c->F) * o;
    bytes[BUFFER_ANGLES] = r * c->rope_dimensions * f;
    bytes[BUFFER_LOGITS] = (uint64_t)(rows < LOGIT_ROWS ? rows : LOGIT_ROWS) * c->V * f;
    bytes[BUFFER_SHARES] = (uint64_t)c->L * c->H * watched * f;
}

uint64_t forward_bytes(const struct backend *b, const struct model_config *c, uint32_t rows,
                       uint32_t watched) {
    uint64_t bytes[BUFFER_COUNT], sum = 0;
    buffer_sizes(b, c, rows, watched, bytes);
    for (int i = 0; i < BUFFER_COUNT; i++) sum += bytes[i];
    return sum;
}

struct backend_limits forward_limits(const struct model_config *c, uint32_t rows) {
    uint32_t N = model_output_width(c);
    return (struct backend_limits){.rows = rows,
                                   .K = model_input_width(c),
                                   .N = c->V > N ? c->V : N,
                                   .H = c->H,
                                   .G = c->G,
                                   .E = c->E,
                                   .L = c->L};
}

static int check_config(const struct model_config *c, struct err *e) {
    if (c->logit_softcap != 0)
        FAIL(e, ERR_MODEL, "architecture %s: a softcap of %g on the logits is not supported",
             c->architecture, c->logit_softcap);
    if (c->G == 0 || c->H % c->G != 0)
        FAIL(e, ERR_MODEL, "architecture %s: %u query heads do not divide over %u key/value heads",
             c->architecture, c->H, c->G);
    if (c->rope_dimensions % 2 != 0 || c->rope_dimensions > c->E)
        FAIL(e, ERR_MODEL, "architecture %s: %u rotated elements of heads of %u", c->architecture,
             c->rope_dimensions, c->E);
    return 0;
}

int forward_open(struct backend *b, const struct model_config *c, const struct weights *w,
                 uint32_t rows, uint32_t watched, struct forward **out, struct err *e) {
    TRY(check_config(c, e));
    struct forward *f = calloc(1, sizeof *f);
    if (f == NULL) mem_exhausted("forward", sizeof *f);
    *f = (struct forward){
        .b = b,
        .c = c,
        .w = w,
        .rows = rows,
        .watched = watched,
        .ld_model = backend_row_stride(b, c->D),
        .ld_heads = backend_row_stride(b, c->H * c->E),
        .ld_groups = backend_row_stride(b, c->G * c->E),
        .ld_hidden = backend_row_stride(b, c->F),
        .qkv_width = model_qkv_width(c),
        .layer_bytes = b->ops->kv_layer_bytes(b, c->G, c->E),
    };
    uint64_t bytes[BUFFER_COUNT];
    buffer_sizes(b, c, rows, watched, bytes);
    f->shares = malloc(bytes[BUFFER_SHARES] + 1);
    if (f->shares == NULL) mem_exhausted("shares of attention", bytes[BUFFER_SHARES]);
    for (int i = 0; i < BUFFER_COUNT; i++)
        if (b->ops->alloc(b, bytes[i], "activations", &f->buffer[i], e) != 0) {
            forward_close(f);
            return -1;
        }
    *out = f;
    return 0;
}

void forward_close(struct forward *f) {
    if (f == NULL) return;
    for (int i = 0; i < BUFFER_COUNT; i++) f->b->ops->free(f->b, f->buffer[i]);
    free(f->shares);
    free(f);
}

// Where watched rows put their shares in layer 0.
static void aim_watches(struct forward *f, const struct forward_batch *batch) {
    float *to = f->buffer[BUFFER_SHARES];
    for (uint32_t w = 0; w < batch->watch_count; w++) {
        struct forward_watch *watch = &batch->watches[w];
        watch->of_span.shares = watch->of_wanted.shares = to;
        to += (size_t)f->c->H * watch->of_span.count;
    }
}

static void embed_rows(struct forward *f) {
    const struct model_config *c = f->c;
    const struct backend_ops *ops = f->b->ops;
    const struct backend_rotation rotation = {c->rope_base, c->rope_dimensions, c->rope_factors};
    ops->embed(f->b, f->w->embedding, f->buffer[BUFFER_X]);
    ops->angles(f->b, &rotation, f->buffer[BUFFER_ANGLES]);
}

// Queries, keys and values of R rows; keys and values go to the pages.
static void project_rows(struct forward *f, uint32_t R, const struct backend_attention *a) {
    const struct model_config *c = f->c;
    const struct weights_layer *w = &f->w->layer[a->layer];
    struct backend *b = f->b;
    const struct backend_ops *ops = b->ops;
    uint32_t width = f->qkv_width;
    float *qkv = f->buffer[BUFFER_QKV];
    const float *angles = f->buffer[BUFFER_ANGLES];
    ops->rmsnorm(b, f->buffer[BUFFER_X], R, c->D, w->attention_norm, c->norm_epsilon,
                 f->buffer[BUFFER_NORM], f->ld_model);
    ops->matmul(b, f->buffer[BUFFER_NORM], f->ld_model, R, w->qkv, w->qkv_bias, false, qkv, width);
    ops->rope(b, qkv, width, R, c->H, c->E, c->rope_dimensions, c->rope_neighbours, angles,
              f->buffer[BUFFER_Q], f->ld_heads);
    ops->rope(b, qkv + (size_t)c->H * c->E, width, R, c->G, c->E, c->rope_dimensions,
              c->rope_neighbours, angles, f->buffer[BUFFER_K], f->ld_groups);
    ops->round(b, qkv + (size_t)(c->H + c->G) * c->E, width, R, c->G * c->E, f->buffer[BUFFER_V],
               f->ld_groups);
    ops->kv_append(b, a, f->buffer[BUFFER_K], f->buffer[BUFFER_V], f->ld_groups);
}

// The rest of a layer for R rows: attention output `attended` to residual `x`, then feed-forward.
static void finish_rows(struct forward *f, uint32_t layer, uint32_t R, const void *attended,
                        float *x) {
    const struct model_config *c = f->c;
    const struct weights_layer *w = &f->w->layer[layer];
    struct backend *b = f->b;
    const struct backend_ops *ops = b->ops;
    ops->matmul(b, attended, f->ld_heads, R, w->o, NULL, true, x, c->D);
    ops->rmsnorm(b, x, R, c->D, w->ffn_norm, c->norm_epsilon, f->buffer[BUFFER_NORM], f->ld_model);
    ops->matmul(b, f->buffer[BUFFER_NORM], f->ld_model, R, w->gate_up, NULL, false,
                f->buffer[BUFFER_GATE_UP], 2 * c->F);
    ops->gate(b, c->gate_gelu, f->buffer[BUFFER_GATE_UP], 2 * c->F, R, c->F,
              f->buffer[BUFFER_HIDDEN], f->ld_hidden);
    ops->matmul(b, f->buffer[BUFFER_HIDDEN], f->ld_hidden, R, w->down, NULL, true, x, c->D);
}

// One download a pass, then to each watch its own.
static void take_shares(struct forward *f, const struct forward_batch *batch) {
    if (batch->watch_count == 0) return;
    const struct model_config *c = f->c;
    size_t layer_shares = (size_t)c->H * f->watched;
    f->b->ops->download(f->b, f->shares, f->buffer[BUFFER_SHARES],
                        c->L * layer_shares * sizeof *f->shares);
    const float *from = f->shares;
    for (uint32_t w = 0; w < batch->watch_count; w++) {
        const struct forward_watch *watch = &batch->watches[w];
        size_t n = (size_t)c->H * watch->of_span.count;
        for (uint32_t layer = 0; layer < c->L; layer++)
            memcpy(watch->shares + layer * n, from + layer * layer_shares, n * sizeof *from);
        from += n;
    }
}

static void attend_rows(struct forward *f, const struct backend_attention *a, bool wanted) {
    f->b->ops->attention(f->b, a, wanted, f->buffer[BUFFER_Q], f->ld_heads,
                         f->buffer[BUFFER_ATTENDED], f->ld_heads);
}

// Where the residual stream of the wanted rows is.
static float *wanted_rows(struct forward *f) {
    bool all = f->pass.wanted_count == f->pass.rows;
    return f->buffer[all ? BUFFER_X : BUFFER_X_WANTED];
}

// The last layer needs keys and values of all rows, and everything else only of the wanted ones.
static void last_layer(struct forward *f, const struct backend_attention *a) {
    const struct backend_ops *ops = f->b->ops;
    float *x = wanted_rows(f);
    void *attended = f->buffer[BUFFER_ATTENDED];
    attend_rows(f, a, true);
    if (x != f->buffer[BUFFER_X]) {
        ops->gather(f->b, f->buffer[BUFFER_X], f->c->D * sizeof(float), x);
        ops->gather(f->b, attended, (size_t)f->ld_heads * f->b->operand_bytes,
                    f->buffer[BUFFER_ATTENDED_WANTED]);
        attended = f->buffer[BUFFER_ATTENDED_WANTED];
    }
    finish_rows(f, a->layer, f->pass.wanted_count, attended, x);
}

// How many of the wanted rows behind `done` get their logits at once.
static uint32_t logit_rows(const struct forward *f, uint32_t done) {
    uint32_t left = f->pass.wanted_count - done;
    return left < LOGIT_ROWS ? left : LOGIT_ROWS;
}

static void compute_logits(struct forward *f, uint32_t done) {
    const struct model_config *c = f->c;
    const struct backend_ops *ops = f->b->ops;
    uint32_t n = logit_rows(f, done);
    ops->rmsnorm(f->b, wanted_rows(f) + (size_t)done * c->D, n, c->D, f->w->output_norm,
                 c->norm_epsilon, f->buffer[BUFFER_NORM], f->ld_model);
    ops->matmul(f->b, f->buffer[BUFFER_NORM], f->ld_model, n, f->w->head, NULL, false,
                f->buffer[BUFFER_LOGITS], c->V);
}

// All layers, and the first logits. What it calls follows from the form of the pass (backend.h).
static void compute(void *context) {
    struct forward *f = context;
    const struct model_config *c = f->c;
    embed_rows(f);
    for (uint32_t layer = 0; layer < c->L; layer++) {
        struct backend_attention a = {.layer = layer,
                                      .H = c->H,
                                      .G = c->G,
                                      .E = c->E,
                                      .scale = c->attention_scale,
                                      .softcap = c->attention_softcap,
                                      .window = c->window,
                                      .page_offset = f->layer_bytes * layer};
        project_rows(f, f->pass.rows, &a);
        if (layer + 1 < c->L) {
            attend_rows(f, &a, false);
            finish_rows(f, layer, f->pass.rows, f->buffer[BUFFER_ATTENDED], f->buffer[BUFFER_X]);
        } else if (f->pass.wanted_count > 0) {
            last_layer(f, &a);
        }
    }
    if (f->pass.wanted_count > 0) compute_logits(f, 0);
}

static int check_fault(struct forward *f, struct err *e) {
    static const char *const what[] = {
        [BACKEND_FAULT_KV] = "a key or value", [BACKEND_FAULT_SCORE] = "an attention score"};
    struct backend_fault fault;
    if (!f->b->ops->fault(f->b, &fault)) return 0;
    if (fault.kind == BACKEND_FAULT_DEVICE)
        FAIL(e, ERR_PROVIDER, "backend %s: %s", f->b->name, fault.text);
    FAIL(e, ERR_NUMERIC,
         "layer %u, position %u: %s is not finite; the model's numbers leave the range of %s",
         fault.layer, f->pass.positions[fault.row], what[fault.kind], f->b->numerics);
}

static int hand_out_row(struct forward *f, uint32_t row, int64_t chosen, const float *logits,
                        const struct forward_sink *sink, struct err *e) {
    if (chosen < 0)
        FAIL(e, ERR_NUMERIC,
             "output layer (behind layer %u), position %u: a logit is not finite; the model's "
             "numbers leave the range of %s",
             f->c->L - 1, f->pass.positions[row], f->b->numerics);
    return sink->take(sink->context, row, (int32_t)chosen, logits, e);
}

static int hand_out(struct forward *f, const struct token_draw *draws,
                    const struct forward_sink *sink, struct err *e) {
    const uint32_t V = f->c->V;
    const float *logits = f->buffer[BUFFER_LOGITS];
    int64_t chosen[LOGIT_ROWS];
    for (uint32_t done = 0, n; done < f->pass.wanted_count; done += n) {
        n = logit_rows(f, done);
        if (done > 0) compute_logits(f, done);
        f->b->ops->draw(f->b, logits, n, V, draws + done, chosen);
        if (done == 0) TRY(check_fault(f, e));
        for (uint32_t i = 0; i < n; i++)
            TRY(hand_out_row(f, f->pass.wanted[done + i], chosen[i], logits + (size_t)i * V, sink,
                             e));
    }
    return 0;
}

int forward_run(struct forward *f, const struct forward_batch *batch,
                const struct forward_sink *sink, struct err *e) {
    const struct backend_ops *ops = f->b->ops;
    assert(batch->pass.rows >= 1 && batch->pass.rows <= f->rows);
    f->pass = batch->pass;
    f->pass.shares_stride = (size_t)f->c->H * f->watched;
    aim_watches(f, batch);
    ops->begin(f->b, &f->pass);
    ops->play(f->b, compute, f);
    if (f->pass.wanted_count == 0) return check_fault(f, e);
    take_shares(f, batch);
    return hand_out(f, batch->draws, sink, e);
}

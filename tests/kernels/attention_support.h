// Attention of one query written out from the numerics, key by key, for the tests of the op tables;
// and the KV pages that the tables read.
#ifndef LACUNA_TESTS_KERNELS_ATTENTION_SUPPORT_H
#define LACUNA_TESTS_KERNELS_ATTENTION_SUPPORT_H

#include "tests/kernels/ops_support.h"

// Ways to be wrong that the tests must notice.
enum fault {
    RIGHT,
    SMALL_BLOCKS,
    REAL_MAXIMUM,
    RIGHT_TO_LEFT,
    WINDOW_PLUS_ONE,
    SCALED_LATE,
    ROUNDED_SHARES
};

// A sequence: q, k, v of every position, as fp32 values that are operands already.
struct sequence {
    struct cpu_attention a;
    uint32_t length;
    float *q, *k, *v;           // [length][H][E], [length][G][E] twice
    struct cpu_key_range range; // whose share reference_row returns
};

static inline struct sequence sequence_make(const struct cpu_ops *ops, struct rng *r,
                                            struct cpu_attention a, uint32_t length, float size) {
    struct sequence s = {.a = a, .length = length};
    size_t nq = (size_t)length * a.H * a.E, nk = (size_t)length * a.G * a.E;
    s.q = ops_floats(r, nq, false);
    s.k = ops_floats(r, nk, false);
    s.v = ops_floats(r, nk, false);
    for (size_t i = 0; i < nq; i++) s.q[i] *= size;
    if (ops->numerics == CPU_BF16_1) {
        for (size_t i = 0; i < nq; i++) s.q[i] = ops_round_reference(s.q[i]);
        for (size_t i = 0; i < nk; i++) s.k[i] = ops_round_reference(s.k[i]);
        for (size_t i = 0; i < nk; i++) s.v[i] = ops_round_reference(s.v[i]);
    }
    return s;
}

static inline void sequence_free(struct sequence *s) {
    free(s->q);
    free(s->k);
    free(s->v);
}

#define SEQUENCE_BLOCKS_MAX 12

// Pages of one sequence, two layers in each page; what was never written is NaN.
struct pages {
    uint8_t *page[SEQUENCE_BLOCKS_MAX];
    size_t layer_bytes;
};

static inline struct pages pages_make(const struct cpu_ops *ops, const struct cpu_attention *a,
                                      uint32_t length) {
    struct pages p = {.layer_bytes = 2 * cpu_kv_bytes(ops->numerics, a->G, a->E)};
    assert_true(length <= SEQUENCE_BLOCKS_MAX * CPU_PAGE);
    for (uint32_t b = 0; b * CPU_PAGE < length; b++) {
        p.page[b] = ops_alloc(2 * p.layer_bytes);
        memset(p.page[b], 0xff, 2 * p.layer_bytes);
    }
    return p;
}

static inline void pages_free(struct pages *p) {
    for (int b = 0; b < SEQUENCE_BLOCKS_MAX; b++) free(p->page[b]);
}

// The chain of the numerics over n elements that lie `sx` and `sw` apart.
static inline float reference_chain(const float *x, size_t sx, const float *w, size_t sw,
                                    uint32_t n, bool pairs) {
    float acc = 0.0f;
    for (uint32_t i = 0; i < n; i += pairs ? 2 : 1) {
        if (pairs)
            acc = i + 1 < n ? fmaf(x[(i + 1) * sx], w[(i + 1) * sw], acc) : fmaf(0.0f, 0.0f, acc);
        acc = fmaf(x[i * sx], w[i * sw], acc);
    }
    return acc;
}

// The tree of a row reduction.
static inline float reference_tree(float *lane) {
    for (int half = 8; half > 0; half /= 2)
        for (int j = 0; j < half; j++) lane[j] += lane[j + half];
    return lane[0];
}

struct reference_block {
    float m, l;
    float w, watched; // sums of the unrounded p: all keys, those of the sequence's range
    float o[256];
};

// m_c, l_c and O_c of the keys [base, end) for query t and head h; false without a visible key.
static inline bool reference_of_block(const struct sequence *s, bool pairs, uint32_t t, uint32_t h,
                                      uint32_t base, uint32_t end, enum fault fault,
                                      struct reference_block *out) {
    const struct cpu_attention *a = &s->a;
    uint32_t g = h / (a->H / a->G), visible = 0;
    uint32_t window = a->window + (fault == WINDOW_PLUS_ONE);
    const double log2e = 1.4426950408889634;
    float p[CPU_PAGE] = {0}, v[CPU_PAGE] = {0}, score[CPU_PAGE], max = -INFINITY, lane[16] = {0},
          all[16] = {0}, watched[16] = {0};
    bool seen[CPU_PAGE] = {false};
    for (uint32_t j = base; j < end && j <= t; j++) {
        if (a->window != 0 && t - j >= window) continue;
        float x = reference_chain(s->q + ((size_t)t * a->H + h) * a->E, 1,
                                  s->k + ((size_t)j * a->G + g) * a->E, 1, a->E, pairs);
        if (a->softcap != 0)
            x = num_tanh(x * (float)(a->scale / a->softcap)) * (float)(a->softcap * log2e);
        else if (fault == SCALED_LATE)
            x = (x * (float)a->scale) * (float)log2e;
        else
            x = x * (float)(a->scale * log2e);
        score[j - base] = x;
        seen[j - base] = true;
        max = x > max ? x : max;
        visible++;
    }
    if (visible == 0) return false;
    out->m = fault == REAL_MAXIMUM ? max : ceilf(max);
    for (uint32_t j = 0; j < end - base; j++) {
        if (!seen[j]) continue;
        p[j] = num_exp2(score[j] - out->m);
        float kept = fault == ROUNDED_SHARES ? num_from_bf16(num_bf16(p[j])) : p[j];
        all[j % 16] += kept;
        if (base + j >= s->range.first && base + j < s->range.end) watched[j % 16] += kept;
        if (pairs) p[j] = num_from_bf16(num_bf16(p[j]));
        lane[j % 16] += p[j];
    }
    out->l = reference_tree(lane);
    out->w = reference_tree(all);
    out->watched = reference_tree(watched);
    for (uint32_t e = 0; e < a->E; e++) {
        for (uint32_t j = 0; j < end - base; j++)
            v[j] = seen[j] ? s->v[((size_t)(base + j) * a->G + g) * a->E + e] : 0.0f;
        out->o[e] = reference_chain(p, 1, v, 1, end - base, pairs) + 0.0f;
    }
    return true;
}

static inline float reference_folded(float sum, float old, float block, float new) {
    float kept = sum * old, added = block * new;
    return kept + added;
}

// The row of query t and head h before its rounding to an operand: E floats. Returns the share of
// its attention on the sequence's range.
__attribute__((unused)) ENV_WORK float reference_row(const struct sequence *s, bool pairs,
                                                     uint32_t t, uint32_t h, enum fault fault,
                                                     float *out) {
    uint32_t size = fault == SMALL_BLOCKS ? CPU_PAGE / 2 : CPU_PAGE, blocks = t / size + 1;
    struct reference_block all = {0}, next;
    bool started = false;
    for (uint32_t i = 0; i < blocks; i++) {
        uint32_t b = fault == RIGHT_TO_LEFT ? blocks - 1 - i : i;
        if (!reference_of_block(s, pairs, t, h, b * size, (b + 1) * size, fault, &next)) continue;
        if (!started) {
            all = next;
            started = true;
            continue;
        }
        float M = all.m > next.m ? all.m : next.m;
        float old = num_exp2(all.m - M), new = num_exp2(next.m - M);
        all.l = reference_folded(all.l, old, next.l, new);
        all.w = reference_folded(all.w, old, next.w, new);
        all.watched = reference_folded(all.watched, old, next.watched, new);
        for (uint32_t e = 0; e < s->a.E; e++)
            all.o[e] = reference_folded(all.o[e], old, next.o[e], new);
        all.m = M;
    }
    float inverse = 1.0f / all.l;
    for (uint32_t e = 0; e < s->a.E; e++) out[e] = all.o[e] * inverse;
    return all.watched / all.w;
}

// Writes K and V of positions [from, to) to layer 1 of the pages.
static inline void sequence_append(const struct cpu_ops *ops, const struct cpu_pool *pool,
                                   const struct sequence *s, struct pages *p, uint32_t from,
                                   uint32_t to) {
    struct cpu_attention a = s->a;
    a.page_offset = p->layer_bytes;
    uint32_t rows = to - from, nk = a.G * a.E, bad = 0;
    struct cpu_span span = {.rows = rows, .first_position = from, .pages = p->page};
    void *k = ops_operands(ops, s->k + (size_t)from * nk, rows, nk, nk);
    void *v = ops_operands(ops, s->v + (size_t)from * nk, rows, nk, nk);
    assert_int_equal(ops->kv_append(pool, &span, 1, &a, k, v, nk, &bad), 0);
    free(k);
    free(v);
}

// Attends to positions [from, to), which are appended already; `watch` may be NULL. Returns
// operands [to - from][H][E].
static inline void *sequence_attend(const struct cpu_ops *ops, const struct cpu_pool *pool,
                                    const struct sequence *s, const struct pages *p, uint32_t from,
                                    uint32_t to, const struct cpu_watch *watch) {
    struct cpu_attention a = s->a;
    a.page_offset = p->layer_bytes;
    uint32_t rows = to - from, nq = a.H * a.E, bad = 0;
    struct cpu_span span = {.rows = rows, .first_position = from, .pages = p->page, .watch = watch};
    void *q = ops_operands(ops, s->q + (size_t)from * nq, rows, nq, nq);
    void *out = ops_alloc((size_t)rows * nq * ops->operand_bytes);
    assert_int_equal(ops->attention(pool, &span, 1, &a, q, nq, out, nq, &bad), 0);
    free(q);
    return out;
}

// Appends and attends to positions [from, to) of a sequence in one call.
static inline void *sequence_step(const struct cpu_ops *ops, const struct cpu_pool *pool,
                                  const struct sequence *s, struct pages *p, uint32_t from,
                                  uint32_t to) {
    sequence_append(ops, pool, s, p, from, to);
    return sequence_attend(ops, pool, s, p, from, to, NULL);
}

#endif

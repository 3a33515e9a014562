// Scores of one block to weights, and folding of sums over blocks. Included by each table, after
// body_unit.h.
#include "kernels/cpu/body.h"

// The smallest whole number that is not below x.
static inline float ceiling(float x) {
    if (!(fabsf(x) < 0x1p23f)) return x;
    float down = (float)(int32_t)x;
    return down < x ? down + 1.0f : down;
}

static inline struct lanes attention_score(const struct attention_call *c, struct lanes chain) {
    struct lanes s = lanes_mul(chain, lanes_set(c->score_scale));
    if (c->cap_scale != 0.0f) s = lanes_mul(lanes_tanh(s), lanes_set(c->cap_scale));
    return s;
}

// Scores of one row to weights p, in place, for the lanes [lo, hi) of the block, whole panels.
// Visible are [from, to). Returns false when a visible score is not finite. A watched row also gets
// *w_c.
static inline __attribute__((always_inline)) bool
attention_weights(const struct attention_call *c, float *row, uint32_t lo, uint32_t hi,
                  struct attention_keys keys, bool watched, float *m_c, float *l_c, float *w_c) {
    ELEMENT *p = (ELEMENT *)row;
    uint32_t from = keys.from, to = keys.to;
    *l_c = 0.0f;
    *m_c = 0.0f;
    struct lanes max = lanes_set(-INFINITY), sum = lanes_set(0.0f), all = sum;
    uint32_t first = from / NUM_LANES * NUM_LANES,
             end = (to + NUM_LANES - 1) / NUM_LANES * NUM_LANES;
    bool finite = true;
    for (uint32_t i = first; i < end && from < to; i += NUM_LANES) {
        struct lanes s = attention_score(c, lanes_load(row + i));
        if (i < from || i + NUM_LANES > to) {
            uint32_t begin = i < from ? from - i : 0;
            finite &= lanes_finite(lanes_keep(s, begin, to - i, 0.0f));
            s = lanes_keep(s, begin, to - i, -INFINITY);
        } else {
            finite &= lanes_finite(s);
        }
        lanes_store(row + i, s);
        max = lanes_max(max, s);
    }
    struct lanes zero = lanes_set(0.0f);
    if (from >= to) {
        for (uint32_t i = lo; i < hi; i += NUM_LANES) element_store(p + i, zero);
        return true;
    }
    *m_c = ceiling(lanes_max_of(max));
    struct lanes at = lanes_set(*m_c);
    for (uint32_t i = lo; i < first; i += NUM_LANES) element_store(p + i, zero);
    for (uint32_t i = first; i < end; i += NUM_LANES) {
        struct lanes e = lanes_exp2_below(lanes_sub(lanes_load(row + i), at));
        if (watched) all = lanes_add(all, e);
        e = operand_round(e);
        sum = lanes_add(sum, e);
        element_store(p + i, e);
    }
    for (uint32_t i = end; i < hi; i += NUM_LANES) element_store(p + i, zero);
    *l_c = lanes_sum(sum);
    if (watched) *w_c = lanes_sum(all);
    return finite;
}

// What a new block does to the sums before it: kept and added parts are scaled to the larger M.
struct attention_scales {
    float M, old, new;
};

static inline struct attention_scales attention_scales_of(float M, float m_c) {
    struct attention_scales s = {.M = M > m_c ? M : m_c};
    s.old = num_exp2(M - s.M);
    s.new = num_exp2(m_c - s.M);
    return s;
}

static inline float attention_folded(float sum, float block, struct attention_scales scales) {
    float kept = sum * scales.old, added = block * scales.new;
    return kept + added;
}

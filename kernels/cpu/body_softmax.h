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

// One row of a block: chains that `scale` makes scores.
struct softmax_row {
    float *chain; // [512]; p takes its place, as ELEMENTs
    float scale;
    struct attention_keys keys; // visible
    float m_c;                  // 0 without a visible key
    bool tight;                 // no exponent is below NUM_E_MIN, so no score is infinite
};

static inline bool softmax_at_edge(struct attention_keys keys, uint32_t i) {
    return i < keys.from || i + NUM_LANES > keys.to;
}

// The panel at i with `fill` in the lanes that are not visible.
static inline struct lanes softmax_keep(struct attention_keys keys, uint32_t i, struct lanes x,
                                        float fill) {
    return lanes_keep(x, keys.from > i ? keys.from - i : 0, keys.to - i, fill);
}

// Smallest and largest visible score: a positive factor keeps the order, rounding included.
static inline void softmax_bounds(struct softmax_row *row) {
    struct lanes min = lanes_set(INFINITY), max = lanes_set(-INFINITY);
    struct attention_keys keys = row->keys;
    for (uint32_t i = keys.from / NUM_LANES * NUM_LANES; i < keys.to; i += NUM_LANES) {
        struct lanes low = lanes_load(row->chain + i), high = low;
        if (softmax_at_edge(keys, i)) {
            low = softmax_keep(keys, i, low, INFINITY);
            high = softmax_keep(keys, i, high, -INFINITY);
        }
        min = lanes_min(min, low);
        max = lanes_max(max, high);
    }
    float lowest = lanes_min_of(min) * row->scale, highest = lanes_max_of(max) * row->scale;
    row->m_c = ceiling(highest);
    row->tight = lowest - row->m_c >= NUM_E_MIN;
}

// Where a score is more than its chain times a positive factor, scores take the chains' place.
static inline struct softmax_row softmax_row_of(const struct attention_call *c, float *chain,
                                                struct attention_keys keys) {
    struct softmax_row row = {.chain = chain, .scale = c->score_scale, .keys = keys};
    if (keys.from >= keys.to) return row;
    if (c->cap_scale != 0.0f || !(c->score_scale > 0.0f)) {
        for (uint32_t i = keys.from / NUM_LANES * NUM_LANES; i < keys.to; i += NUM_LANES)
            lanes_store(chain + i, attention_score(c, lanes_load(chain + i)));
        row.scale = 1.0f;
    }
    softmax_bounds(&row);
    return row;
}

struct softmax_sums {
    float l_c, w_c; // of p, and of the unrounded p where a row is watched
    bool finite;    // false where a score is not
};

// Chains of a tight row to weights, two panels at a time, as far as all keys from i on are visible.
// Returns the panel where it ends; adds what it stored to *sum.
static inline __attribute__((always_inline)) uint32_t softmax_pairs(const struct softmax_row *row,
                                                                    uint32_t i, struct lanes *sum) {
    ELEMENT *p = (ELEMENT *)row->chain;
    struct lanes scale = lanes_set(row->scale), at = lanes_set(row->m_c), added = *sum;
    if (i < row->keys.from) return i;
    for (; i + 2 * NUM_LANES <= row->keys.to; i += 2 * NUM_LANES) {
        struct lanes a = lanes_mul(lanes_load(row->chain + i), scale);
        struct lanes b = lanes_mul(lanes_load(row->chain + i + NUM_LANES), scale);
        a = lanes_exp2_inside(lanes_sub(a, at));
        b = lanes_exp2_inside(lanes_sub(b, at));
        added = element_store_added(p + i, a, b, added);
    }
    *sum = added;
    return i;
}

// Chains to weights p. In a tight row a NaN comes through the polynomial into l_c: the bits of its
// payload that the exponent's shift would move are 0, for q and k are bf16.
static inline __attribute__((always_inline)) struct softmax_sums
softmax_weights(const struct softmax_row *row, bool tight, bool watched) {
    ELEMENT *p = (ELEMENT *)row->chain;
    struct attention_keys keys = row->keys;
    struct lanes scale = lanes_set(row->scale), at = lanes_set(row->m_c);
    struct lanes sum = lanes_set(0.0f), all = sum;
    bool finite = true;
    for (uint32_t i = keys.from / NUM_LANES * NUM_LANES; i < keys.to; i += NUM_LANES) {
        if (tight && !watched && !BODY_F32) i = softmax_pairs(row, i, &sum);
        if (i >= keys.to) break;
        struct lanes score = lanes_mul(lanes_load(row->chain + i), scale), exact, rounded;
        bool edge = softmax_at_edge(keys, i);
        if (edge) score = softmax_keep(keys, i, score, row->m_c);
        if (BODY_F32 || !tight) finite &= lanes_finite(score);
        struct lanes x = lanes_sub(score, at);
        exact = tight ? lanes_exp2_inside(x) : lanes_exp2_below(x);
        rounded = tight ? operand_round_normal(exact) : operand_round(exact);
        if (edge) {
            exact = softmax_keep(keys, i, exact, 0.0f);
            rounded = softmax_keep(keys, i, rounded, 0.0f);
        }
        if (watched) all = lanes_add(all, exact);
        sum = lanes_add(sum, rounded);
        element_store(p + i, rounded);
    }
    struct softmax_sums sums = {.l_c = lanes_sum(sum), .finite = finite};
    if (watched) sums.w_c = lanes_sum(all);
    sums.finite &= sums.l_c == sums.l_c;
    return sums;
}

static inline void softmax_clear(float *chain, uint32_t from, uint32_t to) {
    ELEMENT *p = (ELEMENT *)chain;
    for (uint32_t i = from; i < to; i += NUM_LANES) element_store(p + i, lanes_set(0.0f));
}

// Chains of a row to weights, in place, and +0 for the rest of the panels [lo, hi) of the block.
static inline struct softmax_sums softmax(const struct softmax_row *row, uint32_t lo, uint32_t hi,
                                          bool watched) {
    struct attention_keys keys = row->keys;
    struct softmax_sums sums = {.finite = true};
    if (keys.from >= keys.to) {
        softmax_clear(row->chain, lo, hi);
        return sums;
    }
    if (watched)
        sums = row->tight ? softmax_weights(row, true, true) : softmax_weights(row, false, true);
    else
        sums = row->tight ? softmax_weights(row, true, false) : softmax_weights(row, false, false);
    softmax_clear(row->chain, lo, keys.from / NUM_LANES * NUM_LANES);
    softmax_clear(row->chain, (keys.to + NUM_LANES - 1) / NUM_LANES * NUM_LANES, hi);
    return sums;
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

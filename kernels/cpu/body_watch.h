// Shares of attention on ranges of keys, for the rows that a span's watch names. Included by each
// table, after body_softmax.h.
//
// The scores on a range are computed once more while its block is folded, from the same chains, so
// that nothing but the sum over all keys (w) need be kept from the block's own pass. Ranges are
// short where they matter: the words of a constraint.
#include "kernels/cpu/body.h"

static inline bool watch_sees(const struct attention_call *c, const struct attention_unit *u,
                              uint32_t r) {
    const struct cpu_watch *watch = u->span->watch;
    if (watch == NULL) return false;
    uint32_t token = attention_token(c, u, r);
    return token >= watch->first_row && token - watch->first_row < watch->rows;
}

// The shares of row r: one for each range.
static inline float *watch_shares(const struct attention_call *c, const struct attention_unit *u,
                                  uint32_t r) {
    const struct cpu_watch *watch = u->span->watch;
    size_t row = attention_token(c, u, r) - watch->first_row;
    return watch->shares + (row * c->a->H + attention_head(c, u, r)) * watch->count;
}

// The keys of the block at `base` that a row sees and a range holds.
static inline struct attention_keys watch_keys(struct attention_keys visible,
                                               const struct cpu_key_range *range, uint32_t base) {
    uint32_t from = range->first > base ? range->first - base : 0;
    uint32_t to = range->end > base ? range->end - base : 0;
    return (struct attention_keys){from > visible.from ? from : visible.from,
                                   to < visible.to ? to : visible.to};
}

// Sum of the unrounded p over `keys` by the lane rule; other lanes add +0. `scores` has room for a
// block, `k` is the block's K of the row's head.
static inline float watch_sum(const struct attention_call *c, const ELEMENT *q, const OPERAND *k,
                              struct attention_keys keys, float m_c, float *scores) {
    if (keys.from >= keys.to) return 0.0f;
    uint32_t E = c->a->E, panel = keys.from / CPU_PANEL;
    uint32_t panels = (keys.to + CPU_PANEL - 1) / CPU_PANEL - panel;
    size_t panel_elements = (size_t)CPU_PANEL * E;
    tile(q, E, 1, k + panel * panel_elements, panel_elements, panels, E, scores, CPU_PAGE);
    struct lanes sum = lanes_set(0.0f), at = lanes_set(m_c);
    for (uint32_t i = 0, key = panel * CPU_PANEL; i < panels; i++, key += CPU_PANEL) {
        struct lanes s = attention_score(c, lanes_load(scores + (size_t)i * CPU_PANEL));
        uint32_t from = keys.from > key ? keys.from - key : 0;
        s = lanes_keep(s, from, keys.to - key, -INFINITY);
        sum = lanes_add(sum, lanes_exp2_below(lanes_sub(s, at)));
    }
    return lanes_sum(sum);
}

// Folds the block at `base` of row r into its sums, as attention_fold does with l, and before it:
// M of `to` is still the old one. The scores of `to` serve as working memory.
static inline void watch_fold(const struct attention_call *c, const struct attention_slice *to,
                              const struct attention_slice *from, const struct attention_unit *u,
                              uint32_t r, const uint8_t *page, uint32_t base, bool first) {
    const struct cpu_watch *watch = u->span->watch;
    const OPERAND *k = (const OPERAND *)(page + c->a->page_offset) + u->g * c->k_head;
    struct attention_keys visible = attention_visible(from, r, base);
    ELEMENT *q = (ELEMENT *)(to->s + SHAPE_SCORE_STRIDE);
    element_copy(q, attention_query(c, u, r), c->a->E);
    struct attention_scales scales = attention_scales_of(to->M[r], from->m_c[r]);
    float *shares = watch_shares(c, u, r);
    to->w[r] = first ? from->w_c[r] : attention_folded(to->w[r], from->w_c[r], scales);
    for (uint32_t i = 0; i < watch->count; i++) {
        float sum =
            watch_sum(c, q, k, watch_keys(visible, &watch->ranges[i], base), from->m_c[r], to->s);
        shares[i] = first ? sum : attention_folded(shares[i], sum, scales);
    }
}

// From sums to shares, after the last block of row r.
static inline void watch_leave(const struct attention_call *c, const struct attention_slice *s,
                               const struct attention_unit *u, uint32_t r) {
    float *shares = watch_shares(c, u, r);
    for (uint32_t i = 0; i < u->span->watch->count; i++) shares[i] = shares[i] / s->w[r];
}

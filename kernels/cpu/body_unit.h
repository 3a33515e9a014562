// What one thread attends with: a unit of rows and the working memory for it. Included by each
// table, after body_kv.h.
#include "kernels/cpu/body.h"

// Rows that attend together: [row, row + rows) of (token, head in the group), token-major, of KV
// head g of a span.
struct attention_unit {
    const struct cpu_span *span;
    uint32_t g, row, rows;
};

// Row r of a unit: its token, counted within the span, and its query head.
static inline uint32_t attention_token(const struct attention_call *c,
                                       const struct attention_unit *u, uint32_t r) {
    return (u->row + r) / c->group;
}
static inline uint32_t attention_head(const struct attention_call *c,
                                      const struct attention_unit *u, uint32_t r) {
    return u->g * c->group + (u->row + r) % c->group;
}

static inline const OPERAND *attention_query(const struct attention_call *c,
                                             const struct attention_unit *u, uint32_t r) {
    size_t row = u->span->first_row + attention_token(c, u, r);
    return c->q + row * c->ldq + (size_t)attention_head(c, u, r) * c->a->E;
}

struct attention_keys {
    uint32_t from, to;
};

// One thread's working memory, from its slice.
struct attention_slice {
    ELEMENT *q; // [SHAPE_QUERY_ROWS][E]
    float *s;   // [SHAPE_QUERY_ROWS][512 of SHAPE_SCORE_STRIDE] scores; p overwrites them in place,
                // as ELEMENTs
    float *part, *o;  // [SHAPE_QUERY_ROWS][Ep] O_c and O
    float *M, *l;     // [SHAPE_QUERY_ROWS]
    float *m_c, *l_c; // [SHAPE_QUERY_ROWS] of the current block; l_c 0: no visible key
    float *w, *w_c;   // [SHAPE_QUERY_ROWS] like l and l_c of the unrounded p; watched rows
    uint32_t *first, *position; // [SHAPE_QUERY_ROWS] visible keys are first .. position
    float *expanded;            // [SHAPE_EXPANDED_FLOATS] expanded panels
};

#define WEIGHT_STRIDE (SHAPE_SCORE_STRIDE * sizeof(float) / sizeof(ELEMENT)) // of p, in elements

static struct attention_slice attention_slice_of(const struct attention_call *c,
                                                 const struct cpu_pool *pool, int thread) {
    uint8_t *start = pool_slice(pool, thread), *p = start;
    uint32_t E = c->a->E, Ep = c->Ep;
    struct attention_slice s;
    s.s = (float *)p;
    p += SHAPE_QUERY_ROWS * SHAPE_SCORE_STRIDE * sizeof(float);
    s.expanded = (float *)p;
    p += SHAPE_EXPANDED_FLOATS * sizeof(float);
    s.part = (float *)p;
    p += SHAPE_QUERY_ROWS * Ep * sizeof(float);
    s.o = (float *)p;
    p += SHAPE_QUERY_ROWS * Ep * sizeof(float);
    float **columns[] = {&s.M, &s.l, &s.m_c, &s.l_c, &s.w, &s.w_c};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        *columns[i] = (float *)p;
        p += SHAPE_QUERY_ROWS * sizeof(float);
    }
    s.first = (uint32_t *)p;
    p += SHAPE_QUERY_ROWS * sizeof(uint32_t);
    s.position = (uint32_t *)p;
    p += SHAPE_QUERY_ROWS * sizeof(uint32_t);
    s.q = (ELEMENT *)p;
    p += shape_aligned((size_t)SHAPE_QUERY_ROWS * E * sizeof(ELEMENT));
    assert((size_t)(p - start) <= pool->slice_bytes);
    return s;
}

// Lays out the queries of a unit and which keys each of its rows sees.
static inline void attention_enter(const struct attention_call *c, const struct attention_slice *s,
                                   const struct attention_unit *u) {
    uint32_t E = c->a->E, window = c->a->window;
    for (uint32_t r = 0; r < u->rows; r++) {
        element_copy(s->q + (size_t)r * E, attention_query(c, u, r), E);
        uint32_t position = u->span->first_position + attention_token(c, u, r);
        s->position[r] = position;
        s->first[r] = window != 0 && position >= window ? position - window + 1 : 0;
    }
}

// The keys [from, to) of the block at `base` that row r sees, counted within the block; none: from
// >= to.
static inline struct attention_keys attention_visible(const struct attention_slice *s, uint32_t r,
                                                      uint32_t base) {
    struct attention_keys keys = {.from = s->first[r] > base ? s->first[r] - base : 0};
    if (s->position[r] >= base)
        keys.to = s->position[r] - base < CPU_PAGE ? s->position[r] - base + 1 : CPU_PAGE;
    return keys;
}

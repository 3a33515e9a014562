// Attention over KV pages: blocks, rows, units. Included by each table, after body_kv.h.
//
// A unit of work is up to SHAPE_QUERY_ROWS rows (token, head) of one span that share a KV head. It
// walks the absolute blocks of 512 keys from left to right; every row keeps its own M, l, O, so
// what else is in the unit, the span or the call changes no bits.
#include "kernels/cpu/body.h"

// One thread's working memory, from its slice.
struct attention_slice {
    ELEMENT *q; // [SHAPE_QUERY_ROWS][E]
    float *s;   // [SHAPE_QUERY_ROWS][512 of SHAPE_SCORE_STRIDE] scores; p overwrites them in place,
                // as ELEMENTs
    float *part, *o;            // [SHAPE_QUERY_ROWS][Ep] O_c and O
    float *M, *l;               // [SHAPE_QUERY_ROWS]
    float *m_c, *l_c;           // [SHAPE_QUERY_ROWS] of the current block; l_c 0: no visible key
    uint32_t *first, *position; // [SHAPE_QUERY_ROWS] visible keys are first .. position
};

#define WEIGHT_STRIDE (SHAPE_SCORE_STRIDE * sizeof(float) / sizeof(ELEMENT)) // of p, in elements

static struct attention_slice attention_slice_of(const struct attention_call *c,
                                                 const struct cpu_pool *pool, int thread) {
    uint8_t *start = pool_slice(pool, thread), *p = start;
    uint32_t E = c->a->E, Ep = c->Ep;
    struct attention_slice s;
    s.s = (float *)p;
    p += SHAPE_QUERY_ROWS * SHAPE_SCORE_STRIDE * sizeof(float);
    s.part = (float *)p;
    p += SHAPE_QUERY_ROWS * Ep * sizeof(float);
    s.o = (float *)p;
    p += SHAPE_QUERY_ROWS * Ep * sizeof(float);
    float **columns[] = {&s.M, &s.l, &s.m_c, &s.l_c};
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
// Visible are [from, to). Returns false when a visible score is not finite.
static inline bool attention_weights(const struct attention_call *c, float *row, uint32_t lo,
                                     uint32_t hi, uint32_t from, uint32_t to, float *m_c,
                                     float *l_c) {
    ELEMENT *p = (ELEMENT *)row;
    *l_c = 0.0f;
    *m_c = 0.0f;
    struct lanes max = lanes_set(-INFINITY), sum = lanes_set(0.0f);
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
        struct lanes e = operand_round(lanes_exp2_below(lanes_sub(lanes_load(row + i), at)));
        sum = lanes_add(sum, e);
        element_store(p + i, e);
    }
    for (uint32_t i = end; i < hi; i += NUM_LANES) element_store(p + i, zero);
    *l_c = lanes_sum(sum);
    return finite;
}

// O_c of all rows of a unit: p times V over the keys [lo, hi) of the block, without the final +
// (+0).
static inline void attention_values(const struct attention_call *c, const struct attention_slice *s,
                                    uint32_t rows, const OPERAND *v, uint32_t lo, uint32_t hi) {
    const ELEMENT *p = (const ELEMENT *)s->s;
    uint32_t from = BODY_F32 ? lo : lo / 2 * 2, to = BODY_F32 ? hi : hi / 2 * 2;
    for (uint32_t r = 0, n; r < rows; r += n) {
        n = rows - r < TILE_ROWS ? rows - r : TILE_ROWS;
        tile(p + r * WEIGHT_STRIDE + from, WEIGHT_STRIDE, n, v + (size_t)from * CPU_PANEL,
             c->v_panel, c->Ep / CPU_PANEL, to - from, s->part + (size_t)r * c->Ep, c->Ep);
    }
    if (to == hi) return;
    // The last key has no partner yet: its slot in the page may hold anything and is not read.
    for (uint32_t r = 0; r < rows; r++) {
        float weight = element_value(p[r * WEIGHT_STRIDE + to]);
        float *part = s->part + (size_t)r * c->Ep;
        for (uint32_t e = 0; e < c->Ep; e++) {
            const OPERAND *panel = v + e / CPU_PANEL * c->v_panel + (size_t)to * CPU_PANEL;
            part[e] = fmaf(weight, operand_value(panel[e % CPU_PANEL * 2]), part[e]);
        }
    }
}

// Folds a block of one row, row r of `from`, into M, l and O of row r of `to`.
static inline void attention_fold(const struct attention_call *c, const struct attention_slice *to,
                                  const struct attention_slice *from, uint32_t r, bool first) {
    float *o = to->o + (size_t)r * c->Ep;
    const float *part = from->part + (size_t)r * c->Ep;
    struct lanes zero = lanes_set(0.0f);
    if (first) {
        to->M[r] = from->m_c[r];
        to->l[r] = from->l_c[r];
        for (uint32_t e = 0; e < c->Ep; e += NUM_LANES)
            lanes_store(o + e, lanes_add(lanes_load(part + e), zero));
        return;
    }
    float M = to->M[r] > from->m_c[r] ? to->M[r] : from->m_c[r];
    float old = num_exp2(to->M[r] - M), new = num_exp2(from->m_c[r] - M);
    float kept = to->l[r] * old, added = from->l_c[r] * new;
    to->M[r] = M;
    to->l[r] = kept + added;
    for (uint32_t e = 0; e < c->Ep; e += NUM_LANES) {
        struct lanes block = lanes_add(lanes_load(part + e), zero);
        lanes_store(o + e, lanes_add(lanes_mul(lanes_load(o + e), lanes_set(old)),
                                     lanes_mul(block, lanes_set(new))));
    }
}

// Folds block `base` of all rows that see a key of it.
static inline void attention_fold_rows(const struct attention_call *c,
                                       const struct attention_slice *to,
                                       const struct attention_slice *from, uint32_t rows,
                                       uint32_t base) {
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t start = from->first[r] > base ? from->first[r] : base;
        if (start - base >= CPU_PAGE || start > from->position[r]) continue;
        attention_fold(c, to, from, r, start == from->first[r]);
    }
}

// m_c, l_c and O_c of one block of 512 keys for all rows of a unit. Returns the first row (of the
// unit) with a score that is not finite, or `rows`.
static inline uint32_t attention_block(const struct attention_call *c,
                                       const struct attention_slice *s, uint32_t rows, uint32_t g,
                                       const uint8_t *page, uint32_t base) {
    uint32_t first = s->first[0], last = s->position[rows - 1];
    uint32_t lo = first > base ? first - base : 0;
    uint32_t hi = last - base < CPU_PAGE ? last - base + 1 : CPU_PAGE;
    uint32_t panel = lo / CPU_PANEL, panels = (hi + CPU_PANEL - 1) / CPU_PANEL - panel;
    uint32_t E = c->a->E, bad = rows;
    const OPERAND *layer = (const OPERAND *)(page + c->a->page_offset);
    const OPERAND *k = layer + g * c->k_head, *v = layer + c->v_elements + g * c->v_head;
    for (uint32_t r = 0, n; r < rows; r += n) {
        n = rows - r < TILE_ROWS ? rows - r : TILE_ROWS;
        tile(s->q + (size_t)r * E, E, n, k + (size_t)panel * CPU_PANEL * E, (size_t)CPU_PANEL * E,
             panels, E, s->s + (size_t)r * SHAPE_SCORE_STRIDE + panel * CPU_PANEL,
             SHAPE_SCORE_STRIDE);
    }
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t from = s->first[r] > base ? s->first[r] - base : 0, to = 0;
        if (s->position[r] >= base)
            to = s->position[r] - base < CPU_PAGE ? s->position[r] - base + 1 : CPU_PAGE;
        if (!attention_weights(c, s->s + (size_t)r * SHAPE_SCORE_STRIDE, panel * CPU_PANEL,
                               (panel + panels) * CPU_PANEL, from, to, &s->m_c[r], &s->l_c[r]) &&
            r < bad)
            bad = r;
    }
    attention_values(c, s, rows, v, lo, hi);
    return bad;
}

// Rows that attend together: [row, row + rows) of (token, head in the group), token-major, of KV
// head g of a span.
struct attention_unit {
    const struct cpu_span *span;
    uint32_t g, row, rows;
};

// Lays out the queries of a unit and which keys each of its rows sees.
static inline void attention_enter(const struct attention_call *c, const struct attention_slice *s,
                                   const struct attention_unit *u) {
    uint32_t E = c->a->E, window = c->a->window;
    for (uint32_t r = 0; r < u->rows; r++) {
        uint32_t token = (u->row + r) / c->group;
        uint32_t head = u->g * c->group + (u->row + r) % c->group;
        element_copy(s->q + (size_t)r * E,
                     c->q + (size_t)(u->span->first_row + token) * c->ldq + (size_t)head * E, E);
        uint32_t position = u->span->first_position + token;
        s->position[r] = position;
        s->first[r] = window != 0 && position >= window ? position - window + 1 : 0;
    }
}

// O x (1 / l) of the rows of a unit, as operands.
static inline void attention_leave(const struct attention_call *c, const struct attention_slice *s,
                                   const struct attention_unit *u) {
    uint32_t E = c->a->E;
    for (uint32_t r = 0; r < u->rows; r++) {
        uint32_t token = (u->row + r) / c->group;
        uint32_t head = u->g * c->group + (u->row + r) % c->group;
        OPERAND *out = c->out + (size_t)(u->span->first_row + token) * c->ldout + (size_t)head * E;
        struct lanes inverse = lanes_set(1.0f / s->l[r]);
        for (uint32_t e = 0; e < E; e += NUM_LANES) {
            struct lanes o = lanes_mul(lanes_load(s->o + (size_t)r * c->Ep + e), inverse);
            if (e + NUM_LANES <= E)
                operand_store(out + e, o);
            else
                operand_store_n(out + e, o, E - e);
        }
    }
}

// The row of the call that row `bad` of a unit belongs to; UINT32_MAX when it is none of its rows.
static inline uint32_t attention_bad_row(const struct attention_call *c,
                                         const struct attention_unit *u, uint32_t bad) {
    return bad < u->rows ? u->span->first_row + (u->row + bad) / c->group : UINT32_MAX;
}

// A whole unit. Returns the row of the call whose score is not finite, or UINT32_MAX.
ENV_WORK uint32_t attention_work(const struct attention_call *c, const struct attention_slice *s,
                                 const struct attention_unit *u) {
    attention_enter(c, s, u);
    uint32_t first = s->first[0], last = s->position[u->rows - 1], bad = u->rows;
    for (uint32_t block = first / CPU_PAGE; block <= last / CPU_PAGE; block++) {
        uint32_t b = attention_block(c, s, u->rows, u->g, u->span->pages[block], block * CPU_PAGE);
        bad = b < bad ? b : bad;
        attention_fold_rows(c, s, s, u->rows, block * CPU_PAGE);
    }
    attention_leave(c, s, u);
    return attention_bad_row(c, u, bad);
}

static inline uint32_t attention_units(const struct attention_call *c,
                                       const struct cpu_span *span) {
    return (span->rows * c->group + SHAPE_QUERY_ROWS - 1) / SHAPE_QUERY_ROWS * c->a->G;
}

// Unit number `unit` of the call. Units of one KV head are neighbours, so its pages stay in cache.
static struct attention_unit attention_unit_of(const struct attention_call *c, uint32_t unit) {
    struct attention_unit u = {.span = c->spans};
    for (uint32_t n; unit >= (n = attention_units(c, u.span)); u.span++) unit -= n;
    uint32_t per_head = attention_units(c, u.span) / c->a->G, all = u.span->rows * c->group;
    u.g = unit / per_head;
    u.row = unit % per_head * SHAPE_QUERY_ROWS;
    u.rows = all - u.row < SHAPE_QUERY_ROWS ? all - u.row : SHAPE_QUERY_ROWS;
    return u;
}

// Units shared among threads as they come.
static uint32_t attention_all(const struct attention_call *c, const struct cpu_pool *pool,
                              int threads) {
    uint32_t units = 0, bad = UINT32_MAX;
    for (uint32_t i = 0; i < c->count; i++) units += attention_units(c, &c->spans[i]);
#pragma omp parallel num_threads(threads) reduction(min : bad)
    {
        struct attention_slice s = attention_slice_of(c, pool, omp_get_thread_num());
        unsigned saved = env_enter();
#pragma omp for schedule(dynamic)
        for (uint32_t unit = 0; unit < units; unit++) {
            struct attention_unit u = attention_unit_of(c, unit);
            uint32_t b = attention_work(c, &s, &u);
            bad = b < bad ? b : bad;
        }
        env_leave(saved);
    }
    return bad;
}

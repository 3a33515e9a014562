// Attention over KV pages: blocks, rows, units. Included by each table, after body_watch.h.
//
// A unit of work is up to SHAPE_QUERY_ROWS rows (token, head) of one span that share a KV head. It
// walks the absolute blocks of 512 keys from left to right; every row keeps its own M, l, O, so
// what else is in the unit, the span or the call changes no bits.
#include "kernels/cpu/body.h"

// O_c of all rows of a unit: p times V over the keys [lo, hi) of the block, without the final +
// (+0). Few rows ask for memory at `next`, or within V where it is NULL.
static inline void attention_values(const struct attention_call *c, const struct attention_slice *s,
                                    uint32_t rows, const OPERAND *v, uint32_t lo, uint32_t hi,
                                    const struct ahead *next) {
    const ELEMENT *p = (const ELEMENT *)s->s;
    uint32_t from = BODY_F32 ? lo : lo / 2 * 2, to = BODY_F32 ? hi : hi / 2 * 2;
    uint32_t done =
        expanded_tile(p + from, WEIGHT_STRIDE, rows, v + (size_t)from * CPU_PANEL, c->v_panel,
                      c->Ep / CPU_PANEL, to - from, s->part, c->Ep, s->expanded);
    for (uint32_t r = done, n; r < rows; r += n) {
        n = rows - r < TILE_ROWS ? rows - r : TILE_ROWS;
        tile_ahead(p + r * WEIGHT_STRIDE + from, WEIGHT_STRIDE, n, v + (size_t)from * CPU_PANEL,
                   c->v_panel, c->Ep / CPU_PANEL, to - from, next, s->part + (size_t)r * c->Ep,
                   c->Ep);
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
    struct attention_scales scales = attention_scales_of(to->M[r], from->m_c[r]);
    to->M[r] = scales.M;
    to->l[r] = attention_folded(to->l[r], from->l_c[r], scales);
    for (uint32_t e = 0; e < c->Ep; e += NUM_LANES) {
        struct lanes block = lanes_add(lanes_load(part + e), zero);
        lanes_store(o + e, lanes_add(lanes_mul(lanes_load(o + e), lanes_set(scales.old)),
                                     lanes_mul(block, lanes_set(scales.new))));
    }
}

// Folds the block at `base` of all rows of a unit that see a key of it.
static inline void attention_fold_rows(const struct attention_call *c,
                                       const struct attention_slice *to,
                                       const struct attention_slice *from,
                                       const struct attention_unit *u, const uint8_t *page,
                                       uint32_t base) {
    for (uint32_t r = 0; r < u->rows; r++) {
        struct attention_keys keys = attention_visible(from, r, base);
        if (keys.from >= keys.to) continue;
        bool first = base + keys.from == from->first[r];
        if (watch_sees(c, u, r)) watch_fold(c, to, from, u, r, page, base, first);
        attention_fold(c, to, from, r, first);
    }
}

static inline struct softmax_row attention_row(const struct attention_call *c,
                                               const struct attention_slice *s, uint32_t r,
                                               uint32_t base) {
    return softmax_row_of(c, s->s + (size_t)r * SHAPE_SCORE_STRIDE, attention_visible(s, r, base));
}

// Where a head's K begins in a page.
static inline const OPERAND *attention_keys_of(const struct attention_call *c, const uint8_t *page,
                                               uint32_t g) {
    return (const OPERAND *)(page + c->a->page_offset) + g * c->k_head;
}

// m_c, l_c and O_c of one block of 512 keys for all rows of a unit. Returns the first row (of the
// unit) with a score that is not finite, or `rows`. Few rows are done with a block before the next
// one has come from memory: V is asked for while K is read, and K of the page `next` (NULL: none)
// while V is, line by line, for both are of one size.
static inline uint32_t attention_block(const struct attention_call *c,
                                       const struct attention_slice *s,
                                       const struct attention_unit *u, const uint8_t *page,
                                       const uint8_t *next, uint32_t base) {
    uint32_t rows = u->rows, g = u->g;
    uint32_t first = s->first[0], last = s->position[rows - 1];
    uint32_t lo = first > base ? first - base : 0;
    uint32_t hi = last - base < CPU_PAGE ? last - base + 1 : CPU_PAGE;
    uint32_t panel = lo / CPU_PANEL, panels = (hi + CPU_PANEL - 1) / CPU_PANEL - panel;
    uint32_t E = c->a->E, bad = rows;
    const OPERAND *k = attention_keys_of(c, page, g);
    const OPERAND *v = attention_keys_of(c, page, 0) + c->v_elements + g * c->v_head;
    const OPERAND *visible = k + (size_t)panel * CPU_PANEL * E;
    uint32_t done = expanded_tile(s->q, E, rows, visible, (size_t)CPU_PANEL * E, panels, E,
                                  s->s + panel * CPU_PANEL, SHAPE_SCORE_STRIDE, s->expanded);
    struct ahead values = {(const char *)v, 64}, keys = {NULL, 64};
    if (next != NULL) keys.next = (const char *)attention_keys_of(c, next, g);
    for (uint32_t r = done, n; r < rows; r += n) {
        n = rows - r < TILE_ROWS ? rows - r : TILE_ROWS;
        tile_ahead(s->q + (size_t)r * E, E, n, visible, (size_t)CPU_PANEL * E, panels, E,
                   panels == CPU_PAGE / CPU_PANEL ? &values : NULL,
                   s->s + (size_t)r * SHAPE_SCORE_STRIDE + panel * CPU_PANEL, SHAPE_SCORE_STRIDE);
    }
    // The next row's largest score is sought while this row's weights are computed.
    struct softmax_row after = attention_row(c, s, 0, base), row;
    for (uint32_t r = 0; r < rows; r++) {
        row = after;
        if (r + 1 < rows) after = attention_row(c, s, r + 1, base);
        struct softmax_sums sums =
            softmax(&row, panel * CPU_PANEL, (panel + panels) * CPU_PANEL, watch_sees(c, u, r));
        s->m_c[r] = row.m_c;
        s->l_c[r] = sums.l_c;
        s->w_c[r] = sums.w_c;
        if (!sums.finite && r < bad) bad = r;
    }
    attention_values(c, s, rows, v, lo, hi, keys.next != NULL ? &keys : NULL);
    return bad;
}

// O x (1 / l) of the rows of a unit, as operands.
static inline void attention_leave(const struct attention_call *c, const struct attention_slice *s,
                                   const struct attention_unit *u) {
    uint32_t E = c->a->E;
    for (uint32_t r = 0; r < u->rows; r++) {
        size_t row = u->span->first_row + attention_token(c, u, r);
        OPERAND *out = c->out + row * c->ldout + (size_t)attention_head(c, u, r) * E;
        struct lanes inverse = lanes_set(1.0f / s->l[r]);
        for (uint32_t e = 0; e < E; e += NUM_LANES) {
            struct lanes o = lanes_mul(lanes_load(s->o + (size_t)r * c->Ep + e), inverse);
            if (e + NUM_LANES <= E)
                operand_store(out + e, o);
            else
                operand_store_n(out + e, o, E - e);
        }
        if (watch_sees(c, u, r)) watch_leave(c, s, u, r);
    }
}

// The row of the call that row `bad` of a unit belongs to; UINT32_MAX when it is none of its rows.
static inline uint32_t attention_bad_row(const struct attention_call *c,
                                         const struct attention_unit *u, uint32_t bad) {
    return bad < u->rows ? u->span->first_row + attention_token(c, u, bad) : UINT32_MAX;
}

// A whole unit. Returns the row of the call whose score is not finite, or UINT32_MAX.
ENV_WORK uint32_t attention_work(const struct attention_call *c, const struct attention_slice *s,
                                 const struct attention_unit *u) {
    attention_enter(c, s, u);
    uint32_t first = s->first[0], last = s->position[u->rows - 1], bad = u->rows;
    for (uint32_t block = first / CPU_PAGE; block <= last / CPU_PAGE; block++) {
        const uint8_t *page = u->span->pages[block];
        const uint8_t *next = block < last / CPU_PAGE ? u->span->pages[block + 1] : NULL;
        uint32_t b = attention_block(c, s, u, page, next, block * CPU_PAGE);
        bad = b < bad ? b : bad;
        attention_fold_rows(c, s, s, u, page, block * CPU_PAGE);
    }
    attention_leave(c, s, u);
    return attention_bad_row(c, u, bad);
}

static inline uint32_t attention_unit_count(const struct attention_call *c,
                                            const struct cpu_span *span) {
    return (span->rows * c->group + SHAPE_QUERY_ROWS - 1) / SHAPE_QUERY_ROWS * c->a->G;
}

// Unit number `unit` of the call. Units of one KV head are neighbours, so its pages stay in cache.
static struct attention_unit attention_unit_of(const struct attention_call *c, uint32_t unit) {
    struct attention_unit u = {.span = c->spans};
    for (uint32_t n; unit >= (n = attention_unit_count(c, u.span)); u.span++) unit -= n;
    uint32_t per_head = attention_unit_count(c, u.span) / c->a->G, all = u.span->rows * c->group;
    u.g = unit / per_head;
    u.row = unit % per_head * SHAPE_QUERY_ROWS;
    u.rows = all - u.row < SHAPE_QUERY_ROWS ? all - u.row : SHAPE_QUERY_ROWS;
    return u;
}

struct attention_units {
    const struct attention_call *c;
    const struct cpu_pool *pool;
    uint32_t count;
    _Atomic uint32_t next, bad;
};

// Units shared among threads as they come.
static void attention_part(void *work, int thread, int n) {
    (void)n;
    struct attention_units *w = work;
    struct attention_slice s = attention_slice_of(w->c, w->pool, thread);
    unsigned saved = env_enter();
    for (uint32_t unit; (unit = atomic_fetch_add(&w->next, 1)) < w->count;) {
        struct attention_unit u = attention_unit_of(w->c, unit);
        team_report(&w->bad, attention_work(w->c, &s, &u));
    }
    env_leave(saved);
}

static uint32_t attention_all(const struct attention_call *c, const struct cpu_pool *pool,
                              int threads) {
    struct attention_units work = {.c = c, .pool = pool, .bad = UINT32_MAX};
    for (uint32_t i = 0; i < c->count; i++) work.count += attention_unit_count(c, &c->spans[i]);
    team_run(pool->team, threads, attention_part, &work);
    return work.bad;
}

// The attention op, and its way for few rows over many keys, as in decoding: the blocks of a unit
// are computed by different threads, then folded from left to right by one. The order of folding is
// that of attention_work, so the bits are too. Included by each table, after body_attention.h.
#include "kernels/cpu/body.h"

// Work is done in waves. In a wave every thread computes up to `per_thread` items, each into rows
// of its own slice; then each unit's items are folded by the thread that owns the unit. An item is
// (unit, block), numbered unit by unit and, within one, from left to right.
struct decode_plan {
    uint32_t unit_rows;  // rows reserved for a unit: the most that one has
    uint32_t per_thread; // items that fit into a slice
    uint32_t units, items;
};

// A unit with its place among the items.
struct decode_unit {
    struct attention_unit u;
    uint32_t first_item, first_block, blocks;
};

static inline uint32_t decode_blocks(const struct attention_call *c, const struct cpu_span *span,
                                     uint32_t *first_block) {
    uint32_t window = c->a->window, position = span->first_position;
    uint32_t first = window != 0 && position >= window ? position - window + 1 : 0;
    *first_block = first / CPU_PAGE;
    return (position + span->rows - 1) / CPU_PAGE - *first_block + 1;
}

static struct decode_plan decode_plan_of(const struct attention_call *c) {
    struct decode_plan p = {0};
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t rows = c->spans[i].rows * c->group, first;
        p.unit_rows = rows > p.unit_rows ? rows : p.unit_rows;
        p.units += c->a->G;
        p.items += c->a->G * decode_blocks(c, &c->spans[i], &first);
    }
    p.per_thread = SHAPE_QUERY_ROWS / p.unit_rows;
    return p;
}

// Worth it when there are too few units for the threads; possible when even one thread alone could
// hold all of them.
static bool decode_fits(const struct decode_plan *p, int threads) {
    return threads > 1 && p->items > p->units && p->units < 4 * (uint32_t)threads &&
           p->per_thread >= 2 && p->units <= p->per_thread;
}

static struct decode_unit decode_unit_of(const struct attention_call *c, uint32_t unit) {
    struct decode_unit d = {.u = {.span = c->spans}};
    d.blocks = decode_blocks(c, d.u.span, &d.first_block);
    for (; unit >= c->a->G; unit -= c->a->G) {
        d.first_item += c->a->G * d.blocks;
        d.u.span++;
        d.blocks = decode_blocks(c, d.u.span, &d.first_block);
    }
    d.u.g = unit;
    d.u.rows = d.u.span->rows * c->group;
    d.first_item += unit * d.blocks;
    return d;
}

// A slice seen from row `row` on: q and s, which live no longer than an item, stay where they are.
static inline struct attention_slice
decode_rows(const struct attention_call *c, const struct cpu_pool *pool, int thread, uint32_t row) {
    struct attention_slice s = attention_slice_of(c, pool, thread);
    s.part += (size_t)row * c->Ep;
    s.o += (size_t)row * c->Ep;
    s.M += row;
    s.l += row;
    s.m_c += row;
    s.l_c += row;
    s.w += row;
    s.w_c += row;
    s.first += row;
    s.position += row;
    return s;
}

// Item k of a thread in a wave, number `item` of all; its next one follows `threads` further.
// Returns as attention_work does.
ENV_WORK uint32_t decode_item(const struct attention_call *c, const struct cpu_pool *pool,
                              const struct decode_plan *p, uint32_t threads, int thread, uint32_t k,
                              uint32_t item) {
    struct attention_slice s = decode_rows(c, pool, thread, k * p->unit_rows);
    struct decode_unit d = decode_unit_of(c, 0);
    for (uint32_t unit = 0; item >= d.first_item + d.blocks;) d = decode_unit_of(c, ++unit);
    uint32_t block = d.first_block + item - d.first_item;
    attention_enter(c, &s, &d.u);
    bool more = block + threads < d.first_block + d.blocks;
    const uint8_t *next = more ? d.u.span->pages[block + threads] : NULL;
    uint32_t bad = attention_block(c, &s, &d.u, d.u.span->pages[block], next, block * CPU_PAGE);
    return attention_bad_row(c, &d.u, bad);
}

// Folds the items [start, end) of a wave that belong to a unit; after its last one, writes its
// rows.
ENV_WORK void decode_fold(const struct attention_call *c, const struct cpu_pool *pool,
                          const struct decode_plan *p, uint32_t unit, uint32_t threads,
                          uint32_t start, uint32_t end) {
    struct decode_unit d = decode_unit_of(c, unit);
    struct attention_slice home =
        decode_rows(c, pool, (int)(unit % threads), unit / threads * p->unit_rows);
    uint32_t last = d.first_item + d.blocks;
    uint32_t item = d.first_item > start ? d.first_item : start;
    for (; item < last && item < end; item++) {
        uint32_t at = item - start;
        struct attention_slice s =
            decode_rows(c, pool, (int)(at % threads), at / threads * p->unit_rows);
        uint32_t block = d.first_block + item - d.first_item;
        attention_fold_rows(c, &home, &s, &d.u, d.u.span->pages[block], block * CPU_PAGE);
    }
    if (start < last && last <= end) attention_leave(c, &home, &d.u);
}

struct decode_work {
    const struct attention_call *c;
    const struct cpu_pool *pool;
    const struct decode_plan *p;
    _Atomic uint32_t bad;
};

static void decode_part(void *work, int thread, int threads) {
    struct decode_work *w = work;
    const struct decode_plan *p = w->p;
    uint32_t n = (uint32_t)threads, me = (uint32_t)thread, bad = UINT32_MAX;
    unsigned saved = env_enter();
    for (uint32_t start = 0; start < p->items; start += n * p->per_thread) {
        uint32_t end = start + n * p->per_thread;
        end = end < p->items ? end : p->items;
        for (uint32_t item = start + me, k = 0; item < end; item += n, k++) {
            uint32_t b = decode_item(w->c, w->pool, p, n, thread, k, item);
            bad = b < bad ? b : bad;
        }
        team_meet(w->pool->team, threads);
        for (uint32_t unit = me; unit < p->units; unit += n)
            decode_fold(w->c, w->pool, p, unit, n, start, end);
        if (end < p->items) team_meet(w->pool->team, threads);
    }
    env_leave(saved);
    team_report(&w->bad, bad);
}

static uint32_t decode(const struct attention_call *c, const struct cpu_pool *pool,
                       const struct decode_plan *p, int threads) {
    struct decode_work work = {c, pool, p, UINT32_MAX};
    team_run(pool->team, threads, decode_part, &work);
    return work.bad;
}

static int attention(const struct cpu_pool *pool, const struct cpu_span *spans, uint32_t count,
                     const struct cpu_attention *a, const void *q, uint32_t ldq, void *out,
                     uint32_t ldout, uint32_t *bad_row) {
    assert(a->G > 0 && a->H % a->G == 0 && a->E % 2 == 0);
    struct attention_call c = attention_call_of(a);
    c.spans = spans;
    c.count = count;
    c.q = q;
    c.ldq = ldq;
    c.out = out;
    c.ldout = ldout;
    uint64_t work = 0;
    for (uint32_t i = 0; i < count; i++) {
        assert(spans[i].rows > 0);
        const struct cpu_watch *watch = spans[i].watch;
        assert(watch == NULL || (watch->first_row <= spans[i].rows &&
                                 watch->rows <= spans[i].rows - watch->first_row));
        work += (uint64_t)spans[i].rows * (spans[i].first_position + spans[i].rows) * a->H * a->E;
    }
    int threads = pool_threads(pool, work);
    struct decode_plan plan = decode_plan_of(&c);
    uint32_t bad = decode_fits(&plan, threads) ? decode(&c, pool, &plan, threads)
                                               : attention_all(&c, pool, threads);
    if (bad == UINT32_MAX) return 0;
    *bad_row = bad;
    return -1;
}

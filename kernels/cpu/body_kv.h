// The shape of an attention call, and writing K and V to their pages. Included by each table.
#include "kernels/cpu/body.h"

#define KV_NUMERICS (BODY_F32 ? CPU_F32 : CPU_BF16_1)
#define ATTENTION_LOG2_E 0x1.71547652b82fep+0

struct attention_call {
    const struct cpu_span *spans;
    uint32_t count;
    const struct cpu_attention *a;
    const OPERAND *q;
    uint32_t ldq;
    OPERAND *out;
    uint32_t ldout;
    uint32_t group;            // query heads of one KV head
    uint32_t Ep;               // E rounded up to whole panels
    float score_scale;         // chain -> exponent of 2, or -> argument of tanh with a softcap
    float cap_scale;           // tanh -> exponent of 2; 0 without a softcap
    size_t k_head, v_elements; // operands of one head's K in a page; of a layer's K, before V
    size_t v_head, v_panel;    // operands of one head's V, of one panel of it
};

static struct attention_call attention_call_of(const struct cpu_attention *a) {
    struct attention_call c = {.a = a, .group = a->H / a->G};
    c.Ep = shape_panels(a->E) * CPU_PANEL;
    c.k_head = (size_t)CPU_PAGE * a->E;
    c.v_head = (size_t)CPU_PAGE * c.Ep;
    c.v_panel = (size_t)CPU_PAGE * CPU_PANEL;
    c.v_elements = cpu_kv_bytes(KV_NUMERICS, a->G, a->E) / sizeof(OPERAND);
    if (a->softcap != 0) {
        c.score_scale = (float)(a->scale / a->softcap);
        c.cap_scale = (float)(a->softcap * ATTENTION_LOG2_E);
    } else {
        c.score_scale = (float)(a->scale * ATTENTION_LOG2_E);
    }
    return c;
}

struct kv_append_call {
    struct attention_call c;
    const OPERAND *k, *v;
    uint32_t ld;
};

// Where a token's K of head g begins, in its lane of the panel.
static inline OPERAND *kv_key(const struct attention_call *c, uint8_t *page, uint32_t slot,
                              uint32_t g) {
    OPERAND *panel = (OPERAND *)(page + c->a->page_offset) + g * c->k_head +
                     (size_t)(slot / CPU_PANEL) * CPU_PANEL * c->a->E;
    return panel + slot % CPU_PANEL * (BODY_F32 ? 1 : 2);
}

// A key lies on as many lines as it has pairs, and they are far away when one token comes at a
// time: all are asked for before the first is written.
static inline void kv_prefetch_key(const struct attention_call *c, uint8_t *page, uint32_t slot,
                                   uint32_t g) {
    const OPERAND *key = kv_key(c, page, slot, g);
    for (uint32_t e = 0; e < c->a->E; e += BODY_F32 ? 1 : 2)
        __builtin_prefetch(key + (size_t)e * CPU_PANEL, 1, 3);
}

// One token's K and V of head g to their places. Returns false when a value is not finite.
ENV_WORK bool kv_append_head(const struct attention_call *c, uint8_t *page, uint32_t slot,
                             uint32_t g, const OPERAND *k, const OPERAND *v) {
    OPERAND *key = kv_key(c, page, slot, g);
    OPERAND *v_head = (OPERAND *)(page + c->a->page_offset) + c->v_elements + g * c->v_head;
    bool finite = true;
    for (uint32_t e = 0; e < c->a->E; e++) {
        finite &= operand_finite(k[e]) && operand_finite(v[e]);
#if BODY_F32
        key[(size_t)e * CPU_PANEL] = k[e];
        v_head[e / CPU_PANEL * c->v_panel + (size_t)slot * CPU_PANEL + e % CPU_PANEL] = v[e];
#else
        key[(size_t)(e / 2) * 2 * CPU_PANEL + e % 2] = k[e];
        v_head[e / CPU_PANEL * c->v_panel + (size_t)(slot / 2) * 2 * CPU_PANEL +
               2 * (e % CPU_PANEL) + slot % 2] = v[e];
#endif
    }
    return finite;
}

// Item `item` of a span, head-major, so that threads write to different heads. Returns its row when
// a value is not finite, else UINT32_MAX.
static uint32_t kv_append_item(const struct kv_append_call *call, const struct cpu_span *span,
                               uint32_t item) {
    const struct attention_call *c = &call->c;
    uint32_t g = item / span->rows, t = item % span->rows, row = span->first_row + t;
    uint32_t position = span->first_position + t;
    size_t at = (size_t)row * call->ld + (size_t)g * c->a->E;
    bool finite = kv_append_head(c, span->pages[position / CPU_PAGE], position % CPU_PAGE, g,
                                 call->k + at, call->v + at);
    return finite ? UINT32_MAX : row;
}

struct kv_append_work {
    const struct kv_append_call *call;
    const struct cpu_span *span;
    _Atomic uint32_t bad;
};

static void kv_append_part(void *work, int thread, int n) {
    struct kv_append_work *w = work;
    uint32_t from, to, bad = UINT32_MAX;
    team_part(w->span->rows * w->call->c.a->G, thread, n, &from, &to);
    for (uint32_t item = from; item < to; item++) {
        uint32_t row = kv_append_item(w->call, w->span, item);
        bad = row < bad ? row : bad;
    }
    team_report(&w->bad, bad);
}

static uint32_t kv_append_span(const struct cpu_pool *pool, const struct kv_append_call *call,
                               const struct cpu_span *span) {
    struct kv_append_work work = {call, span, UINT32_MAX};
    int threads = pool_threads(pool, (uint64_t)span->rows * call->c.a->G * call->c.a->E * 4);
    team_run(pool->team, threads, kv_append_part, &work);
    return work.bad;
}

static int kv_append(const struct cpu_pool *pool, const struct cpu_span *spans, uint32_t count,
                     const struct cpu_attention *a, const void *k, const void *v, uint32_t ld,
                     uint32_t *bad_row) {
    struct kv_append_call call = {.c = attention_call_of(a), .k = k, .v = v, .ld = ld};
    uint32_t bad = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t g = 0; spans[i].rows == 1 && g < a->G; g++)
            kv_prefetch_key(&call.c, spans[i].pages[spans[i].first_position / CPU_PAGE],
                            spans[i].first_position % CPU_PAGE, g);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = kv_append_span(pool, &call, &spans[i]);
        bad = row < bad ? row : bad;
    }
    if (bad == UINT32_MAX) return 0;
    *bad_row = bad;
    return -1;
}

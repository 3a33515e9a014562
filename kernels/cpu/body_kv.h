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

// One token's K and V of head g to their places. Returns false when a value is not finite.
ENV_WORK bool kv_append_head(const struct attention_call *c, uint8_t *page, uint32_t slot,
                             uint32_t g, const OPERAND *k, const OPERAND *v) {
    OPERAND *layer = (OPERAND *)(page + c->a->page_offset);
    OPERAND *k_panel = layer + g * c->k_head + (size_t)(slot / CPU_PANEL) * CPU_PANEL * c->a->E;
    OPERAND *v_head = layer + c->v_elements + g * c->v_head;
    uint32_t lane = slot % CPU_PANEL;
    bool finite = true;
    for (uint32_t e = 0; e < c->a->E; e++) {
        finite &= operand_finite(k[e]) && operand_finite(v[e]);
#if BODY_F32
        k_panel[(size_t)e * CPU_PANEL + lane] = k[e];
        v_head[e / CPU_PANEL * c->v_panel + (size_t)slot * CPU_PANEL + e % CPU_PANEL] = v[e];
#else
        k_panel[(size_t)(e / 2) * 2 * CPU_PANEL + 2 * lane + e % 2] = k[e];
        v_head[e / CPU_PANEL * c->v_panel + (size_t)(slot / 2) * 2 * CPU_PANEL +
               2 * (e % CPU_PANEL) + slot % 2] = v[e];
#endif
    }
    return finite;
}

static int kv_append(const struct cpu_pool *pool, const struct cpu_span *spans, uint32_t count,
                     const struct cpu_attention *a, const void *k, const void *v, uint32_t ld,
                     uint32_t *bad_row) {
    struct attention_call c = attention_call_of(a);
    uint32_t bad = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct cpu_span *span = &spans[i];
        uint32_t items = span->rows * a->G; // head-major: threads write to different heads
        int threads = pool_threads(pool, (uint64_t)items * a->E * 4);
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : bad)
        for (uint32_t item = 0; item < items; item++) {
            uint32_t g = item / span->rows, t = item % span->rows, row = span->first_row + t;
            uint32_t position = span->first_position + t;
            const OPERAND *k_row = (const OPERAND *)k + (size_t)row * ld + (size_t)g * a->E;
            const OPERAND *v_row = (const OPERAND *)v + (size_t)row * ld + (size_t)g * a->E;
            if (!kv_append_head(&c, span->pages[position / CPU_PAGE], position % CPU_PAGE, g, k_row,
                                v_row) &&
                row < bad)
                bad = row;
        }
    }
    if (bad == UINT32_MAX) return 0;
    *bad_row = bad;
    return -1;
}

#include "kernels/cpu/compact.h"
#include "kernels/cpu/shape.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static struct cpu_run run_of(const struct tensor_format *f) {
    return (struct cpu_run){.group = f->group,
                            .nibbles = f->code_bits == 4,
                            .offsets = f->offsets,
                            .least_code = f->code_bits == 4 ? f->least_code : 0};
}

static bool same_kind(const struct cpu_run *a, const struct cpu_run *b) {
    return a->group == b->group && a->nibbles == b->nibbles && a->offsets == b->offsets &&
           a->least_code == b->least_code;
}

// A kind that holds the codes of both.
static void widen(struct cpu_run *a, const struct cpu_run *b) {
    if (same_kind(a, b)) return;
    a->nibbles = false;
    a->least_code = 0;
    a->offsets |= b->offsets;
    if (b->group < a->group) a->group = b->group;
}

static size_t head_bytes(const struct cpu_run *r) {
    return (r->offsets ? 2 : 1) * CPU_PANEL * sizeof(float);
}

static size_t group_bytes(const struct cpu_run *r) {
    return head_bytes(r) + r->group * CPU_PANEL / (r->nibbles ? 2 : 1);
}

size_t cpu_compact_plan(const struct cpu_compact_part *parts, int count, uint32_t K,
                        struct cpu_matrix *out) {
    struct cpu_matrix w = {.K = K};
    for (int i = 0; i < count; i++) {
        const struct tensor_format *f = tensor_format_of(parts[i].type);
        assert(f != NULL && K % f->block == 0);
        if (f->group == 0) return 0;
        struct cpu_run run = run_of(f), *last = w.runs > 0 ? &w.run[w.runs - 1] : NULL;
        // A panel that two parts share has one kind, and then so has all that touches it.
        if (last != NULL && (same_kind(last, &run) || w.N % CPU_PANEL != 0)) {
            widen(last, &run);
        } else {
            run.first_panel = w.N / CPU_PANEL;
            w.run[w.runs++] = run;
        }
        w.N += parts[i].rows;
    }
    size_t bytes = 0;
    for (int i = 0; i < w.runs; i++) {
        struct cpu_run *r = &w.run[i];
        uint32_t end = i + 1 < w.runs ? w.run[i + 1].first_panel : shape_panels(w.N);
        r->panels = end - r->first_panel;
        r->panel_bytes = K / r->group * group_bytes(r);
        r->start = bytes;
        bytes += r->panels * r->panel_bytes;
    }
    *out = w;
    return bytes;
}

// One block of one output into its lane of the panel's groups. Returns false when it is not finite.
static bool put_block(const struct cpu_run *r, const struct tensor_format *f,
                      const struct tensor_block *b, uint32_t lane, uint8_t *group) {
    bool finite = true;
    for (uint32_t k = 0; k < f->block; k += r->group, group += group_bytes(r)) {
        float scale = b->scale[k / f->group];
        // x + (-0) is x, whatever its sign.
        float offset = f->offsets ? b->offset[k / f->group] : -0.0f;
        finite = finite && isfinite(scale) && isfinite(offset);
        memcpy(group + lane * sizeof scale, &scale, sizeof scale);
        if (r->offsets) memcpy(group + (CPU_PANEL + lane) * sizeof offset, &offset, sizeof offset);
        uint8_t *to = group + head_bytes(r) + lane;
        for (uint32_t i = 0; i < r->group; i++) {
            uint32_t q = (uint32_t)(b->code[k + i] - r->least_code);
            if (r->nibbles)
                to[i / 2 * CPU_PANEL] |= (uint8_t)(q << i % 2 * 4);
            else
                to[i * CPU_PANEL] = (uint8_t)q;
        }
    }
    return finite;
}

static bool put_row(const struct cpu_run *r, const struct tensor_format *f, const uint8_t *row,
                    uint32_t K, uint32_t lane, uint8_t *panel) {
    bool finite = true;
    for (uint32_t k = 0; k < K; k += f->block, row += f->block_bytes) {
        struct tensor_block block;
        tensor_block_read(f->type, row, &block);
        finite &= put_block(r, f, &block, lane, panel + k / r->group * group_bytes(r));
    }
    return finite;
}

int cpu_compact_pack(const struct cpu_matrix *w, const struct cpu_compact_part *parts, int count,
                     uint32_t panel, uint8_t *memory) {
    const struct cpu_run *r = w->run;
    while (panel >= r->first_panel + r->panels) r++;
    uint8_t *to = memory + r->start + (panel - r->first_panel) * r->panel_bytes;
    memset(to, 0, r->panel_bytes);
    uint32_t start = panel * CPU_PANEL, first = 0;
    int bad = -1;
    for (int i = 0; i < count; first += parts[i++].rows) {
        const struct tensor_format *f = tensor_format_of(parts[i].type);
        size_t row_bytes = (size_t)w->K / f->block * f->block_bytes;
        uint32_t end = first + parts[i].rows;
        if (end > start + CPU_PANEL) end = start + CPU_PANEL;
        for (uint32_t n = first > start ? first : start; n < end; n++) {
            const uint8_t *row = (const uint8_t *)parts[i].data + (n - first) * row_bytes;
            if (!put_row(r, f, row, w->K, n - start, to) && bad < 0) bad = i;
        }
    }
    return bad;
}

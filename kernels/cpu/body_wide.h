// Register blocks for matrix products of many rows, of tables that compute in fp32 (BODY_EXPAND).
// Included where the table defines
//   WIDE_PANELS  panels of one register block
//   WIDE_DEPTH   inner elements of one pass, even
//
// `tile` splits the weights' words again for every few rows. Here rows and panels are expanded to
// fp32 once for a chunk of the outputs, and the innermost loop is loads and fused multiply-adds:
//
//   for each part of the inner size, at most WIDE_DEPTH: rows -> s.a (second-level cache)
//     for each WIDE_PANELS panels: panels -> s.b (first-level cache, where WIDE_DEPTH is small)
//       for each TILE_ROWS rows: wide_block
//
// Between two parts the chains rest in s.c as fp32, which is exact.
#include "kernels/cpu/body.h"
#include "kernels/cpu/unroll.h"

#define WIDE_STRIDE (WIDE_DEPTH + CPU_PANEL) // of expanded rows: they must not share cache sets
#define WIDE_ROW_BYTES (WIDE_STRIDE * sizeof(float))
#define WIDE_OUTPUTS (WIDE_PANELS * CPU_PANEL)

struct wide_slice {
    float *a; // [SHAPE_WIDE_ROWS][WIDE_STRIDE] rows, natural order
    float *b; // [WIDE_DEPTH][WIDE_OUTPUTS] panels in the order of the chain: 1, 0, 3, 2, ...
    float *c; // [SHAPE_WIDE_ROWS][SHAPE_WIDE_LDC] chains
    uint32_t held_row, held_end, held_from; // what `a` holds: rows, and the part of the inner size
};

static struct wide_slice wide_slice_of(uint8_t *p, uint32_t rows) {
    struct wide_slice s = {0};
    s.a = (float *)p;
    p += (size_t)rows * WIDE_STRIDE * sizeof(float);
    s.b = (float *)p;
    p += (size_t)WIDE_DEPTH * WIDE_OUTPUTS * sizeof(float);
    s.c = (float *)p;
    return s;
}

// Elements [from, from + depth) of `panels` panels, missing ones of a group as +0.
static inline void wide_expand_panels(float *b, const OPERAND *panel, size_t panel_elements,
                                      uint32_t panels, uint32_t from, uint32_t depth) {
    for (uint32_t p = 0; p < WIDE_PANELS; p++, panel += panel_elements) {
        float *to = b + (size_t)p * CPU_PANEL;
        const OPERAND *pair = panel + (size_t)from * CPU_PANEL;
        for (uint32_t i = 0; i < depth; i += 2, to += 2 * WIDE_OUTPUTS, pair += 2 * CPU_PANEL) {
            struct lanes even = lanes_set(0.0f), odd = even;
            if (p < panels) lanes_split_bf16(pair, &even, &odd);
            lanes_store(to, odd);
            lanes_store(to + WIDE_OUTPUTS, even);
        }
    }
}

// Asks for lines [first, end) of 64 bytes of each panel's part: weights come from far away, and the
// tiles before leave time enough.
static inline void wide_prefetch_panels(const OPERAND *panel, size_t panel_elements,
                                        uint32_t panels, uint32_t from, uint32_t first,
                                        uint32_t end) {
    for (uint32_t p = 0; p < panels; p++, panel += panel_elements)
        for (uint32_t i = first; i < end; i++)
            __builtin_prefetch(panel + (size_t)from * CPU_PANEL + (size_t)i * 2 * CPU_PANEL, 0, 2);
}

// A register block of rows (a constant after inlining) x WIDE_PANELS panels.
BLOCK wide_block(const float *a, int rows, const float *b, uint32_t depth, bool first, float *c,
                 size_t ldc) {
    struct lanes acc[TILE_ROWS][WIDE_PANELS];
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int p = 0; p < WIDE_PANELS; p++) acc[r][p] =
            first ? lanes_set(0.0f) : lanes_load(c + r * ldc + p * CPU_PANEL);
    }
    for (const float *end = b + (size_t)depth * WIDE_OUTPUTS; b < end;
         b += 2 * WIDE_OUTPUTS, a += 2) {
        UNROLL for (int half = 0; half < 2; half++) {
            struct lanes w[WIDE_PANELS];
            UNROLL for (int p = 0; p < WIDE_PANELS; p++) w[p] =
                lanes_load(b + half * WIDE_OUTPUTS + p * CPU_PANEL);
            UNROLL for (int r = 0; r < rows; r++) {
                struct lanes x = lanes_set(a[r * WIDE_STRIDE + 1 - half]);
                UNROLL for (int p = 0; p < WIDE_PANELS; p++) acc[r][p] =
                    lanes_fma(x, w[p], acc[r][p]);
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int p = 0; p < WIDE_PANELS; p++)
            lanes_store(c + r * ldc + p * CPU_PANEL, acc[r][p]);
    }
}

#define WIDE_CASE(rows)                                                                            \
    case rows:                                                                                     \
        if (first)                                                                                 \
            wide_block(a, rows, b, depth, true, c, ldc);                                           \
        else                                                                                       \
            wide_block(a, rows, b, depth, false, c, ldc);                                          \
        break

static void wide_rows(const float *a, uint32_t rows, const float *b, uint32_t depth, bool first,
                      float *c, size_t ldc) {
    switch (rows) {
        WIDE_CASE(1);
        WIDE_CASE(2);
        WIDE_CASE(3);
        WIDE_CASE(4);
        WIDE_CASE(5);
        WIDE_CASE(6);
#if TILE_ROWS == 12
        WIDE_CASE(7);
        WIDE_CASE(8);
        WIDE_CASE(9);
        WIDE_CASE(10);
        WIDE_CASE(11);
        WIDE_CASE(12);
#endif
    default: assert(false);
    }
}

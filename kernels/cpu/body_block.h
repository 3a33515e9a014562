// The register block of tables that compute in fp32 (BODY_EXPAND): many rows meet panels that were
// expanded to fp32 once for all of them, where `tile` takes every pair apart again for each few
// rows. The innermost loop is loads and fused multiply-adds. Included where the table defines
//   WIDE_PANELS  panels of one block
#include "kernels/cpu/body.h"
#include "kernels/cpu/unroll.h"

// Elements [from, from + depth) of `panels` panels to b[depth][16 room], of each pair the second
// element first, as the chain takes them; panels that are missing of `room` as +0.
static inline __attribute__((always_inline)) void block_expand(float *b, const OPERAND *panel,
                                                               size_t panel_elements,
                                                               uint32_t panels, uint32_t room,
                                                               uint32_t from, uint32_t depth) {
    const size_t row = (size_t)room * CPU_PANEL;
    for (uint32_t p = 0; p < room; p++, panel += panel_elements) {
        float *to = b + (size_t)p * CPU_PANEL;
        const OPERAND *pair = panel + (size_t)from * CPU_PANEL;
        for (uint32_t i = 0; i < depth; i += 2, to += 2 * row, pair += 2 * CPU_PANEL) {
            struct lanes even = lanes_set(0.0f), odd = even;
            if (p < panels) lanes_split_bf16(pair, &even, &odd);
            lanes_store(to, odd);
            lanes_store(to + row, even);
        }
    }
}

// Asks for pairs [first, end) of each panel's elements from `from` on.
static inline void block_prefetch(const OPERAND *panel, size_t panel_elements, uint32_t panels,
                                  uint32_t from, uint32_t first, uint32_t end) {
    for (uint32_t p = 0; p < panels; p++, panel += panel_elements)
        for (uint32_t i = first; i < end; i++)
            __builtin_prefetch(panel + (size_t)from * CPU_PANEL + (size_t)i * 2 * CPU_PANEL, 0, 3);
}

// c[r][0 .. 16 panels) = chains of `rows` rows of fp32, over `depth` elements, from what c holds
// when they are resumed, else from +0. Rows and panels are constants after inlining.
BLOCK block_rows_of(const float *a, size_t lda, int rows, const float *b, int panels,
                    uint32_t depth, bool resume, float *c, size_t ldc) {
    struct lanes acc[TILE_ROWS][WIDE_PANELS];
    const size_t row = (size_t)panels * CPU_PANEL;
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int p = 0; p < panels; p++) acc[r][p] =
            resume ? lanes_load(c + r * ldc + p * CPU_PANEL) : lanes_set(0.0f);
    }
    const float *third[(TILE_ROWS + 2) / 3];
    THIRD_ROWS(third, a, lda, rows);
    for (const float *end = b + depth * row; b < end; b += 2 * row) {
        UNROLL for (int half = 0; half < 2; half++) {
            struct lanes w[WIDE_PANELS];
            UNROLL for (int p = 0; p < panels; p++) w[p] =
                lanes_load(b + half * row + p * CPU_PANEL);
            UNROLL for (int r = 0; r < rows; r++) {
                struct lanes x = lanes_set(third[r / 3][r % 3 * lda + 1 - half]);
                UNROLL for (int p = 0; p < panels; p++) acc[r][p] = lanes_fma(x, w[p], acc[r][p]);
            }
            // Keeps gcc from mixing the halves, for which there are not enough registers.
            __asm__ volatile("" ::: "memory");
        }
        UNROLL for (int r = 0; r < rows; r += 3) third[r / 3] += 2;
    }
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int p = 0; p < panels; p++) lanes_store(c + r * ldc + p * CPU_PANEL, acc[r][p]);
    }
}

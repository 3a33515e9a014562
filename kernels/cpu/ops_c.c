// `bf16-1` in plain C: the definition that the SIMD tables are held to. Slow and right.
#define BODY_F32 0
#define BODY_EXPAND 1
#define TILE_ROWS 4

#include "kernels/cpu/lanes_c.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/body_ops.h"
#include "kernels/cpu/tables.h"

static void tile(const float *a, size_t lda, uint32_t rows, const uint16_t *b,
                 size_t panel_elements, uint32_t panels, uint32_t depth, float *c, size_t ldc) {
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t n = 0; n < panels * CPU_PANEL; n++) {
            const uint16_t *w = b + n / CPU_PANEL * panel_elements + n % CPU_PANEL * 2;
            const float *x = a + r * lda;
            float acc = 0.0f;
            for (uint32_t i = 0; i < depth; i += 2, w += 2 * CPU_PANEL) {
                acc = fmaf(x[i + 1], num_from_bf16(w[1]), acc);
                acc = fmaf(x[i], num_from_bf16(w[0]), acc);
            }
            c[r * ldc + n] = acc;
        }
    }
}

static void tile_ahead(const ELEMENT *a, size_t lda, uint32_t rows, const OPERAND *b,
                       size_t panel_elements, uint32_t panels, uint32_t depth,
                       const struct ahead *elsewhere, float *c, size_t ldc) {
    (void)elsewhere;
    tile(a, lda, rows, b, panel_elements, panels, depth, c, ldc);
}

TABLE(cpu_ops_c, "c", CPU_BF16_1);

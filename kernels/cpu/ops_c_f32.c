// `f32` in plain C: the same program with fp32 in place of every rounding to bf16.
#define BODY_F32 1
#define BODY_EXPAND 0
#define TILE_ROWS 4

#include "kernels/cpu/lanes_c.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/body_ops.h"
#include "kernels/cpu/tables.h"

static void tile(const float *a, size_t lda, uint32_t rows, const float *b, size_t panel_elements,
                 uint32_t panels, uint32_t depth, float *c, size_t ldc) {
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t n = 0; n < panels * CPU_PANEL; n++) {
            const float *w = b + n / CPU_PANEL * panel_elements + n % CPU_PANEL;
            float acc = 0.0f;
            for (uint32_t i = 0; i < depth; i++) acc = fmaf(a[r * lda + i], w[i * CPU_PANEL], acc);
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

TABLE(cpu_ops_c_f32, "c-f32", CPU_F32);

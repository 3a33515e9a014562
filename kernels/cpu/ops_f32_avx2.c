// `f32` with AVX2 and FMA.
#define BODY_F32 1
#define BODY_EXPAND 0
#define TILE_ROWS 6

#include "kernels/cpu/lanes_avx2.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/body_ops.h"
#include "kernels/cpu/tables.h"
#include "kernels/cpu/unroll.h"

// A register block of rows x panels (both constants after inlining) over the whole depth.
BLOCK block(const float *a, size_t lda, int rows, const float *b, size_t panel_elements, int panels,
            uint32_t depth, struct ahead ahead, float *c, size_t ldc) {
    __m256 acc[TILE_ROWS][8];
    const int halves = 2 * panels;
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int p = 0; p < halves; p++) acc[r][p] = _mm256_setzero_ps();
    }
    for (const float *end = b + (size_t)depth * CPU_PANEL; b < end;
         b += CPU_PANEL, a++, ahead.next += ahead.step) {
        __m256 w[8];
        UNROLL for (int p = 0; p < panels; p++)
            prefetch_ahead(ahead, (size_t)p * panel_elements * sizeof *b);
        UNROLL for (int p = 0; p < halves; p++) w[p] =
            _mm256_loadu_ps(b + (size_t)(p / 2) * panel_elements + p % 2 * 8);
        UNROLL for (int r = 0; r < rows; r++) {
            __m256 x = _mm256_broadcast_ss(a + r * lda);
            UNROLL for (int p = 0; p < halves; p++) acc[r][p] = _mm256_fmadd_ps(x, w[p], acc[r][p]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int p = 0; p < halves; p++)
            _mm256_storeu_ps(c + (size_t)r * ldc + p * 8, acc[r][p]);
    }
}

#include "kernels/cpu/body_tile.h"

TABLE(cpu_ops_avx2_f32, "avx2-f32", CPU_F32);

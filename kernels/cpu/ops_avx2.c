// `bf16-1` with AVX2 and FMA: rows expanded to fp32, the weights' halves split in registers.
#define BODY_F32 0
#define BODY_EXPAND 1
#define TILE_ROWS 6
#define WIDE_PANELS 1
#define WIDE_DEPTH 320 // a panel of it, expanded, and its rows fit a first-level cache of 32 KiB

#include "kernels/cpu/lanes_avx2.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/body_ops.h"
#include "kernels/cpu/tables.h"
#include "kernels/cpu/unroll.h"

// Eight pairs: half `p` of the panels, counted over all of them.
static inline __m256i half_panel(const uint16_t *b, size_t panel_elements, int p) {
    return _mm256_loadu_si256((const __m256i *)(b + (size_t)(p / 2) * panel_elements + p % 2 * 16));
}

// A register block of rows x panels (both constants after inlining) over the whole depth.
BLOCK block(const float *a, size_t lda, int rows, const uint16_t *b, size_t panel_elements,
            int panels, uint32_t depth, struct ahead ahead, float *c, size_t ldc) {
    __m256 acc[TILE_ROWS][8];
    const int halves = 2 * panels;
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int p = 0; p < halves; p++) acc[r][p] = _mm256_setzero_ps();
    }
    for (const uint16_t *end = b + (size_t)depth * CPU_PANEL; b < end;
         b += 2 * CPU_PANEL, a += 2, ahead.next += ahead.step) {
        __m256 w[8];
        UNROLL for (int p = 0; p < panels; p++)
            prefetch_ahead(ahead, (size_t)p * panel_elements * sizeof *b);
        UNROLL for (int p = 0; p < halves; p++) w[p] =
            _mm256_and_ps(_mm256_castsi256_ps(_mm256_set1_epi32((int)0xffff0000u)),
                          _mm256_castsi256_ps(half_panel(b, panel_elements, p)));
        UNROLL for (int r = 0; r < rows; r++) {
            __m256 x = _mm256_broadcast_ss(a + r * lda + 1);
            UNROLL for (int p = 0; p < halves; p++) acc[r][p] = _mm256_fmadd_ps(x, w[p], acc[r][p]);
        }
        UNROLL for (int p = 0; p < halves; p++) w[p] =
            _mm256_castsi256_ps(_mm256_slli_epi32(half_panel(b, panel_elements, p), 16));
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

TABLE(cpu_ops_avx2, "avx2", CPU_BF16_1);

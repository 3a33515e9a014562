// `bf16-1` with AVX512_BF16: one vdpbf16ps adds a pair, the odd product first, as the numerics say.
#define BODY_F32 0
#define BODY_EXPAND 0
#define TILE_ROWS 12

#include "kernels/cpu/lanes_avx512.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/body_ops.h"
#include "kernels/cpu/tables.h"
#include "kernels/cpu/unroll.h"

// A register block of rows x panels (both constants after inlining) over the whole depth.
BLOCK block(const uint16_t *a, size_t lda, int rows, const uint16_t *b, size_t panel_elements,
            int panels, uint32_t depth, struct ahead ahead, float *c, size_t ldc) {
    __m512 acc[TILE_ROWS][8];
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int p = 0; p < panels; p++) acc[r][p] = _mm512_setzero_ps();
    }
    const uint16_t *third[TILE_ROWS / 3];
    THIRD_ROWS(third, a, lda, rows);
    for (const uint16_t *end = b + (size_t)depth * CPU_PANEL; b < end;
         b += 2 * CPU_PANEL, ahead.next += ahead.step) {
        __m512bh w[8];
        UNROLL for (int p = 0; p < panels; p++) {
            prefetch_ahead(ahead, (size_t)p * panel_elements * sizeof *b);
            w[p] = (__m512bh)_mm512_loadu_si512(b + (size_t)p * panel_elements);
        }
        UNROLL for (int r = 0; r < rows; r++) {
            int32_t pair;
            memcpy(&pair, third[r / 3] + r % 3 * lda, sizeof pair);
            __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
            UNROLL for (int p = 0; p < panels; p++) acc[r][p] =
                _mm512_dpbf16_ps(acc[r][p], x, w[p]);
        }
        UNROLL for (int r = 0; r < rows; r += 3) third[r / 3] += 2;
    }
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int p = 0; p < panels; p++)
            _mm512_storeu_ps(c + (size_t)r * ldc + p * CPU_PANEL, acc[r][p]);
    }
}

#include "kernels/cpu/body_tile.h"

TABLE(cpu_ops_avx512_bf16, "avx512_bf16", CPU_BF16_1);

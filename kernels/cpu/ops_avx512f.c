// `bf16-1` with AVX-512F: rows expanded to fp32, the weights' halves split in registers.
#define BODY_F32 0
#define BODY_EXPAND 1
#define TILE_ROWS 12
#define WIDE_PANELS 2
#define WIDE_DEPTH 640

#include "kernels/cpu/lanes_avx512.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/body_ops.h"
#include "kernels/cpu/tables.h"
#include "kernels/cpu/unroll.h"

// A register block of rows x panels (both constants after inlining) over the whole depth.
BLOCK block(const float *a, size_t lda, int rows, const uint16_t *b, size_t panel_elements,
            int panels, uint32_t depth, struct ahead ahead, float *c, size_t ldc) {
    __m512 acc[TILE_ROWS][8];
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int p = 0; p < panels; p++) acc[r][p] = _mm512_setzero_ps();
    }
    const __m512i high = _mm512_set1_epi32((int)0xffff0000u);
    for (const uint16_t *end = b + (size_t)depth * CPU_PANEL; b < end;
         b += 2 * CPU_PANEL, a += 2, ahead.next += ahead.step) {
        __m512 odd[8], even[8];
        UNROLL for (int p = 0; p < panels; p++) {
            prefetch_ahead(ahead, (size_t)p * panel_elements * sizeof *b);
            __m512i w = _mm512_loadu_si512(b + (size_t)p * panel_elements);
            odd[p] = _mm512_castsi512_ps(_mm512_and_si512(w, high));
            even[p] = _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
        }
        UNROLL for (int r = 0; r < rows; r++) {
            __m512 x_odd = _mm512_set1_ps(a[r * lda + 1]), x_even = _mm512_set1_ps(a[r * lda]);
            UNROLL for (int p = 0; p < panels; p++) acc[r][p] =
                _mm512_fmadd_ps(x_odd, odd[p], acc[r][p]);
            UNROLL for (int p = 0; p < panels; p++) acc[r][p] =
                _mm512_fmadd_ps(x_even, even[p], acc[r][p]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int p = 0; p < panels; p++)
            _mm512_storeu_ps(c + (size_t)r * ldc + p * CPU_PANEL, acc[r][p]);
    }
}

#include "kernels/cpu/body_tile.h"

TABLE(cpu_ops_avx512f, "avx512f", CPU_BF16_1);

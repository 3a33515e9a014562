// The kernels of test_mma.cu, as C sees them.
#ifndef LACUNA_TESTS_KERNELS_SIMT_MMA_KERNELS_H
#define LACUNA_TESTS_KERNELS_SIMT_MMA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// One tile of mma.m16n8k16, bf16 as bits: element (m, k) of A at a[m + 16 k], (k, n) of B at
// b[n + 8 k], (m, n) of the sum at c[m + 16 n].
struct mma_operands {
    uint16_t a[256], b[128];
    float c[128];
};
// c += a b, one block for each tile.
cudaError_t mma_tiles(struct mma_operands *tiles, int count, cudaStream_t stream);

// Register i of lane l after ldmatrix_x4 of the four 8x8 matrices at `matrices`, row after row:
// plain in registers[l][i], transposed in registers[l][4 + i].
cudaError_t mma_load(uint32_t registers[32][8], const uint16_t matrices[4][8][8],
                     cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif

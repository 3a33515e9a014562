// Fragments by the layouts of CuTe's SM80_16x8x16_F32BF16BF16F32_TN, which was written apart from
// the emulator: A ((4,8),(2,2,2)):((32,1),(16,8,128)), B ((4,8),(2,2)):((16,1),(8,64)) and
// C ((4,8),(2,2)):((32,1),(16,8)), of lane and value.
#include "kernels/cuda/gpu.h"
#include "tests/kernels/simt/mma_kernels.h"

static __device__ uint32_t pair(const uint16_t *x, int first, int second) {
    return x[first] | (uint32_t)x[second] << 16;
}

static __global__ void tiles_kernel(struct mma_operands *tiles) {
    struct mma_operands *t = tiles + blockIdx.x;
    const int lane = (int)threadIdx.x, across = lane % 4, down = lane / 4;
    uint32_t a[4], b[2];
    float c[4];
    for (int i = 0; i < 4; i++) {
        int at = across * 32 + down + i % 2 * 8 + i / 2 * 128;
        a[i] = pair(t->a, at, at + 16);
    }
    for (int i = 0; i < 2; i++) {
        int at = across * 16 + down + i * 64;
        b[i] = pair(t->b, at, at + 8);
    }
    for (int i = 0; i < 4; i++) c[i] = t->c[across * 32 + down + i % 2 * 16 + i / 2 * 8];
    mma_bf16_16816(c, a, b);
    for (int i = 0; i < 4; i++) t->c[across * 32 + down + i % 2 * 16 + i / 2 * 8] = c[i];
}

static __global__ void load_kernel(uint32_t (*registers)[8], const uint16_t (*matrices)[8][8]) {
    DYN_SHARED(uint16_t, rows);
    const int lane = (int)threadIdx.x;
    for (int i = 0; i < 8; i++) rows[lane * 8 + i] = matrices[lane / 8][lane % 8][i];
    __syncwarp();
    uint32_t plain[4], transposed[4];
    ldmatrix_x4(plain, rows + lane * 8);
    ldmatrix_x4_trans(transposed, rows + lane * 8);
    for (int i = 0; i < 4; i++) {
        registers[lane][i] = plain[i];
        registers[lane][4 + i] = transposed[i];
    }
}

cudaError_t mma_tiles(struct mma_operands *tiles, int count, cudaStream_t stream) {
    LAUNCH(tiles_kernel, count, 32, 0, stream, tiles);
    return cudaGetLastError();
}

cudaError_t mma_load(uint32_t registers[32][8], const uint16_t matrices[4][8][8],
                     cudaStream_t stream) {
    LAUNCH(load_kernel, 1, 32, 4 * 8 * 8 * sizeof(uint16_t), stream, registers, matrices);
    return cudaGetLastError();
}

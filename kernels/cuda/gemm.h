// Matrix products on the GPU: y = x W^T with bf16 operands and one fp32 accumulator.
//
// Every output is one chain of tensor-core products over ascending blocks of 16 of k, from +0, by
// one accumulator: no split of K, whatever the kernel, the tile or the number of rows. So a row's
// bits depend on nothing but that row, the weights and the architecture class. After the chain the
// bias is added, then the residual, in fp32 (the order of kernels/cpu/ops.h).
#ifndef LACUNA_KERNELS_CUDA_GEMM_H
#define LACUNA_KERNELS_CUDA_GEMM_H

#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GEMM_ROW_ALIGNMENT 64 // ldx and ldw are multiples of this many elements

// All pointers are device addresses. x and w are aligned to 16 bytes, their rows hold K elements
// and then +0 up to the next multiple of 16; elements behind that may be anything and are not read.
// y may not overlap x or w.
struct gemm_call {
    const void *x; // bf16 [R][ldx]
    uint32_t ldx, R;
    const void *w; // bf16 [N][ldw]
    uint32_t ldw, N, K;
    const float *bias; // [N], or NULL
    bool add;          // y as it was is the residual
    float *y;          // [R][ldy], ldy >= N, aligned to 8 bytes
    uint32_t ldy;
};

// y[r][n] = chain(x[r], w[n]) (+ bias[n]) (+ y[r][n] as it was, when `add`). R, N, K >= 1.
// Queued on the stream; returns cudaErrorInvalidValue for a call that breaks the rules above.
cudaError_t gemm_launch(cudaStream_t stream, const struct gemm_call *call);

#ifdef __cplusplus
}
#endif

#endif

#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/rows.h"

#define NORM_THREADS 256
#define NORM_TILE 2048 // elements; a multiple of NUM_LANES

// Always one block of so many threads for a row, whatever the number of rows.
static __global__ void __launch_bounds__(NORM_THREADS)
    rmsnorm_kernel(const float *x, uint32_t D, const float *weight, float epsilon, uint16_t *out,
                   uint32_t ldout) {
    SHARED(float, tile, [NORM_TILE]);
    SHARED(float, scale, [1]);
    x += (size_t)blockIdx.x * D;
    out += (size_t)blockIdx.x * ldout;
    float sum = 0.0f;
    for (uint32_t first = 0; first < D; first += NORM_TILE) {
        uint32_t n = D - first < NORM_TILE ? D - first : NORM_TILE;
        for (uint32_t i = threadIdx.x; i < n; i += NORM_THREADS) tile[i] = x[first + i];
        __syncthreads();
        if (lanes_here()) sum = lanes_add_squares(sum, tile, n);
        __syncthreads();
    }
    if (lanes_here()) {
        sum = lanes_tree(sum);
        if (threadIdx.x == 0) scale[0] = 1.0f / sqrtf(sum / (float)D + epsilon);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < ldout; i += NORM_THREADS)
        out[i] = i < D ? num_bf16((x[i] * scale[0]) * weight[i]) : 0;
}

cudaError_t rmsnorm_launch(cudaStream_t stream, const float *x, uint32_t R, uint32_t D,
                           const float *weight, float epsilon, void *out, uint32_t ldout) {
    LAUNCH(rmsnorm_kernel, R, NORM_THREADS, 0, stream, x, D, weight, epsilon, (uint16_t *)out,
           ldout);
    return cudaGetLastError();
}

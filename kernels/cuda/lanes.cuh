// Row reductions by NUMERICS.md: lane j of 16 takes elements j, j + 16, ... in ascending order,
// then a tree. The first warp of a block does it, on tiles of the row that the whole block has put
// into shared memory; its upper half repeats the lower.
#ifndef LACUNA_KERNELS_CUDA_LANES_CUH
#define LACUNA_KERNELS_CUDA_LANES_CUH

#include "kernels/cuda/gpu.h"
#include "kernels/numerics.h"

#define LANES_WARP 32

static __device__ __forceinline__ bool lanes_here() {
    return threadIdx.x < LANES_WARP;
}

static __device__ __forceinline__ float lanes_add(float sum, const float *tile, uint32_t n) {
    for (uint32_t i = threadIdx.x % NUM_LANES; i < n; i += NUM_LANES) sum += tile[i];
    return sum;
}

static __device__ __forceinline__ float lanes_add_squares(float sum, const float *tile,
                                                          uint32_t n) {
    for (uint32_t i = threadIdx.x % NUM_LANES; i < n; i += NUM_LANES)
        sum = fmaf(tile[i], tile[i], sum);
    return sum;
}

// The tree (0+8, 1+9, ...), (0+4, ...), (0+2, ...), (0+1); the result is thread 0's.
static __device__ __forceinline__ float lanes_tree(float sum) {
    for (int step = NUM_LANES / 2; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step, NUM_LANES);
    return sum;
}

#endif

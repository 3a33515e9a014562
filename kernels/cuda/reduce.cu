// Reductions of rows of logits: the largest, and the log of the sum of exponentials.
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/rows.h"

#define REDUCE_THREADS 256
#define REDUCE_TILE 2048 // elements; a multiple of NUM_LANES
#define NOT_FINITE UINT32_MAX

static __device__ __forceinline__ bool is_finite(float x) {
    return (num_bits(x) & 0x7f800000u) != 0x7f800000u;
}

// The largest of some elements and the lowest index that has it, or NOT_FINITE when one of them is
// not finite.
struct largest {
    float value;
    uint32_t index;
};

// Any order of taking the larger of two gives the same.
static __device__ __forceinline__ largest larger_of(largest a, largest b) {
    bool second = b.value > a.value || (b.value == a.value && b.index < a.index);
    return second ? b : a;
}

// Of what the threads of the block have; all of them get it.
static __device__ largest block_largest(largest mine, int bad, largest *shared) {
    shared[threadIdx.x] = mine;
    bad = __syncthreads_or(bad);
    for (uint32_t step = REDUCE_THREADS / 2; step > 0; step /= 2) {
        if (threadIdx.x < step)
            shared[threadIdx.x] = larger_of(shared[threadIdx.x], shared[threadIdx.x + step]);
        __syncthreads();
    }
    largest all = shared[0];
    if (bad) all.index = NOT_FINITE;
    return all;
}

// Of the elements from `first` on, before `end`.
static __device__ largest range_largest(const float *z, uint32_t first, uint32_t end,
                                        largest *shared) {
    largest mine = {z[first], first};
    int bad = 0;
    for (uint32_t tile = first; tile < end; tile += REDUCE_TILE) {
        largest here[REDUCE_TILE / REDUCE_THREADS]; // all on their way from memory at once
#pragma unroll
        for (uint32_t k = 0; k < REDUCE_TILE / REDUCE_THREADS; k++) {
            uint32_t i = tile + k * REDUCE_THREADS + threadIdx.x, at = i < end ? i : tile;
            here[k] = {z[at], at};
        }
#pragma unroll
        for (uint32_t k = 0; k < REDUCE_TILE / REDUCE_THREADS; k++) {
            bad |= !is_finite(here[k].value);
            mine = larger_of(mine, here[k]);
        }
    }
    return block_largest(mine, bad, shared);
}

// A row in parts of REDUCE_TILE elements, a block for each, and then the parts.
static __global__ void __launch_bounds__(REDUCE_THREADS)
    argmax_parts_kernel(const float *z, uint32_t n, largest *parts) {
    SHARED(largest, shared, [REDUCE_THREADS]);
    uint32_t first = blockIdx.x * REDUCE_TILE, end = min(first + REDUCE_TILE, n);
    largest part = range_largest(z + (size_t)blockIdx.y * n, first, end, shared);
    if (threadIdx.x == 0) parts[(size_t)blockIdx.y * gridDim.x + blockIdx.x] = part;
}

static __global__ void __launch_bounds__(REDUCE_THREADS)
    argmax_kernel(const largest *parts, uint32_t count, int32_t *out) {
    SHARED(largest, shared, [REDUCE_THREADS]);
    parts += (size_t)blockIdx.x * count;
    largest mine = parts[0];
    int bad = 0;
    for (uint32_t i = threadIdx.x; i < count; i += REDUCE_THREADS) {
        largest here = parts[i];
        bad |= here.index == NOT_FINITE;
        mine = larger_of(mine, here);
    }
    largest best = block_largest(mine, bad, shared);
    if (threadIdx.x == 0) out[blockIdx.x] = best.index == NOT_FINITE ? -1 : (int32_t)best.index;
}

static uint32_t parts_of(uint32_t n) {
    return (n + REDUCE_TILE - 1) / REDUCE_TILE;
}

size_t argmax_workspace(uint32_t R, uint32_t n) {
    return (size_t)R * parts_of(n) * sizeof(largest);
}

cudaError_t argmax_launch(cudaStream_t stream, const float *z, uint32_t R, uint32_t n,
                          void *workspace, int32_t *out) {
    largest *parts = (largest *)workspace;
    LAUNCH(argmax_parts_kernel, dim3(parts_of(n), R), REDUCE_THREADS, 0, stream, z, n, parts);
    cudaError_t failed = cudaGetLastError();
    if (failed != cudaSuccess) return failed;
    LAUNCH(argmax_kernel, R, REDUCE_THREADS, 0, stream, parts, parts_of(n), out);
    return cudaGetLastError();
}

static __global__ void __launch_bounds__(REDUCE_THREADS)
    log_sum_exp_kernel(const float *z, uint32_t n, float *out) {
    SHARED(largest, shared, [REDUCE_THREADS]);
    SHARED(float, tile, [REDUCE_TILE]);
    z += (size_t)blockIdx.x * n;
    float max = range_largest(z, 0, n, shared).value, sum = 0.0f;
    for (uint32_t first = 0; first < n; first += REDUCE_TILE) {
        uint32_t count = n - first < REDUCE_TILE ? n - first : REDUCE_TILE;
        for (uint32_t i = threadIdx.x; i < count; i += REDUCE_THREADS)
            tile[i] = num_exp2((z[first + i] - max) * NUM_LOG2_E);
        __syncthreads();
        if (lanes_here()) sum = lanes_add(sum, tile, count);
        __syncthreads();
    }
    if (lanes_here()) sum = lanes_tree(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = max + NUM_LN_2 * num_log2(sum);
}

cudaError_t log_sum_exp_launch(cudaStream_t stream, const float *z, uint32_t R, uint32_t n,
                               float *out) {
    LAUNCH(log_sum_exp_kernel, R, REDUCE_THREADS, 0, stream, z, n, out);
    return cudaGetLastError();
}

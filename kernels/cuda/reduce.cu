// Reductions of rows of logits: the largest, and the log of the sum of exponentials.
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/rows.h"

#define REDUCE_THREADS 256
#define REDUCE_TILE 2048 // elements; a multiple of NUM_LANES

static __device__ __forceinline__ bool is_finite(float x) {
    return (num_bits(x) & 0x7f800000u) != 0x7f800000u;
}

// The largest of some elements and the lowest index that has it.
struct largest {
    float value;
    uint32_t index;
};

static __device__ __forceinline__ largest larger_of(largest a, largest b) {
    bool second = b.value > a.value || (b.value == a.value && b.index < a.index);
    return second ? b : a;
}

// Any order of taking the larger of two gives the same. Thread 0 gets the row's; all of them
// get whether all elements are finite.
static __device__ largest row_largest(const float *z, uint32_t n, largest *shared, bool *finite) {
    largest best = {z[0], 0};
    int bad = 0;
    for (uint32_t i = threadIdx.x; i < n; i += REDUCE_THREADS) {
        largest here = {z[i], i};
        bad |= !is_finite(here.value);
        best = larger_of(best, here);
    }
    shared[threadIdx.x] = best;
    *finite = !__syncthreads_or(bad);
    for (uint32_t step = REDUCE_THREADS / 2; step > 0; step /= 2) {
        if (threadIdx.x < step)
            shared[threadIdx.x] = larger_of(shared[threadIdx.x], shared[threadIdx.x + step]);
        __syncthreads();
    }
    return shared[0];
}

static __global__ void __launch_bounds__(REDUCE_THREADS)
    argmax_kernel(const float *z, uint32_t n, int32_t *out) {
    SHARED(largest, shared, [REDUCE_THREADS]);
    bool finite;
    largest best = row_largest(z + (size_t)blockIdx.x * n, n, shared, &finite);
    if (threadIdx.x == 0) out[blockIdx.x] = finite ? (int32_t)best.index : -1;
}

cudaError_t argmax_launch(cudaStream_t stream, const float *z, uint32_t R, uint32_t n,
                          int32_t *out) {
    LAUNCH(argmax_kernel, R, REDUCE_THREADS, 0, stream, z, n, out);
    return cudaGetLastError();
}

static __global__ void __launch_bounds__(REDUCE_THREADS)
    log_sum_exp_kernel(const float *z, uint32_t n, float *out) {
    SHARED(largest, shared, [REDUCE_THREADS]);
    SHARED(float, tile, [REDUCE_TILE]);
    bool finite;
    z += (size_t)blockIdx.x * n;
    float max = row_largest(z, n, shared, &finite).value, sum = 0.0f;
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

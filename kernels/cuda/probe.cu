#include "kernels/cuda/probe.h"

#include "kernels/cuda/gpu.h"
#include "kernels/numerics.h"

#define PROBE_THREADS 256
#define PROBE_BLOCKS 1024   // of the comparison
#define PROBE_SHIFT 37      // rows that a row of FLAT stands elsewhere
#define PROBE_OCTAVES 16.0f // of RAMP

static __device__ uint32_t hash(uint32_t x) {
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

static __device__ uint32_t draw(uint32_t seed, uint32_t row, uint32_t k) {
    return hash(hash(seed + row * 0x9e3779b9u) + k);
}

// The sum of four uniform numbers, of mean 0 and variance 1.
static __device__ float flat(uint32_t seed, uint32_t row, uint32_t k) {
    uint32_t a = draw(seed, row, k), b = draw(~seed, row, k);
    int32_t sum = (int32_t)((a & 0xffffu) + (a >> 16) + (b & 0xffffu) + (b >> 16)) - 2 * 0xffff;
    return (float)sum * (1.7320508f / 65536.0f);
}

static __device__ float one_to_two(uint32_t seed, uint32_t row, uint32_t k) {
    return num_float(0x3f800000u | draw(seed, row, k) >> 9);
}

static __device__ float ramp(uint32_t row, uint32_t k, uint32_t K) {
    float size = num_exp2(floorf(PROBE_OCTAVES * (float)k / (float)K) - PROBE_OCTAVES / 2);
    return one_to_two(3, row, k) * (k % 2 == 0 ? size : -size);
}

static __device__ float row_element(enum cuda_probe kind, uint32_t rows, uint32_t row, uint32_t k,
                                    uint32_t K) {
    switch (kind) {
    case CUDA_PROBE_TINY: return flat(1, row, k) * 0x1p-120f;
    case CUDA_PROBE_RAMP: return ramp(row, k, K);
    case CUDA_PROBE_COMPANY:
        if (row % 3 == 0) return flat(1, (row + PROBE_SHIFT) % rows, k);
        return row % 3 == 1 ? ramp(row, k, K) : 0.0f;
    default: return flat(1, row, k);
    }
}

static __device__ float weight_element(enum cuda_probe kind, uint32_t row, uint32_t k) {
    if (kind == CUDA_PROBE_RAMP) return one_to_two(2, row, k);
    return flat(2, row, k) * (kind == CUDA_PROBE_TINY ? 0x1p-16f : 1.0f);
}

// A block takes a part of a row.
static __global__ void __launch_bounds__(PROBE_THREADS)
    probe_fill(enum cuda_probe kind, bool weights, uint32_t rows, uint32_t K, uint32_t ld,
               uint16_t *to) {
    uint32_t blocks = (ld + PROBE_THREADS - 1) / PROBE_THREADS;
    uint32_t row = blockIdx.x / blocks, k = blockIdx.x % blocks * PROBE_THREADS + threadIdx.x;
    if (k >= ld) return;
    float value = 0.0f;
    if (k < K) value = weights ? weight_element(kind, row, k) : row_element(kind, rows, row, k, K);
    to[(size_t)row * ld + k] = num_bf16(value);
}

static __global__ void __launch_bounds__(PROBE_THREADS)
    probe_compare(const float *a, const float *b, size_t n, uint32_t *different) {
    size_t step = (size_t)gridDim.x * PROBE_THREADS;
    bool differs = false;
    for (size_t i = (size_t)blockIdx.x * PROBE_THREADS + threadIdx.x; i < n; i += step)
        differs = differs || num_bits(a[i]) != num_bits(b[i]);
    if (differs) atomicExch(different, 1u);
}

static cudaError_t fill(cudaStream_t stream, enum cuda_probe kind, bool weights, uint32_t rows,
                        uint32_t K, uint32_t ld, uint16_t *to) {
    uint32_t blocks = (ld + PROBE_THREADS - 1) / PROBE_THREADS;
    LAUNCH(probe_fill, rows * blocks, PROBE_THREADS, 0, stream, kind, weights, rows, K, ld, to);
    return cudaGetLastError();
}

cudaError_t probe_rows_launch(cudaStream_t stream, enum cuda_probe kind, uint32_t rows, uint32_t K,
                              uint32_t ld, uint16_t *x) {
    return fill(stream, kind, false, rows, K, ld, x);
}

cudaError_t probe_weights_launch(cudaStream_t stream, enum cuda_probe kind, uint32_t N, uint32_t K,
                                 uint32_t ld, uint16_t *w) {
    return fill(stream, kind, true, N, K, ld, w);
}

cudaError_t probe_compare_launch(cudaStream_t stream, const float *a, const float *b, size_t n,
                                 uint32_t *different) {
    size_t blocks = (n + PROBE_THREADS - 1) / PROBE_THREADS;
    LAUNCH(probe_compare, (uint32_t)(blocks < PROBE_BLOCKS ? blocks : PROBE_BLOCKS), PROBE_THREADS,
           0, stream, a, b, n, different);
    return cudaGetLastError();
}

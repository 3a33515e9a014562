// Rows as they stand in the model file: single ones to fp32 for the embedding, all of a matrix to
// bf16 operands.
#include "kernels/cuda/dequantize.cuh"
#include "kernels/cuda/rows.h"

#define STORED_THREADS 256

typedef void (*embed_kernel)(stored_rows from, const int32_t *ids, float *x);
typedef void (*unpack_kernel)(stored_rows from, uint16_t *to, uint32_t ld, uint32_t blocks,
                              uint32_t *bad);

template <enum tensor_type TYPE>
static __global__ void __launch_bounds__(STORED_THREADS)
    embed(stored_rows from, const int32_t *ids, float *x) {
    const uint8_t *row = from.data + (size_t)ids[blockIdx.x] * from.row_bytes;
    x += (size_t)blockIdx.x * from.K;
    for (uint32_t i = threadIdx.x; i < from.K; i += STORED_THREADS) x[i] = stored_at<TYPE>(row, i);
}

// A thread takes one element, or a pad element behind the row, which is +0.
template <enum tensor_type TYPE>
static __global__ void __launch_bounds__(STORED_THREADS)
    unpack(stored_rows from, uint16_t *to, uint32_t ld, uint32_t blocks, uint32_t *bad) {
    uint32_t r = blockIdx.x / blocks, i = blockIdx.x % blocks * STORED_THREADS + threadIdx.x;
    if (i >= ld) return;
    float value = i < from.K ? stored_at<TYPE>(from.data + r * from.row_bytes, i) : 0.0f;
    if ((num_bits(value) & 0x7f800000u) == 0x7f800000u) atomicExch(bad, 1u);
    to[(size_t)r * ld + i] = num_bf16(value);
}

// The instance of a kernel template for a type that is known when the program runs.
#define STORED_INSTANCE(kernel, type)                                                              \
    switch (type) {                                                                                \
    case TENSOR_F32: return kernel<TENSOR_F32>;                                                    \
    case TENSOR_F16: return kernel<TENSOR_F16>;                                                    \
    case TENSOR_BF16: return kernel<TENSOR_BF16>;                                                  \
    case TENSOR_Q4_0: return kernel<TENSOR_Q4_0>;                                                  \
    case TENSOR_Q4_1: return kernel<TENSOR_Q4_1>;                                                  \
    case TENSOR_Q5_0: return kernel<TENSOR_Q5_0>;                                                  \
    case TENSOR_Q5_1: return kernel<TENSOR_Q5_1>;                                                  \
    case TENSOR_Q8_0: return kernel<TENSOR_Q8_0>;                                                  \
    case TENSOR_Q4_K: return kernel<TENSOR_Q4_K>;                                                  \
    case TENSOR_Q5_K: return kernel<TENSOR_Q5_K>;                                                  \
    case TENSOR_Q6_K: return kernel<TENSOR_Q6_K>;                                                  \
    }                                                                                              \
    return NULL

static embed_kernel embed_of(enum tensor_type type) {
    STORED_INSTANCE(embed, type);
}

static unpack_kernel unpack_of(enum tensor_type type) {
    STORED_INSTANCE(unpack, type);
}

cudaError_t embed_launch(cudaStream_t stream, const struct stored_rows *rows, const int32_t *ids,
                         uint32_t R, float *x) {
    LAUNCH(embed_of(rows->type), R, STORED_THREADS, 0, stream, *rows, ids, x);
    return cudaGetLastError();
}

cudaError_t unpack_launch(cudaStream_t stream, const struct stored_rows *rows, void *to,
                          uint32_t ld, uint32_t *bad) {
    uint32_t blocks = (ld + STORED_THREADS - 1) / STORED_THREADS;
    LAUNCH(unpack_of(rows->type), rows->rows * blocks, STORED_THREADS, 0, stream, *rows,
           (uint16_t *)to, ld, blocks, bad);
    return cudaGetLastError();
}

// One element of a stored block, by the formulas of kernels/quant.c: the same fp32 steps, so the
// same bits. Blocks of most formats are not aligned, so they are read byte by byte.
#ifndef LACUNA_KERNELS_CUDA_DEQUANTIZE_CUH
#define LACUNA_KERNELS_CUDA_DEQUANTIZE_CUH

#include "kernels/cuda/gpu.h"
#include "kernels/numerics.h"
#include "kernels/quant.h"

static __device__ __forceinline__ uint32_t stored_u16(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static __device__ __forceinline__ uint32_t stored_u32(const uint8_t *p) {
    return stored_u16(p) | stored_u16(p + 2) << 16;
}

// IEEE 754 half to single, exact: a half subnormal is its mantissa times 2^-24.
static __device__ __forceinline__ float stored_half(const uint8_t *p) {
    uint32_t h = stored_u16(p), sign = (h & 0x8000u) << 16, magnitude = h & 0x7fffu;
    if (magnitude < 0x0400u) return num_float(num_bits((float)magnitude * 0x1p-24f) | sign);
    uint32_t rebias = magnitude >= 0x7c00u ? 224u << 23 : 112u << 23;
    return num_float(sign | ((magnitude << 13) + rebias));
}

// Of 16 bytes with elements 0..15 in the low halves and 16..31 in the high ones.
static __device__ __forceinline__ int stored_nibble(const uint8_t *b, uint32_t i) {
    return b[i % 16] >> (i < 16 ? 0 : 4) & 15;
}

// Of K-quants: 32 bytes for each 64 elements, low halves first.
static __device__ __forceinline__ int stored_nibble_k(const uint8_t *b, uint32_t i) {
    return b[i / 64 * 32 + i % 32] >> (i / 32 % 2 ? 4 : 0) & 15;
}

// Six bits each: eight scales and eight minima in 12 bytes (kernels/quant.c, scales_k).
static __device__ __forceinline__ int stored_scale_k(const uint8_t *s, uint32_t j) {
    return j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
}
static __device__ __forceinline__ int stored_minimum_k(const uint8_t *s, uint32_t j) {
    return j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
}

// (d scale) code - (dmin minimum) of element i.
static __device__ __forceinline__ float stored_k(const uint8_t *b, uint32_t i, int code) {
    float scale = stored_half(b) * (float)stored_scale_k(b + 4, i / 32);
    float offset = -(stored_half(b + 2) * (float)stored_minimum_k(b + 4, i / 32));
    return scale * (float)code + offset;
}

static __device__ __forceinline__ int stored_code_q6_k(const uint8_t *b, uint32_t i) {
    uint32_t part = i / 128, c = i / 32 % 4, l = i % 32;
    int low = b[64 * part + 32 * (c & 1) + l] >> 4 * (c >> 1) & 15;
    return (low | (b[128 + 32 * part + l] >> 2 * c & 3) << 4) - 32;
}

template <enum tensor_type TYPE>
static __device__ __forceinline__ float stored_element(const uint8_t *b, uint32_t i) {
    switch (TYPE) {
    case TENSOR_F32: return num_float(stored_u32(b));
    case TENSOR_F16: return stored_half(b);
    case TENSOR_BF16: return num_float(stored_u16(b) << 16);
    case TENSOR_Q8_0: return stored_half(b) * (float)(int8_t)b[2 + i];
    case TENSOR_Q4_0: return stored_half(b) * (float)(stored_nibble(b + 2, i) - 8);
    case TENSOR_Q4_1: return stored_half(b) * (float)stored_nibble(b + 4, i) + stored_half(b + 2);
    case TENSOR_Q5_0: {
        int code = stored_nibble(b + 6, i) | (int)(stored_u32(b + 2) >> i & 1) << 4;
        return stored_half(b) * (float)(code - 16);
    }
    case TENSOR_Q5_1: {
        int code = stored_nibble(b + 8, i) | (int)(stored_u32(b + 4) >> i & 1) << 4;
        return stored_half(b) * (float)code + stored_half(b + 2);
    }
    case TENSOR_Q4_K: return stored_k(b, i, stored_nibble_k(b + 16, i));
    case TENSOR_Q5_K: {
        int fifth = b[16 + i % 32] >> i / 32 & 1;
        return stored_k(b, i, stored_nibble_k(b + 48, i) | fifth << 4);
    }
    case TENSOR_Q6_K: {
        float scale = stored_half(b + 208) * (float)(int8_t)b[192 + i / 16];
        return scale * (float)stored_code_q6_k(b, i);
    }
    }
    return 0.0f;
}

// Elements and bytes of a block.
template <enum tensor_type TYPE> struct stored_block;
#define STORED_BLOCK(type, n, size)                                                                \
    template <> struct stored_block<type> {                                                        \
        enum : uint32_t { elements = n, bytes = size };                                            \
    }
STORED_BLOCK(TENSOR_F32, 1, 4);
STORED_BLOCK(TENSOR_F16, 1, 2);
STORED_BLOCK(TENSOR_BF16, 1, 2);
STORED_BLOCK(TENSOR_Q4_0, 32, 18);
STORED_BLOCK(TENSOR_Q4_1, 32, 20);
STORED_BLOCK(TENSOR_Q5_0, 32, 22);
STORED_BLOCK(TENSOR_Q5_1, 32, 24);
STORED_BLOCK(TENSOR_Q8_0, 32, 34);
STORED_BLOCK(TENSOR_Q4_K, 256, 144);
STORED_BLOCK(TENSOR_Q5_K, 256, 176);
STORED_BLOCK(TENSOR_Q6_K, 256, 210);
#undef STORED_BLOCK

// Element k of a row of whole blocks.
template <enum tensor_type TYPE>
static __device__ __forceinline__ float stored_at(const uint8_t *row, uint32_t k) {
    typedef stored_block<TYPE> block;
    return stored_element<TYPE>(row + (size_t)(k / block::elements) * block::bytes,
                                k % block::elements);
}

#endif

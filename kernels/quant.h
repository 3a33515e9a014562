// Tensor storage formats of GGUF: block geometry and the value each format stands for.
//
// Formulas: the block formats as published with GGUF (ggml's block_q4_0 ... block_q6_K); each
// function states its own. All arithmetic is fp32, one rounding per written operation, so the
// values are the same on every platform; NUMERICS.md: w = bf16(dequantized fp32 value).
#ifndef LACUNA_KERNELS_QUANT_H
#define LACUNA_KERNELS_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Numbers are those of the file format.
enum tensor_type {
    TENSOR_F32 = 0,
    TENSOR_F16 = 1,
    TENSOR_Q4_0 = 2,
    TENSOR_Q4_1 = 3,
    TENSOR_Q5_0 = 6,
    TENSOR_Q5_1 = 7,
    TENSOR_Q8_0 = 8,
    TENSOR_Q4_K = 12,
    TENSOR_Q5_K = 13,
    TENSOR_Q6_K = 14,
    TENSOR_BF16 = 30,
};

struct tensor_format {
    enum tensor_type type;
    const char *name;     // "Q4_1"
    uint32_t block;       // elements in a block
    uint32_t block_bytes; // bytes of a block
    // Of quantized formats: w = scale code + offset with least_code <= code < least_code +
    // 2^code_bits, one scale and offset for each group of elements.
    uint32_t group; // 0: the format is not quantized
    int code_bits, least_code;
    bool offsets; // false: w = scale code
};

// One block in codes. Scales and offsets are exact and finite unless the file's halves are not. All
// are multiples of 2^-24 below 2^30, and scale x code fits in 24 bits: it is exact in fp32, no w is
// subnormal, and a fused multiply-add gives the bits of the formula.
#define TENSOR_BLOCK_MAX 256
#define TENSOR_GROUPS_MAX 16
struct tensor_block {
    int8_t code[TENSOR_BLOCK_MAX];
    float scale[TENSOR_GROUPS_MAX], offset[TENSOR_GROUPS_MAX];
};

// NULL when the type is not supported.
const struct tensor_format *tensor_format_of(uint32_t type);

// A name for messages, also for types that the format knows and this program does not ("IQ2_XXS"),
// or "type 77".  `scratch` holds the text in the last case.
const char *tensor_type_name(uint32_t type, char scratch[24]);

// The codes of one block of a quantized format.
void tensor_block_read(enum tensor_type type, const void *src, struct tensor_block *out);

// n elements (a multiple of the block) from src to dst. Subnormal and non-finite values pass
// through.
void tensor_dequantize(enum tensor_type type, const void *src, size_t n, float *dst);

#endif

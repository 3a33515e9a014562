#include "kernels/quant.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct tensor_format formats[] = {
    {TENSOR_F32, "F32", 1, 4, 0, 0, 0, false},
    {TENSOR_F16, "F16", 1, 2, 0, 0, 0, false},
    {TENSOR_BF16, "BF16", 1, 2, 0, 0, 0, false},
    {TENSOR_Q4_0, "Q4_0", 32, 18, 32, 4, -8, false},
    {TENSOR_Q4_1, "Q4_1", 32, 20, 32, 4, 0, true},
    {TENSOR_Q5_0, "Q5_0", 32, 22, 32, 5, -16, false},
    {TENSOR_Q5_1, "Q5_1", 32, 24, 32, 5, 0, true},
    {TENSOR_Q8_0, "Q8_0", 32, 34, 32, 8, -128, false},
    {TENSOR_Q4_K, "Q4_K", 256, 144, 32, 4, 0, true},
    {TENSOR_Q5_K, "Q5_K", 256, 176, 32, 5, 0, true},
    {TENSOR_Q6_K, "Q6_K", 256, 210, 16, 6, -32, false},
};

const struct tensor_format *tensor_format_of(uint32_t type) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if ((uint32_t)formats[i].type == type) return &formats[i];
    return NULL;
}

const char *tensor_type_name(uint32_t type, char scratch[24]) {
    // The format's own numbering; holes are types that were withdrawn.
    static const char *const names[] = {
        [0] = "F32",     [1] = "F16",      [2] = "Q4_0",    [3] = "Q4_1",     [4] = "Q4_2",
        [5] = "Q4_3",    [6] = "Q5_0",     [7] = "Q5_1",    [8] = "Q8_0",     [9] = "Q8_1",
        [10] = "Q2_K",   [11] = "Q3_K",    [12] = "Q4_K",   [13] = "Q5_K",    [14] = "Q6_K",
        [15] = "Q8_K",   [16] = "IQ2_XXS", [17] = "IQ2_XS", [18] = "IQ3_XXS", [19] = "IQ1_S",
        [20] = "IQ4_NL", [21] = "IQ3_S",   [22] = "IQ2_S",  [23] = "IQ4_XS",  [24] = "I8",
        [25] = "I16",    [26] = "I32",     [27] = "I64",    [28] = "F64",     [29] = "IQ1_M",
        [30] = "BF16",   [34] = "TQ1_0",   [35] = "TQ2_0",  [39] = "MXFP4",   [40] = "NVFP4",
    };
    if (type < sizeof names / sizeof *names && names[type]) return names[type];
    snprintf(scratch, 24, "type %lu", (unsigned long)type);
    return scratch;
}

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t load_u16(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t load_u32(const uint8_t *p) {
    return load_u16(p) | load_u16(p + 2) << 16;
}

// IEEE 754 half to single, exact. A half subnormal is its mantissa times 2^-24, which is a normal
// single, so flushing of subnormals does not change the result.
static float from_half(uint32_t h) {
    uint32_t sign = (h & 0x8000u) << 16, magnitude = h & 0x7fffu;
    if (magnitude < 0x0400u) {
        float small = (float)magnitude * 0x1p-24f;
        return sign ? -small : small;
    }
    uint32_t rebias = magnitude >= 0x7c00u ? 224u << 23 : 112u << 23;
    return from_bits(sign | ((magnitude << 13) + rebias));
}

static float load_half(const uint8_t *p) {
    return from_half(load_u16(p));
}

static void dequantize_f32(const uint8_t *src, size_t n, float *dst) {
    for (size_t i = 0; i < n; i++) dst[i] = from_bits(load_u32(src + 4 * i));
}

static void dequantize_f16(const uint8_t *src, size_t n, float *dst) {
    for (size_t i = 0; i < n; i++) dst[i] = load_half(src + 2 * i);
}

// The upper half of an fp32.
static void dequantize_bf16(const uint8_t *src, size_t n, float *dst) {
    for (size_t i = 0; i < n; i++) dst[i] = from_bits(load_u16(src + 2 * i) << 16);
}

// d f16, 32 x i8: d q
static void block_q8_0(const uint8_t *b, struct tensor_block *out) {
    out->scale[0] = load_half(b);
    memcpy(out->code, b + 2, 32);
}

// Codes 0..15 of 16 bytes: low nibbles are elements 0..15, high nibbles 16..31.
static void nibbles(const uint8_t *b, int8_t *code) {
    for (int i = 0; i < 16; i++) {
        code[i] = (int8_t)(b[i] & 15);
        code[i + 16] = (int8_t)(b[i] >> 4);
    }
}

// Bit i is the fifth bit of element i.
static void fifth_bits(const uint8_t *b, int8_t *code) {
    uint32_t high = load_u32(b);
    for (int i = 0; i < 32; i++) code[i] = (int8_t)(code[i] | (int)(high >> i & 1) << 4);
}

static void center(int8_t *code, int n, int zero) {
    for (int i = 0; i < n; i++) code[i] = (int8_t)(code[i] - zero);
}

// d f16, nibbles: d (q - 8)
static void block_q4_0(const uint8_t *b, struct tensor_block *out) {
    out->scale[0] = load_half(b);
    nibbles(b + 2, out->code);
    center(out->code, 32, 8);
}

// d f16, m f16, nibbles: d q + m
static void block_q4_1(const uint8_t *b, struct tensor_block *out) {
    out->scale[0] = load_half(b);
    out->offset[0] = load_half(b + 2);
    nibbles(b + 4, out->code);
}

// d f16, fifth bits u32, nibbles: d (q - 16)
static void block_q5_0(const uint8_t *b, struct tensor_block *out) {
    out->scale[0] = load_half(b);
    nibbles(b + 6, out->code);
    fifth_bits(b + 2, out->code);
    center(out->code, 32, 16);
}

// d f16, m f16, fifth bits u32, nibbles: d q + m
static void block_q5_1(const uint8_t *b, struct tensor_block *out) {
    out->scale[0] = load_half(b);
    out->offset[0] = load_half(b + 2);
    nibbles(b + 8, out->code);
    fifth_bits(b + 4, out->code);
}

// d f16, dmin f16, then eight 6-bit scales and eight 6-bit minima in 12 bytes: bytes 0..3 and 4..7
// hold the first four of each, their two top bits and bytes 8..11 the last four.
static void scales_k(const uint8_t *b, struct tensor_block *out) {
    float d = load_half(b), dmin = load_half(b + 2);
    const uint8_t *s = b + 4;
    for (int j = 0; j < 4; j++) {
        out->scale[j] = d * (float)(s[j] & 63);
        out->offset[j] = -(dmin * (float)(s[j + 4] & 63));
        out->scale[j + 4] = d * (float)((s[j + 8] & 15) | (s[j] >> 6) << 4);
        out->offset[j + 4] = -(dmin * (float)(s[j + 8] >> 4 | (s[j + 4] >> 6) << 4));
    }
}

// 32 bytes for each 64 elements, low nibbles first.
static void nibbles_k(const uint8_t *b, int8_t *code) {
    for (int j = 0; j < 8; j += 2)
        for (int i = 0; i < 32; i++) {
            code[32 * j + i] = (int8_t)(b[16 * j + i] & 15);
            code[32 * j + 32 + i] = (int8_t)(b[16 * j + i] >> 4);
        }
}

// Scales, nibbles: (d scale) q - (dmin minimum)
static void block_q4_k(const uint8_t *b, struct tensor_block *out) {
    scales_k(b, out);
    nibbles_k(b + 16, out->code);
}

// As Q4_K with 32 bytes of fifth bits behind the scales: bit j of byte i belongs to element 32 j +
// i.
static void block_q5_k(const uint8_t *b, struct tensor_block *out) {
    const uint8_t *high = b + 16;
    scales_k(b, out);
    nibbles_k(b + 48, out->code);
    for (int j = 0; j < 8; j++)
        for (int i = 0; i < 32; i++)
            out->code[32 * j + i] = (int8_t)(out->code[32 * j + i] | (high[i] >> j & 1) << 4);
}

// 128 bytes of low nibbles, 64 bytes of upper bit pairs, 16 x i8 scales (one for 16 elements), d
// f16: (d scale) (q - 32). Each half of 128 elements has 64 nibble bytes and 32 bytes of pairs;
// quarter c of it takes nibble byte 32 (c mod 2) + i, its high nibble when c >= 2, and bit pair c
// of byte i.
static void block_q6_k(const uint8_t *b, struct tensor_block *out) {
    float d = load_half(b + 208);
    for (int j = 0; j < 16; j++) out->scale[j] = d * (float)(int8_t)b[192 + j];
    for (int half = 0; half < 2; half++) {
        const uint8_t *low = b + 64 * half, *pairs = b + 128 + 32 * half;
        for (int c = 0; c < 4; c++) {
            const uint8_t *from = low + 32 * (c & 1);
            for (int i = 0; i < 32; i++) {
                int q = (from[i] >> 4 * (c >> 1) & 15) | (pairs[i] >> 2 * c & 3) << 4;
                out->code[128 * half + 32 * c + i] = (int8_t)(q - 32);
            }
        }
    }
}

void tensor_block_read(enum tensor_type type, const void *src, struct tensor_block *out) {
    switch (type) {
    case TENSOR_F32:
    case TENSOR_F16:
    case TENSOR_BF16: assert(false); break;
    case TENSOR_Q8_0: block_q8_0(src, out); break;
    case TENSOR_Q4_0: block_q4_0(src, out); break;
    case TENSOR_Q4_1: block_q4_1(src, out); break;
    case TENSOR_Q5_0: block_q5_0(src, out); break;
    case TENSOR_Q5_1: block_q5_1(src, out); break;
    case TENSOR_Q4_K: block_q4_k(src, out); break;
    case TENSOR_Q5_K: block_q5_k(src, out); break;
    case TENSOR_Q6_K: block_q6_k(src, out); break;
    }
}

static void dequantize_block(const struct tensor_format *f, const struct tensor_block *b,
                             float *y) {
    for (uint32_t i = 0; i < f->block; i++) {
        float product = b->scale[i / f->group] * (float)b->code[i];
        y[i] = f->offsets ? product + b->offset[i / f->group] : product;
    }
}

void tensor_dequantize(enum tensor_type type, const void *src, size_t n, float *dst) {
    const struct tensor_format *format = tensor_format_of(type);
    assert(format && n % format->block == 0);
    switch (type) {
    case TENSOR_F32: dequantize_f32(src, n, dst); return;
    case TENSOR_F16: dequantize_f16(src, n, dst); return;
    case TENSOR_BF16: dequantize_bf16(src, n, dst); return;
    default: break;
    }
    const uint8_t *b = src;
    for (size_t i = 0; i < n; i += format->block, b += format->block_bytes) {
        struct tensor_block block;
        tensor_block_read(type, b, &block);
        dequantize_block(format, &block, dst + i);
    }
}

// The simplest quantizers that fill each format: range of a block, then rounding. Good enough for
// random weights; every bit field of a block gets used.
#include "tests/support/gguf_writer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// fp32 to IEEE half, round to nearest even; values beyond the range are not for tests.
static uint32_t half_of(float value) {
    uint32_t sign = bits_of(value) >> 16 & 0x8000u;
    float magnitude = fabsf(value);
    assert(magnitude < 65504.0f);
    if (magnitude < 0x1p-14f) return sign | (uint32_t)nearbyintf(magnitude * 0x1p24f);
    uint32_t bits = bits_of(magnitude) - (112u << 23);
    return sign | ((bits + 0x0fffu + (bits >> 13 & 1u)) >> 13);
}

static uint32_t bf16_of(float value) {
    uint32_t bits = bits_of(value);
    return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

static int clamp_round(float value, int low, int high) {
    float r = nearbyintf(value);
    return r < (float)low ? low : r > (float)high ? high : (int)r;
}

static float divide(float a, float b) {
    return b != 0.0f ? a / b : 0.0f;
}

static void range(const float *x, int n, float *low, float *high) {
    *low = *high = x[0];
    for (int i = 1; i < n; i++) {
        if (x[i] < *low) *low = x[i];
        if (x[i] > *high) *high = x[i];
    }
}

// The value of largest magnitude, with its sign.
static float peak(const float *x, int n) {
    float low, high;
    range(x, n, &low, &high);
    return fabsf(low) > fabsf(high) ? low : high;
}

static void block_q8_0(const float *x, struct buf *out) {
    float d = fabsf(peak(x, 32)) / 127;
    put_number(out, half_of(d), 2);
    for (int i = 0; i < 32; i++) buf_add_char(out, (char)clamp_round(divide(x[i], d), -127, 127));
}

// Q4_0 and Q5_0 (symmetric), Q4_1 and Q5_1 (with a minimum).
static void block_small(const float *x, int bits, bool minimum, struct buf *out) {
    int top = (1 << bits) - 1, q[32];
    float low, high;
    range(x, 32, &low, &high);
    float d = minimum ? (high - low) / (float)top : peak(x, 32) / (float)-(1 << (bits - 1));
    float base = minimum ? low : d * (float)-(1 << (bits - 1));
    for (int i = 0; i < 32; i++) q[i] = clamp_round(divide(x[i] - base, d), 0, top);
    put_number(out, half_of(d), 2);
    if (minimum) put_number(out, half_of(low), 2);
    uint32_t fifth = 0;
    for (int i = 0; i < 32; i++) fifth |= (uint32_t)(q[i] >> 4) << i;
    if (bits == 5) put_number(out, fifth, 4);
    for (int i = 0; i < 16; i++) buf_add_char(out, (char)((q[i] & 15) | (q[i + 16] & 15) << 4));
}

static void pack_scales(const int scale[8], const int minimum[8], struct buf *out) {
    uint8_t s[12] = {0};
    for (int j = 0; j < 4; j++) {
        s[j] = (uint8_t)(scale[j] | (scale[j + 4] >> 4) << 6);
        s[j + 4] = (uint8_t)(minimum[j] | (minimum[j + 4] >> 4) << 6);
        s[j + 8] = (uint8_t)((scale[j + 4] & 15) | (minimum[j + 4] & 15) << 4);
    }
    buf_add(out, s, sizeof s);
}

static void block_k(const float *x, int bits, struct buf *out) {
    int top = (1 << bits) - 1, scale[8], minimum[8], q[256];
    float step[8], offset[8], d = 0, dmin = 0;
    for (int j = 0; j < 8; j++) {
        float low, high;
        range(x + 32 * j, 32, &low, &high);
        if (low > 0) low = 0;
        step[j] = (high - low) / (float)top;
        offset[j] = -low;
        d = fmaxf(d, step[j] / 63);
        dmin = fmaxf(dmin, offset[j] / 63);
    }
    for (int j = 0; j < 8; j++) {
        scale[j] = clamp_round(divide(step[j], d), 0, 63);
        minimum[j] = clamp_round(divide(offset[j], dmin), 0, 63);
        for (int i = 0; i < 32; i++) {
            float shifted = x[32 * j + i] + dmin * (float)minimum[j];
            q[32 * j + i] = clamp_round(divide(shifted, d * (float)scale[j]), 0, top);
        }
    }
    put_number(out, half_of(d), 2);
    put_number(out, half_of(dmin), 2);
    pack_scales(scale, minimum, out);
    if (bits == 5)
        for (int i = 0; i < 32; i++) {
            int high = 0;
            for (int j = 0; j < 8; j++) high |= (q[32 * j + i] >> 4) << j;
            buf_add_char(out, (char)high);
        }
    for (int j = 0; j < 8; j += 2)
        for (int i = 0; i < 32; i++)
            buf_add_char(out, (char)((q[32 * j + i] & 15) | (q[32 * j + 32 + i] & 15) << 4));
}

static void block_q6_k(const float *x, struct buf *out) {
    uint8_t low[128] = {0}, pairs[64] = {0};
    int8_t scale[16];
    float d = 0;
    for (int s = 0; s < 16; s++) d = fmaxf(d, fabsf(peak(x + 16 * s, 16)) / 32 / 127);
    for (int s = 0; s < 16; s++)
        scale[s] = (int8_t)clamp_round(divide(peak(x + 16 * s, 16) / -32, d), -127, 127);
    for (int i = 0; i < 256; i++) {
        int q = clamp_round(divide(x[i], d * (float)scale[i / 16]), -32, 31) + 32;
        int half = i / 128, c = i % 128 / 32, at = i % 32;
        low[64 * half + 32 * (c & 1) + at] |= (uint8_t)((q & 15) << 4 * (c >> 1));
        pairs[32 * half + at] |= (uint8_t)((q >> 4) << 2 * c);
    }
    buf_add(out, low, sizeof low);
    buf_add(out, pairs, sizeof pairs);
    buf_add(out, scale, sizeof scale);
    put_number(out, half_of(d), 2);
}

void tensor_quantize(enum tensor_type type, const float *src, size_t n, struct buf *out) {
    size_t block = tensor_format_of(type)->block;
    assert(n % block == 0);
    for (size_t i = 0; i < n; i += block) {
        const float *x = src + i;
        switch (type) {
        case TENSOR_F32: put_number(out, bits_of(*x), 4); break;
        case TENSOR_F16: put_number(out, half_of(*x), 2); break;
        case TENSOR_BF16: put_number(out, bf16_of(*x), 2); break;
        case TENSOR_Q8_0: block_q8_0(x, out); break;
        case TENSOR_Q4_0: block_small(x, 4, false, out); break;
        case TENSOR_Q4_1: block_small(x, 4, true, out); break;
        case TENSOR_Q5_0: block_small(x, 5, false, out); break;
        case TENSOR_Q5_1: block_small(x, 5, true, out); break;
        case TENSOR_Q4_K: block_k(x, 4, out); break;
        case TENSOR_Q5_K: block_k(x, 5, out); break;
        case TENSOR_Q6_K: block_q6_k(x, out); break;
        }
    }
}

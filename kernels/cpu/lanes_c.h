// Sixteen fp32 lanes in plain C: what the SIMD forms (lanes_avx2.h, lanes_avx512.h) must equal.
#ifndef LACUNA_KERNELS_CPU_LANES_C_H
#define LACUNA_KERNELS_CPU_LANES_C_H

#include "kernels/numerics.h"

#include <stdbool.h>
#include <stddef.h>

#define LANES_REGISTERS 8 // that hold sixteen lanes, counted as if the processor had them

struct lanes {
    float v[NUM_LANES];
};

#define LANES_EACH(expression)                                                                     \
    struct lanes out;                                                                              \
    for (int j = 0; j < NUM_LANES; j++) out.v[j] = (expression);                                   \
    return out

static inline struct lanes lanes_set(float x) {
    LANES_EACH(x);
}
static inline struct lanes lanes_load(const float *p) {
    LANES_EACH(p[j]);
}
static inline struct lanes lanes_load_n(const float *p, size_t n) {
    LANES_EACH((size_t)j < n ? p[j] : 0.0f);
}
static inline struct lanes lanes_load_bf16(const uint16_t *p) {
    LANES_EACH(num_from_bf16(p[j]));
}
// Sixteen numbers of one byte.
static inline struct lanes lanes_load_codes(const int8_t *p) {
    LANES_EACH((float)p[j]);
}
// The low halves of sixteen bytes, and the high ones.
static inline struct lanes lanes_load_nibbles(const uint8_t *p, struct lanes *high) {
    for (int j = 0; j < NUM_LANES; j++) high->v[j] = (float)(p[j] >> 4);
    LANES_EACH((float)(p[j] & 15));
}
static inline struct lanes lanes_add(struct lanes a, struct lanes b) {
    LANES_EACH(a.v[j] + b.v[j]);
}
static inline struct lanes lanes_sub(struct lanes a, struct lanes b) {
    LANES_EACH(a.v[j] - b.v[j]);
}
static inline struct lanes lanes_mul(struct lanes a, struct lanes b) {
    LANES_EACH(a.v[j] * b.v[j]);
}
static inline struct lanes lanes_div(struct lanes a, struct lanes b) {
    LANES_EACH(a.v[j] / b.v[j]);
}
static inline struct lanes lanes_fma(struct lanes a, struct lanes b, struct lanes c) {
    LANES_EACH(fmaf(a.v[j], b.v[j], c.v[j]));
}
static inline struct lanes lanes_max(struct lanes a, struct lanes b) {
    LANES_EACH(a.v[j] > b.v[j] ? a.v[j] : b.v[j]);
}
static inline struct lanes lanes_min(struct lanes a, struct lanes b) {
    LANES_EACH(a.v[j] < b.v[j] ? a.v[j] : b.v[j]);
}
static inline struct lanes lanes_abs(struct lanes a) {
    LANES_EACH(fabsf(a.v[j]));
}
static inline struct lanes lanes_copysign(struct lanes a, struct lanes sign) {
    LANES_EACH(copysignf(a.v[j], sign.v[j]));
}
// x >= bound ? a : b
static inline struct lanes lanes_ge(struct lanes x, float bound, struct lanes a, struct lanes b) {
    LANES_EACH(x.v[j] >= bound ? a.v[j] : b.v[j]);
}
// The lanes from <= j < to of a, `fill` elsewhere.
static inline struct lanes lanes_keep(struct lanes a, uint32_t from, uint32_t to, float fill) {
    LANES_EACH((uint32_t)j >= from && (uint32_t)j < to ? a.v[j] : fill);
}
// 0, 0, 2, 2, ...; 1, 1, 3, 3, ...; 1, 0, 3, 2, ...; and signs -, +, -, + put before the lanes.
static inline struct lanes lanes_even(struct lanes a) {
    LANES_EACH(a.v[j & ~1]);
}
static inline struct lanes lanes_odd(struct lanes a) {
    LANES_EACH(a.v[j | 1]);
}
static inline struct lanes lanes_swapped(struct lanes a) {
    LANES_EACH(a.v[j ^ 1]);
}
static inline struct lanes lanes_alternate(struct lanes a) {
    LANES_EACH(j % 2 == 0 ? -a.v[j] : a.v[j]);
}
// p times 2^n, where `shifted` is n + NUM_ROUND.
static inline struct lanes lanes_exponent(struct lanes p, struct lanes shifted) {
    LANES_EACH(num_float(num_bits(p.v[j]) + (num_bits(shifted.v[j]) << 23)));
}
static inline struct lanes lanes_round_bf16(struct lanes a) {
    LANES_EACH(num_from_bf16(num_bf16(a.v[j])));
}
// The same for lanes in [2^-126, 2^100], in fewer steps: NaN stays NaN, other lanes give anything.
static inline struct lanes lanes_round_bf16_normal(struct lanes a) {
    LANES_EACH(num_from_bf16(num_bf16(a.v[j])));
}

static inline void lanes_store(float *p, struct lanes a) {
    memcpy(p, a.v, sizeof a.v);
}
static inline void lanes_store_n(float *p, struct lanes a, size_t n) {
    memcpy(p, a.v, n * sizeof a.v[0]);
}
// Lanes that are bf16 values already.
static inline void lanes_store_bf16(uint16_t *p, struct lanes a) {
    for (int j = 0; j < NUM_LANES; j++) p[j] = (uint16_t)(num_bits(a.v[j]) >> 16);
}
static inline void lanes_store_bf16_n(uint16_t *p, struct lanes a, size_t n) {
    for (size_t j = 0; j < n; j++) p[j] = (uint16_t)(num_bits(a.v[j]) >> 16);
}

// Pairs of lanes that are bf16 values already.
static inline void lanes_store_bf16_pairs(uint16_t *p, struct lanes even, struct lanes odd) {
    for (int j = 0; j < NUM_LANES; j++) {
        p[2 * j] = (uint16_t)(num_bits(even.v[j]) >> 16);
        p[2 * j + 1] = (uint16_t)(num_bits(odd.v[j]) >> 16);
    }
}

static inline bool lanes_finite(struct lanes a) {
    bool finite = true;
    for (int j = 0; j < NUM_LANES; j++) finite &= (num_bits(a.v[j]) & 0x7f800000u) != 0x7f800000u;
    return finite;
}
// The tree of a row reduction: (0+8, 1+9, ...), (0+4, ...), (0+2, ...), (0+1).
static inline float lanes_sum(struct lanes a) {
    for (int half = NUM_LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) a.v[j] += a.v[j + half];
    return a.v[0];
}
static inline float lanes_max_of(struct lanes a) {
    float max = a.v[0];
    for (int j = 1; j < NUM_LANES; j++) max = a.v[j] > max ? a.v[j] : max;
    return max;
}
static inline float lanes_min_of(struct lanes a) {
    float min = a.v[0];
    for (int j = 1; j < NUM_LANES; j++) min = a.v[j] < min ? a.v[j] : min;
    return min;
}

#undef LANES_EACH
#endif

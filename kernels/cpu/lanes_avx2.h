// Sixteen fp32 lanes in two AVX2 registers; the same operations as lanes_c.h.
#ifndef LACUNA_KERNELS_CPU_LANES_AVX2_H
#define LACUNA_KERNELS_CPU_LANES_AVX2_H

#include "kernels/numerics.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>

#define LANES_REGISTERS 8 // that hold sixteen lanes

// Two named members and not an array: gcc keeps arrays of registers in memory.
struct lanes {
    __m256 low, high;
};

#define LANES_1(f, a) ((struct lanes){f((a).low), f((a).high)})
#define LANES_2(f, a, b) ((struct lanes){f((a).low, (b).low), f((a).high, (b).high)})
#define LANES_3(f, a, b, c)                                                                        \
    ((struct lanes){f((a).low, (b).low, (c).low), f((a).high, (b).high, (c).high)})

static inline __m256 half_of_bits(uint32_t bits) {
    return _mm256_castsi256_ps(_mm256_set1_epi32((int)bits));
}
// All ones in the lanes j < n, counted from `start`.
static inline __m256i half_first(int start, uint32_t n) {
    __m256i index =
        _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(start));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), index);
}
static inline __m256 half_load_bf16(const uint16_t *p) {
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
static inline __m256 half_abs(__m256 a) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}
static inline __m256 half_copysign(__m256 a, __m256 sign) {
    return _mm256_or_ps(half_abs(a), _mm256_and_ps(_mm256_set1_ps(-0.0f), sign));
}
static inline __m256 half_ge(__m256 x, __m256 bound, __m256 a, __m256 b) {
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, bound, _CMP_GE_OQ));
}
static inline __m256 half_keep(__m256 a, int start, uint32_t from, uint32_t to, float fill) {
    __m256i kept = _mm256_andnot_si256(half_first(start, from), half_first(start, to));
    return _mm256_blendv_ps(_mm256_set1_ps(fill), a, _mm256_castsi256_ps(kept));
}
static inline __m256 half_swapped(__m256 a) {
    return _mm256_permute_ps(a, 0xb1);
}
static inline __m256 half_alternate(__m256 a) {
    return _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi64x(0x80000000u)));
}
static inline __m256 half_exponent(__m256 p, __m256 shifted) {
    __m256i n = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), n));
}
static inline __m256 half_round_bf16(__m256 a) {
    __m256i u = _mm256_castps_si256(a), exponent = _mm256_set1_epi32(0x7f800000);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i y = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    // a subnormal keeps its sign alone, a NaN its upper half made quiet
    __m256i tiny = _mm256_cmpeq_epi32(_mm256_and_si256(u, exponent), _mm256_setzero_si256());
    __m256 sign = _mm256_and_ps(a, _mm256_set1_ps(-0.0f));
    __m256 rounded = _mm256_blendv_ps(_mm256_castsi256_ps(y), sign, _mm256_castsi256_ps(tiny));
    __m256 quiet = _mm256_or_ps(a, half_of_bits(0x00400000u));
    rounded = _mm256_blendv_ps(rounded, quiet, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    return _mm256_and_ps(rounded, half_of_bits(0xffff0000u));
}
// Adding 1.5 x 2^16 times a's power of two leaves eight significant bits of a, rounded as bf16 is.
static inline __m256 half_round_bf16_normal(__m256 a) {
    __m256i power = _mm256_and_si256(_mm256_castps_si256(a), _mm256_set1_epi32((int)0xff800000u));
    __m256 large = _mm256_castsi256_ps(_mm256_add_epi32(power, _mm256_set1_epi32(0x08400000)));
    return _mm256_sub_ps(_mm256_add_ps(a, large), large);
}

static inline struct lanes lanes_set(float x) {
    return (struct lanes){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
static inline struct lanes lanes_load(const float *p) {
    return (struct lanes){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
static inline struct lanes lanes_load_n(const float *p, size_t n) {
    return (struct lanes){_mm256_maskload_ps(p, half_first(0, (uint32_t)n)),
                          _mm256_maskload_ps(p + 8, half_first(8, (uint32_t)n))};
}
static inline struct lanes lanes_load_bf16(const uint16_t *p) {
    return (struct lanes){half_load_bf16(p), half_load_bf16(p + 8)};
}
static inline void half_split_bf16(const uint16_t *p, __m256 *even, __m256 *odd) {
    __m256i pairs = _mm256_loadu_si256((const __m256i *)p);
    *even = _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
    *odd = _mm256_and_ps(_mm256_castsi256_ps(pairs), half_of_bits(0xffff0000u));
}
// Sixteen pairs of bf16.
static inline void lanes_split_bf16(const uint16_t *p, struct lanes *even, struct lanes *odd) {
    half_split_bf16(p, &even->low, &odd->low);
    half_split_bf16(p + 16, &even->high, &odd->high);
}
static inline struct lanes lanes_load_codes(const int8_t *p) {
    __m128i low = _mm_loadl_epi64((const __m128i *)p),
            high = _mm_loadl_epi64((const __m128i *)(p + 8));
    return (struct lanes){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(low)),
                          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(high))};
}
static inline __m256 half_low_nibbles(__m256i bytes) {
    return _mm256_cvtepi32_ps(_mm256_and_si256(bytes, _mm256_set1_epi32(15)));
}
static inline struct lanes lanes_load_nibbles(const uint8_t *p, struct lanes *high) {
    __m256i a = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
    __m256i b = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8)));
    high->low = _mm256_cvtepi32_ps(_mm256_srli_epi32(a, 4));
    high->high = _mm256_cvtepi32_ps(_mm256_srli_epi32(b, 4));
    return (struct lanes){half_low_nibbles(a), half_low_nibbles(b)};
}
static inline struct lanes lanes_add(struct lanes a, struct lanes b) {
    return LANES_2(_mm256_add_ps, a, b);
}
static inline struct lanes lanes_sub(struct lanes a, struct lanes b) {
    return LANES_2(_mm256_sub_ps, a, b);
}
static inline struct lanes lanes_mul(struct lanes a, struct lanes b) {
    return LANES_2(_mm256_mul_ps, a, b);
}
static inline struct lanes lanes_div(struct lanes a, struct lanes b) {
    return LANES_2(_mm256_div_ps, a, b);
}
static inline struct lanes lanes_fma(struct lanes a, struct lanes b, struct lanes c) {
    return LANES_3(_mm256_fmadd_ps, a, b, c);
}
static inline struct lanes lanes_max(struct lanes a, struct lanes b) {
    return LANES_2(_mm256_max_ps, a, b); // a > b ? a : b
}
static inline struct lanes lanes_min(struct lanes a, struct lanes b) {
    return LANES_2(_mm256_min_ps, a, b); // a < b ? a : b
}
static inline struct lanes lanes_abs(struct lanes a) {
    return LANES_1(half_abs, a);
}
static inline struct lanes lanes_copysign(struct lanes a, struct lanes sign) {
    return LANES_2(half_copysign, a, sign);
}
static inline struct lanes lanes_ge(struct lanes x, float bound, struct lanes a, struct lanes b) {
    __m256 at = _mm256_set1_ps(bound);
    return (struct lanes){half_ge(x.low, at, a.low, b.low), half_ge(x.high, at, a.high, b.high)};
}
static inline struct lanes lanes_keep(struct lanes a, uint32_t from, uint32_t to, float fill) {
    return (struct lanes){half_keep(a.low, 0, from, to, fill),
                          half_keep(a.high, 8, from, to, fill)};
}
static inline struct lanes lanes_even(struct lanes a) {
    return LANES_1(_mm256_moveldup_ps, a);
}
static inline struct lanes lanes_odd(struct lanes a) {
    return LANES_1(_mm256_movehdup_ps, a);
}
static inline struct lanes lanes_swapped(struct lanes a) {
    return LANES_1(half_swapped, a);
}
static inline struct lanes lanes_alternate(struct lanes a) {
    return LANES_1(half_alternate, a);
}
static inline struct lanes lanes_exponent(struct lanes p, struct lanes shifted) {
    return LANES_2(half_exponent, p, shifted);
}
static inline struct lanes lanes_round_bf16(struct lanes a) {
    return LANES_1(half_round_bf16, a);
}
static inline struct lanes lanes_round_bf16_normal(struct lanes a) {
    return LANES_1(half_round_bf16_normal, a);
}

static inline void lanes_store(float *p, struct lanes a) {
    _mm256_storeu_ps(p, a.low);
    _mm256_storeu_ps(p + 8, a.high);
}
static inline void lanes_store_n(float *p, struct lanes a, size_t n) {
    _mm256_maskstore_ps(p, half_first(0, (uint32_t)n), a.low);
    _mm256_maskstore_ps(p + 8, half_first(8, (uint32_t)n), a.high);
}
static inline void lanes_store_bf16(uint16_t *p, struct lanes a) {
    __m256i low = _mm256_srli_epi32(_mm256_castps_si256(a.low), 16);
    __m256i high = _mm256_srli_epi32(_mm256_castps_si256(a.high), 16);
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
    _mm256_storeu_si256((__m256i *)p, packed);
}
static inline void lanes_store_bf16_n(uint16_t *p, struct lanes a, size_t n) {
    uint16_t all[NUM_LANES];
    lanes_store_bf16(all, a);
    memcpy(p, all, n * sizeof *p);
}

static inline __m256i half_bf16_pairs(__m256 even, __m256 odd) {
    return _mm256_or_si256(_mm256_castps_si256(odd),
                           _mm256_srli_epi32(_mm256_castps_si256(even), 16));
}
static inline void lanes_store_bf16_pairs(uint16_t *p, struct lanes even, struct lanes odd) {
    _mm256_storeu_si256((__m256i *)p, half_bf16_pairs(even.low, odd.low));
    _mm256_storeu_si256((__m256i *)(p + 16), half_bf16_pairs(even.high, odd.high));
}

static inline bool lanes_finite(struct lanes a) {
    __m256i exponent = _mm256_set1_epi32(0x7f800000);
    __m256i low = _mm256_and_si256(_mm256_castps_si256(a.low), exponent);
    __m256i high = _mm256_and_si256(_mm256_castps_si256(a.high), exponent);
    __m256i bad =
        _mm256_or_si256(_mm256_cmpeq_epi32(low, exponent), _mm256_cmpeq_epi32(high, exponent));
    return _mm256_testz_si256(bad, bad) != 0;
}
static inline float lanes_sum(struct lanes a) {
    __m256 eight = _mm256_add_ps(a.low, a.high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
static inline float lanes_max_of(struct lanes a) {
    __m256 eight = _mm256_max_ps(a.low, a.high);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
static inline float lanes_min_of(struct lanes a) {
    __m256 eight = _mm256_min_ps(a.low, a.high);
    __m128 four = _mm_min_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_min_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_min_ss(two, _mm_movehdup_ps(two)));
}

#endif

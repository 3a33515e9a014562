// Sixteen fp32 lanes in one AVX-512 register; the same operations as lanes_c.h.
#ifndef LACUNA_KERNELS_CPU_LANES_AVX512_H
#define LACUNA_KERNELS_CPU_LANES_AVX512_H

#include "kernels/numerics.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>

#define LANES_REGISTERS 32 // that hold sixteen lanes

struct lanes {
    __m512 v;
};

#define LANES_OF(expression)                                                                       \
    (struct lanes) {                                                                               \
        expression                                                                                 \
    }

static inline __mmask16 lanes_first(size_t n) {
    return (__mmask16)((1u << n) - 1u);
}

static inline struct lanes lanes_set(float x) {
    return LANES_OF(_mm512_set1_ps(x));
}
static inline struct lanes lanes_load(const float *p) {
    return LANES_OF(_mm512_loadu_ps(p));
}
static inline struct lanes lanes_load_n(const float *p, size_t n) {
    return LANES_OF(_mm512_maskz_loadu_ps(lanes_first(n), p));
}
static inline struct lanes lanes_load_bf16(const uint16_t *p) {
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return LANES_OF(_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16)));
}
// Sixteen pairs of bf16.
static inline void lanes_split_bf16(const uint16_t *p, struct lanes *even, struct lanes *odd) {
    __m512i pairs = _mm512_loadu_si512(p);
    even->v = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
    odd->v = _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000u)));
}
static inline struct lanes lanes_load_codes(const int8_t *p) {
    __m512i wide = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
    return LANES_OF(_mm512_cvtepi32_ps(wide));
}
static inline struct lanes lanes_load_nibbles(const uint8_t *p, struct lanes *high) {
    // The permutation looks at the low four bits of each index: they need no mask.
    const __m512 number = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i wide = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
    high->v = _mm512_permutexvar_ps(_mm512_srli_epi32(wide, 4), number);
    return LANES_OF(_mm512_permutexvar_ps(wide, number));
}
static inline struct lanes lanes_add(struct lanes a, struct lanes b) {
    return LANES_OF(_mm512_add_ps(a.v, b.v));
}
static inline struct lanes lanes_sub(struct lanes a, struct lanes b) {
    return LANES_OF(_mm512_sub_ps(a.v, b.v));
}
static inline struct lanes lanes_mul(struct lanes a, struct lanes b) {
    return LANES_OF(_mm512_mul_ps(a.v, b.v));
}
static inline struct lanes lanes_div(struct lanes a, struct lanes b) {
    return LANES_OF(_mm512_div_ps(a.v, b.v));
}
static inline struct lanes lanes_fma(struct lanes a, struct lanes b, struct lanes c) {
    return LANES_OF(_mm512_fmadd_ps(a.v, b.v, c.v));
}
static inline struct lanes lanes_max(struct lanes a, struct lanes b) {
    return LANES_OF(_mm512_max_ps(a.v, b.v)); // a > b ? a : b
}
static inline struct lanes lanes_min(struct lanes a, struct lanes b) {
    return LANES_OF(_mm512_min_ps(a.v, b.v)); // a < b ? a : b
}
static inline struct lanes lanes_abs(struct lanes a) {
    return LANES_OF(_mm512_abs_ps(a.v));
}
static inline struct lanes lanes_copysign(struct lanes a, struct lanes sign) {
    // bits: (a and not mask) or (sign and mask)
    __m512i mask = _mm512_set1_epi32((int)0x80000000u);
    return LANES_OF(_mm512_castsi512_ps(_mm512_ternarylogic_epi32(mask, _mm512_castps_si512(sign.v),
                                                                  _mm512_castps_si512(a.v), 0xca)));
}
static inline struct lanes lanes_ge(struct lanes x, float bound, struct lanes a, struct lanes b) {
    __mmask16 ge = _mm512_cmp_ps_mask(x.v, _mm512_set1_ps(bound), _CMP_GE_OQ);
    return LANES_OF(_mm512_mask_blend_ps(ge, b.v, a.v));
}
static inline struct lanes lanes_keep(struct lanes a, uint32_t from, uint32_t to, float fill) {
    __mmask16 kept = lanes_first(to < NUM_LANES ? to : NUM_LANES) & (__mmask16)~lanes_first(from);
    return LANES_OF(_mm512_mask_blend_ps(kept, _mm512_set1_ps(fill), a.v));
}
static inline struct lanes lanes_even(struct lanes a) {
    return LANES_OF(_mm512_moveldup_ps(a.v));
}
static inline struct lanes lanes_odd(struct lanes a) {
    return LANES_OF(_mm512_movehdup_ps(a.v));
}
static inline struct lanes lanes_swapped(struct lanes a) {
    return LANES_OF(_mm512_permute_ps(a.v, 0xb1));
}
static inline struct lanes lanes_alternate(struct lanes a) {
    return LANES_OF(_mm512_xor_ps(a.v, _mm512_castsi512_ps(_mm512_set1_epi64(0x80000000u))));
}
static inline struct lanes lanes_exponent(struct lanes p, struct lanes shifted) {
    __m512i n = _mm512_slli_epi32(_mm512_castps_si512(shifted.v), 23);
    return LANES_OF(_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p.v), n)));
}

#if defined(__AVX512BF16__)
static inline __m256i lanes_to_bf16(struct lanes a) {
    return (__m256i)_mm512_cvtneps_pbh(a.v);
}
static inline struct lanes lanes_round_bf16(struct lanes a) {
    __m512i wide = _mm512_cvtepu16_epi32(lanes_to_bf16(a));
    return LANES_OF(_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16)));
}
// As products with 1, of which vdpbf16ps adds a pair's odd one first.
#define LANES_STORE_BF16_ADDED 1
static inline struct lanes lanes_store_bf16_added(uint16_t *p, struct lanes a, struct lanes b,
                                                  struct lanes sum) {
    const __m512i pairs =
        _mm512_set_epi16(15, 31, 14, 30, 13, 29, 12, 28, 11, 27, 10, 26, 9, 25, 8, 24, 7, 23, 6, 22,
                         5, 21, 4, 20, 3, 19, 2, 18, 1, 17, 0, 16);
    __m512i both = (__m512i)_mm512_cvtne2ps_pbh(b.v, a.v);
    _mm512_storeu_si512(p, both);
    __m512bh one = (__m512bh)_mm512_set1_epi16(0x3f80);
    return LANES_OF(_mm512_dpbf16_ps(sum.v, (__m512bh)_mm512_permutexvar_epi16(pairs, both), one));
}
#else
static inline struct lanes lanes_round_bf16(struct lanes a) {
    __m512i u = _mm512_castps_si512(a.v), high = _mm512_set1_epi32((int)0xffff0000u);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i y = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    // a subnormal keeps its sign alone, a NaN its upper half made quiet
    __mmask16 tiny = _mm512_testn_epi32_mask(u, _mm512_set1_epi32(0x7f800000));
    __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
    y = _mm512_mask_and_epi32(y, tiny, u, _mm512_set1_epi32((int)0x80000000u));
    y = _mm512_mask_or_epi32(y, nan, u, _mm512_set1_epi32(0x00400000));
    return LANES_OF(_mm512_castsi512_ps(_mm512_and_si512(y, high)));
}
#endif

// Adding 1.5 x 2^16 times a's power of two leaves eight significant bits of a, rounded as bf16 is.
static inline struct lanes lanes_round_bf16_normal(struct lanes a) {
    __m512i bits = _mm512_castps_si512(a.v);
    __m512 power = _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32((int)0xff800000u)));
    __m512 large = _mm512_fmadd_ps(power, _mm512_set1_ps(0x1.8p16f), a.v);
    return LANES_OF(_mm512_fnmadd_ps(power, _mm512_set1_ps(0x1.8p16f), large));
}

static inline void lanes_store(float *p, struct lanes a) {
    _mm512_storeu_ps(p, a.v);
}
static inline void lanes_store_n(float *p, struct lanes a, size_t n) {
    _mm512_mask_storeu_ps(p, lanes_first(n), a.v);
}
static inline __m256i lanes_high_halves(struct lanes a) {
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(a.v), 16));
}
static inline void lanes_store_bf16(uint16_t *p, struct lanes a) {
    _mm256_storeu_si256((__m256i *)p, lanes_high_halves(a));
}
static inline void lanes_store_bf16_n(uint16_t *p, struct lanes a, size_t n) {
    _mm256_mask_storeu_epi16(p, lanes_first(n), lanes_high_halves(a));
}

static inline void lanes_store_bf16_pairs(uint16_t *p, struct lanes even, struct lanes odd) {
    __m512i low = _mm512_srli_epi32(_mm512_castps_si512(even.v), 16);
    _mm512_storeu_si512(p, _mm512_or_si512(_mm512_castps_si512(odd.v), low));
}

static inline bool lanes_finite(struct lanes a) {
    __m512i exponent = _mm512_set1_epi32(0x7f800000);
    __m512i bits = _mm512_and_si512(_mm512_castps_si512(a.v), exponent);
    return _mm512_cmpeq_epi32_mask(bits, exponent) == 0;
}
static inline float lanes_sum(struct lanes a) {
    __m256 low = _mm512_castps512_ps256(a.v), high = _mm512_extractf32x8_ps(a.v, 1);
    __m256 eight = _mm256_add_ps(low, high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
static inline float lanes_max_of(struct lanes a) {
    return _mm512_reduce_max_ps(a.v);
}
static inline float lanes_min_of(struct lanes a) {
    return _mm512_reduce_min_ps(a.v);
}

#endif

// Sixteen fp32 lanes in two AVX2 registers; the same operations as lanes_c.h.
#ifndef LACUNA_KERNELS_CPU_LANES_AVX2_H
#define LACUNA_KERNELS_CPU_LANES_AVX2_H

#include "kernels/numerics.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>

struct lanes {
    __m256 v[2];
};

#define LANES_BOTH(expression)                                                                     \
    struct lanes out;                                                                              \
    for (int i = 0; i < 2; i++) out.v[i] = (expression);                                           \
    return out

static inline struct lanes lanes_set(float x) {
    LANES_BOTH(_mm256_set1_ps(x));
}
static inline struct lanes lanes_load(const float *p) {
    LANES_BOTH(_mm256_loadu_ps(p + 8 * i));
}
static inline __m256i lanes_index(int half) {
    __m256i low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_add_epi32(low, _mm256_set1_epi32(8 * half));
}
// All ones in the lanes j < n.
static inline __m256i lanes_first(int half, uint32_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lanes_index(half));
}
static inline struct lanes lanes_load_n(const float *p, size_t n) {
    LANES_BOTH(_mm256_maskload_ps(p + 8 * i, lanes_first(i, (uint32_t)n)));
}
static inline struct lanes lanes_load_bf16(const uint16_t *p) {
    LANES_BOTH(_mm256_castsi256_ps(_mm256_slli_epi32(
        _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p + 8 * i))), 16)));
}
static inline struct lanes lanes_add(struct lanes a, struct lanes b) {
    LANES_BOTH(_mm256_add_ps(a.v[i], b.v[i]));
}
static inline struct lanes lanes_sub(struct lanes a, struct lanes b) {
    LANES_BOTH(_mm256_sub_ps(a.v[i], b.v[i]));
}
static inline struct lanes lanes_mul(struct lanes a, struct lanes b) {
    LANES_BOTH(_mm256_mul_ps(a.v[i], b.v[i]));
}
static inline struct lanes lanes_div(struct lanes a, struct lanes b) {
    LANES_BOTH(_mm256_div_ps(a.v[i], b.v[i]));
}
static inline struct lanes lanes_fma(struct lanes a, struct lanes b, struct lanes c) {
    LANES_BOTH(_mm256_fmadd_ps(a.v[i], b.v[i], c.v[i]));
}
static inline struct lanes lanes_max(struct lanes a, struct lanes b) {
    LANES_BOTH(_mm256_max_ps(a.v[i], b.v[i])); // a > b ? a : b
}
static inline struct lanes lanes_abs(struct lanes a) {
    LANES_BOTH(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v[i]));
}
static inline struct lanes lanes_copysign(struct lanes a, struct lanes sign) {
    LANES_BOTH(_mm256_or_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v[i]),
                            _mm256_and_ps(_mm256_set1_ps(-0.0f), sign.v[i])));
}
static inline struct lanes lanes_ge(struct lanes x, float bound, struct lanes a, struct lanes b) {
    LANES_BOTH(
        _mm256_blendv_ps(b.v[i], a.v[i], _mm256_cmp_ps(x.v[i], _mm256_set1_ps(bound), _CMP_GE_OQ)));
}
static inline struct lanes lanes_keep(struct lanes a, uint32_t from, uint32_t to, float fill) {
    LANES_BOTH(_mm256_blendv_ps(
        _mm256_set1_ps(fill), a.v[i],
        _mm256_castsi256_ps(_mm256_andnot_si256(lanes_first(i, from), lanes_first(i, to)))));
}
static inline struct lanes lanes_even(struct lanes a) {
    LANES_BOTH(_mm256_moveldup_ps(a.v[i]));
}
static inline struct lanes lanes_odd(struct lanes a) {
    LANES_BOTH(_mm256_movehdup_ps(a.v[i]));
}
static inline struct lanes lanes_swapped(struct lanes a) {
    LANES_BOTH(_mm256_permute_ps(a.v[i], 0xb1));
}
static inline struct lanes lanes_alternate(struct lanes a) {
    LANES_BOTH(_mm256_xor_ps(a.v[i], _mm256_castsi256_ps(_mm256_set1_epi64x(0x80000000u))));
}
static inline struct lanes lanes_exponent(struct lanes p, struct lanes shifted) {
    LANES_BOTH(_mm256_castsi256_ps(_mm256_add_epi32(
        _mm256_castps_si256(p.v[i]), _mm256_slli_epi32(_mm256_castps_si256(shifted.v[i]), 23))));
}
static inline __m256 lanes_half_bf16(__m256 a) {
    __m256i u = _mm256_castps_si256(a), exponent = _mm256_set1_epi32(0x7f800000);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i y = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    // a subnormal keeps its sign alone, a NaN its upper half made quiet
    __m256i tiny = _mm256_cmpeq_epi32(_mm256_and_si256(u, exponent), _mm256_setzero_si256());
    __m256i sign = _mm256_and_si256(u, _mm256_set1_epi32((int)0x80000000u));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    y = _mm256_blendv_epi8(y, sign, tiny);
    y = _mm256_blendv_epi8(y, _mm256_or_si256(u, _mm256_set1_epi32(0x00400000)), nan);
    return _mm256_castsi256_ps(_mm256_and_si256(y, _mm256_set1_epi32((int)0xffff0000u)));
}
static inline struct lanes lanes_round_bf16(struct lanes a) {
    LANES_BOTH(lanes_half_bf16(a.v[i]));
}

static inline void lanes_store(float *p, struct lanes a) {
    _mm256_storeu_ps(p, a.v[0]);
    _mm256_storeu_ps(p + 8, a.v[1]);
}
static inline void lanes_store_n(float *p, struct lanes a, size_t n) {
    for (int i = 0; i < 2; i++) _mm256_maskstore_ps(p + 8 * i, lanes_first(i, (uint32_t)n), a.v[i]);
}
static inline void lanes_store_bf16(uint16_t *p, struct lanes a) {
    __m256i low = _mm256_srli_epi32(_mm256_castps_si256(a.v[0]), 16);
    __m256i high = _mm256_srli_epi32(_mm256_castps_si256(a.v[1]), 16);
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
    _mm256_storeu_si256((__m256i *)p, packed);
}
static inline void lanes_store_bf16_n(uint16_t *p, struct lanes a, size_t n) {
    uint16_t all[NUM_LANES];
    lanes_store_bf16(all, a);
    memcpy(p, all, n * sizeof *p);
}

static inline bool lanes_finite(struct lanes a) {
    __m256i exponent = _mm256_set1_epi32(0x7f800000), bad = _mm256_setzero_si256();
    for (int i = 0; i < 2; i++) {
        __m256i bits = _mm256_and_si256(_mm256_castps_si256(a.v[i]), exponent);
        bad = _mm256_or_si256(bad, _mm256_cmpeq_epi32(bits, exponent));
    }
    return _mm256_testz_si256(bad, bad) != 0;
}
static inline float lanes_sum(struct lanes a) {
    __m256 eight = _mm256_add_ps(a.v[0], a.v[1]);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
static inline float lanes_max_of(struct lanes a) {
    __m256 eight = _mm256_max_ps(a.v[0], a.v[1]);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

#undef LANES_BOTH
#endif

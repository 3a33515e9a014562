// See mma.h. Whole numbers throughout; loops over the eight columns of a row become vectors.
#include "kernels/simt/mma.h"

#include "kernels/cpu/env.h"

#include <cmath>
#include <cstddef>
#include <cstring>

namespace simt {

enum {
    ROWS = 16,
    COLUMNS = 8,
    DEPTH = 16,
    HALF = 8,              // products whose sum cannot overflow 32 bits
    PRODUCT_FRACTION = 14, // fractional bits of the product of two bf16 significands
    FLOAT_FRACTION = 23,
    DOUBLE_FRACTION = 52,
    DOUBLE_BIAS = 1023,
    SPECIAL = 255, // the exponent field of infinities and NaNs
    FLOAT_BIAS = 127,
};

// Numbers taken apart: value = +-significand 2^(exponent - fractional bits).
struct parts {
    int32_t significand[DEPTH][COLUMNS], exponent[DEPTH][COLUMNS], sign[DEPTH][COLUMNS];
    bool special[COLUMNS]; // an infinity or a NaN in the column
};
struct row_parts {
    int32_t significand[DEPTH], exponent[DEPTH], sign[DEPTH]; // sign: 0 or -1
    bool special;
};

static inline bool take_apart(uint16_t x, int32_t *significand, int32_t *exponent, int32_t *sign) {
    int32_t field = x >> 7 & 255;
    *significand = (field != 0 ? 128 : 0) | (x & 127);
    *exponent = (field != 0 ? field : 1) - FLOAT_BIAS;
    *sign = x >> 15 ? -1 : 0;
    return field == SPECIAL;
}

static double bf16_value(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

// A sum with an infinity or a NaN among its terms.
static float special_sum(const mma_tile *t, int row, int column, int first, int terms, float c) {
    double sum = c;
    for (int k = first; k < first + terms; k++)
        sum += bf16_value(t->a[row][k]) * bf16_value(t->b[k][column]);
    if (!std::isnan(sum)) return (float)sum;
    uint32_t nan = 0x7fffffff;
    float f;
    memcpy(&f, &nan, sizeof f);
    return f;
}

// Towards zero, onto fp32's grid of subnormal numbers.
static float cut_subnormal(double x) {
    return (float)(trunc(x * 0x1p149) * 0x1p-149);
}

// total 2^(exponent - bits), cut towards zero.
template <int bits>
static inline __attribute__((always_inline)) void cut(const int32_t *low, const int32_t *high,
                                                      const int32_t *exponent, float *c) {
    double exact[COLUMNS];
    int small = 0;
    for (int n = 0; n < COLUMNS; n++) {
        uint64_t power = (uint64_t)(exponent[n] - bits + DOUBLE_BIAS) << DOUBLE_FRACTION;
        double scale;
        memcpy(&scale, &power, sizeof scale);
        exact[n] = ((double)low[n] + (double)high[n]) * scale;
    }
    for (int n = 0; n < COLUMNS; n++) {
        uint64_t kept;
        double x;
        memcpy(&kept, &exact[n], sizeof kept);
        kept &= ~(((uint64_t)1 << (DOUBLE_FRACTION - FLOAT_FRACTION)) - 1);
        memcpy(&x, &kept, sizeof x);
        c[n] = (float)x;
        small |= fabs(x) < 0x1p-126;
    }
    if (!small) return;
    for (int n = 0; n < COLUMNS; n++)
        if (fabs(exact[n]) < 0x1p-126) c[n] = cut_subnormal(exact[n]);
}

static inline __attribute__((always_inline)) int32_t aligned(int32_t magnitude, int32_t sign,
                                                             int32_t distance) {
    int32_t cut = (int32_t)((uint32_t)magnitude >> (distance < 31 ? distance : 31));
    return (cut ^ sign) - sign;
}

template <int bits>
static inline __attribute__((always_inline)) void
add_product(const row_parts *a, const parts *b, int k, const int32_t *top, int32_t *sum) {
    for (int n = 0; n < COLUMNS; n++) {
        int32_t product = a->significand[k] * b->significand[k][n];
        sum[n] += aligned(product << (bits - PRODUCT_FRACTION), a->sign[k] ^ b->sign[k][n],
                          top[n] - a->exponent[k] - b->exponent[k][n]);
    }
}

// c[n] += the products of terms k = first and on, in one step.
template <int terms, int bits>
static inline __attribute__((always_inline)) void add_products(const row_parts *a, const parts *b,
                                                               int first, float *c) {
    int32_t field[COLUMNS], top[COLUMNS], magnitude[COLUMNS], sign[COLUMNS];
    int32_t sum[2][COLUMNS] = {};
    for (int n = 0; n < COLUMNS; n++) {
        int32_t x;
        memcpy(&x, &c[n], sizeof x);
        int32_t e = x >> FLOAT_FRACTION & 255;
        magnitude[n] = (x & ((1 << FLOAT_FRACTION) - 1)) | (e != 0 ? 1 << FLOAT_FRACTION : 0);
        field[n] = top[n] = (e != 0 ? e : 1) - FLOAT_BIAS;
        sign[n] = x >> 31;
    }
    for (int k = first; k < first + terms; k++)
        for (int n = 0; n < COLUMNS; n++) {
            int32_t e = a->exponent[k] + b->exponent[k][n];
            top[n] = e > top[n] ? e : top[n];
        }
    for (int n = 0; n < COLUMNS; n++)
        sum[0][n] = aligned(magnitude[n] << (bits - FLOAT_FRACTION), sign[n], top[n] - field[n]);
    for (int k = first; k < first + HALF; k++) add_product<bits>(a, b, k, top, sum[0]);
    for (int k = first + HALF; k < first + terms; k++) add_product<bits>(a, b, k, top, sum[1]);
    cut<bits>(sum[0], sum[1], top, c);
}

static bool is_special(float x) {
    return !std::isfinite(x);
}

template <int terms, int bits>
static inline __attribute__((always_inline)) void multiply(mma_tile *t) {
    parts b = {};
    bool any_special = false;
    for (int k = 0; k < DEPTH; k++)
        for (int n = 0; n < COLUMNS; n++)
            b.special[n] |=
                take_apart(t->b[k][n], &b.significand[k][n], &b.exponent[k][n], &b.sign[k][n]);
    for (int n = 0; n < COLUMNS; n++) any_special |= b.special[n];
    for (int row = 0; row < ROWS; row++) {
        row_parts a;
        a.special = false;
        for (int k = 0; k < DEPTH; k++)
            a.special |= take_apart(t->a[row][k], &a.significand[k], &a.exponent[k], &a.sign[k]);
        float *c = t->c[row];
        for (int first = 0; first < DEPTH; first += terms) {
            float before[COLUMNS];
            memcpy(before, c, sizeof before);
            bool special = any_special | a.special;
            for (int n = 0; n < COLUMNS; n++) special |= is_special(c[n]);
            add_products<terms, bits>(&a, &b, first, c);
            if (!special) continue;
            for (int n = 0; n < COLUMNS; n++)
                if (a.special || b.special[n] || is_special(before[n])) {
                    float sum = special_sum(t, row, n, first, terms, before[n]);
                    if (is_special(sum)) c[n] = sum;
                }
        }
    }
}

// One source for several instruction sets: integers give the same bits on all of them.
typedef void multiplier(mma_tile *t);
static void plain_sm80(mma_tile *t) {
    multiply<8, 24>(t);
}
static void plain_sm90(mma_tile *t) {
    multiply<16, 25>(t);
}
#define AVX2 __attribute__((target("avx2")))
AVX2 static void avx2_sm80(mma_tile *t) {
    multiply<8, 24>(t);
}
AVX2 static void avx2_sm90(mma_tile *t) {
    multiply<16, 25>(t);
}

void mma_multiply(mma_tile *t, int capability) {
    static multiplier *const table[2][2] = {{plain_sm80, plain_sm90}, {avx2_sm80, avx2_sm90}};
    static const bool avx2 = __builtin_cpu_supports("avx2");
    unsigned saved = _mm_getcsr(); // of a kernel, which flushes subnormals; tensor cores do not
    _mm_setcsr(ENV_MASKS);
    table[avx2][capability >= 90](t);
    _mm_setcsr(saved);
}

} // namespace simt

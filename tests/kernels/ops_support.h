// What the tests of the op tables share: pools, random values, packed matrices, KV pages.
#ifndef LACUNA_TESTS_KERNELS_OPS_SUPPORT_H
#define LACUNA_TESTS_KERNELS_OPS_SUPPORT_H

#include "engine/base/rng.h"
#include "kernels/cpu/env.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/team.h"
#include "kernels/numerics.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void *ops_alloc(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
    assert_non_null(p);
    return p;
}

// Enough for every call of the tests.
static inline struct cpu_pool ops_pool(int threads) {
    struct cpu_pool pool = {.team = team_open(threads), .threads = threads};
    assert_non_null(pool.team);
    size_t f32 = cpu_slice_bytes(CPU_F32, 1100, 2048, 4096, 16, 8, 256);
    size_t bf16 = cpu_slice_bytes(CPU_BF16_1, 1100, 2048, 4096, 16, 8, 256);
    pool.slice_bytes = f32 > bf16 ? f32 : bf16;
    pool.scratch = ops_alloc(pool.slice_bytes * (size_t)threads);
    memset(pool.scratch, 0xff,
           pool.slice_bytes * (size_t)threads); // NaN: nothing may leak from here
    return pool;
}

static inline void ops_pool_close(struct cpu_pool *pool) {
    team_close(pool->team);
    free(pool->scratch);
}

static inline uint32_t ops_below(struct rng *r, uint32_t n) {
    return (uint32_t)rng_below(r, n);
}

// In (-3, 3), the sum of three uniform numbers: near enough to normal.
static inline float ops_normal(struct rng *r) {
    return (float)(2.0 * (rng_unit(r) + rng_unit(r) + rng_unit(r)) - 3.0);
}

// Any magnitude from subnormal to 2^62, with exact zeros among them: products stay finite, many of
// them subnormal.
static inline float ops_wild(struct rng *r) {
    uint32_t kind = ops_below(r, 16);
    if (kind == 0) return 0.0f;
    if (kind == 1) return -0.0f;
    if (kind == 2) return num_float(rng_u32(r) & 0x807fffffu); // subnormal
    if (kind < 6) return ldexpf(ops_normal(r), (int)ops_below(r, 160) - 99);
    if (kind < 10) return ldexpf(ops_normal(r), -60 - (int)ops_below(r, 10));
    return ops_normal(r);
}

static inline float *ops_floats(struct rng *r, size_t n, bool wild) {
    float *x = ops_alloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = wild ? ops_wild(r) : ops_normal(r);
    return x;
}

// The tests' own rounding to bf16, by comparing distances instead of by bits.
static inline float ops_round_reference(float x) {
    if (isnan(x) || isinf(x)) return x;
    if (fabsf(x) < 0x1p-126f) return copysignf(0.0f, x);
    int e;
    double m = frexp((double)x, &e) * 256.0, whole = floor(m), rest = m - whole;
    if (rest > 0.5 || (rest == 0.5 && fmod(whole, 2.0) != 0.0)) whole += 1.0;
    double y = ldexp(whole, e - 8);
    return fabs(y) > 3.3895313892515355e38 ? copysignf(INFINITY, x) : (float)y;
}

static inline float ops_value(const struct cpu_ops *ops, const void *operands, size_t i) {
    return ops->numerics == CPU_F32 ? ((const float *)operands)[i]
                                    : num_from_bf16(((const uint16_t *)operands)[i]);
}

// Rows of operands with an even stride, pads +0, elements rounded by the tests' own rule.
static inline void *ops_operands(const struct cpu_ops *ops, const float *x, uint32_t R, uint32_t K,
                                 uint32_t ld) {
    char *out = ops_alloc((size_t)R * ld * ops->operand_bytes);
    memset(out, 0, (size_t)R * ld * ops->operand_bytes);
    for (size_t r = 0; r < R; r++) {
        for (size_t i = 0; i < K; i++) {
            float v = x[r * K + i];
            if (ops->numerics == CPU_F32)
                ((float *)out)[r * ld + i] = v;
            else
                ((uint16_t *)out)[r * ld + i] = (uint16_t)(num_bits(ops_round_reference(v)) >> 16);
        }
    }
    return out;
}

static inline size_t ops_panel_bytes(const struct cpu_ops *ops, uint32_t N, uint32_t K) {
    size_t depth = ops->numerics == CPU_F32 ? K : (K + 1) / 2 * 2;
    return (N + 15) / 16 * 16 * depth * ops->operand_bytes;
}

static inline struct cpu_matrix ops_pack(const struct cpu_ops *ops, const float *w, uint32_t N,
                                         uint32_t K) {
    void *panels = ops_alloc(ops_panel_bytes(ops, N, K));
    memset(panels, 0, ops_panel_bytes(ops, N, K));
    for (uint32_t n = 0; n < N; n++)
        assert_int_equal(ops->pack_row(w + (size_t)n * K, n, K, panels), 0);
    return (struct cpu_matrix){.N = N, .K = K, .panels = panels};
}

static inline void ops_assert_same(const void *a, const void *b, size_t bytes, const char *format,
                                   ...) __attribute__((format(printf, 4, 5)));
static inline void ops_assert_same(const void *a, const void *b, size_t bytes, const char *format,
                                   ...) {
    if (memcmp(a, b, bytes) == 0) return;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t at = 0;
    while (((const char *)a)[at] == ((const char *)b)[at]) at++;
    uint32_t word_a, word_b;
    memcpy(&word_a, (const char *)a + at / 4 * 4, 4);
    memcpy(&word_b, (const char *)b + at / 4 * 4, 4);
    fail_msg("%s: differs at byte %zu: %08x %08x (%g %g)", text, at, word_a, word_b,
             (double)num_float(word_a), (double)num_float(word_b));
}

#endif

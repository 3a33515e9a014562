// The fp32 functions and roundings that make the bits of `bf16-1` and `f32`: constants, range
// reduction and order of steps. A change of any bit here raises the numerics id.
//
// The scalar forms below are the definition, for the CPU and the GPU (kernels/cuda compiles them
// with -ftz=true -fmad=false). kernels/cpu/lanes.h has the same steps on 16 lanes and must give the
// same bits (tests/kernels/test_numerics.c). All hold under round to nearest even with subnormals
// flushed (kernels/cpu/env.h) and without contraction: only `fmaf` fuses.
#ifndef LACUNA_KERNELS_NUMERICS_H
#define LACUNA_KERNELS_NUMERICS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define NUM_FUNCTION static __device__ __forceinline__
#else
#define NUM_FUNCTION static inline
#endif

#define NUM_LANES 16 // virtual lanes of a row reduction

#define NUM_LOG2_E 0x1.715476p+0f
#define NUM_LN_2 0x1.62e430p-1f
#define NUM_SQRT_2_OVER_PI 0x1.988454p-1f
#define NUM_GELU_CUBIC 0x1.6e4e26p-5f // 0.044715

// exp2(f) = 1 + f (E1 + f (E2 + ... f E6)) for |f| <= 1/2; least squares on Chebyshev points of
// (2^f - 1) / f, relative error of the exact polynomial 8.7e-9.
#define NUM_E1 0x1.62e430p-1f
#define NUM_E2 0x1.ebfbe0p-3f
#define NUM_E3 0x1.c6af6cp-5f
#define NUM_E4 0x1.3b2a1cp-7f
#define NUM_E5 0x1.5f0896p-10f
#define NUM_E6 0x1.444004p-13f
#define NUM_E_MIN (-126.0f) // below: +0
#define NUM_E_MAX 128.0f    // from here on: infinity
#define NUM_ROUND 0x1.8p23f // adding and subtracting it rounds to an integer, ties to even

// log2((1 + s) / (1 - s)) = s (L0 + z (L1 + z (L2 + z L3))), z = s^2 <= 0.0295; error 1.4e-8.
#define NUM_L0 0x1.715476p+1f
#define NUM_L1 0x1.ec70e6p-1f
#define NUM_L2 0x1.27471ep-1f
#define NUM_L3 0x1.ba18b8p-2f
#define NUM_SQRT_HALF_BITS 0x3f3504f3u

NUM_FUNCTION uint32_t num_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

NUM_FUNCTION float num_float(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

// bf16 of x: nearest, ties to even; a subnormal gives zero of its sign; a NaN stays a (quiet) NaN.
NUM_FUNCTION uint16_t num_bf16(float x) {
    uint32_t u = num_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40u);
    if ((u & 0x7f800000u) == 0) return (uint16_t)((u >> 16) & 0x8000u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

NUM_FUNCTION float num_from_bf16(uint16_t h) {
    return num_float((uint32_t)h << 16);
}

// 2^x for x in [NUM_E_MIN, NUM_E_MAX): x = n + f with n the nearest integer; the polynomial in f; n
// is added to the exponent. Exact for integers.
NUM_FUNCTION float num_exp2_inside(float x) {
    float shifted = x + NUM_ROUND;
    float f = x - (shifted - NUM_ROUND);
    float p = fmaf(NUM_E6, f, NUM_E5);
    p = fmaf(p, f, NUM_E4);
    p = fmaf(p, f, NUM_E3);
    p = fmaf(p, f, NUM_E2);
    p = fmaf(p, f, NUM_E1);
    p = fmaf(p, f, 1.0f);
    return num_float(num_bits(p) + (num_bits(shifted) << 23));
}

// 2^x. A NaN gives +0 (callers multiply by what made the NaN, or refuse it before).
NUM_FUNCTION float num_exp2(float x) {
    float inside = x >= NUM_E_MIN ? x : NUM_E_MIN;
    float y = num_exp2_inside(inside < NUM_E_MAX ? inside : 0.0f);
    y = x >= NUM_E_MAX ? INFINITY : y;
    return x >= NUM_E_MIN ? y : 0.0f;
}

// log2 of a finite x >= 2^-126: x = 2^e m with m in [sqrt(1/2), sqrt(2)), s = (m - 1) / (m + 1).
NUM_FUNCTION float num_log2(float x) {
    int32_t e = (int32_t)(num_bits(x) - NUM_SQRT_HALF_BITS) >> 23;
    float m = num_float(num_bits(x) - ((uint32_t)e << 23));
    float s = (m - 1.0f) / (m + 1.0f);
    float z = s * s;
    float p = fmaf(NUM_L3, z, NUM_L2);
    p = fmaf(p, z, NUM_L1);
    p = fmaf(p, z, NUM_L0);
    return fmaf(s, p, (float)e);
}

// (1 - t) / (1 + t) with t = exp2(-2 log2(e) |x|), and the sign of x. Absolute error below 1.2e-7.
NUM_FUNCTION float num_tanh(float x) {
    float t = num_exp2(fabsf(x) * (-2.0f * NUM_LOG2_E));
    return copysignf((1.0f - t) / (1.0f + t), x);
}

NUM_FUNCTION float num_sigmoid(float x) {
    return 1.0f / (1.0f + num_exp2(-x * NUM_LOG2_E));
}

NUM_FUNCTION float num_silu_gate(float g, float u) {
    return (g * num_sigmoid(g)) * u;
}

// 1/2 g (1 + tanh(sqrt(2/pi) (g + 0.044715 g^3))) u (Hendrycks and Gimpel 2016, tanh form).
NUM_FUNCTION float num_gelu_gate(float g, float u) {
    float cube = (g * g) * g;
    float inner = NUM_SQRT_2_OVER_PI * fmaf(NUM_GELU_CUBIC, cube, g);
    return ((0.5f * g) * (1.0f + num_tanh(inner))) * u;
}

#endif

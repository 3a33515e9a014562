// The functions of kernels/numerics.h on sixteen lanes, the same steps in the same order. Include
// one of lanes_c.h, lanes_avx2.h, lanes_avx512.h before.
#ifndef LACUNA_KERNELS_CPU_LANES_H
#define LACUNA_KERNELS_CPU_LANES_H

#include "kernels/numerics.h"

// 2^x of lanes within [NUM_E_MIN, NUM_E_MAX).
static inline struct lanes lanes_exp2_inside(struct lanes x) {
    struct lanes shifted = lanes_add(x, lanes_set(NUM_ROUND));
    struct lanes f = lanes_sub(x, lanes_sub(shifted, lanes_set(NUM_ROUND)));
    struct lanes p = lanes_fma(lanes_set(NUM_E6), f, lanes_set(NUM_E5));
    p = lanes_fma(p, f, lanes_set(NUM_E4));
    p = lanes_fma(p, f, lanes_set(NUM_E3));
    p = lanes_fma(p, f, lanes_set(NUM_E2));
    p = lanes_fma(p, f, lanes_set(NUM_E1));
    return lanes_exponent(lanes_fma(p, f, lanes_set(1.0f)), shifted);
}

static inline struct lanes lanes_exp2(struct lanes x) {
    struct lanes zero = lanes_set(0.0f);
    struct lanes inside = lanes_ge(x, NUM_E_MIN, x, lanes_set(NUM_E_MIN));
    inside = lanes_ge(inside, NUM_E_MAX, zero, inside);
    struct lanes y = lanes_ge(x, NUM_E_MAX, lanes_set(INFINITY), lanes_exp2_inside(inside));
    return lanes_ge(x, NUM_E_MIN, y, zero);
}

// For x <= 0, as all exponents of a softmax are: the upper bound need not be looked at.
static inline struct lanes lanes_exp2_below(struct lanes x) {
    struct lanes inside = lanes_ge(x, NUM_E_MIN, x, lanes_set(NUM_E_MIN));
    return lanes_ge(x, NUM_E_MIN, lanes_exp2_inside(inside), lanes_set(0.0f));
}

static inline struct lanes lanes_tanh(struct lanes x) {
    struct lanes one = lanes_set(1.0f);
    struct lanes t = lanes_exp2_below(lanes_mul(lanes_abs(x), lanes_set(-2.0f * NUM_LOG2_E)));
    return lanes_copysign(lanes_div(lanes_sub(one, t), lanes_add(one, t)), x);
}

static inline struct lanes lanes_silu_gate(struct lanes g, struct lanes u) {
    struct lanes one = lanes_set(1.0f);
    struct lanes e = lanes_exp2(lanes_mul(g, lanes_set(-NUM_LOG2_E)));
    struct lanes sigmoid = lanes_div(one, lanes_add(one, e));
    return lanes_mul(lanes_mul(g, sigmoid), u);
}

static inline struct lanes lanes_gelu_gate(struct lanes g, struct lanes u) {
    struct lanes cube = lanes_mul(lanes_mul(g, g), g);
    struct lanes inner =
        lanes_mul(lanes_set(NUM_SQRT_2_OVER_PI), lanes_fma(lanes_set(NUM_GELU_CUBIC), cube, g));
    struct lanes factor = lanes_add(lanes_set(1.0f), lanes_tanh(inner));
    return lanes_mul(lanes_mul(lanes_mul(lanes_set(0.5f), g), factor), u);
}

#endif

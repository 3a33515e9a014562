// The fp32 polynomials against long double, the rounding to bf16 against its rule, the lanes of
// every table against the scalar definition, and the double-precision functions.
#include "tests/kernels/ops_support.h"

#include "kernels/exp.h"

// Distance of y from exact in units of the last place of exact as a float.
static double ulps(float y, long double exact) {
    int e;
    frexpl(exact, &e);
    if (e < -125) e = -125;
    return (double)(fabsl((long double)y - exact) / ldexpl(1.0L, e - 24));
}

static void test_exp2_is_within_an_ulp(void **state) {
    (void)state;
    double worst = 0;
    for (uint32_t bits = 0; bits < 0xff800000u;
         bits += 4099) { // every sign, exponent, many fractions
        float x = num_float(bits);
        if ((bits & 0x7fffffffu) > 0x7f800000u) continue;
        float y = num_exp2(x);
        if (x < -126.0f) {
            assert_int_equal(num_bits(y), 0);
        } else if (x >= 128.0f) {
            assert_true(isinf(y));
        } else {
            double u = ulps(y, exp2l((long double)x));
            worst = u > worst ? u : worst;
        }
    }
    if (!(worst < 0.9)) fail_msg("exp2 is off by %g ulp", worst);
    for (int n = -126; n < 128; n++) assert_true(num_exp2((float)n) == ldexpf(1.0f, n));
    assert_int_equal(num_bits(num_exp2(nextafterf(-126.0f, -200.0f))), 0);
    assert_true(num_exp2(nextafterf(128.0f, 0.0f)) < INFINITY);
    assert_int_equal(num_bits(num_exp2(-INFINITY)), 0);
    assert_int_equal(num_bits(num_exp2(NAN)), 0);
}

static void test_log2_is_within_three_ulps(void **state) {
    (void)state;
    double worst = 0;
    for (uint32_t bits = 0x00800000u; bits < 0x7f800000u; bits += 2003) {
        float x = num_float(bits);
        double u = ulps(num_log2(x), log2l((long double)x));
        worst = u > worst ? u : worst;
    }
    if (!(worst < 3.0)) fail_msg("log2 is off by %g ulp", worst);
    for (int n = -126; n < 128; n++) assert_true(num_log2(ldexpf(1.0f, n)) == (float)n);
}

static void test_gates_and_tanh(void **state) {
    (void)state;
    double tanh_worst = 0, sigmoid_worst = 0, gelu_worst = 0;
    for (float x = -30.0f; x < 30.0f; x += 0.00037f) {
        double d = (double)x;
        double t = fabs((double)num_tanh(x) - tanh(d));
        double s = fabs((double)num_sigmoid(x) * (1.0 + exp(-d)) - 1.0);
        double inner = sqrt(2 / M_PI) * (d + 0.044715 * d * d * d);
        double g = fabs((double)num_gelu_gate(x, 1.0f) - 0.5 * d * (1 + tanh(inner)));
        tanh_worst = t > tanh_worst ? t : tanh_worst;
        sigmoid_worst = s > sigmoid_worst ? s : sigmoid_worst;
        gelu_worst = g > gelu_worst ? g : gelu_worst;
    }
    if (!(tanh_worst < 1.2e-7)) fail_msg("tanh is off by %g", tanh_worst);
    if (!(sigmoid_worst < 2e-6)) fail_msg("sigmoid is off by %g of itself", sigmoid_worst);
    if (!(gelu_worst < 2e-6)) fail_msg("gelu is off by %g", gelu_worst);
    assert_true(num_tanh(100.0f) == 1.0f && num_tanh(-INFINITY) == -1.0f);
    assert_true(num_silu_gate(-1e30f, 1.0f) == 0.0f && num_silu_gate(1e30f, 1.0f) == 1e30f);
    assert_true(num_gelu_gate(-1e30f, 1.0f) == 0.0f && num_gelu_gate(1e30f, 1.0f) == 1e30f);
}

static void test_bf16_rounds_to_nearest_even(void **state) {
    (void)state;
    struct rng r = rng_open(51, "numerics", "bf16");
    for (int i = 0; i < 400000; i++) {
        uint32_t bits = rng_u32(&r);
        if (i % 4 == 0) bits = (bits & 0xffff0000u) | 0x8000u; // ties
        float x = num_float(bits);
        if (isnan(x)) {
            assert_true(isnan(num_from_bf16(num_bf16(x))));
            continue;
        }
        uint32_t expected = num_bits(ops_round_reference(x)) >> 16;
        if (num_bf16(x) != expected)
            fail_msg("bf16(%08x) = %04x, not %04x", bits, num_bf16(x), expected);
    }
    assert_int_equal(num_bf16(num_float(0x007fffffu)), 0); // not rounded up to the least normal
    assert_int_equal(num_bf16(num_float(0x807fffffu)), 0x8000); // keeps its sign
    assert_int_equal(num_bf16(num_float(0x7f7fffffu)), 0x7f80);
}

// The shortcut of attention's weights: adding 1.5 x 2^16 times its power of two to a number of the
// polynomial's range, and taking it off again, rounds to bf16.
ENV_WORK void compare_roundings(void) {
    for (uint32_t bits = 0x3f000000u; bits < 0x40000000u; bits++) {
        float large = num_float((bits & 0xff800000u) + 0x08400000u);
        float sum = num_float(bits) + large, rounded = sum - large;
        if (rounded != num_from_bf16(num_bf16(num_float(bits))))
            fail_msg("%08x rounds to %08x", bits, num_bits(rounded));
    }
}

static void test_adding_a_large_number_rounds_to_bf16(void **state) {
    (void)state;
    unsigned saved = env_enter();
    compare_roundings();
    env_leave(saved);
}

// Ops that are one function a lane, on floats of every kind: all tables equal the scalar
// definition.
static void test_tables_equal_the_scalar_definition(void **state) {
    (void)state;
    enum { N = 4099 };
    struct rng r = rng_open(52, "numerics", "lanes");
    int count;
    const struct cpu_ops *const *tables = cpu_ops_all(&count);
    struct cpu_pool pool = ops_pool(1);
    float *gu = ops_alloc(2 * N * sizeof *gu), *want = ops_alloc(2 * N * sizeof *want);
    char *out = ops_alloc((N + 1) * sizeof(float));
    for (int kind = 0; kind < 3; kind++) {
        for (int i = 0; i < 2 * N; i++) {
            do gu[i] = i % 3 == 0 ? num_float(rng_u32(&r)) : 10.0f * ops_normal(&r);
            while (isnan(gu[i]) || (i >= N && isinf(gu[i])));
        }
        unsigned saved = env_enter();
        for (int i = 0; i < N; i++)
            want[i] = kind == 0   ? num_silu_gate(gu[i], gu[N + i])
                      : kind == 1 ? num_gelu_gate(gu[i], gu[N + i])
                                  : gu[i];
        env_leave(saved);
        for (int i = 0; i < N; i++) // a NaN (infinity times zero) has no bits of its own here
            if (isnan(want[i])) gu[i] = want[i] = 0.0f, gu[N + i] = 0.0f;
        for (int t = 0; t < count; t++) {
            const struct cpu_ops *ops = tables[t];
            if (cpu_ops_find(ops->numerics, ops->name, NULL) == NULL) continue;
            if (kind < 2)
                ops->gate(&pool, kind == 0 ? CPU_GATE_SILU : CPU_GATE_GELU_TANH, gu, 2 * N, 1, N,
                          out, N + 1);
            else
                ops->round(&pool, gu, N, 1, N, out, N + 1);
            void *expected = ops_operands(ops, want, 1, N, N + 1);
            ops_assert_same(expected, out, (N + 1) * ops->operand_bytes, "%s, function %d",
                            ops->name, kind);
            free(expected);
        }
    }
    free(gu);
    free(want);
    free(out);
    ops_pool_close(&pool);
}

// Angles against long double: the table within 1e-6 of cos and sin, at the far positions where a
// coarse product goes wrong; and the frequency alone, from position 1, within 1e-6 of the formula.
static void test_rope_angles(void **state) {
    (void)state;
    const double bases[] = {10000, 100000, 500000, 1000000};
    const uint32_t positions[] = {0, 1, 2, 4095, 15962, 32767, 131071, 1048575, 4294967295u};
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
        for (uint32_t rotary = 16; rotary <= 128; rotary *= 2) {
            for (size_t p = 0; p < sizeof positions / sizeof *positions; p++) {
                float table[128], factor[64];
                for (uint32_t i = 0; i < 64; i++) factor[i] = i < 29 ? 1.0f : 8.0f;
                cpu_rope_angles(bases[b], rotary, p % 2 ? factor : NULL, positions[p], table);
                for (uint32_t i = 0; i < rotary / 2; i++) {
                    long double f = powl((long double)bases[b], -2.0L * i / rotary);
                    if (p % 2) f /= (long double)factor[i];
                    long double angle = (long double)positions[p] * f;
                    // half an ulp of the result, and a few roundings of the angle in double
                    double bound = 0x1p-24 * 0.51 + (double)angle * 0x1p-53 * 24;
                    double c = (double)fabsl((long double)table[2 * i] - cosl(angle));
                    double s = (double)fabsl((long double)table[2 * i + 1] - sinl(angle));
                    if (c > bound || s > bound)
                        fail_msg("base %g, %u of %u, position %u: off by %g %g", bases[b], i,
                                 rotary, positions[p], c, s);
                }
            }
        }
    }
    // No two far positions collapse onto each other (15962 and 15936 do in bfloat16).
    float a[128], z[128];
    cpu_rope_angles(500000, 128, NULL, 15962, a);
    cpu_rope_angles(500000, 128, NULL, 15936, z);
    for (int i = 0; i < 20; i++)
        assert_true(fabsf(a[2 * i] - z[2 * i]) + fabsf(a[2 * i + 1] - z[2 * i + 1]) > 1e-3f);
}

// The values of a published scaling: head 128, base 500000; the divisor of a pair divides its
// frequency, seen as the angle of position 1.
static void test_rope_factors(void **state) {
    (void)state;
    const struct {
        uint32_t pair;
        double plain, scaled;
    } known[] = {
        {29, 2.61610e-3, 2.16657e-3}, {34, 9.38474e-4, 1.78508e-4}, {40, 2.74248e-4, 3.42810e-5}};
    float factor[64], plain[128], scaled[128];
    for (int i = 0; i < 64; i++) factor[i] = 1.0f;
    for (int i = 0; i < 3; i++) factor[known[i].pair] = (float)(known[i].plain / known[i].scaled);
    cpu_rope_angles(500000, 128, NULL, 1, plain);
    cpu_rope_angles(500000, 128, factor, 1, scaled);
    for (int i = 0; i < 3; i++) {
        assert_float_equal(asin((double)plain[2 * known[i].pair + 1]), known[i].plain,
                           known[i].plain * 1e-5);
        assert_float_equal(asin((double)scaled[2 * known[i].pair + 1]), known[i].scaled,
                           known[i].scaled * 1e-5);
    }
    assert_memory_equal(plain, scaled, 2 * 29 * sizeof *plain);
}

static void test_exp_in_double(void **state) {
    (void)state;
    double worst = 0;
    for (double x = -700.0; x <= 0.0; x += 0.0171) {
        double relative =
            (double)fabsl((long double)exp_of(x) / expl((long double)x) - 1.0L) / 0x1p-53;
        worst = relative > worst ? relative : worst;
    }
    if (!(worst < 2.5)) fail_msg("exp is off by %g x 2^-53", worst);
    assert_true(exp_of(0.0) == 1.0 && exp_of(-0.0) == 1.0);
    assert_true(exp_of(-1e-300) == 1.0);
}

// softmax(2, 1, 0) = 0.665, 0.245, 0.090 by the program's own exp.
static void test_softmax_of_three(void **state) {
    (void)state;
    double w[3] = {exp_of(0.0), exp_of(-1.0), exp_of(-2.0)}, sum = w[0] + w[1] + w[2];
    assert_float_equal(w[0] / sum, 0.665241, 1e-6);
    assert_float_equal(w[1] / sum, 0.244728, 1e-6);
    assert_float_equal(w[2] / sum, 0.090031, 1e-6);
    assert_float_equal((10 * w[0] + 20 * w[1] + 30 * w[2]) / sum, 14.2479, 1e-4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp2_is_within_an_ulp),
        cmocka_unit_test(test_log2_is_within_three_ulps),
        cmocka_unit_test(test_gates_and_tanh),
        cmocka_unit_test(test_bf16_rounds_to_nearest_even),
        cmocka_unit_test(test_adding_a_large_number_rounds_to_bf16),
        cmocka_unit_test(test_tables_equal_the_scalar_definition),
        cmocka_unit_test(test_rope_angles),
        cmocka_unit_test(test_rope_factors),
        cmocka_unit_test(test_exp_in_double),
        cmocka_unit_test(test_softmax_of_three),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Scaled rotations: the frequency table of the llama3 rule, and angles at far positions.
#include "engine/rope.h"
#include "kernels/cpu/ops.h"
#include "tests/support/support.h"

#include <math.h>

static void expect_near(double value, double expected, double relative) {
    if (!(fabs(value - expected) <= relative * fabs(expected)))
        fail_msg("%.9g instead of %.9g", value, expected);
}

static void test_frequencies(void **state) {
    (void)state;
    static const double bases[] = {10000, 100000, 500000, 1e6, 1.5};
    static const uint32_t sizes[] = {2, 16, 30, 64, 128, 256};
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            double f[128];
            rope_frequencies(bases[b], sizes[s], f);
            for (uint32_t i = 0; i < sizes[s] / 2; i++)
                expect_near(f[i], pow(bases[b], -2.0 * i / sizes[s]), 1e-13);
        }
}

// Head size 128, base 500000, factor 8, low 1, high 4, original context 8192.
static void test_llama3_table(void **state) {
    (void)state;
    const struct rope_llama3 rule = {.factor = 8, .low = 1, .high = 4, .original = 8192};
    const double two_pi = 6.283185307179586;
    double frequency[64];
    float factor[64];
    rope_frequencies(500000, 128, frequency);
    rope_factors_llama3(&rule, 500000, 128, factor);
    for (int i = 0; i < 64; i++) {
        double f = pow(500000, -2.0 * i / 128), scaled, wavelength = two_pi / f;
        double s = (8192 / wavelength - 1) / 3;
        scaled = i <= 28 ? f : i >= 35 ? f / 8 : (1 - s) * f / 8 + s * f;
        expect_near(frequency[i] / (double)factor[i], scaled, 1e-6);
        assert_true(i > 28 || factor[i] == 1.0f);
        assert_true(i < 35 || factor[i] == 8.0f);
        assert_true(i < 29 || i > 34 || (factor[i] > 1.0f && factor[i] < 8.0f));
    }
    static const struct {
        int index;
        double before, behind;
    } known[] = {
        {29, 2.61610e-3, 2.16657e-3}, {34, 9.38474e-4, 1.78508e-4}, {40, 2.74248e-4, 3.42810e-5}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        int i = known[k].index;
        expect_near(frequency[i], known[k].before, 3e-6); // six digits are given
        expect_near(frequency[i] / (double)factor[i], known[k].behind, 3e-6);
    }
}

// Far positions keep their own angles: a position rounded to bf16 would be off by up to 128.
static void test_far_positions(void **state) {
    (void)state;
    static const uint32_t positions[] = {0, 1, 4095, 15962, 32767, 131071};
    const struct rope_llama3 rule = {.factor = 8, .low = 1, .high = 4, .original = 8192};
    float factor[64], angles[128];
    rope_factors_llama3(&rule, 500000, 128, factor);
    for (size_t p = 0; p < sizeof positions / sizeof *positions; p++)
        for (int scaled = 0; scaled < 2; scaled++) {
            cpu_rope_angles(500000, 128, scaled ? factor : NULL, positions[p], angles);
            for (int i = 0; i < 64; i++) {
                double divisor = scaled ? (double)factor[i] : 1;
                double angle = positions[p] * pow(500000, -2.0 * i / 128) / divisor;
                assert_true(fabs((double)angles[2 * i] - cos(angle)) < 1e-6);
                assert_true(fabs((double)angles[2 * i + 1] - sin(angle)) < 1e-6);
            }
        }
}

static void test_linear(void **state) {
    (void)state;
    float factor[16];
    rope_factors_linear(2.5, 32, factor);
    for (int i = 0; i < 16; i++) assert_true(factor[i] == 2.5f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_llama3_table),
        cmocka_unit_test(test_far_positions),
        cmocka_unit_test(test_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

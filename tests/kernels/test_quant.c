#include "engine/base/file.h"
#include "engine/base/rng.h"
#include "kernels/quant.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    enum tensor_type type;
    double tolerance; // of the largest magnitude in the data
} types[] = {
    {TENSOR_F32, 0},      {TENSOR_F16, 0.0005}, {TENSOR_BF16, 0.004}, {TENSOR_Q8_0, 0.005},
    {TENSOR_Q4_0, 0.13},  {TENSOR_Q4_1, 0.068}, {TENSOR_Q5_0, 0.065}, {TENSOR_Q5_1, 0.034},
    {TENSOR_Q4_K, 0.085}, {TENSOR_Q5_K, 0.05},  {TENSOR_Q6_K, 0.04},
};
#define TYPES (sizeof types / sizeof *types)

// The quantizers of the tests pack by their own reading of the formats: what they pack comes back.
static void test_round_trip(void **state) {
    (void)state;
    enum { N = 4096 };
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    for (size_t t = 0; t < TYPES; t++) {
        struct rng r = rng_open(3, "quant", tensor_format_of(types[t].type)->name);
        for (int i = 0; i < N; i++) x[i] = (float)(2 * rng_unit(&r) - 1);
        struct buf packed = {0};
        tensor_quantize(types[t].type, x, N, &packed);
        const struct tensor_format *f = tensor_format_of(types[t].type);
        assert_int_equal(packed.n, N / f->block * f->block_bytes);
        tensor_dequantize(types[t].type, packed.p, N, y);
        double worst = 0;
        for (int i = 0; i < N; i++) worst = fmax(worst, fabs((double)x[i] - (double)y[i]));
        if (!(worst <= types[t].tolerance))
            fail_msg("%s: off by %g, allowed %g", f->name, worst, types[t].tolerance);
        buf_free(&packed);
    }
    free(x);
    free(y);
}

// Blocks of random bits whose values an independent program computed (tests/oracle/make_golden.py),
// checked there against the format authors' own package. Equal to the bit.
static void test_golden_blocks(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    for (size_t t = 0; t < TYPES; t++) {
        const struct tensor_format *f = tensor_format_of(types[t].type);
        const char *path = arena_printf(a, "kernels/golden/%s", f->name);
        struct str blocks, values;
        struct err e = {0};
        ASSERT_OK(
            file_read(test_data(a, arena_printf(a, "%s.blocks", path)), 1 << 20, a, &blocks, &e),
            e);
        ASSERT_OK(
            file_read(test_data(a, arena_printf(a, "%s.values", path)), 1 << 20, a, &values, &e),
            e);
        size_t n = values.n / sizeof(float);
        assert_true(n >= 32 && blocks.n == n / f->block * f->block_bytes);
        float *y = arena_array(a, n, sizeof *y);
        tensor_dequantize(f->type, blocks.p, n, y);
        for (size_t i = 0; i < n; i++)
            if (memcmp(&y[i], values.p + i * sizeof *y, sizeof *y) != 0)
                fail_msg("%s: element %zu is %a", f->name, i, (double)y[i]);
    }
    arena_destroy(a);
}

// Every half, against the definition by ldexp.
static void test_every_half(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t half = (uint16_t)h;
        float value;
        tensor_dequantize(TENSOR_F16, &half, 1, &value);
        uint32_t exponent = h >> 10 & 31, fraction = h & 1023;
        if (exponent == 31) {
            assert_true(fraction ? isnan(value) : isinf(value));
        } else {
            double expected =
                exponent ? ldexp(1024 + fraction, (int)exponent - 25) : ldexp(fraction, -24);
            assert_true((double)fabsf(value) == expected);
        }
        assert_int_equal(signbit(value) != 0, h >> 15);
    }
}

static void test_names(void **state) {
    (void)state;
    char scratch[24];
    assert_string_equal(tensor_type_name(TENSOR_Q6_K, scratch), "Q6_K");
    assert_string_equal(tensor_type_name(16, scratch), "IQ2_XXS");
    assert_string_equal(tensor_type_name(4294967295u, scratch), "type 4294967295");
    assert_null(tensor_format_of(16));
    assert_null(tensor_format_of(4294967295u));
    for (size_t t = 0; t < TYPES; t++) {
        assert_int_equal(tensor_format_of(types[t].type)->type, types[t].type);
        assert_string_equal(tensor_format_of(types[t].type)->name,
                            tensor_type_name(types[t].type, scratch));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_golden_blocks),
        cmocka_unit_test(test_every_half),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

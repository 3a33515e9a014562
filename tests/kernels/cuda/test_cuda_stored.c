// Rows of the file's formats on the GPU: every type gives the bits of kernels/quant.c, which has an
// independent reference (tests/kernels/test_quant.c).
#include "tests/kernels/cuda/device_support.h"

#include "kernels/cuda/rows.h"

static const enum tensor_type types[] = {
    TENSOR_F32,  TENSOR_F16,  TENSOR_BF16, TENSOR_Q4_0, TENSOR_Q4_1, TENSOR_Q5_0,
    TENSOR_Q5_1, TENSOR_Q8_0, TENSOR_Q4_K, TENSOR_Q5_K, TENSOR_Q6_K,
};
#define TYPES (sizeof types / sizeof *types)

// Blocks of random bits, so that every code and scale occurs; `finite` keeps the halves of scales
// and the numbers of plain formats below infinity.
struct sample {
    uint32_t rows, K;
    size_t row_bytes;
    uint8_t *data;
    float *values; // [rows][K] by kernels/quant.c
    struct stored_rows device;
};

static bool all_finite(const float *x, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

static void draw_row(struct rng *r, enum tensor_type type, const struct sample *s, uint32_t row,
                     bool finite) {
    uint8_t *data = s->data + row * s->row_bytes;
    float *values = s->values + (size_t)row * s->K;
    do {
        for (size_t i = 0; i < s->row_bytes; i++) data[i] = (uint8_t)ops_below(r, 256);
        for (size_t i = 1; finite && type <= TENSOR_F16 && i < s->row_bytes; i += 2)
            data[i] &=
                type == TENSOR_F16 || i % 4 == 3 ? 0xbf : 0xff; // exponents below the largest
        tensor_dequantize(type, data, s->K, values);
    } while (finite && !all_finite(values, s->K));
}

static struct sample draw(struct rng *r, enum tensor_type type, uint32_t rows, bool finite) {
    const struct tensor_format *f = tensor_format_of(type);
    uint32_t most = f->block == 1 ? 70 : f->block == 32 ? 5 : 2;
    struct sample s = {.rows = rows, .K = f->block * (1 + ops_below(r, most))};
    s.row_bytes = s.K / f->block * f->block_bytes;
    s.data = ops_alloc(rows * s.row_bytes);
    s.values = ops_alloc((size_t)rows * s.K * sizeof *s.values);
    for (uint32_t i = 0; i < rows; i++) draw_row(r, type, &s, i, finite);
    s.device =
        (struct stored_rows){type, rows, s.K, s.row_bytes, device_copy(s.data, rows * s.row_bytes)};
    return s;
}

static void drop(struct sample *s) {
    ASSERT_CUDA(cudaFree((void *)s->device.data));
    free(s->data);
    free(s->values);
}

static void test_embed(void **state) {
    (void)state;
    for (size_t t = 0; t < TYPES; t++) {
        struct rng r = rng_open(81, "cuda", tensor_format_of(types[t])->name);
        for (int round = 0; round < 8; round++) {
            struct sample s = draw(&r, types[t], 9, true);
            int32_t ids[12];
            for (int i = 0; i < 12; i++) ids[i] = (int32_t)ops_below(&r, s.rows);
            void *device_ids = device_copy(ids, sizeof ids);
            void *x = device_blank(12 * (size_t)s.K * 4);
            ASSERT_CUDA(embed_launch(NULL, &s.device, device_ids, 12, x));
            float *got = device_take(x, 12 * (size_t)s.K * 4);
            for (int i = 0; i < 12; i++)
                ops_assert_same(s.values + (size_t)ids[i] * s.K, got + (size_t)i * s.K,
                                (size_t)s.K * 4, "%s", tensor_format_of(types[t])->name);
            ASSERT_CUDA(cudaFree(device_ids));
            free(got);
            drop(&s);
        }
    }
}

static uint32_t unpack(const struct sample *s, uint32_t ld, uint16_t **out) {
    uint32_t zero = 0;
    void *bad = device_copy(&zero, sizeof zero), *to = device_blank((size_t)s->rows * ld * 2);
    ASSERT_CUDA(unpack_launch(NULL, &s->device, to, ld, bad));
    uint16_t *rows = device_take(to, (size_t)s->rows * ld * 2);
    uint32_t *told = device_take(bad, sizeof zero), result = *told;
    free(told);
    if (out != NULL)
        *out = rows;
    else
        free(rows);
    return result;
}

static void test_unpack(void **state) {
    (void)state;
    for (size_t t = 0; t < TYPES; t++) {
        struct rng r = rng_open(82, "cuda", tensor_format_of(types[t])->name);
        for (int round = 0; round < 8; round++) {
            struct sample s = draw(&r, types[t], 1 + ops_below(&r, 20), true);
            uint32_t ld = device_stride(s.K);
            uint16_t *got;
            assert_int_equal(unpack(&s, ld, &got), 0);
            for (uint32_t i = 0; i < s.rows; i++)
                for (uint32_t k = 0; k < ld; k++) {
                    float value = k < s.K ? ops_round_reference(s.values[(size_t)i * s.K + k]) : 0;
                    if (got[(size_t)i * ld + k] != num_bits(value) >> 16)
                        fail_msg("%s: row %u, element %u of %u: %04x for %a",
                                 tensor_format_of(types[t])->name, i, k, s.K,
                                 got[(size_t)i * ld + k], (double)value);
                }
            free(got);
            drop(&s);
        }
    }
}

// One element that is not finite, anywhere, is told.
static void test_not_finite(void **state) {
    (void)state;
    int told = 0, silent = 0;
    for (size_t t = 0; t < TYPES; t++) {
        struct rng r = rng_open(83, "cuda", tensor_format_of(types[t])->name);
        for (int round = 0; round < 12; round++) {
            struct sample s = draw(&r, types[t], 1, false);
            bool finite = all_finite(s.values, s.K);
            assert_int_equal(unpack(&s, device_stride(s.K), NULL), !finite);
            told += !finite;
            silent += finite;
            drop(&s);
        }
    }
    assert_true(told > 5 && silent > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embed),
        cmocka_unit_test(test_unpack),
        cmocka_unit_test(test_not_finite),
    };
    simt_from_environment();
    return cmocka_run_group_tests_name("cuda stored rows", tests, NULL, NULL);
}

// Matrix products of the GPU: near double precision for any shape, and the bits
// of a row those of the row alone, whichever kernel serves the call.
#include "tests/kernels/cuda/device_support.h"

#include "kernels/cuda/gemm.h"

#define NAN_BF16 0x7fc1u

// bf16 rows of K random elements, +0 up to the next multiple of 16, NaNs
// behind.
static uint16_t *operands(struct rng *r, uint32_t rows, uint32_t K, uint32_t ld) {
    uint16_t *x = malloc((size_t)rows * ld * sizeof *x);
    assert_non_null(x);
    for (uint32_t i = 0; i < rows; i++) {
        uint16_t *row = x + (size_t)i * ld;
        for (uint32_t k = 0; k < ld; k++) row[k] = k < (K + 15) / 16 * 16 ? 0 : NAN_BF16;
        for (uint32_t k = 0; k < K; k++) row[k] = num_bf16(ops_normal(r));
    }
    return x;
}

// A product with its operands on the host and on the device.
struct product {
    struct gemm_call call;
    uint16_t *x, *w;
    float *bias, *y; // y as it was
};

static struct product product_make(struct rng *r, uint32_t R, uint32_t N, uint32_t K, uint32_t pad,
                                   bool bias, bool add) {
    uint32_t ld = (K + 63) / 64 * 64 + pad * 64, ldy = N + pad;
    struct product p = {.x = operands(r, R, K, ld), .w = operands(r, N, K, ld)};
    p.y = ops_floats(r, (size_t)R * ldy, false);
    p.bias = ops_floats(r, N, false);
    p.call = (struct gemm_call){.x = device_copy(p.x, (size_t)R * ld * sizeof *p.x),
                                .ldx = ld,
                                .R = R,
                                .w = device_copy(p.w, (size_t)N * ld * sizeof *p.w),
                                .ldw = ld,
                                .N = N,
                                .K = K,
                                .bias = bias ? device_copy(p.bias, N * sizeof(float)) : NULL,
                                .add = add,
                                .y = device_copy(p.y, (size_t)R * ldy * sizeof(float)),
                                .ldy = ldy};
    return p;
}

static void product_free(struct product *p) {
    cudaFree((void *)p->call.x);
    cudaFree((void *)p->call.w);
    cudaFree((void *)p->call.bias);
    cudaFree(p->call.y);
    free(p->x);
    free(p->w);
    free(p->bias);
    free(p->y);
}

// Takes y; a product runs once.
static float *product_run(struct product *p) {
    ASSERT_CUDA(gemm_launch(NULL, &p->call));
    float *y = device_take(p->call.y, (size_t)p->call.R * p->call.ldy * sizeof(float));
    p->call.y = NULL;
    return y;
}

// Every output against double precision; what lies between the rows of y is
// left alone.
static void assert_near(const struct product *p, const float *y) {
    const struct gemm_call *c = &p->call;
    for (uint32_t r = 0; r < c->R; r++) {
        for (uint32_t n = 0; n < c->ldy; n++) {
            size_t at = (size_t)r * c->ldy + n;
            if (n >= c->N) {
                assert_memory_equal(&y[at], &p->y[at], sizeof y[at]);
                continue;
            }
            double sum = 0, size = 0;
            for (uint32_t k = 0; k < c->K; k++) {
                double x = (double)num_from_bf16(p->x[(size_t)r * c->ldx + k]) *
                           (double)num_from_bf16(p->w[(size_t)n * c->ldw + k]);
                sum += x;
                size += fabs(x);
            }
            if (c->bias != NULL) sum += (double)p->bias[n];
            if (c->add) sum += (double)p->y[at];
            if (!(fabs((double)y[at] - sum) <= (size + 4) * 0x1p-20))
                fail_msg("R %u N %u K %u: row %u output %u is %.9g, not %.9g", c->R, c->N, c->K, r,
                         n, (double)y[at], sum);
        }
    }
}

static void test_near_double_precision(void **state) {
    (void)state;
    struct rng r = rng_open(51, "gemm", "double");
    const struct {
        uint32_t R, N, K, pad;
    } shapes[] = {{1, 1, 1, 0},     {1, 33, 576, 1}, {2, 70, 16, 3},    {16, 32, 128, 0},
                  {17, 64, 129, 1}, {32, 9, 272, 0}, {33, 130, 80, 2},  {64, 64, 31, 0},
                  {65, 128, 64, 0}, {70, 1, 48, 1},  {129, 200, 33, 0}, {200, 300, 100, 4}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int kind = 0; kind < 4; kind++) {
            struct product p = product_make(&r, shapes[i].R, shapes[i].N, shapes[i].K,
                                            shapes[i].pad, kind & 1, kind & 2);
            float *y = product_run(&p);
            assert_near(&p, y);
            free(y);
            product_free(&p);
        }
    }
}

// A call of rows [from, from + rows) of a product, with y as it was.
static void assert_rows_alone(const struct product *p, const float *y, uint32_t from,
                              uint32_t rows) {
    struct gemm_call c = p->call;
    size_t bytes = (size_t)rows * c.ldy * sizeof(float);
    c.x = (const uint16_t *)c.x + (size_t)from * c.ldx;
    c.R = rows;
    c.y = device_copy(p->y + (size_t)from * c.ldy, bytes);
    ASSERT_CUDA(gemm_launch(NULL, &c));
    float *alone = device_take(c.y, bytes);
    for (size_t i = 0; i < (size_t)rows * c.ldy; i++)
        if (num_bits(alone[i]) != num_bits(y[(size_t)from * c.ldy + i]))
            fail_msg("R %u N %u K %u: row %zu output %zu differs in a call of %u rows", p->call.R,
                     c.N, c.K, from + i / c.ldy, i % c.ldy, rows);
    free(alone);
}

static void test_rows_do_not_know_their_company(void **state) {
    (void)state;
    struct rng r = rng_open(52, "gemm", "company");
    struct product p = product_make(&r, 300, 200, 200, 1, true, true);
    float *y = product_run(&p);
    assert_near(&p, y);
    const uint32_t counts[] = {1, 7, 16, 17, 32, 33, 64, 65, 128, 129};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        assert_rows_alone(&p, y, (uint32_t)rng_below(&r, 300 - counts[i]), counts[i]);
    free(y);
    product_free(&p);
}

// Products with enough blocks for the larger tiles: 128 by 128, 128 by 256, and 64 outputs of few
// rows.
static void test_large_tiles_give_the_same_bits(void **state) {
    (void)state;
    struct rng r = rng_open(53, "gemm", "tiles");
    const struct { uint32_t R, N; } shapes[] = {{256, 8200}, {520, 6600}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct product p = product_make(&r, shapes[i].R, shapes[i].N, 72, 0, true, true);
        float *y = product_run(&p);
        assert_rows_alone(&p, y, 0, 1);
        assert_rows_alone(&p, y, 20, 30);
        assert_rows_alone(&p, y, 90, 64);
        assert_rows_alone(&p, y, shapes[i].R - 70, 70);
        free(y);
        product_free(&p);
    }
}

static void test_refuses_broken_calls(void **state) {
    (void)state;
    struct rng r = rng_open(54, "gemm", "rules");
    struct product p = product_make(&r, 2, 8, 64, 0, false, false);
    for (int kind = 0; kind < 6; kind++) {
        struct gemm_call c = p.call;
        if (kind == 0) c.R = 0;
        if (kind == 1) c.ldx = 72;
        if (kind == 2) c.K = 65;
        if (kind == 3) c.ldy = 7;
        if (kind == 4) c.w = (const uint16_t *)c.w + 4;
        if (kind == 5) c.x = NULL;
        assert_int_equal(gemm_launch(NULL, &c), cudaErrorInvalidValue);
    }
    product_free(&p);
}

int main(void) {
    simt_from_environment();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_near_double_precision),
        cmocka_unit_test(test_rows_do_not_know_their_company),
        cmocka_unit_test(test_large_tiles_give_the_same_bits),
        cmocka_unit_test(test_refuses_broken_calls),
    };
    return cmocka_run_group_tests_name("gemm", tests, NULL, NULL);
}

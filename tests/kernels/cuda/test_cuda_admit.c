// What of cuBLASLt may serve products: only what gives the own kernels' bits.
#include "tests/kernels/cuda/device_support.h"

#include "kernels/cuda/admit.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/products.h"

#include <string.h>

const struct cuda_ops *lacuna_cuda_ops(void);

enum { ROWS = 256, N = 24, K = 72 };
enum { ALGORITHMS = 4, IN_ORDER = 2 }; // of the stand-in
static const struct lt_shape SHAPE = {ROWS, N, K};

static struct cuda_device *open_device(void) {
    struct cuda_device *d;
    struct cuda_facts facts;
    char why[256];
    assert_int_equal(lacuna_cuda_ops()->open(&d, &facts, why), 0);
    return d;
}

static void close_device(struct cuda_device *d) {
    assert_null(lacuna_cuda_ops()->failure(d));
    lacuna_cuda_ops()->close(d);
}

static struct lt *open_lt(void) {
    struct lt *lt;
    char why[256];
    assert_true(lt_open(&lt, why));
    return lt;
}

static void offer_in_order(bool offer) {
    struct simt_options o = simt_get_options();
    o.blas_in_order = offer;
    simt_set_options(&o);
}

static void assert_refused(const struct cuda_choice *c, int tiny, int company) {
    const int by[CUDA_PROBES] = {[CUDA_PROBE_TINY] = tiny, [CUDA_PROBE_COMPANY] = company};
    assert_memory_equal(c->refused, by, sizeof by);
    assert_int_equal(c->failed, 0);
}

// The stand-in offers four algorithms: one that splits K and says so is not even tried, one that
// slices it silently is refused by the first probe, one that adds in order is equal, and one that
// does so but cuts normal results is refused by the first probe that has any.
static void test_only_the_equal_is_admitted(void **state) {
    (void)state;
    struct cuda_device *d = open_device();
    struct lt *lt = open_lt();
    struct cuda_algorithm any[LT_CANDIDATES], some[LT_CANDIDATES];
    assert_int_equal(lt_candidates(lt, &SHAPE, true, any), ALGORITHMS);
    assert_int_equal(lt_candidates(lt, &SHAPE, false, some), ALGORITHMS - 1);
    struct cuda_choice c = {.rows = ROWS, .N = N, .K = K};
    admit_choose(d, lt, &c);
    assert_int_equal(c.offered, 3);
    assert_int_equal(c.equal, 1);
    assert_refused(&c, 1, 1);
    assert_true(c.own_ms > 0 && c.ms > 0);
    for (int i = 0; i < ALGORITHMS; i++) {
        c.algorithm = any[i];
        assert_int_equal(admit_holds(d, lt, &c), i == IN_ORDER);
    }
    memset(&c.algorithm, 0, sizeof c.algorithm);
    assert_false(admit_holds(d, lt, &c));

    offer_in_order(false);
    c = (struct cuda_choice){.rows = ROWS, .N = N, .K = K};
    admit_choose(d, lt, &c);
    offer_in_order(true);
    assert_int_equal(c.offered, 2);
    assert_int_equal(c.equal, 0);
    assert_refused(&c, 1, 1);
    assert_false(c.admitted);
    lt_close(lt);
    close_device(d);
}

// Random operands as a pass has them, on the device.
struct operands {
    struct gemm_call call;
    float *before; // y, on the host
};

static uint16_t *drawn(struct rng *r, uint32_t rows, uint32_t ld) {
    uint16_t *x = ops_alloc((size_t)rows * ld * sizeof *x);
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t k = 0; k < ld; k++)
            x[(size_t)i * ld + k] = k < K ? num_bf16(ops_normal(r)) : 0;
    void *device = device_copy(x, (size_t)rows * ld * sizeof *x);
    free(x);
    return device;
}

static struct operands operands_make(struct rng *r, uint32_t R, bool bias, bool add) {
    uint32_t ld = device_stride(K);
    struct operands o = {.before = ops_floats(r, (size_t)R * N, false)};
    float *b = ops_floats(r, N, false);
    o.call = (struct gemm_call){.x = drawn(r, R, ld),
                                .ldx = ld,
                                .R = R,
                                .w = drawn(r, N, ld),
                                .ldw = ld,
                                .N = N,
                                .K = K,
                                .bias = bias ? device_copy(b, N * sizeof *b) : NULL,
                                .add = add,
                                .ldy = N};
    free(b);
    return o;
}

static void operands_free(struct operands *o) {
    ASSERT_CUDA(cudaFree((void *)o->call.x));
    ASSERT_CUDA(cudaFree((void *)o->call.w));
    ASSERT_CUDA(cudaFree((void *)o->call.bias));
    free(o->before);
}

// The product; d NULL: by the own kernels.
static float *multiply(struct cuda_device *d, const struct operands *o) {
    struct gemm_call c = o->call;
    size_t bytes = (size_t)c.R * N * sizeof *c.y;
    c.y = device_copy(o->before, bytes);
    ASSERT_CUDA(d != NULL ? products_launch(d, &c) : gemm_launch(NULL, &c));
    return device_take(c.y, bytes);
}

static struct cuda_choice in_order(uint32_t rows) {
    struct lt *lt = open_lt();
    struct lt_shape shape = {rows, N, K};
    struct cuda_algorithm any[LT_CANDIDATES];
    assert_int_equal(lt_candidates(lt, &shape, true, any), ALGORITHMS);
    lt_close(lt);
    return (struct cuda_choice){
        .rows = rows, .N = N, .K = K, .admitted = true, .algorithm = any[IN_ORDER]};
}

// Calls of many shapes with an algorithm admitted, bit by bit against the own kernels; with biases
// and residuals, with whole pieces and a rest.
static void test_admitted_products_are_the_own(void **state) {
    (void)state;
    struct rng r = rng_open(61, "admit", "products");
    struct cuda_device *d = open_device();
    uint64_t version;
    char why[256];
    assert_int_equal(products_open(d, CUDA_PRODUCTS_ADMITTED, &version, why), 0);
    assert_true(version > 0);
    struct cuda_choice c = in_order(ROWS);
    assert_true(products_recall(d, &c));
    static const uint32_t counts[] = {1, 64, 255, 256, 600};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int kind = 0; kind < 4; kind++) {
            struct operands o = operands_make(&r, counts[i], kind & 1, kind & 2);
            uint64_t launches = simt_counted().launches;
            float *own = multiply(NULL, &o);
            uint64_t own_launches = simt_counted().launches - launches;
            float *y = multiply(d, &o);
            uint64_t mixed = simt_counted().launches - launches - own_launches;
            assert_memory_equal(y, own, (size_t)counts[i] * N * sizeof *y);
            // Of kernels of the project: those of the rest, and of sums with biases or residuals.
            uint32_t pieces = counts[i] / ROWS, rest = counts[i] % ROWS;
            assert_int_equal(mixed, (rest > 0) + (kind > 0 ? pieces : 0));
            free(own);
            free(y);
            operands_free(&o);
        }
    products_close(d);
    close_device(d);
}

// What differs is not kept, and the own kernels go on.
static void test_unequal_is_not_recalled(void **state) {
    (void)state;
    struct rng r = rng_open(62, "admit", "recall");
    struct cuda_device *d = open_device();
    uint64_t version;
    char why[256];
    assert_int_equal(products_open(d, CUDA_PRODUCTS_ADMITTED, &version, why), 0);
    struct lt *lt = open_lt();
    struct cuda_algorithm some[LT_CANDIDATES];
    assert_int_equal(lt_candidates(lt, &SHAPE, false, some), ALGORITHMS - 1);
    lt_close(lt);
    struct cuda_choice c = {.rows = ROWS, .N = N, .K = K, .admitted = true, .algorithm = some[0]};
    assert_false(products_recall(d, &c));
    struct operands o = operands_make(&r, ROWS, false, false);
    float *own = multiply(NULL, &o), *y = multiply(d, &o);
    assert_memory_equal(y, own, (size_t)ROWS * N * sizeof *y);
    free(own);
    free(y);

    // Whatever the library likes best does differ: else the comparison above shows nothing.
    assert_int_equal(products_open(d, CUDA_PRODUCTS_ANY, &version, why), 0);
    own = multiply(NULL, &o);
    y = multiply(d, &o);
    assert_memory_not_equal(y, own, (size_t)ROWS * N * sizeof *y);
    for (int i = 0; i < ROWS * N; i++) assert_float_equal(y[i], own[i], 1e-3);
    free(own);
    free(y);
    operands_free(&o);
    close_device(d);
}

int main(void) {
    simt_from_environment();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_the_equal_is_admitted),
        cmocka_unit_test(test_admitted_products_are_the_own),
        cmocka_unit_test(test_unequal_is_not_recalled),
    };
    return cmocka_run_group_tests_name("cuda admission", tests, NULL, NULL);
}

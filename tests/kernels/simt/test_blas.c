// The stand-in for cuBLASLt: what its products are, and that its algorithms differ as they say.
#include "tests/support/support.h"
#include "tests/support/simt.h"

#include "engine/base/rng.h"
#include "kernels/numerics.h"

#include <cublasLt.h>
#include <math.h>
#include <string.h>

enum { ROWS = 21, COLUMNS = 13, DEPTH = 100, STRIDE = 104, ALGORITHMS = 8 };

#define ASSERT_BLAS(call) assert_string_equal(cublasLtGetStatusName(call), "CUBLAS_STATUS_SUCCESS")

// A product d = alpha op(a) op(b) + beta c with all that the library wants to know of it.
struct product {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulPreference_t preference;
};

static struct product open_product(bool a_transposed, bool b_transposed, cudaDataType type) {
    struct product p;
    int32_t at = a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    int32_t bt = b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    ASSERT_BLAS(cublasLtCreate(&p.handle));
    ASSERT_BLAS(cublasLtMatmulDescCreate(&p.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    ASSERT_BLAS(
        cublasLtMatmulDescSetAttribute(p.operation, CUBLASLT_MATMUL_DESC_TRANSA, &at, sizeof at));
    ASSERT_BLAS(
        cublasLtMatmulDescSetAttribute(p.operation, CUBLASLT_MATMUL_DESC_TRANSB, &bt, sizeof bt));
    ASSERT_BLAS(cublasLtMatrixLayoutCreate(&p.a, CUDA_R_16BF, a_transposed ? DEPTH : ROWS,
                                           a_transposed ? ROWS : DEPTH, STRIDE));
    ASSERT_BLAS(cublasLtMatrixLayoutCreate(&p.b, CUDA_R_16BF, b_transposed ? COLUMNS : DEPTH,
                                           b_transposed ? DEPTH : COLUMNS, STRIDE));
    ASSERT_BLAS(cublasLtMatrixLayoutCreate(&p.d, type, ROWS, COLUMNS, STRIDE));
    ASSERT_BLAS(cublasLtMatmulPreferenceCreate(&p.preference));
    return p;
}

static void close_product(struct product *p) {
    ASSERT_BLAS(cublasLtMatmulPreferenceDestroy(p->preference));
    ASSERT_BLAS(cublasLtMatrixLayoutDestroy(p->d));
    ASSERT_BLAS(cublasLtMatrixLayoutDestroy(p->b));
    ASSERT_BLAS(cublasLtMatrixLayoutDestroy(p->a));
    ASSERT_BLAS(cublasLtMatmulDescDestroy(p->operation));
    ASSERT_BLAS(cublasLtDestroy(p->handle));
}

static int algorithms(const struct product *p, uint32_t reductions,
                      cublasLtMatmulHeuristicResult_t *results) {
    int count;
    ASSERT_BLAS(cublasLtMatmulPreferenceSetAttribute(
        p->preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions));
    ASSERT_BLAS(cublasLtMatmulAlgoGetHeuristic(p->handle, p->operation, p->a, p->b, p->d, p->d,
                                               p->preference, ALGORITHMS, results, &count));
    return count;
}

static void *on_device(const void *host, size_t bytes) {
    void *p;
    ASSERT_CUDA(cudaMalloc(&p, bytes));
    ASSERT_CUDA(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice));
    return p;
}

enum { CELLS = DEPTH * STRIDE };
struct operands {
    uint16_t a[CELLS], b[CELLS];
    float d[CELLS];
};

static struct operands *drawn(void) {
    struct rng r = rng_open(3, "blas", "operands");
    struct operands *o = arena_alloc(test_arena, sizeof *o);
    for (int i = 0; i < CELLS; i++) {
        o->a[i] = num_bf16((float)(rng_unit(&r) - 0.5));
        o->b[i] = num_bf16((float)(rng_unit(&r) - 0.5));
        o->d[i] = (float)(rng_unit(&r) - 0.5);
    }
    return o;
}

static void multiply(const struct product *p, const struct operands *o, void *d, size_t d_bytes,
                     float alpha, float beta, const cublasLtMatmulAlgo_t *algorithm) {
    void *a = on_device(o->a, sizeof o->a), *b = on_device(o->b, sizeof o->b);
    void *out = on_device(d, d_bytes);
    ASSERT_BLAS(cublasLtMatmul(p->handle, p->operation, &alpha, a, p->a, b, p->b, &beta, out, p->d,
                               out, p->d, algorithm, NULL, 0, NULL));
    ASSERT_CUDA(cudaMemcpy(d, out, d_bytes, cudaMemcpyDeviceToHost));
    ASSERT_CUDA(cudaFree(a));
    ASSERT_CUDA(cudaFree(b));
    ASSERT_CUDA(cudaFree(out));
}

static double element(const struct operands *o, bool at, bool bt, int m, int n) {
    double sum = 0.0;
    for (int k = 0; k < DEPTH; k++)
        sum += (double)num_from_bf16(o->a[at ? m * STRIDE + k : k * STRIDE + m]) *
               num_from_bf16(o->b[bt ? k * STRIDE + n : n * STRIDE + k]);
    return sum;
}

static void products_of_all_layouts(void **state) {
    (void)state;
    const struct operands *o = drawn();
    const float alpha = 0.75f, beta = -2.0f;
    for (int layout = 0; layout < 4; layout++) {
        bool at = layout & 1, bt = layout & 2;
        float *d = arena_alloc(test_arena, sizeof o->d);
        struct product p = open_product(at, bt, CUDA_R_32F);
        memcpy(d, o->d, sizeof o->d);
        multiply(&p, o, d, sizeof o->d, alpha, beta, NULL);
        close_product(&p);
        for (int i = 0; i < COLUMNS * STRIDE; i++) {
            int m = i % STRIDE, n = i / STRIDE;
            double expected = o->d[i];
            if (m < ROWS) expected = alpha * element(o, at, bt, m, n) + beta * expected;
            if (!(fabs(d[i] - expected) < 1e-5)) fail_msg("layout %d, %d: %g", layout, i, d[i]);
        }
    }
}

static void products_in_bf16(void **state) {
    (void)state;
    const struct operands *o = drawn();
    uint16_t *d = arena_alloc(test_arena, sizeof o->a);
    struct product p = open_product(true, false, CUDA_R_16BF);
    memcpy(d, o->a, sizeof o->a);
    multiply(&p, o, d, sizeof o->a, 1.0f, 0.0f, NULL);
    close_product(&p);
    for (int i = 0; i < COLUMNS * STRIDE; i++)
        if (i % STRIDE < ROWS)
            assert_true(
                fabs(num_from_bf16(d[i]) - element(o, true, false, i % STRIDE, i / STRIDE)) < 0.02);
        else
            assert_int_equal(d[i], o->a[i]);
}

// Split k is on offer only to those who allow it; the rest differ in bits, though they say nothing.
static void algorithms_differ(void **state) {
    (void)state;
    const struct operands *o = drawn();
    struct product p = open_product(true, false, CUDA_R_32F);
    cublasLtMatmulHeuristicResult_t found[ALGORITHMS];
    assert_int_equal(algorithms(&p, CUBLASLT_REDUCTION_SCHEME_MASK, found), 4);
    int32_t splits;
    size_t written;
    ASSERT_BLAS(cublasLtMatmulAlgoConfigGetAttribute(
        &found[0].algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits, sizeof splits, &written));
    assert_int_equal(splits, 2);
    assert_int_equal(algorithms(&p, CUBLASLT_REDUCTION_SCHEME_NONE, found), 3);
    float *d[2];
    for (int i = 0; i < 2; i++) {
        d[i] = arena_alloc(test_arena, sizeof o->d);
        memcpy(d[i], o->d, sizeof o->d);
        ASSERT_BLAS(cublasLtMatmulAlgoConfigGetAttribute(
            &found[i].algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits, sizeof splits, &written));
        assert_int_equal(splits, 1);
        multiply(&p, o, d[i], sizeof o->d, 1.0f, 0.0f, &found[i].algo);
    }
    assert_memory_not_equal(d[0], d[1], sizeof o->d);

    struct simt_options before = simt_get_options(), none = before;
    none.blas_in_order = false;
    simt_set_options(&none);
    assert_int_equal(algorithms(&p, CUBLASLT_REDUCTION_SCHEME_NONE, found), 2);
    simt_set_options(&before);
    close_product(&p);
}

static void refuses_what_it_cannot_do(void **state) {
    (void)state;
    struct product p = open_product(true, false, CUDA_R_32F);
    cublasLtMatmulAlgo_t nothing = {{0}};
    float one = 1.0f;
    assert_int_equal(cublasLtMatmul(p.handle, p.operation, &one, NULL, p.a, NULL, p.b, &one, NULL,
                                    p.d, NULL, p.d, &nothing, NULL, 0, NULL),
                     CUBLAS_STATUS_INVALID_VALUE);
    assert_int_equal(cublasLtMatmul(p.handle, p.operation, &one, NULL, p.b, NULL, p.b, &one, NULL,
                                    p.d, NULL, p.d, NULL, NULL, 0, NULL),
                     CUBLAS_STATUS_NOT_SUPPORTED);
    close_product(&p);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(products_of_all_layouts),
        TEST(products_in_bf16),
        TEST(algorithms_differ),
        TEST(refuses_what_it_cannot_do),
    };
    simt_from_environment();
    return cmocka_run_group_tests_name("blas", tests, NULL, NULL);
}

// The GPU draws the tokens that the CPU draws, and that the rule restated gives.
#include "tests/kernels/cuda/device_support.h"
#include "tests/kernels/sample_support.h"

#include "kernels/cpu/sample.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/sample.h"

#define ROWS 6

struct call {
    uint32_t R, n, count;
    float *z;
    struct sample_row list[ROWS]; // the rows that are drawn from
    int32_t expected[ROWS];
};

// Some rows are drawn from; one may not be finite, whether it is or not.
static struct call call_of(struct rng *r, uint32_t R, uint32_t n) {
    struct call c = {.R = R, .n = n, .z = ops_alloc((size_t)R * n * sizeof(float))};
    const struct cpu_ops *cpu = cpu_ops_find(CPU_BF16_1, "c", NULL);
    void *memory = ops_alloc(cpu_sample_bytes(n));
    for (uint32_t i = 0; i < R; i++) {
        float *z = c.z + (size_t)i * n;
        int kind = (int)ops_below(r, SAMPLE_KINDS);
        for (uint32_t k = 0; k < n; k++) z[k] = sample_value(r, kind);
        if (ops_below(r, 8) == 0) z[ops_below(r, n)] = INFINITY;
        int64_t largest = cpu->argmax(z, n);
        c.expected[i] = (int32_t)largest;
        if (ops_below(r, 4) == 0) continue;
        struct token_draw d = sample_draw(r, false);
        c.list[c.count++] = (struct sample_row){d, i};
        if (largest < 0) continue;
        c.expected[i] = (int32_t)cpu_sample(z, n, (uint32_t)largest, &d, memory);
        assert_int_equal(c.expected[i], sample_restated(z, n, &d));
    }
    free(memory);
    return c;
}

static void check(const struct call *c) {
    void *z = device_copy(c->z, (size_t)c->R * c->n * sizeof(float));
    void *list = device_copy(c->list, sizeof c->list), *chosen = device_blank(c->R * 4);
    void *parts = device_blank(argmax_workspace(c->R, c->n));
    void *workspace = device_blank(sample_workspace(c->count, c->n) + 1);
    ASSERT_CUDA(argmax_launch(NULL, z, c->R, c->n, parts, chosen));
    ASSERT_CUDA(sample_launch(NULL, z, c->n, list, c->count, workspace, chosen));
    int32_t *got = device_take(chosen, c->R * 4);
    for (uint32_t i = 0; i < c->R; i++)
        if (got[i] != c->expected[i])
            fail_msg("row %u of %u, %u logits: %d instead of %d", i, c->R, c->n, got[i],
                     c->expected[i]);
    ASSERT_CUDA(cudaFree(workspace));
    ASSERT_CUDA(cudaFree(parts));
    ASSERT_CUDA(cudaFree(list));
    ASSERT_CUDA(cudaFree(z));
    free(got);
}

static void test_random_rows(void **state) {
    (void)state;
    struct rng r = rng_open(61, "cuda", "sample");
    for (int round = 0; round < 60; round++) {
        uint32_t n = 1 + ops_below(&r, round % 6 == 0 ? 5000 : 400);
        struct call c = call_of(&r, 1 + ops_below(&r, ROWS), n);
        check(&c);
        free(c.z);
    }
}

// Around the borders of warps, of the threads and of tiles.
static void test_borders(void **state) {
    (void)state;
    static const uint32_t sizes[] = {1,   2,   31,   32,   33,   127,  128,  129, 511,
                                     512, 513, 1023, 1024, 1025, 2047, 2048, 2049};
    struct rng r = rng_open(62, "cuda", "sample borders");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct call c = call_of(&r, ROWS, sizes[i]);
        check(&c);
        free(c.z);
    }
}

// Of a real vocabulary.
static void test_long_rows(void **state) {
    (void)state;
    struct rng r = rng_open(63, "cuda", "long rows");
    struct call c = call_of(&r, 3, 49152);
    check(&c);
    free(c.z);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_rows),
                                       cmocka_unit_test(test_borders),
                                       cmocka_unit_test(test_long_rows)};
    simt_from_environment();
    return cmocka_run_group_tests_name("cuda sample", tests, NULL, NULL);
}

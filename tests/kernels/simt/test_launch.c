// Kernels run in the emulator as CUDA says: ragged grids, shared memory, barriers, shuffles,
// graphs.
#include "tests/support/support.h"
#include "tests/support/simt.h"
#include "tests/kernels/simt/launch_kernels.h"

#include "engine/base/rng.h"
#include "kernels/numerics.h"

enum { COUNT = 1000, BLOCKS = 5, WIDTH = 96, RUN = 64 };

static float *drawn(struct arena *a, int count, const char *name) {
    struct rng r = rng_open(7, "launch", name);
    float *values = arena_alloc(a, (size_t)count * sizeof *values);
    for (int i = 0; i < count; i++) values[i] = (float)(rng_unit(&r) * 4.0 - 2.0);
    return values;
}

static float *on_device(const float *values, int count) {
    void *p;
    ASSERT_CUDA(cudaMalloc(&p, (size_t)count * sizeof *values));
    ASSERT_CUDA(cudaMemcpy(p, values, (size_t)count * sizeof *values, cudaMemcpyHostToDevice));
    return p;
}

static void rounds_a_ragged_grid(void **state) {
    (void)state;
    float *host = drawn(test_arena, COUNT, "round"), *from = on_device(host, COUNT);
    uint16_t got[COUNT];
    void *to;
    ASSERT_CUDA(cudaMalloc(&to, sizeof got));
    ASSERT_CUDA(launch_round(to, from, COUNT, NULL));
    ASSERT_CUDA(cudaMemcpy(got, to, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++) assert_int_equal(got[i], num_bf16(host[i]));
    ASSERT_CUDA(cudaFree(to));
    ASSERT_CUDA(cudaFree(from));
}

// As on the CPU: subnormal operands and results are zeros of their sign (NUMERICS.md). Host code
// behind the launch counts them as before.
static void flushes_subnormals(void **state) {
    (void)state;
    static const float a[] = {0x1p-100f, 0x1p-130f, -0x1p-126f, 0x1p-126f, -3.0f};
    static const float b[] = {0x1p-40f, 0x1p20f, 0.5f, 1.0f, 5.0f};
    static const float expected[] = {0.0f, 0.0f, -0.0f, 0x1p-126f, -15.0f};
    enum { VALUES = sizeof a / sizeof *a };
    float *left = on_device(a, VALUES), *right = on_device(b, VALUES), got[VALUES];
    ASSERT_CUDA(launch_multiply(left, left, right, VALUES, NULL));
    ASSERT_CUDA(cudaMemcpy(got, left, sizeof got, cudaMemcpyDeviceToHost));
    assert_memory_equal(got, expected, sizeof got);
    volatile float small = 0x1p-126f, half = 0.5f;
    assert_true(small * half != 0.0f);
    ASSERT_CUDA(cudaFree(left));
    ASSERT_CUDA(cudaFree(right));
}

static float sum_of_warp(const float *v) {
    float sums[32];
    memcpy(sums, v, sizeof sums);
    for (int step = 16; step > 0; step /= 2)
        for (int i = 0; i < step; i++) sums[i] += sums[i + step];
    return sums[0];
}

static void sums_blocks(void **state) {
    (void)state;
    float *host = drawn(test_arena, BLOCKS * WIDTH, "sums"), got[BLOCKS];
    float *from = on_device(host, BLOCKS * WIDTH);
    void *sums;
    ASSERT_CUDA(cudaMalloc(&sums, sizeof got));
    ASSERT_CUDA(launch_sums(sums, from, BLOCKS, WIDTH, NULL));
    ASSERT_CUDA(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
    for (int b = 0; b < BLOCKS; b++) {
        float expected = 0.0f;
        for (int w = 0; w < WIDTH; w += 32) expected += sum_of_warp(host + b * WIDTH + w);
        assert_memory_equal(&got[b], &expected, sizeof expected);
    }
    ASSERT_CUDA(cudaFree(sums));
    ASSERT_CUDA(cudaFree(from));
}

// Whole warps, and some of their lanes.
static void matches_lanes(void **state) {
    (void)state;
    enum { WARPS = 3, LANES = 32 * WARPS };
    struct rng r = rng_open(7, "launch", "match");
    for (int some = 32; some > 0; some -= 3) {
        int values[LANES];
        unsigned got[LANES];
        for (int i = 0; i < LANES; i++) values[i] = (int)rng_below(&r, 6) - 3;
        void *from, *to;
        ASSERT_CUDA(cudaMalloc(&from, sizeof values));
        ASSERT_CUDA(cudaMalloc(&to, sizeof got));
        ASSERT_CUDA(cudaMemcpy(from, values, sizeof values, cudaMemcpyHostToDevice));
        ASSERT_CUDA(launch_match(to, from, WARPS, some, NULL));
        ASSERT_CUDA(cudaMemcpy(got, to, sizeof got, cudaMemcpyDeviceToHost));
        for (int i = 0; i < LANES; i++) {
            unsigned expected = 0;
            for (int k = 0; k < some; k++)
                if (i % 32 < some && values[i / 32 * 32 + k] == values[i]) expected |= 1u << k;
            assert_int_equal(got[i], expected);
        }
        ASSERT_CUDA(cudaFree(from));
        ASSERT_CUDA(cudaFree(to));
    }
}

// Launched into a graph, which then runs three times: an odd number of reversals.
static void reverses_in_a_graph(void **state) {
    (void)state;
    float *host = drawn(test_arena, 3 * RUN, "reverse"), *values = on_device(host, 3 * RUN);
    float got[3 * RUN];
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ASSERT_CUDA(launch_reverse(values, 3, stream));
    ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
    ASSERT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 3; i++) ASSERT_CUDA(cudaGraphLaunch(executable, stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    ASSERT_CUDA(cudaMemcpy(got, values, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 3 * RUN; i++)
        assert_memory_equal(&got[i], &host[i / RUN * RUN + RUN - 1 - i % RUN], sizeof *got);
    ASSERT_CUDA(cudaGraphExecDestroy(executable));
    ASSERT_CUDA(cudaGraphDestroy(graph));
    ASSERT_CUDA(cudaStreamDestroy(stream));
    ASSERT_CUDA(cudaFree(values));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rounds_a_ragged_grid, test_arena_open, test_arena_close),
        cmocka_unit_test(flushes_subnormals),
        cmocka_unit_test_setup_teardown(sums_blocks, test_arena_open, test_arena_close),
        cmocka_unit_test(matches_lanes),
        cmocka_unit_test_setup_teardown(reverses_in_a_graph, test_arena_open, test_arena_close),
    };
    simt_from_environment();
    return cmocka_run_group_tests_name("launch", tests, NULL, NULL);
}

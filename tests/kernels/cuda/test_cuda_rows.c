// The GPU's row kernels give the bits of the CPU's plain C table; that one is checked against
// double precision in tests/kernels/test_rows.c, and these are once more here.
#include "tests/kernels/cuda/device_support.h"

#include "kernels/cuda/rows.h"

#define ROUNDS 24

static const struct cpu_ops *cpu;
static struct cpu_pool pool;

// Rows of a CPU op, with the pads that the GPU's ops write.
static uint16_t *blank_rows(uint32_t R, uint32_t ld) {
    uint16_t *rows = ops_alloc((size_t)R * ld * sizeof *rows);
    memset(rows, 0, (size_t)R * ld * sizeof *rows);
    return rows;
}

static void assert_rows(const uint16_t *expected, void *device, uint32_t R, uint32_t ld,
                        const char *what, uint32_t n) {
    void *got = device_take(device, (size_t)R * ld * 2);
    ops_assert_same(expected, got, (size_t)R * ld * 2, "%s of %u rows of %u", what, R, n);
    free(got);
}

static void test_norm(void **state) {
    (void)state;
    struct rng r = rng_open(71, "cuda", "norm");
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t R = 1 + ops_below(&r, 6), D = 1 + ops_below(&r, round % 4 == 0 ? 5000 : 300);
        uint32_t ld = device_stride(D) + 64 * ops_below(&r, 2);
        float *x = ops_floats(&r, (size_t)R * D, round % 3 == 0), *w = ops_floats(&r, D, false);
        uint16_t *expected = blank_rows(R, ld);
        cpu->rmsnorm(&pool, x, R, D, w, 1e-5f, expected, ld);
        void *dx = device_copy(x, (size_t)R * D * 4), *dw = device_copy(w, (size_t)D * 4);
        void *out = device_blank((size_t)R * ld * 2);
        ASSERT_CUDA(rmsnorm_launch(NULL, dx, R, D, dw, 1e-5f, out, ld));
        if (round % 3 != 0) {
            double sum = 0;
            for (uint32_t i = 0; i < D; i++) sum += (double)x[i] * (double)x[i];
            for (uint32_t i = 0; i < D; i++) {
                double exact = (double)x[i] / sqrt(sum / D + 1e-5) * (double)w[i];
                assert_float_equal(num_from_bf16(expected[i]), exact, fabs(exact) * 0x1p-8 + 1e-9);
            }
        }
        assert_rows(expected, out, R, ld, "norm", D);
        ASSERT_CUDA(cudaFree(dx));
        ASSERT_CUDA(cudaFree(dw));
        free(expected);
        free(x);
        free(w);
    }
}

static void test_rope(void **state) {
    (void)state;
    struct rng r = rng_open(72, "cuda", "rope");
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t R = 1 + ops_below(&r, 8), heads = 1 + ops_below(&r, 4);
        uint32_t E = 2 * (8 + ops_below(&r, 57)), rotary = 2 * (1 + ops_below(&r, E / 2));
        bool neighbours = round % 2 != 0;
        uint32_t n = heads * E, ldx = n + ops_below(&r, 40), ld = device_stride(n);
        float *x = ops_floats(&r, (size_t)R * ldx, round % 3 == 0);
        float *angles = ops_alloc((size_t)R * rotary * sizeof *angles);
        for (uint32_t i = 0; i < R; i++)
            cpu_rope_angles(1e6, rotary, NULL, ops_below(&r, 200000), angles + (size_t)i * rotary);
        uint16_t *expected = blank_rows(R, ld);
        cpu->rope(&pool, x, ldx, R, heads, E, rotary,
                  neighbours ? CPU_PAIR_NEIGHBOURS : CPU_PAIR_HALVES, angles, expected, ld);
        void *dx = device_copy(x, (size_t)R * ldx * 4);
        void *da = device_copy(angles, (size_t)R * rotary * 4),
             *out = device_blank((size_t)R * ld * 2);
        ASSERT_CUDA(rope_launch(NULL, dx, ldx, R, heads, E, rotary, neighbours, da, out, ld));
        assert_rows(expected, out, R, ld, neighbours ? "neighbours" : "halves", E);
        ASSERT_CUDA(cudaFree(dx));
        ASSERT_CUDA(cudaFree(da));
        free(expected);
        free(angles);
        free(x);
    }
}

// Random positions, bases and scalings; the frequencies alone are the CPU's.
static void test_angles(void **state) {
    (void)state;
    struct rng r = rng_open(78, "cuda", "angles");
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t R = 1 + ops_below(&r, 20), rotary = 2 * (1 + ops_below(&r, 70));
        double base = round % 2 ? 5e5 : 10000.0 + ops_below(&r, 1000000), frequencies[128];
        float factor[128];
        uint32_t positions[32];
        for (int i = 0; i < 128; i++) factor[i] = 1.0f + (float)ops_below(&r, 8);
        for (uint32_t i = 0; i < R; i++) positions[i] = ops_below(&r, i % 3 ? 200000 : 40);
        const float *factors = round % 3 ? factor : NULL;
        float *expected = ops_alloc((size_t)R * rotary * 4);
        for (uint32_t i = 0; i < R; i++)
            cpu_rope_angles(base, rotary, factors, positions[i], expected + (size_t)i * rotary);
        cpu_rope_frequencies(base, rotary, factors, frequencies);
        void *df = device_copy(frequencies, sizeof frequencies);
        void *dp = device_copy(positions, sizeof positions);
        void *out = device_blank((size_t)R * rotary * 4);
        ASSERT_CUDA(angles_launch(NULL, df, rotary, dp, R, out));
        float *got = device_take(out, (size_t)R * rotary * 4);
        ops_assert_same(expected, got, (size_t)R * rotary * 4, "angles of %u pairs", rotary / 2);
        for (uint32_t i = 0; i < rotary / 2; i++) {
            double angle = positions[0] * pow(base, -2.0 * i / rotary);
            if (factors != NULL) angle /= (double)factors[i];
            assert_float_equal(got[2 * i], cos(angle), 1e-7);
            assert_float_equal(got[2 * i + 1], sin(angle), 1e-7);
        }
        ASSERT_CUDA(cudaFree(df));
        ASSERT_CUDA(cudaFree(dp));
        free(got);
        free(expected);
    }
}

static void test_round(void **state) {
    (void)state;
    struct rng r = rng_open(73, "cuda", "round");
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t R = 1 + ops_below(&r, 8), n = 1 + ops_below(&r, 700);
        uint32_t ldx = n + ops_below(&r, 9), ld = device_stride(n);
        float *x = ops_floats(&r, (size_t)R * ldx, true);
        uint16_t *expected = blank_rows(R, ld);
        cpu->round(&pool, x, ldx, R, n, expected, ld);
        void *dx = device_copy(x, (size_t)R * ldx * 4), *out = device_blank((size_t)R * ld * 2);
        ASSERT_CUDA(round_launch(NULL, dx, ldx, R, n, out, ld));
        assert_rows(expected, out, R, ld, "round", n);
        ASSERT_CUDA(cudaFree(dx));
        free(expected);
        free(x);
    }
}

static double gate_exact(bool gelu, double g, double u) {
    double inner = 0.79788456080286536 * (g + 0.044715 * g * g * g);
    return gelu ? 0.5 * g * (1 + tanh(inner)) * u : g / (1 + exp(-g)) * u;
}

static void test_gate(void **state) {
    (void)state;
    struct rng r = rng_open(74, "cuda", "gate");
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t R = 1 + ops_below(&r, 5), F = 1 + ops_below(&r, 400);
        uint32_t ldx = 2 * F + ops_below(&r, 5), ld = device_stride(F);
        bool gelu = round % 2 != 0, wild = round % 3 == 0;
        float *x = ops_floats(&r, (size_t)R * ldx, wild);
        uint16_t *expected = blank_rows(R, ld);
        cpu->gate(&pool, gelu ? CPU_GATE_GELU_TANH : CPU_GATE_SILU, x, ldx, R, F, expected, ld);
        for (uint32_t i = 0; i < F && !wild; i++) {
            double exact = gate_exact(gelu, (double)x[i], (double)x[F + i]);
            assert_float_equal(num_from_bf16(expected[i]), exact, fabs(exact) * 0x1p-8 + 1e-6);
        }
        void *dx = device_copy(x, (size_t)R * ldx * 4), *out = device_blank((size_t)R * ld * 2);
        ASSERT_CUDA(gate_launch(NULL, gelu, dx, ldx, R, F, out, ld));
        assert_rows(expected, out, R, ld, gelu ? "GELU" : "SiLU", F);
        ASSERT_CUDA(cudaFree(dx));
        free(expected);
        free(x);
    }
}

static void test_gather(void **state) {
    (void)state;
    struct rng r = rng_open(75, "cuda", "gather");
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t R = 2 + ops_below(&r, 20), words = 1 + ops_below(&r, 600), count = 0;
        float *x = ops_floats(&r, (size_t)R * words, true);
        float *expected = ops_alloc((size_t)R * words * 4);
        uint32_t rows[32];
        for (uint32_t i = 0; i < R; i++) {
            if (i + 1 < R && ops_below(&r, 2)) continue;
            memcpy(expected + (size_t)count * words, x + (size_t)i * words, (size_t)words * 4);
            rows[count++] = i;
        }
        void *dx = device_copy(x, (size_t)R * words * 4), *dr = device_copy(rows, count * 4);
        void *out = device_blank((size_t)count * words * 4);
        ASSERT_CUDA(gather_launch(NULL, dx, words, dr, count, out));
        void *got = device_take(out, (size_t)count * words * 4);
        assert_memory_equal(expected, got, (size_t)count * words * 4);
        ASSERT_CUDA(cudaFree(dx));
        ASSERT_CUDA(cudaFree(dr));
        free(got);
        free(expected);
        free(x);
    }
}

// Few different values, so that ties are common; signs of zero and subnormals, which compare as
// equal; and rows that are not finite.
static float tied(struct rng *r, int round) {
    if (round % 3 == 0) return ops_normal(r);
    if (ops_below(r, 4) == 0) return num_float(rng_u32(r) & 0x807fffffu);
    return (float)ops_below(r, 5) - (round % 2 ? 4.0f : 2.0f);
}

static void test_argmax(void **state) {
    (void)state;
    struct rng r = rng_open(76, "cuda", "argmax");
    int64_t refused = 0;
    for (int round = 0; round < 2 * ROUNDS; round++) {
        uint32_t R = 1 + ops_below(&r, 4), n = 1 + ops_below(&r, round % 5 == 0 ? 9000 : 300);
        if (round % 8 == 2) n = 4096 + 2048 * (n % 3) - n % 2; // at the border of a block's part
        float *z = ops_alloc((size_t)R * n * 4);
        for (uint32_t i = 0; i < R * n; i++) z[i] = tied(&r, round);
        const float bad[] = {NAN, INFINITY, -INFINITY};
        if (round % 4 == 1) z[ops_below(&r, R * n)] = bad[round % 3];
        void *dz = device_copy(z, (size_t)R * n * 4), *out = device_blank(R * 4);
        void *workspace = device_blank(argmax_workspace(R, n));
        ASSERT_CUDA(argmax_launch(NULL, dz, R, n, workspace, out));
        int32_t *got = device_take(out, R * 4);
        for (uint32_t i = 0; i < R; i++) {
            int64_t expected = cpu->argmax(z + (size_t)i * n, n);
            refused += expected < 0;
            assert_int_equal(got[i], expected);
        }
        ASSERT_CUDA(cudaFree(workspace));
        ASSERT_CUDA(cudaFree(dz));
        free(got);
        free(z);
    }
    assert_true(refused > 0);
}

static void test_log_sum_exp(void **state) {
    (void)state;
    struct rng r = rng_open(77, "cuda", "log_sum_exp");
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t R = 1 + ops_below(&r, 3), n = 1 + ops_below(&r, round % 4 == 0 ? 9000 : 500);
        float *z = ops_floats(&r, (size_t)R * n, false), size = round % 2 ? 30.0f : 1.0f;
        for (uint32_t i = 0; i < R * n; i++) z[i] *= size;
        void *dz = device_copy(z, (size_t)R * n * 4), *out = device_blank(R * 4);
        ASSERT_CUDA(log_sum_exp_launch(NULL, dz, R, n, out));
        float *got = device_take(out, R * 4);
        for (uint32_t i = 0; i < R; i++) {
            double max = -INFINITY, sum = 0;
            for (uint32_t k = 0; k < n; k++) max = fmax(max, (double)z[(size_t)i * n + k]);
            for (uint32_t k = 0; k < n; k++) sum += exp((double)z[(size_t)i * n + k] - max);
            double exact = max + log(sum);
            assert_float_equal(got[i], exact, 3e-6 * (1 + fabs(exact)));
            assert_int_equal(num_bits(got[i]), num_bits(cpu->log_sum_exp(z + (size_t)i * n, n)));
        }
        ASSERT_CUDA(cudaFree(dz));
        free(got);
        free(z);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm),        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_round),       cmocka_unit_test(test_gate),
        cmocka_unit_test(test_gather),      cmocka_unit_test(test_argmax),
        cmocka_unit_test(test_log_sum_exp), cmocka_unit_test(test_angles),
    };
    simt_from_environment();
    cpu = cpu_ops_find(CPU_BF16_1, "c", NULL);
    pool = ops_pool(1);
    return cmocka_run_group_tests_name("cuda rows", tests, NULL, NULL);
}

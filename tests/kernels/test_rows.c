// Row ops of every table: norm, rotation, rounding, log-sum-exp, argmax; the choice of a table; and
// the floating-point environment that every op leaves as it found it.
#include "tests/kernels/ops_support.h"

#define EACH_TABLE(ops)                                                                            \
    int count_;                                                                                    \
    const struct cpu_ops *const *tables_ = cpu_ops_all(&count_), *ops;                             \
    for (int t_ = 0; t_ < count_ && (ops = tables_[t_]) != NULL; t_++)                             \
        if (cpu_ops_find(ops->numerics, ops->name, NULL) != NULL)

// The lane rule: lane j takes j, j + 16, ...; then the tree. `wrong` adds from left to right.
ENV_WORK float lane_sum(const float *x, uint32_t n, bool squares, bool wrong) {
    float lane[16] = {0};
    for (uint32_t i = 0; i < n; i++) {
        float *to = &lane[wrong ? 0 : i % 16];
        *to = squares ? fmaf(x[i], x[i], *to) : *to + x[i];
    }
    for (int half = 8; half > 0; half /= 2)
        for (int j = 0; j < half; j++) lane[j] += lane[j + half];
    return lane[0];
}

ENV_WORK void norm_reference(const float *x, const float *w, uint32_t n, float epsilon, bool wrong,
                             float *out) {
    float scale = 1.0f / sqrtf(lane_sum(x, n, true, wrong) / (float)n + epsilon);
    for (uint32_t i = 0; i < n; i++) {
        float y = x[i] * scale;
        out[i] = y * w[i];
    }
}

static void test_norm(void **state) {
    (void)state;
    struct rng r = rng_open(61, "rows", "norm");
    EACH_TABLE(ops) {
        struct cpu_pool pool = ops_pool(3);
        int noticed = 0;
        for (int round = 0; round < 40; round++) {
            uint32_t R = 1 + ops_below(&r, 90), D = 1 + ops_below(&r, round % 4 == 0 ? 600 : 40);
            uint32_t ld = (D + 1) / 2 * 2 + 2;
            float *x = ops_floats(&r, (size_t)R * D, round % 3 == 0), *w = ops_floats(&r, D, false);
            float *want = ops_alloc((size_t)R * D * sizeof *want), other[600];
            void *out = ops_alloc((size_t)R * ld * ops->operand_bytes);
            memset(out, 0, (size_t)R * ld * ops->operand_bytes);
            unsigned saved = env_enter();
            for (uint32_t i = 0; i < R; i++) {
                norm_reference(x + (size_t)i * D, w, D, 1e-5f, false, want + (size_t)i * D);
                norm_reference(x + (size_t)i * D, w, D, 1e-5f, true, other);
                noticed += memcmp(other, want + (size_t)i * D, D * sizeof *other) != 0;
            }
            env_leave(saved);
            ops->rmsnorm(&pool, x, R, D, w, 1e-5f, out, ld);
            void *expected = ops_operands(ops, want, R, D, ld);
            ops_assert_same(expected, out, (size_t)R * ld * ops->operand_bytes, "%s R %u D %u",
                            ops->name, R, D);
            for (uint32_t i = 0; i < D && round % 3 != 0; i++) { // the last row in double
                double sum = 0;
                for (uint32_t j = 0; j < D; j++)
                    sum += (double)x[(size_t)(R - 1) * D + j] * (double)x[(size_t)(R - 1) * D + j];
                double exact =
                    (double)x[(size_t)(R - 1) * D + i] / sqrt(sum / D + 1e-5) * (double)w[i];
                assert_float_equal(want[(size_t)(R - 1) * D + i], exact, fabs(exact) * 1e-6 + 1e-9);
            }
            free(expected);
            free(out);
            free(want);
            free(x);
            free(w);
        }
        assert_true(noticed > 0);
        ops_pool_close(&pool);
    }
}

static void test_rope(void **state) {
    (void)state;
    struct rng r = rng_open(62, "rows", "rope");
    EACH_TABLE(ops) {
        struct cpu_pool pool = ops_pool(2);
        for (int round = 0; round < 40; round++) {
            uint32_t R = 1 + ops_below(&r, 20), heads = 1 + ops_below(&r, 4);
            uint32_t E = 2 * (8 + ops_below(&r, 40)), rotary = 2 * (1 + ops_below(&r, E / 2));
            enum cpu_pairing pairing = round % 2 ? CPU_PAIR_HALVES : CPU_PAIR_NEIGHBOURS;
            uint32_t width = heads * E, ldx = width + ops_below(&r, 4), ldout = width + 2;
            float *x = ops_floats(&r, (size_t)R * ldx, false);
            float *angles = ops_alloc((size_t)R * rotary * sizeof *angles);
            float *want = ops_alloc((size_t)R * width * sizeof *want);
            for (uint32_t t = 0; t < R; t++)
                cpu_rope_angles(1e5, rotary, NULL, 1000 + t, angles + (size_t)t * rotary);
            for (uint32_t t = 0; t < R; t++) {
                for (uint32_t h = 0; h < heads; h++) {
                    const float *from = x + (size_t)t * ldx + h * E;
                    float *to = want + (size_t)t * width + h * E;
                    memcpy(to, from, E * sizeof *to);
                    for (uint32_t i = 0; i < rotary / 2; i++) {
                        uint32_t a = pairing == CPU_PAIR_HALVES ? i : 2 * i;
                        uint32_t b = pairing == CPU_PAIR_HALVES ? i + rotary / 2 : 2 * i + 1;
                        float c = angles[(size_t)t * rotary + 2 * i],
                              s = angles[(size_t)t * rotary + 2 * i + 1];
                        float ac = from[a] * c, bs = from[b] * s, bc = from[b] * c,
                              as = from[a] * s;
                        to[a] = ac - bs;
                        to[b] = bc + as;
                    }
                }
            }
            char *out = ops_alloc((size_t)R * ldout * ops->operand_bytes);
            memset(out, 0, (size_t)R * ldout * ops->operand_bytes);
            ops->rope(&pool, x, ldx, R, heads, E, rotary, pairing, angles, out, ldout);
            void *expected = ops_operands(ops, want, R, width, ldout);
            ops_assert_same(expected, out, (size_t)R * ldout * ops->operand_bytes,
                            "%s E %u rotary %u", ops->name, E, rotary);
            free(expected);
            free(out);
            free(want);
            free(angles);
            free(x);
        }
        ops_pool_close(&pool);
    }
}

static void test_gate_rows_and_threads(void **state) {
    (void)state;
    struct rng r = rng_open(63, "rows", "gate");
    EACH_TABLE(ops) {
        uint32_t R = 50, F = 333, ldgu = 2 * F + 5, ld = F + 1;
        float *gu = ops_floats(&r, (size_t)R * ldgu, true);
        float *want = ops_alloc((size_t)R * F * sizeof *want);
        unsigned saved = env_enter();
        for (uint32_t i = 0; i < R * F; i++)
            want[i] = num_silu_gate(gu[i / F * ldgu + i % F], gu[i / F * ldgu + F + i % F]);
        env_leave(saved);
        void *expected = ops_operands(ops, want, R, F, ld);
        for (int threads = 1; threads <= 8; threads++) {
            struct cpu_pool pool = ops_pool(threads);
            void *out = ops_alloc((size_t)R * ld * ops->operand_bytes);
            ops->gate(&pool, CPU_GATE_SILU, gu, ldgu, R, F, out, ld);
            ops_assert_same(expected, out, (size_t)R * ld * ops->operand_bytes, "%s, %d threads",
                            ops->name, threads);
            free(out);
            ops_pool_close(&pool);
        }
        free(expected);
        free(want);
        free(gu);
    }
}

static void test_log_sum_exp(void **state) {
    (void)state;
    struct rng r = rng_open(64, "rows", "lse");
    for (int round = 0; round < 60; round++) {
        uint32_t n = 1 + ops_below(&r, round % 5 == 0 ? 50000 : 70);
        float *z = ops_floats(&r, n, false), size = round % 2 ? 40.0f : 1.0f;
        double max = -INFINITY, sum = 0;
        for (uint32_t i = 0; i < n; i++) {
            z[i] *= size;
            max = (double)z[i] > max ? (double)z[i] : max;
        }
        for (uint32_t i = 0; i < n; i++) sum += exp((double)z[i] - max);
        float first = 0;
        EACH_TABLE(ops) {
            float y = ops->log_sum_exp(z, n);
            if (t_ == 0) first = y;
            assert_int_equal(num_bits(y), num_bits(first));
            assert_float_equal(y, max + log(sum), 3e-6 * (1 + fabs(max + log(sum))));
        }
        free(z);
    }
}

static void test_argmax(void **state) {
    (void)state;
    struct rng r = rng_open(65, "rows", "argmax");
    EACH_TABLE(ops) {
        for (int round = 0; round < 100; round++) {
            uint32_t n = 1 + ops_below(&r, 200);
            float *z = ops_alloc(n * sizeof *z);
            int64_t best = 0;
            for (uint32_t i = 0; i < n;
                 i++) { // few values, so ties are common; all below zero at times
                z[i] = (float)ops_below(&r, 6) - (round % 2 ? 9.0f : 3.0f);
                if (z[i] > z[best]) best = i;
            }
            assert_int_equal(ops->argmax(z, n), best);
            const float bad[] = {NAN, INFINITY, -INFINITY};
            z[ops_below(&r, n)] = bad[round % 3];
            assert_int_equal(ops->argmax(z, n), -1);
            free(z);
        }
    }
}

static void test_find(void **state) {
    (void)state;
    const char *why = NULL;
    assert_string_equal(cpu_ops_find(CPU_BF16_1, "c", &why)->name, "c");
    assert_string_equal(cpu_ops_find(CPU_F32, "c-f32", &why)->name, "c-f32");
    assert_null(cpu_ops_find(CPU_F32, "c", &why));
    assert_non_null(strstr(why, "no op table of this name"));
    // Unnamed: one that this processor can run, and plain C only when there is nothing else.
    int simd[2] = {0, 0};
    EACH_TABLE(ops) if (ops->name[0] != 'c') simd[ops->numerics]++;
    for (int n = CPU_BF16_1; n <= CPU_F32; n++) {
        const struct cpu_ops *fastest = cpu_ops_find((enum cpu_numerics)n, NULL, &why);
        assert_non_null(fastest);
        assert_int_equal(fastest->numerics, n);
        assert_int_equal(fastest->name[0] != 'c', simd[n] > 0);
        assert_ptr_equal(cpu_ops_find((enum cpu_numerics)n, fastest->name, &why), fastest);
    }
}

// An op may not leave FTZ and DAZ behind, nor be led astray by what it finds.
static void test_environment_is_kept(void **state) {
    (void)state;
    struct rng r = rng_open(66, "rows", "environment");
    EACH_TABLE(ops) {
        struct cpu_pool pool = ops_pool(2);
        float *x = ops_floats(&r, 64 * 64, true), y[64 * 64], z[64 * 64];
        struct cpu_matrix w = ops_pack(ops, x, 64, 64);
        void *q = ops_operands(ops, x, 64, 64, 64), *out = ops_alloc(64 * 64 * 4);
        volatile float tiny = 0x1p-130f;
        ops->matmul(&pool, q, 64, 64, &w, NULL, false, y, 64);
        ops->rmsnorm(&pool, x, 64, 64, x, 1e-5f, out, 64);
        ops->gate(&pool, CPU_GATE_GELU_TANH, x, 64, 64, 32, out, 64);
        ops->round(&pool, x, 64, 64, 64, out, 64);
        (void)ops->log_sum_exp(x, 64);
        (void)ops->argmax(x, 64);
        assert_true(tiny * 0.5f != 0.0f); // subnormals live on outside
        unsigned saved = env_enter();     // and inside, the caller's state does not matter
        ops->matmul(&pool, q, 64, 64, &w, NULL, false, z, 64);
        env_leave(saved);
        assert_memory_equal(y, z, sizeof y);
        free(out);
        free(q);
        free(x);
        free((void *)w.panels);
        ops_pool_close(&pool);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm),
        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_gate_rows_and_threads),
        cmocka_unit_test(test_log_sum_exp),
        cmocka_unit_test(test_argmax),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_environment_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

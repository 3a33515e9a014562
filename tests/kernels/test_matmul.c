// Matrix products of every op table: against double precision, against the chain of the numerics
// written out here, and independent of threads, of how rows are split and of how weights are
// stored.
#include "kernels/cpu/shape.h"
#include "tests/kernels/ops_support.h"

// The orders that a wrong kernel might add in; CHAIN is the right one.
enum order { CHAIN, EVEN_FIRST, SPLIT_IN_TWO, UNFUSED };

ENV_WORK float chain_steps(const float *x, const float *w, uint32_t K, bool pairs,
                           enum order order) {
    float acc = 0.0f, other = 0.0f;
    if (!pairs) {
        for (uint32_t i = 0; i < K; i++) acc = fmaf(x[i], w[i], acc);
        return acc;
    }
    for (uint32_t i = 0; i < K; i += 2) {
        float odd_x = i + 1 < K ? x[i + 1] : 0.0f, odd_w = i + 1 < K ? w[i + 1] : 0.0f;
        float *to = order == SPLIT_IN_TWO && i >= K / 2 ? &other : &acc;
        if (order == EVEN_FIRST) *to = fmaf(x[i], w[i], *to);
        *to = order == UNFUSED ? odd_x * odd_w + *to : fmaf(odd_x, odd_w, *to);
        if (order != EVEN_FIRST) *to = fmaf(x[i], w[i], *to);
    }
    return order == SPLIT_IN_TWO ? acc + other : acc;
}

struct product {
    uint32_t R, K, N, ldx, ldy;
    float *x, *w, *bias, *before;
    bool wild, add, biased;
};

static struct product product_make(struct rng *r, uint32_t R, uint32_t K, uint32_t N, bool wild) {
    struct product p = {.R = R, .K = K, .N = N, .wild = wild};
    p.ldx = (K + 1) / 2 * 2 + 2 * ops_below(r, 3);
    p.ldy = N + ops_below(r, 5);
    p.x = ops_floats(r, (size_t)R * K, wild);
    p.w = ops_floats(r, (size_t)N * K, wild);
    p.bias = ops_floats(r, N, false);
    p.before = ops_floats(r, (size_t)R * p.ldy, false);
    p.add = ops_below(r, 2);
    p.biased = ops_below(r, 2);
    return p;
}

static void product_free(struct product *p) {
    free(p->x);
    free(p->w);
    free(p->bias);
    free(p->before);
}

static float *product_run(const struct cpu_ops *ops, const struct cpu_pool *pool,
                          const struct product *p, const struct cpu_matrix *w) {
    void *x = ops_operands(ops, p->x, p->R, p->K, p->ldx);
    float *y = ops_alloc((size_t)p->R * p->ldy * sizeof *y);
    memcpy(y, p->before, (size_t)p->R * p->ldy * sizeof *y);
    ops->matmul(pool, x, p->ldx, p->R, w, p->biased ? p->bias : NULL, p->add, y, p->ldy);
    free(x);
    return y;
}

// What y must be, bit for bit; elements beyond N stay as they were.
static float *product_expect(const struct cpu_ops *ops, const struct product *p, enum order order) {
    bool pairs = ops->numerics == CPU_BF16_1;
    float *x = ops_alloc((size_t)p->R * p->K * sizeof *x);
    float *w = ops_alloc((size_t)p->N * p->K * sizeof *w);
    for (size_t i = 0; i < (size_t)p->R * p->K; i++)
        x[i] = pairs ? ops_round_reference(p->x[i]) : p->x[i];
    for (size_t i = 0; i < (size_t)p->N * p->K; i++)
        w[i] = pairs ? ops_round_reference(p->w[i]) : p->w[i];
    float *y = ops_alloc((size_t)p->R * p->ldy * sizeof *y);
    memcpy(y, p->before, (size_t)p->R * p->ldy * sizeof *y);
    unsigned saved = env_enter();
    for (uint32_t r = 0; r < p->R; r++) {
        for (uint32_t n = 0; n < p->N; n++) {
            float v = chain_steps(x + (size_t)r * p->K, w + (size_t)n * p->K, p->K, pairs, order);
            if (p->biased) v += p->bias[n];
            float *to = y + (size_t)r * p->ldy + n;
            *to = p->add ? *to + v : v;
        }
    }
    env_leave(saved);
    free(x);
    free(w);
    return y;
}

// Every table against the chain written out above.
static void assert_chain(const struct cpu_pool *pool, const struct product *p) {
    int count;
    const struct cpu_ops *const *tables = cpu_ops_all(&count);
    for (int t = 0; t < count; t++) {
        if (cpu_ops_find(tables[t]->numerics, tables[t]->name, NULL) == NULL) continue;
        struct cpu_matrix w = ops_pack(tables[t], p->w, p->N, p->K);
        float *y = product_run(tables[t], pool, p, &w),
              *right = product_expect(tables[t], p, CHAIN);
        ops_assert_same(right, y, (size_t)p->R * p->ldy * sizeof *y, "%s R %u K %u N %u",
                        tables[t]->name, p->R, p->K, p->N);
        free(y);
        free(right);
        free((void *)w.panels);
    }
}

static void test_equals_the_written_chain(void **state) {
    (void)state;
    struct rng r = rng_open(31, "matmul", "chain");
    struct cpu_pool pool = ops_pool(2);
    for (int round = 0; round < 60; round++) {
        uint32_t R = 1 + ops_below(&r, 40), K = 1 + ops_below(&r, 90), N = 1 + ops_below(&r, 70);
        if (round % 6 == 0) R = 1 + ops_below(&r, 3), N = 100 + ops_below(&r, 300);
        if (round % 10 == 9) R = 97 + ops_below(&r, 20), K = 1 + ops_below(&r, 9);
        struct product p = product_make(&r, R, K, N, round % 2 == 1);
        assert_chain(&pool, &p);
        product_free(&p);
    }
    ops_pool_close(&pool);
}

// Rows, inner sizes and outputs on both sides of where the products of many rows are cut.
static void test_equals_the_written_chain_at_the_cuts(void **state) {
    (void)state;
    struct rng r = rng_open(36, "matmul", "cuts");
    const uint32_t depths[] = {2 * 320, 640, 2 * 640, 3 * 320};
    const size_t caches[] = {0, 64 << 10, 400 << 10, 1 << 20, 64 << 20};
    for (int round = 0; round < 24; round++) {
        uint32_t R = SHAPE_WIDE_FROM - 2 + ops_below(&r, 16), K = 1 + ops_below(&r, 9),
                 N = 1 + ops_below(&r, 40);
        if (round % 4 == 0) K = depths[round / 4 % 4] - 2 + ops_below(&r, 5);
        if (round % 4 == 1)
            N = SHAPE_WIDE_PANELS * CPU_PANEL * (1 + ops_below(&r, 2)) - 17 + ops_below(&r, 35);
        if (round % 4 == 2) R = SHAPE_WIDE_ROWS - 1 + ops_below(&r, 3);
        if (round % 8 == 3) R = 2 * SHAPE_WIDE_ROWS + ops_below(&r, 3), K = 650;
        struct cpu_pool pool = ops_pool(1 + (int)ops_below(&r, 4));
        pool.cache_bytes = caches[round % 5];
        struct product p = product_make(&r, R, K, N, round % 2 == 1);
        assert_chain(&pool, &p);
        product_free(&p);
        ops_pool_close(&pool);
    }
}

// Proof that the test above can fail: other orders give other bits.
static void test_notices_planted_orders(void **state) {
    (void)state;
    struct rng r = rng_open(32, "matmul", "faults");
    const struct cpu_ops *ops = cpu_ops_find(CPU_BF16_1, "c", NULL);
    struct product p = product_make(&r, 4, 100, 32, false);
    float *right = product_expect(ops, &p, CHAIN);
    for (enum order order = EVEN_FIRST; order <= UNFUSED; order++) {
        float *wrong = product_expect(ops, &p, order);
        if (order != UNFUSED) // products of bf16 are exact in fp32, so fusing changes nothing here
            assert_memory_not_equal(right, wrong, (size_t)p.R * p.ldy * sizeof *right);
        free(wrong);
    }
    free(right);
    product_free(&p);
}

static void test_agrees_with_double_precision(void **state) {
    (void)state;
    struct rng r = rng_open(33, "matmul", "double");
    struct cpu_pool pool = ops_pool(2);
    int count;
    const struct cpu_ops *const *tables = cpu_ops_all(&count);
    struct product p = product_make(&r, 7, 577, 50, false);
    p.add = p.biased = true;
    for (int t = 0; t < count; t++) {
        if (cpu_ops_find(tables[t]->numerics, tables[t]->name, NULL) == NULL) continue;
        struct cpu_matrix w = ops_pack(tables[t], p.w, p.N, p.K);
        float *y = product_run(tables[t], &pool, &p, &w);
        double unit =
            tables[t]->numerics == CPU_F32 ? 0x1p-24 : 0x1p-8; // of one operand's rounding
        for (uint32_t i = 0; i < p.R; i++) {
            for (uint32_t n = 0; n < p.N; n++) {
                double sum = 0, size = 0;
                for (uint32_t k = 0; k < p.K; k++) {
                    double term = (double)p.x[i * p.K + k] * (double)p.w[n * p.K + k];
                    sum += term;
                    size += fabs(term);
                }
                sum += (double)p.bias[n] + (double)p.before[i * p.ldy + n];
                // roundings of single operands add up like a random walk
                double bound = 8 * unit * size / sqrt((double)p.K) + size * 0x1p-22;
                double miss = fabs((double)y[i * p.ldy + n] - sum);
                if (miss > bound)
                    fail_msg("%s [%u][%u]: off by %g, bound %g", tables[t]->name, i, n, miss,
                             bound);
            }
        }
        free(y);
        free((void *)w.panels);
    }
    product_free(&p);
    ops_pool_close(&pool);
}

static void test_same_bits_for_threads_and_splits(void **state) {
    (void)state;
    struct rng r = rng_open(34, "matmul", "threads");
    int count;
    const struct cpu_ops *const *tables = cpu_ops_all(&count);
    struct product p = product_make(&r, 37, 150, 200, true);
    p.add = false;
    for (int t = 0; t < count; t++) {
        const struct cpu_ops *ops = tables[t];
        if (cpu_ops_find(ops->numerics, ops->name, NULL) == NULL) continue;
        struct cpu_pool one = ops_pool(1);
        struct cpu_matrix w = ops_pack(ops, p.w, p.N, p.K);
        float *y = product_run(ops, &one, &p, &w);
        for (int threads = 2; threads <= 8; threads++) {
            struct cpu_pool pool = ops_pool(threads);
            float *z = product_run(ops, &pool, &p, &w);
            ops_assert_same(y, z, (size_t)p.R * p.ldy * sizeof *y, "%s, %d threads", ops->name,
                            threads);
            free(z);
            ops_pool_close(&pool);
        }
        for (uint32_t cut = 1; cut < 14; cut++) { // the last rows alone, and in company
            struct product tail = p;
            tail.x += (size_t)(p.R - cut) * p.K;
            tail.before += (size_t)(p.R - cut) * p.ldy;
            tail.R = cut;
            float *z = product_run(ops, &one, &tail, &w);
            ops_assert_same(y + (size_t)(p.R - cut) * p.ldy, z, (size_t)cut * p.ldy * sizeof *y,
                            "%s, last %u rows", ops->name, cut);
            free(z);
        }
        free(y);
        free((void *)w.panels);
        ops_pool_close(&one);
    }
    product_free(&p);
}

static void test_refuses_weights_that_are_not_finite(void **state) {
    (void)state;
    int count;
    const struct cpu_ops *const *tables = cpu_ops_all(&count);
    for (int t = 0; t < count; t++) {
        const float bad[] = {NAN, INFINITY, -INFINITY};
        for (int i = 0; i < 3; i++) {
            for (uint32_t at = 0; at < 33; at += 8) {
                float row[33];
                char panels[34 * 16 * 4];
                for (int k = 0; k < 33; k++) row[k] = (float)k;
                assert_int_equal(tables[t]->pack_row(row, 5, 33, panels), 0);
                row[at] = bad[i];
                assert_int_equal(tables[t]->pack_row(row, 5, 33, panels), -1);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_the_written_chain),
        cmocka_unit_test(test_equals_the_written_chain_at_the_cuts),
        cmocka_unit_test(test_notices_planted_orders),
        cmocka_unit_test(test_agrees_with_double_precision),
        cmocka_unit_test(test_same_bits_for_threads_and_splits),
        cmocka_unit_test(test_refuses_weights_that_are_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Drawing a token, against the rule restated, and against the distribution that it stands for.
#include "tests/kernels/sample_support.h"

#include "kernels/cpu/rank.h"
#include "kernels/cpu/sample.h"
#include "kernels/sample.h"

#define GUARD 64

static uint32_t largest_of(const float *z, uint32_t n) {
    int64_t i = cpu_ops_find(CPU_BF16_1, "c", NULL)->argmax(z, n);
    assert_true(i >= 0);
    return (uint32_t)i;
}

// In as much memory as was asked for.
static uint32_t drawn(const float *z, uint32_t n, const struct token_draw *d) {
    size_t bytes = cpu_sample_bytes(n);
    uint8_t *memory = ops_alloc(bytes + GUARD);
    memset(memory, 0xa5, bytes + GUARD);
    uint32_t id = cpu_sample(z, n, largest_of(z, n), d, memory);
    for (int i = 0; i < GUARD; i++) assert_int_equal(memory[bytes + (size_t)i], 0xa5);
    free(memory);
    return id;
}

static void assert_restated(const float *z, uint32_t n, const struct token_draw *d) {
    uint32_t got = drawn(z, n, d), expected = sample_restated(z, n, d);
    if (got != expected)
        fail_msg("of %u at T %g, top_p %.17g, u %.17g: %u (%g) instead of %u (%g)", n,
                 d->temperature, d->top_p, d->u, got, (double)z[got], expected,
                 (double)z[expected]);
}

static void test_every_row(void **state) {
    (void)state;
    struct rng r = rng_open(41, "sample", "rows");
    for (int round = 0; round < 3000; round++) {
        uint32_t n = 1 + ops_below(&r, round % 100 == 0 ? 60000 : round % 3 == 0 ? 6 : 700);
        float *z = sample_row_of(&r, n, round % SAMPLE_KINDS);
        struct token_draw d = sample_draw(&r, false);
        assert_restated(z, n, &d);
        free(z);
    }
}

// The weights at which the program stops looking, neither too early nor too late.
static void test_weights_that_move_no_sum(void **state) {
    (void)state;
    struct rng r = rng_open(42, "sample", "tail");
    int others[2] = {0, 0}; // whether another than the largest was drawn
    for (int round = 0; round < 400; round++) {
        uint32_t n = 2 + ops_below(&r, round % 2 == 0 ? 3 : 3000);
        float *z = ops_alloc(n * sizeof *z), first = ldexpf(ops_normal(&r), (int)ops_below(&r, 12));
        double temperature = ldexp(0.5 + rng_unit(&r), (int)ops_below(&r, 20) - 10);
        uint32_t at = ops_below(&r, n);
        for (uint32_t i = 0; i < n; i++)
            z[i] = (float)((double)first - (35.0 + 5.0 * rng_unit(&r)) * temperature);
        z[at] = first;
        struct token_draw d = {temperature, 1, 1 - 0x1p-53};
        assert_restated(z, n, &d);
        others[drawn(z, n, &d) != at]++;
        free(z);
    }
    assert_true(others[0] > 0 && others[1] > 0);
}

// Sums that fall exactly on a border: equal weights, whose sums are whole numbers.
static void test_borders(void **state) {
    (void)state;
    enum { N = 64 };
    float z[N];
    for (int i = 0; i < N; i++) z[i] = 7.25f;
    for (uint32_t head = 1; head <= N; head++)
        for (uint32_t i = 0; i < head; i++) {
            double at = (double)i / head;
            struct token_draw d = {0.7, (double)head / N, at};
            assert_restated(z, N, &d);
            if (head != N || i == 0) continue;
            assert_int_equal(drawn(z, N, &d), i);
            d.u = nextafter(at, 0);
            assert_int_equal(drawn(z, N, &d), i - 1);
        }
    struct token_draw d = {1, 0.5, 1 - 0x1p-53};
    assert_int_equal(drawn(z, N, &d), N / 2 - 1);
    d.top_p = nextafter(0.5, 1);
    assert_int_equal(drawn(z, N, &d), N / 2);
}

static void test_what_is_meant(void **state) {
    (void)state;
    struct rng r = rng_open(43, "sample", "meant");
    for (int round = 0; round < 400; round++) {
        uint32_t n = 1 + ops_below(&r, 2000);
        float *z = sample_row_of(&r, n, SAMPLE_SMOOTH);
        struct token_draw d = sample_draw(&r, true);
        assert_int_equal(drawn(z, n, &d), sample_meant(z, n, &d));
        free(z);
    }
}

static void test_distribution(void **state) {
    (void)state;
    // Probabilities 0.2, 0.5, 0.3 at temperature 1.
    const float z[3] = {logf(0.2f), logf(0.5f), logf(0.3f)};
    enum { DRAWS = 20000 };
    struct rng r = rng_open(1, "sample", "distribution");
    int all[3] = {0}, head[3] = {0};
    for (int i = 0; i < DRAWS; i++) {
        struct token_draw d = {1, 1, rng_unit(&r)};
        all[drawn(z, 3, &d)]++;
        d.top_p = 0.7;
        head[drawn(z, 3, &d)]++;
    }
    static const double expected[] = {0.2, 0.5, 0.3}, kept[] = {0, 0.625, 0.375};
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(all[i] / (double)DRAWS - expected[i]) < 0.015); // four standard deviations
        assert_true(fabs(head[i] / (double)DRAWS - kept[i]) < 0.015);
    }
}

static void test_rank(void **state) {
    (void)state;
    struct rng r = rng_open(44, "sample", "rank");
    for (int round = 0; round < 200; round++) {
        uint32_t n = 1 + ops_below(&r, 3000);
        float *z = sample_row_of(&r, n, round % SAMPLE_KINDS);
        uint32_t last = round % 2 == 0 ? UINT32_MAX : sample_key(z[ops_below(&r, n)]), count = 0;
        struct sample_place *order = sample_order(z, n);
        struct cpu_ranked *got;
        void *memory = ops_alloc(cpu_rank_bytes(n)), *spare;
        while (count < n && sample_key(order[count].z) <= last) count++;
        assert_int_equal(cpu_rank(z, n, last, memory, &got, &spare), count);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(got[i].id, order[i].id);
            assert_true(sample_logit(got[i].key) == order[i].z);
        }
        free(memory);
        free(order);
        free(z);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row),    cmocka_unit_test(test_weights_that_move_no_sum),
        cmocka_unit_test(test_borders),      cmocka_unit_test(test_what_is_meant),
        cmocka_unit_test(test_distribution), cmocka_unit_test(test_rank),
    };
    return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}

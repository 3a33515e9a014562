// Greedy and seeded sampling against a plain restatement of the rule in long double, and against
// the distribution that it stands for.
#include "engine/sampler.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define V 5000

static void random_logits(uint64_t seed, float *z, uint32_t n, bool coarse) {
    struct rng r = rng_open(seed, "test", "logits");
    for (uint32_t i = 0; i < n; i++) {
        double u = rng_unit(&r) * 16 - 8;
        z[i] = (float)(coarse ? floor(u) : u); // coarse: many ties
    }
}

static const float *compared;
static int by_logit(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (compared[x] != compared[y]) return compared[x] > compared[y] ? -1 : 1;
    return x < y ? -1 : 1;
}

static int32_t restated(const float *z, double temperature, double top_p, double u) {
    static int32_t order[V];
    static long double w[V];
    for (int32_t i = 0; i < V; i++) order[i] = i;
    compared = z;
    qsort(order, V, sizeof *order, by_logit);
    long double total = 0, kept_sum = 0, running = 0;
    for (int i = 0; i < V; i++)
        total += w[i] = expl(((long double)z[order[i]] - z[order[0]]) / temperature);
    int kept = 0;
    while (kept < V && (kept == 0 || kept_sum < top_p * total)) kept_sum += w[kept++];
    for (int i = 0; i < kept; i++)
        if ((running += w[i]) > u * kept_sum) return order[i];
    return order[kept - 1];
}

static void test_draws_follow_the_rule(void **state) {
    (void)state;
    static float z[V];
    static const double temperatures[] = {0.05, 0.8, 1, 2.5}, heads[] = {1, 0.9, 0.3, 1e-6};
    struct sampler *s = sampler_open(V);
    for (int round = 0; round < 8; round++) {
        random_logits((uint64_t)round, z, V, round % 2 == 1);
        struct rng stream = rng_open(42, "repeat 3", "sample 0");
        for (uint64_t i = 0; i < 16; i++) {
            double t = temperatures[i % 4], p = heads[i / 4];
            assert_int_equal(sampler_draw(s, z, t, p, &stream, i),
                             restated(z, t, p, rng_unit_at(&stream, i)));
        }
    }
    sampler_close(s);
}

static void test_draws_need_no_history(void **state) {
    (void)state;
    static float z[V];
    random_logits(3, z, V, false);
    struct sampler *s = sampler_open(V);
    struct rng stream = rng_open(7, "repeat 0", "sample 1");
    int32_t forward[50];
    for (int i = 0; i < 50; i++) forward[i] = sampler_draw(s, z, 1.5, 0.95, &stream, (uint64_t)i);
    bool all_equal = true;
    for (int i = 49; i >= 0; i--) {
        assert_int_equal(sampler_draw(s, z, 1.5, 0.95, &stream, (uint64_t)i), forward[i]);
        all_equal = all_equal && forward[i] == forward[0];
    }
    assert_false(all_equal);
    sampler_close(s);
}

static void test_distribution(void **state) {
    (void)state;
    // Probabilities 0.5, 0.3, 0.2 at temperature 1.
    float z[3] = {logf(0.2f), logf(0.5f), logf(0.3f)};
    enum { DRAWS = 20000 };
    struct sampler *s = sampler_open(3);
    struct rng stream = rng_open(1, "repeat 0", "sample 0");
    int all[3] = {0}, head[3] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        all[sampler_draw(s, z, 1, 1, &stream, i)]++;
        head[sampler_draw(s, z, 1, 0.7, &stream, i)]++;
    }
    static const double expected[] = {0.2, 0.5, 0.3}, kept[] = {0, 0.625, 0.375};
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(all[i] / (double)DRAWS - expected[i]) < 0.015); // four standard deviations
        assert_true(fabs(head[i] / (double)DRAWS - kept[i]) < 0.015);
    }
    sampler_close(s);
}

static void test_top(void **state) {
    (void)state;
    static float z[V];
    static int32_t order[V], top[V];
    struct sampler *s = sampler_open(V);
    random_logits(5, z, V, true);
    for (int32_t i = 0; i < V; i++) order[i] = i;
    compared = z;
    qsort(order, V, sizeof *order, by_logit);
    sampler_top(s, z, V, top);
    assert_memory_equal(top, order, sizeof order);
    sampler_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws_follow_the_rule),
        cmocka_unit_test(test_draws_need_no_history),
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_top),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

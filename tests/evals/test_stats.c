// Statistics against scipy and statsmodels (tests/oracle/make_stats_goldens.py), against published
// numbers, and on simulated data whose truth is known.
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/rng.h"
#include "evals/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_near(double got, double wanted, double tolerance, const char *what) {
    if (!(fabs(got - wanted) <= tolerance))
        fail_msg("%s: %.12g, expected %.12g", what, got, wanted);
}

static void equals_scipy_and_statsmodels(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct err e = {0};
    struct str text;
    ASSERT_OK(file_read(test_data(a, "evals/golden/stats.txt"), 1 << 20, a, &text, &e), e);
    int cases = 0;
    for (char *line = str_to_c(a, text), *next; *line != '\0'; line = next, cases++) {
        next = strchr(line, '\n');
        *next++ = '\0';
        double x[64];
        int n = 0;
        char *rest = strchr(line, ' '), *end;
        for (double v = strtod(rest, &end); end != rest; v = strtod(rest, &end)) {
            assert_true(n < 64);
            x[n++] = v;
            rest = end;
        }
        if (strncmp(line, "wilson", 6) == 0) {
            struct stats_interval i = stats_wilson(x[0], x[1]);
            assert_near(i.low, x[2], 1e-12, line);
            assert_near(i.high, x[3], 1e-12, line);
        } else if (strncmp(line, "mcnemar", 7) == 0) {
            assert_near(stats_mcnemar((int)x[0], (int)x[1]), x[2], 1e-10, line);
        } else if (strncmp(line, "flip", 4) == 0) {
            int nonzero;
            assert_near(stats_sign_flip(x + 2, (int)x[1], 1, "t", &nonzero), x[0], 1e-12, line);
        } else if (strncmp(line, "holm", 4) == 0) {
            double adjusted[16];
            stats_holm(x + 1, (int)x[0], adjusted);
            for (int i = 0; i < (int)x[0]; i++)
                assert_near(adjusted[i], x[1 + (int)x[0] + i], 1e-12, line);
        } else if (strncmp(line, "tail", 4) == 0) {
            assert_near(stats_binomial_tail((int)x[0], (int)x[1], x[2]), x[3], 1e-9, line);
        } else if (strncmp(line, "paired", 6) == 0) {
            struct stats_interval i = stats_paired(x + 3, (int)x[2]);
            assert_near(i.low, x[0], 1e-9, line);
            assert_near(i.high, x[1], 1e-9, line);
        } else {
            fail_msg("unknown line: %s", line);
        }
    }
    assert_true(cases > 100);
    arena_destroy(a);
}

static void published_numbers(void **state) {
    (void)state;
    static const double wilson[][4] = {{1, 1, 20.7, 100},
                                       {10, 10, 72.2, 100},
                                       {27, 30, 74.4, 96.5},
                                       {90, 100, 82.6, 94.5},
                                       {450, 500, 87.1, 92.3}};
    for (int i = 0; i < 5; i++) {
        struct stats_interval w = stats_wilson(wilson[i][0], wilson[i][1]);
        assert_near(100 * w.low, wilson[i][2], 0.05, "low");
        assert_near(100 * w.high, wilson[i][3], 0.05, "high");
    }
    assert_true(stats_mcnemar(0, 5) > 0.05); // six discordant pairs at least
    assert_true(stats_mcnemar(0, 6) < 0.05);
    assert_near(stats_mcnemar(0, 6), 0.03125, 1e-15, "6 of 6");
    assert_near(stats_mcnemar(0, 0), 1, 0, "none");
    assert_true(stats_wilson(0, 40).low == 0 && stats_wilson(40, 40).high == 1);
}

static void sign_flip_kinds_agree(void **state) {
    (void)state;
    struct rng r = rng_open(3, "test", "flip");
    int nonzero;
    double d[24];
    // Of one size: the binomial. The same data with one difference nudged is enumerated.
    for (int i = 0; i < 12; i++) d[i] = i < 9 ? 1 : -1;
    double exact = stats_sign_flip(d, 12, 1, "a", &nonzero);
    assert_near(exact, stats_mcnemar(9, 3), 0, "binomial");
    assert_int_equal(nonzero, 12);
    d[0] = 1 + 1e-6;
    assert_near(stats_sign_flip(d, 12, 1, "a", &nonzero), exact, 0.05, "enumerated");
    // Drawn above 20, against the whole distribution of the sum on its lattice of quarters.
    for (int round = 0; round < 5; round++) {
        enum { N = 24, SPAN = 4 * N };
        double weight[2 * SPAN + 1] = {0}, observed = 0, tail = 0;
        weight[SPAN] = 1;
        for (int i = 0; i < N; i++) {
            int quarters = 1 + (int)rng_below(&r, 4);
            d[i] = (rng_below(&r, 3) ? 1 : -1) * quarters / 4.0;
            observed += d[i];
            double next[2 * SPAN + 1] = {0};
            for (int k = 0; k <= 2 * SPAN; k++) {
                if (k >= quarters) next[k - quarters] += weight[k] / 2;
                if (k + quarters <= 2 * SPAN) next[k + quarters] += weight[k] / 2;
            }
            memcpy(weight, next, sizeof weight);
        }
        for (int k = 0; k <= 2 * SPAN; k++)
            if (abs(k - SPAN) >= fabs(observed) * 4 - 1e-6) tail += weight[k];
        double drawn = stats_sign_flip(d, N, 1, "a", &nonzero);
        assert_int_equal(nonzero, N);
        assert_near(drawn, tail, 0.01, "drawn");
        assert_true(drawn == stats_sign_flip(d, N, 1, "a", &nonzero)); // seeded
    }
    double zero[3] = {0};
    assert_true(stats_sign_flip(zero, 3, 1, "a", &nonzero) == 1 && nonzero == 0);
    assert_true(stats_sign_flip(zero, 0, 1, "a", &nonzero) == 1);
}

// What a model with this true difference gives: pairs of outcomes that share their repeat's luck.
static int draw_pairs(struct rng *r, double first, double second, double shared, double *d, int n) {
    for (int i = 0; i < n; i++) {
        double luck = rng_unit(r);
        double u = rng_unit(r) < shared ? luck : rng_unit(r);
        double v = rng_unit(r) < shared ? luck : rng_unit(r);
        d[i] = (u < first) - (v < second);
    }
    return n;
}

static void tests_hold_their_level_and_find_effects(void **state) {
    (void)state;
    struct rng r = rng_open(5, "test", "level");
    enum { ROUNDS = 2000, N = 40 };
    int false_alarms = 0, found = 0, nonzero;
    double d[N];
    for (int i = 0; i < ROUNDS; i++) {
        draw_pairs(&r, 0.6, 0.6, 0.5, d, N);
        false_alarms += stats_sign_flip(d, N, 1, "a", &nonzero) <= 0.05;
        draw_pairs(&r, 0.9, 0.5, 0.5, d, N);
        found += stats_sign_flip(d, N, 1, "a", &nonzero) <= 0.05;
    }
    assert_in_range(false_alarms, 1, ROUNDS * 6 / 100);
    assert_in_range(found, ROUNDS * 90 / 100, ROUNDS);
}

static void paired_interval_covers(void **state) {
    (void)state;
    static const double truth[][3] = {{0.6, 0.6, 0.5}, {0.9, 0.5, 0.5}, {1, 1, 0},
                                      {0.95, 0.9, 0},  {1, 0, 0},       {0.99, 0.97, 0.9}};
    struct rng r = rng_open(6, "test", "paired");
    for (size_t k = 0; k < sizeof truth / sizeof *truth; k++) {
        for (int n = 10; n <= 40; n += 15) {
            enum { ROUNDS = 2000 };
            int covered = 0;
            double d[64], effect = truth[k][0] - truth[k][1];
            for (int i = 0; i < ROUNDS; i++) {
                draw_pairs(&r, truth[k][0], truth[k][1], truth[k][2], d, n);
                struct stats_interval x = stats_paired(d, n);
                assert_true(x.high - x.low > 0.05); // never collapses
                covered += x.low <= effect + 1e-12 && effect - 1e-12 <= x.high;
            }
            // Certain outcomes (1, 0) sit on the edge of what two added repeats allow.
            if (covered < ROUNDS * 93 / 100 && k != 4)
                fail_msg("%g against %g, n %d: covered %d of %d", truth[k][0], truth[k][1], n,
                         covered, (int)ROUNDS);
        }
    }
}

// Repeats that share luck over their trials: independent trials' intervals would be too narrow.
static void clustered_interval_covers(void **state) {
    (void)state;
    struct rng r = rng_open(7, "test", "clusters");
    static const double rates[] = {0.5, 0.8, 0.95};
    static const double shares[] = {0, 0.5, 1};
    for (int k = 0; k < 9; k++) {
        for (int repeats = 10; repeats <= 40; repeats += 30) {
            enum { ROUNDS = 2000, TRIALS = 3 };
            double rate = rates[k / 3], shared = shares[k % 3];
            int covered = 0;
            for (int i = 0; i < ROUNDS; i++) {
                struct stats_cluster c[40] = {{0, 0}};
                for (int q = 0; q < repeats; q++) {
                    double luck = rng_unit(&r);
                    c[q].n = TRIALS;
                    for (int t = 0; t < TRIALS; t++) {
                        double u = rng_unit(&r) < shared ? luck : rng_unit(&r);
                        c[q].met += u < rate;
                    }
                }
                struct stats_interval x = stats_clustered(c, repeats);
                covered += x.low <= rate && rate <= x.high;
            }
            if (covered < ROUNDS * 92 / 100)
                fail_msg("rate %g, shared %g, %d repeats: covered %d of %d", rate, shared, repeats,
                         covered, (int)ROUNDS);
        }
    }
}

static void clustered_interval_shape(void **state) {
    (void)state;
    // One trial a repeat: Wilson's own. All met: repeats count, not trials.
    struct stats_cluster c[20];
    for (int i = 0; i < 20; i++) c[i] = (struct stats_cluster){i < 17, 1};
    struct stats_interval wilson = stats_wilson(17, 20), got = stats_clustered(c, 20);
    assert_true(got.low == wilson.low && got.high == wilson.high);
    for (int i = 0; i < 20; i++) c[i] = (struct stats_cluster){3, 3};
    got = stats_clustered(c, 20);
    assert_near(got.low, stats_wilson(20, 20).low, 1e-12, "all met");
    // A worse result never has a better lower bound.
    double low = got.low;
    for (int i = 0; i < 60; i++) {
        c[i % 20].met--;
        got = stats_clustered(c, 20);
        if (got.low > low + 1e-12) fail_msg("%d of 60 met: %g above %g", 59 - i, got.low, low);
        low = got.low;
    }
}

static void places_test_holds_its_level(void **state) {
    (void)state;
    struct rng r = rng_open(8, "test", "places");
    enum { ROUNDS = 60, N = 20, K = 5 };
    int alarms = 0, found = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double values[N * K];
        for (int q = 0; q < N * K; q++) values[q] = rng_unit(&r) < 0.7;
        alarms += stats_places(values, N, K, 1, "a") <= 0.05;
        for (int q = 0; q < N * K; q++) values[q] = rng_unit(&r) < (q % K == 2 ? 0.3 : 0.9);
        found += stats_places(values, N, K, 1, "a") <= 0.05;
    }
    assert_in_range(alarms, 0, 9);
    assert_in_range(found, 55, ROUNDS);
    double alike[6] = {1, 1, 1, 0, 0, 0};
    assert_true(stats_places(alike, 2, 3, 1, "a") == 1);
}

static void planning(void **state) {
    (void)state;
    assert_true(stats_detectable(5, true) > 1); // five pairs can show nothing
    double eight = stats_detectable(8, true), forty = stats_detectable(40, true);
    assert_true(eight > 0.8 && eight < 1 && forty > 0.15 && forty < 0.25);
    assert_true(stats_detectable(40, false) > forty);
    // The power that is promised is the power that simulation gives.
    struct rng r = rng_open(9, "test", "power");
    double difference = stats_detectable(40, false), d[40];
    int found = 0, nonzero;
    for (int i = 0; i < 2000; i++) {
        draw_pairs(&r, (1 + difference) / 2, (1 - difference) / 2, 0, d, 40);
        found += stats_sign_flip(d, 40, 1, "a", &nonzero) <= 0.05;
    }
    assert_in_range(found, 2000 * 77 / 100, 2000 * 83 / 100);
    int needed = stats_repeats_needed(0.2);
    assert_true(stats_power(needed, 0.2, 0.52) >= 0.8 && needed > 80 && needed < 130);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_scipy_and_statsmodels),
        cmocka_unit_test(published_numbers),
        cmocka_unit_test(sign_flip_kinds_agree),
        cmocka_unit_test(tests_hold_their_level_and_find_effects),
        cmocka_unit_test(paired_interval_covers),
        cmocka_unit_test(clustered_interval_covers),
        cmocka_unit_test(clustered_interval_shape),
        cmocka_unit_test(places_test_holds_its_level),
        cmocka_unit_test(planning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

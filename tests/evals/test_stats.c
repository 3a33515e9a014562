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

// What each line of the golden file holds stands in the script that wrote it.
static void tests_agree(const char *kind, const char *line, const double *x) {
    int nonzero;
    double adjusted[16], p;
    if (strcmp(kind, "mcnemar") == 0) {
        assert_near(stats_mcnemar((int)x[0], (int)x[1]), x[2], 1e-10, line);
    } else if (strcmp(kind, "flip") == 0) {
        assert_near(stats_sign_flip(x + 2, (int)x[1], 1, "t", &nonzero), x[0], 1e-12, line);
    } else if (strcmp(kind, "cochran") == 0) {
        assert_near(stats_cochran_q(x + 4, (int)x[2], (int)x[3]), x[0], 1e-9, line);
        p = stats_places(x + 4, (int)x[2], (int)x[3], 1, "t"); // drawn, hence the error of p
        assert_near(p, x[1], 5 * sqrt(x[1] * (1 - x[1]) / 700) + 1e-9, line);
    } else if (strcmp(kind, "fisher") == 0) {
        double first[80], second[80];
        for (int i = 0; i < 80; i++) first[i] = i < x[1];
        for (int i = 0; i < 80; i++) second[i] = i < x[3];
        p = stats_two(first, (int)x[2], second, (int)x[4], 1, "t");
        assert_near(p, x[0], 1e-10, line);
    } else if (strcmp(kind, "deal") == 0) {
        p = stats_two(x + 3, (int)x[1], x + 3 + (int)x[1], (int)x[2], 1, "t");
        assert_near(p, x[0], 5 * sqrt(x[0] * (1 - x[0]) / 700) + 1e-9, line);
    } else if (strcmp(kind, "holm") == 0) {
        stats_holm(x + 1, (int)x[0], adjusted);
        for (int i = 0; i < (int)x[0]; i++)
            assert_near(adjusted[i], x[1 + (int)x[0] + i], 1e-12, line);
    } else {
        fail_msg("unknown line: %s", line);
    }
}

static bool intervals_agree(const char *kind, const char *line, const double *x) {
    struct stats_interval i;
    double low = x[0], high = x[1];
    if (strcmp(kind, "wilson") == 0) {
        i = stats_wilson(x[0], x[1]);
        low = x[2];
        high = x[3];
    } else if (strcmp(kind, "exact") == 0) {
        i = stats_exact(x[0], x[1]);
        low = x[2];
        high = x[3];
    } else if (strcmp(kind, "paired") == 0) {
        i = stats_paired(x + 3, (int)x[2]);
    } else if (strcmp(kind, "two") == 0) {
        i = stats_two_difference(x[2] / x[3], stats_wilson(x[2], x[3]), x[4] / x[5],
                                 stats_wilson(x[4], x[5]));
    } else if (strcmp(kind, "shares") == 0) {
        i = stats_shares(x + 4, (int)x[3], x[2]);
    } else {
        return false;
    }
    assert_near(i.low, low, 1e-9, line);
    assert_near(i.high, high, 1e-9, line);
    return true;
}

static bool numbers_agree(const char *kind, const char *line, const double *x) {
    if (strcmp(kind, "tail") == 0) {
        assert_near(stats_binomial_tail((int)x[0], (int)x[1], x[2]), x[3], 1e-9, line);
    } else if (strcmp(kind, "normal") == 0) {
        assert_near(stats_normal_tail(x[0]), x[1], 1e-13, line);
        if (x[1] >= 1e-9) assert_near(stats_normal_upper(x[1]), x[0], 1e-6, line);
    } else if (strcmp(kind, "area") == 0) {
        int32_t depths[16];
        double weights[16], area = 0, k = x[1];
        for (int i = 0; i < k; i++) depths[i] = (int32_t)x[2 + i];
        stats_area_weights(depths, (int)k, weights);
        for (int i = 0; i < k; i++) area += weights[i] * x[2 + (int)k + i];
        assert_near(area, x[0], 1e-12, line);
    } else if (strcmp(kind, "samples") == 0) {
        assert_near(stats_samples_all((int)x[0], (int)x[1], (int)x[2]), x[3], 1e-12, line);
        assert_near(stats_samples_any((int)x[0], (int)x[1], (int)x[2]), x[4], 1e-12, line);
    } else {
        return false;
    }
    return true;
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
        char kind[16], *rest = strchr(line, ' '), *end;
        snprintf(kind, sizeof kind, "%.*s", (int)(rest - line), line);
        for (double v = strtod(rest, &end); end != rest; v = strtod(rest, &end)) {
            assert_true(n < 64);
            x[n++] = v;
            rest = end;
        }
        if (!intervals_agree(kind, line, x) && !numbers_agree(kind, line, x))
            tests_agree(kind, line, x);
    }
    assert_true(cases > 200);
    arena_destroy(a);
}

static void agreement_beyond_chance(void **state) {
    (void)state;
    double kappa, ac1;
    // Gwet (2008), table of 125 subjects: high agreement, nearly all of one class.
    const double skewed[] = {118, 5, 2, 0};
    assert_true(stats_kappa(skewed, 2, &kappa));
    assert_true(stats_ac1(skewed, 2, &ac1));
    assert_near(kappa, -0.0234, 5e-5, "kappa of a skewed table");
    assert_near(ac1, 0.9408, 5e-5, "AC1 of a skewed table");
    // Three classes, worked by hand: p = .63; e = .29 * .26 + .33 * .32 + .38 * .42 for kappa, and
    // half the sum of s (1 - s) of .275, .325 and .4 for AC1.
    const double three[] = {15, 8, 6, 5, 20, 8, 6, 4, 28};
    assert_true(stats_kappa(three, 3, &kappa) && stats_ac1(three, 3, &ac1));
    assert_near(kappa, (.63 - .3406) / (1 - .3406), 1e-12, "kappa of three classes");
    assert_near(ac1, (.63 - .32937500) / (1 - .32937500), 1e-12, "AC1 of three classes");
    // Of one class alone chance explains everything.
    const double one[] = {7, 0, 0, 0}, none[4] = {0};
    assert_false(stats_kappa(one, 2, &kappa));
    assert_true(stats_ac1(one, 2, &ac1) && ac1 == 1);
    assert_false(stats_kappa(none, 2, &kappa) || stats_ac1(none, 2, &ac1));
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
    // Above 20, against the whole distribution of the sum of quarters: exact, and drawn where the
    // same differences in another unit have no common step.
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
        assert_near(stats_sign_flip(d, N, 1, "a", &nonzero), tail, 1e-12, "in steps");
        for (int i = 0; i < N; i++) d[i] *= 0.70710678;
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

// The middle gap over two lengths whose trials share their repeat's luck to a degree.
static void gap_interval_covers(void **state) {
    (void)state;
    static const double truth[][3] = {
        {0.05, 0.5, 0.05}, {0.95, 0.8, 0.95}, {0.5, 0.5, 0.5}, {0.05, 0.05, 0.05}};
    static const double shared[] = {0, 0.5, 0.95};
    struct rng r = rng_open(16, "test", "gap");
    for (int k = 0; k < 12; k++) {
        enum { ROUNDS = 1000, N = 20 };
        const double *rate = truth[k / 3];
        double d[N], gap = (rate[0] + rate[2]) / 2 - rate[1];
        int covered = 0;
        for (int round = 0; round < ROUNDS; round++) {
            for (int i = 0; i < N; i++) {
                double luck = rng_unit(&r), value = 0;
                for (int cell = 0; cell < 6; cell++) {
                    double u = rng_unit(&r) < shared[k % 3] ? luck : rng_unit(&r);
                    value += (u < rate[cell % 3]) * (cell % 3 == 1 ? -0.5 : 0.25);
                }
                d[i] = value;
            }
            struct stats_interval x = stats_paired_contrast(d, N, 1.5);
            covered += x.low <= gap + 1e-12 && gap - 1e-12 <= x.high;
        }
        if (covered < ROUNDS * 92 / 100)
            fail_msg("gap %g, shared %g: covered %d of %d", gap, shared[k % 3], covered,
                     (int)ROUNDS);
    }
}

// A rate at three depths, weighted 1/4, 1/2, 1/4. With one trial a repeat Wilson's own coverage at
// 20 repeats and .05 is 92.5 %.
static void shares_interval_covers(void **state) {
    (void)state;
    static const double rates[] = {0.05, 0.5, 0.9, 1}, shared[] = {0, 0.5, 1};
    struct rng r = rng_open(17, "test", "shares");
    for (int k = 0; k < 12; k++) {
        enum { ROUNDS = 1000, N = 20 };
        int covered = 0;
        for (int round = 0; round < ROUNDS; round++) {
            double y[N];
            for (int i = 0; i < N; i++) {
                double luck = rng_unit(&r);
                y[i] = 0;
                for (int j = 0; j < 3; j++) {
                    double u = rng_unit(&r) < shared[k % 3] ? luck : rng_unit(&r);
                    y[i] += (u < rates[k / 3]) * (j == 1 ? 0.5 : 0.25);
                }
            }
            struct stats_interval x = stats_shares(y, N, 1 / 0.375);
            covered += x.low <= rates[k / 3] && rates[k / 3] <= x.high;
        }
        if (covered < ROUNDS * 90 / 100)
            fail_msg("rate %g, shared %g: covered %d of %d", rates[k / 3], shared[k % 3], covered,
                     (int)ROUNDS);
    }
}

static void two_groups(void **state) {
    (void)state;
    struct rng r = rng_open(18, "test", "two");
    static const double truth[][2] = {{0.6, 0.6}, {0.95, 0.7}, {0.05, 0.05}, {0.9, 0.3}};
    for (int k = 0; k < 4; k++) {
        enum { ROUNDS = 800, N = 24, M = 30 };
        int covered = 0, alarms = 0;
        for (int round = 0; round < ROUNDS; round++) {
            double x[N], y[M];
            for (int i = 0; i < N; i++) x[i] = rng_unit(&r) < truth[k][0];
            for (int i = 0; i < M; i++) y[i] = rng_unit(&r) < truth[k][1];
            double p = stats_mean(x, N), q = stats_mean(y, M), apart = truth[k][0] - truth[k][1];
            struct stats_interval i =
                stats_two_difference(p, stats_shares(x, N, 1), q, stats_shares(y, M, 1));
            covered += i.low <= apart + 1e-12 && apart - 1e-12 <= i.high;
            alarms += stats_two(x, N, y, M, 1, "a") <= 0.05;
        }
        if (covered < ROUNDS * 92 / 100) fail_msg("case %d: covered %d", k, covered);
        if (truth[k][0] == truth[k][1] && alarms > ROUNDS * 7 / 100)
            fail_msg("case %d: %d false alarms", k, alarms);
    }
    double one[] = {1, 1, 1}, none[] = {0, 0, 0};
    assert_near(stats_two(one, 3, none, 3, 1, "a"), 0.1, 1e-12, "1 of 20, both ways");
    assert_true(stats_two(one, 0, none, 3, 1, "a") == 1 && stats_two(one, 3, one, 3, 1, "a") == 1);
}

static void effective_length(void **state) {
    (void)state;
    const struct stats_interval i[] = {{0.9, 1}, {0.86, 1}, {0.7, 0.9}, {0.9, 1}, {0.2, 0.4}};
    int shown, possible;
    stats_effective(i, 5, 0.85, &shown, &possible);
    assert_true(shown == 2 && possible == 4); // what is shown beyond a gap does not count
    stats_effective(i, 5, 0.95, &shown, &possible);
    assert_true(shown == 0 && possible == 2);
    stats_effective(i, 5, 0.1, &shown, &possible);
    assert_true(shown == 5 && possible == 5);
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
                                      {0.95, 0.9, 0},  {1, 0, 0},       {0.15, 0.05, 0.95}};
    struct rng r = rng_open(6, "test", "paired");
    for (size_t k = 0; k < sizeof truth / sizeof *truth; k++) {
        for (int n = 20; n <= 60; n += 20) {
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

static void places_test_and_range(void **state) {
    (void)state;
    struct rng r = rng_open(8, "test", "places");
    enum { ROUNDS = 100, N = 20, K = 5 };
    int alarms = 0, found = 0, covered = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double values[N * K];
        for (int q = 0; q < N * K; q++) values[q] = rng_unit(&r) < 0.7;
        alarms += stats_places(values, N, K, 1, "a") <= 0.05;
        struct stats_interval range = stats_places_range(values, N, K);
        covered += range.low == 0;
        for (int q = 0; q < N * K; q++) values[q] = rng_unit(&r) < (q % K == 2 ? 0.3 : 0.9);
        found += stats_places(values, N, K, 1, "a") <= 0.05;
        range = stats_places_range(values, N, K);
        covered += range.low <= 0.6 && 0.6 <= range.high;
    }
    assert_in_range(alarms, 0, ROUNDS * 12 / 100);
    assert_in_range(found, ROUNDS * 95 / 100, ROUNDS);
    assert_in_range(covered, 2 * ROUNDS * 95 / 100, 2 * ROUNDS);
    double alike[6] = {1, 1, 1, 0, 0, 0};
    assert_true(stats_places(alike, 2, 3, 1, "a") == 1 && stats_cochran_q(alike, 2, 3) == 0);
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
        cmocka_unit_test(agreement_beyond_chance),
        cmocka_unit_test(equals_scipy_and_statsmodels),
        cmocka_unit_test(published_numbers),
        cmocka_unit_test(sign_flip_kinds_agree),
        cmocka_unit_test(tests_hold_their_level_and_find_effects),
        cmocka_unit_test(paired_interval_covers),
        cmocka_unit_test(clustered_interval_covers),
        cmocka_unit_test(clustered_interval_shape),
        cmocka_unit_test(gap_interval_covers),
        cmocka_unit_test(shares_interval_covers),
        cmocka_unit_test(two_groups),
        cmocka_unit_test(effective_length),
        cmocka_unit_test(places_test_and_range),
        cmocka_unit_test(planning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

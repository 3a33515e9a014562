// The statistics on drawn runs with known rates: the short, seeded form of
// tests/simulation/study_statistics.c. Bounds leave three standard errors for the smaller number
// of runs.
#include "tests/support/study.h"
#include "tests/support/support.h"

#include "evals/stats.h"

#include <math.h>

// Three standard errors of a share around `rate`, in points.
static double slack(double rate, int runs) {
    return 300 * sqrt(rate * (1 - rate) / runs);
}

static double percent(int count, int runs) {
    return 100.0 * count / runs;
}

static void wilson_covers(void **state) {
    (void)state;
    for (int n = 20; n <= 60; n += 20) {
        double sum = 0;
        for (int k = 0; k <= 90; k++) {
            double covered = study_wilson(n, 0.05 + 0.01 * k);
            assert_true(covered > 0.9);
            sum += covered;
        }
        assert_true(sum / 91 > 0.94 && sum / 91 < 0.96);
    }
}

// Whatever the true rate, each exact bound is on its wrong side in at most 2.5 % of runs, and the
// short ways to ask agree with the bounds.
static void exact_bounds_keep_their_level(void **state) {
    (void)state;
    for (int n = 1; n <= 45; n += 4) {
        struct stats_interval bounds[46];
        for (int k = 0; k <= n; k++) bounds[k] = stats_exact(k, n);
        for (int step = 1; step < 100; step++) {
            double rate = step / 100.0, above = 0, below = 0;
            for (int k = 0; k <= n; k++) {
                if (bounds[k].low >= rate) above += stats_binomial(n, k, rate);
                if (bounds[k].high <= rate) below += stats_binomial(n, k, rate);
                if (fabs(bounds[k].low - rate) > 1e-9)
                    assert_int_equal(stats_exact_above(k, n, rate), bounds[k].low >= rate);
                if (fabs(bounds[k].high - rate) > 1e-9)
                    assert_int_equal(stats_exact_below(k, n, rate), bounds[k].high <= rate);
            }
            assert_true(above <= 0.025 + 1e-9 && below <= 0.025 + 1e-9);
        }
    }
    // An effective number that is not whole never gives a narrower interval.
    struct stats_interval some = stats_exact(7.5, 10.5), whole = stats_exact(8, 10);
    assert_true(some.low <= stats_exact(7, 10).low + 1e-9 && some.high >= whole.high - 1e-9);
}

static void intervals_cover(void **state) {
    (void)state;
    static const struct study_design designs[] = {
        {{0.05, 0.05, 0.05}, 20, 1, 0, 0},     {{0.5, 0.2, 0.5}, 20, 1, 0.8, 0},
        {{0.95, 0.5, 0.95}, 20, 3, 0.4, 0.3},  {{0.8, 0.8, 0.05}, 40, 1, 0.4, 0},
        {{0.95, 0.05, 0.95}, 40, 3, 0.8, 0.3},
    };
    enum { RUNS = 1500 };
    for (size_t i = 0; i < sizeof designs / sizeof *designs; i++) {
        struct study_counts c;
        study_run(&designs[i], RUNS, 100 + i, STUDY_INTERVALS, &c);
        assert_true(percent(c.cell_held, RUNS) > 90 - slack(0.9, RUNS));
        assert_true(percent(c.pair_held, RUNS) > 93 - slack(0.93, RUNS));
        assert_true(percent(c.gap_held, RUNS) > 93 - slack(0.93, RUNS));
    }
}

static void equal_places_raise_no_alarm(void **state) {
    (void)state;
    static const double rates[] = {0.1, 0.5, 0.9};
    enum { RUNS = 300 };
    for (int i = 0; i < 3; i++) {
        struct study_design d = {{rates[i], rates[i], rates[i]}, 20, 1 + 2 * (i == 1), 0.3, 0};
        struct study_counts c;
        study_run(&d, RUNS, 200 + (uint64_t)i, STUDY_PLACES, &c);
        double most = 5 + slack(0.05, RUNS);
        assert_true(percent(c.pair_found, RUNS) < most && percent(c.gap_found, RUNS) < most);
        assert_true(percent(c.places_found, RUNS) < most);
        assert_true(c.pair_claimed <= c.pair_found && c.gap_claimed <= c.gap_found);
    }
}

static void power_is_as_forecast(void **state) {
    (void)state;
    static const struct study_design designs[] = {{{0.9, 0.6, 0.5}, 20, 1, 0, 0},
                                                  {{0.9, 0.6, 0.5}, 40, 1, 0, 0},
                                                  {{0.7, 0.5, 0.5}, 100, 1, 0, 0},
                                                  {{0.8, 0.6, 0.5}, 40, 1, 0.5, 0}};
    enum { RUNS = 2500 };
    for (size_t i = 0; i < sizeof designs / sizeof *designs; i++) {
        const struct study_design *d = &designs[i];
        struct study_counts c;
        study_run(d, RUNS, 300 + i, STUDY_TESTS, &c);
        double power = stats_power(d->repeats, d->rates[0] - d->rates[1], study_discordant(d));
        assert_true(fabs(percent(c.pair_found, RUNS) - 100 * power) < slack(power, RUNS));
    }
}

static void reports_and_gates_keep_their_word(void **state) {
    (void)state;
    enum { RUNS = 150 };
    struct study_reports c;
    study_reports(0.6, 0.6, 20, 0, RUNS, 400, &c);
    double most = 5 + slack(0.05, RUNS);
    assert_true(percent(c.claims, RUNS) < most && percent(c.exploratory, RUNS) < most);
    assert_true(percent(c.passed + c.failed, RUNS) < most);
    study_reports(0.8, 0.6, 20, 0, RUNS, 401, &c);
    assert_true(fabs(percent(c.passed, RUNS) - 100 * c.forecast) < slack(c.forecast, RUNS));
}

static void gates_on_differences_keep_their_word(void **state) {
    (void)state;
    enum { RUNS = 150 };
    static const struct study_gate gates[] = {{"lift", 0.8, 0.8, 0.1, 0, 20, 0.3},
                                              {"middle_gap", 0.9, 0.6, 0, 0, 20, 0.3},
                                              {"regression", 0.7, 0.7, 0, 0.9, 20, 0.3}};
    for (int i = 0; i < 3; i++) {
        struct study_verdicts v;
        study_gates(&gates[i], RUNS, 450 + (uint64_t)i, &v);
        assert_true(percent(v.passed + v.failed, RUNS) < 5 + slack(0.05, RUNS));
    }
}

static void comparisons_keep_their_word(void **state) {
    (void)state;
    enum { RUNS = 150 };
    struct study_comparisons c;
    study_comparisons(0.8, 0.8, 20, 0.3, RUNS, 500, &c);
    assert_true(percent(c.any_regressed, RUNS) < 5 + slack(0.05, RUNS));
    study_comparisons(0.9, 0.5, 30, 0.3, RUNS, 501, &c);
    assert_true(percent(c.regressed, RUNS) > 90);
    assert_int_equal(c.improved, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wilson_covers),
        cmocka_unit_test(exact_bounds_keep_their_level),
        cmocka_unit_test(intervals_cover),
        cmocka_unit_test(equal_places_raise_no_alarm),
        cmocka_unit_test(power_is_as_forecast),
        cmocka_unit_test(reports_and_gates_keep_their_word),
        cmocka_unit_test(gates_on_differences_keep_their_word),
        cmocka_unit_test(comparisons_keep_their_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

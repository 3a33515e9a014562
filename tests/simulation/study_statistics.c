// The simulation study: does each statistic hold what it promises? Prints Markdown; the exit code
// is 1 where a bar is missed. Takes minutes: not part of ctest, whose short form is
// tests/evals/test_study.c.
//
//     cmake --build build/release --target study_statistics
//     build/release/study_statistics > reports/baselines/simulation.md
//
// A number of runs and one section may be given (study_statistics 10000 power); with fewer than
// 10,000 runs the bars are within the noise.
#include "tests/support/study.h"

#include "evals/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED 20240229

static int missed; // bars
static int runs = 10000;

static void bar(const char *what, bool kept) {
    printf("| %s | %s |\n", what, kept ? "kept" : "**missed**");
    missed += !kept;
}

static const double rates[] = {0.05, 0.2, 0.5, 0.8, 0.95};
enum { RATES = sizeof rates / sizeof *rates };

static double percent(int count) {
    return 100.0 * count / runs;
}

static uint64_t seed; // of the next design

static uint64_t next_seed(void) {
    return seed++;
}

static void study_of_wilson(void) {
    printf("\n## Wilson's interval\n\nExact coverage (no draws), rates .05 to .95 in steps of "
           ".005.\n\n"
           "| n | mean | least |\n|---|---|---|\n");
    static const int sizes[] = {20, 30, 50, 100, 200, 500};
    double least_of_all = 1, mean_low = 1, mean_high = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double sum = 0, least = 1;
        for (int k = 0; k <= 180; k++) {
            double covered = study_wilson(sizes[i], 0.05 + 0.005 * k);
            sum += covered;
            least = fmin(least, covered);
        }
        printf("| %d | %.1f %% | %.1f %% |\n", sizes[i], 100 * sum / 181, 100 * least);
        mean_low = fmin(mean_low, sum / 181);
        mean_high = fmax(mean_high, sum / 181);
        least_of_all = fmin(least_of_all, least);
    }
    printf("\n| bar | |\n|---|---|\n");
    bar("mean coverage 94 to 96 %", mean_low >= 0.94 && mean_high <= 0.96);
    bar("never below 90 %", least_of_all >= 0.9);
}

// Coverage over all designs with these repeats, samples and agreement.
struct spread {
    double sum, least;
    int count;
};
static void spread_add(struct spread *s, int held) {
    double value = percent(held);
    s->least = s->count == 0 ? value : fmin(s->least, value);
    s->sum += value;
    s->count++;
}

enum { OF_RATE, OF_PAIR, OF_GAP, OF_AREA, OF_TWO, INTERVALS };
static const struct {
    const char *name;
    double least; // the bar
} intervals[INTERVALS] = {
    {"rate", 90}, {"start - middle", 93}, {"middle gap", 93}, {"area", 93}, {"two groups", 93}};

static void cover(int repeats, int samples, double agreement, struct spread spreads[INTERVALS]) {
    for (int a = 0; a < RATES; a++)
        for (int b = 0; b < RATES; b++)
            for (int c = a; c < RATES; c += 2) {
                struct study_design d = {.rates = {rates[a], rates[b], rates[c]},
                                         .repeats = repeats,
                                         .samples = samples,
                                         .agreement = agreement,
                                         .prompt_agreement = samples > 1 ? 0.3 : 0};
                struct study_counts counts;
                study_run(&d, runs, next_seed(), STUDY_INTERVALS, &counts);
                spread_add(&spreads[OF_RATE], counts.cell_held);
                spread_add(&spreads[OF_PAIR], counts.pair_held);
                spread_add(&spreads[OF_GAP], counts.gap_held);
                spread_add(&spreads[OF_AREA], counts.area_held);
                spread_add(&spreads[OF_TWO], counts.two_held);
            }
}

static void study_of_intervals(void) {
    printf("\n## Intervals of rates and of differences\n\n"
           "%d runs each, over rates .05, .2, .5, .8, .95 of start, middle and end. Agreement: the "
           "correlation of a repeat's trials. Mean coverage, and the least of all rates.\n\n"
           "| repeats | samples | agreement |",
           runs);
    for (int k = 0; k < INTERVALS; k++) printf(" %s |", intervals[k].name);
    printf("\n|---|---|---|");
    for (int k = 0; k < INTERVALS; k++) printf("---|");
    static const int repeats[] = {20, 40, 100}, samples[] = {1, 3};
    static const double agreements[] = {0, 0.4, 0.8};
    double least[INTERVALS] = {100, 100, 100, 100, 100};
    for (int r = 0; r < 3; r++)
        for (int s = 0; s < 2; s++)
            for (int a = 0; a < 3; a++) {
                struct spread spreads[INTERVALS] = {0};
                cover(repeats[r], samples[s], agreements[a], spreads);
                printf("\n| %d | %d | %.1f |", repeats[r], samples[s], agreements[a]);
                for (int k = 0; k < INTERVALS; k++) {
                    printf(" %.1f (%.1f) |", spreads[k].sum / spreads[k].count, spreads[k].least);
                    least[k] = fmin(least[k], spreads[k].least);
                }
                fflush(stdout);
            }
    printf("\n\n| bar | |\n|---|---|\n");
    for (int k = 0; k < INTERVALS; k++) {
        char text[80];
        snprintf(text, sizeof text, "%s: never below %.0f %%", intervals[k].name,
                 intervals[k].least);
        bar(text, least[k] >= intervals[k].least);
    }
}

enum { FINDINGS = 6 };

static void study_of_false_alarms(void) {
    printf(
        "\n## False alarms of the tests\n\nNothing differs; %d runs each; the largest share over "
        "the rates .05, .2, .5, .8, .95 that is found at 5 %%. Claimed: the test finds it and the "
        "interval agrees, as a report asks for.\n\n"
        "| repeats | samples | agreement | difference | claimed | middle gap | claimed | places "
        "alike | two groups |\n|---|---|---|---|---|---|---|---|---|\n",
        runs);
    static const struct {
        int repeats, samples;
        double agreement;
    } designs[] = {{12, 1, 0}, {20, 1, 0}, {20, 1, 0.4}, {20, 3, 0.4}, {50, 1, 0}};
    double most = 0;
    for (size_t i = 0; i < sizeof designs / sizeof *designs; i++) {
        double found[FINDINGS] = {0};
        for (int a = 0; a < RATES; a++) {
            struct study_design d = {.rates = {rates[a], rates[a], rates[a]},
                                     .repeats = designs[i].repeats,
                                     .samples = designs[i].samples,
                                     .agreement = designs[i].agreement};
            struct study_counts c;
            study_run(&d, runs, next_seed(), STUDY_PLACES, &c);
            const int counts[FINDINGS] = {c.pair_found,  c.pair_claimed, c.gap_found,
                                          c.gap_claimed, c.places_found, c.two_found};
            for (int k = 0; k < FINDINGS; k++) found[k] = fmax(found[k], percent(counts[k]));
        }
        printf("| %d | %d | %.1f |", designs[i].repeats, designs[i].samples, designs[i].agreement);
        for (int k = 0; k < FINDINGS; k++) {
            printf(" %.1f %% |", found[k]);
            most = fmax(most, found[k]);
        }
        printf("\n");
        fflush(stdout);
    }
    printf("\n| bar | |\n|---|---|\n");
    bar("at most 5.5 %", most <= 5.5);
}

static void study_of_power(void) {
    printf("\n## Power, as forecast\n\nOne sample, start against middle, %d runs each: what "
           "`stats_power` forecasts, and the share found.\n\n"
           "| repeats | start | middle | forecast | found | claimed |\n|---|---|---|---|---|---|\n",
           runs);
    static const int repeats[] = {12, 20, 40, 100};
    static const double pairs[][2] = {{0.9, 0.6}, {0.7, 0.5}, {0.95, 0.45}, {0.3, 0.2}};
    double most = 0;
    for (int r = 0; r < 4; r++)
        for (int k = 0; k < 4; k++) {
            struct study_design d = {
                .rates = {pairs[k][0], pairs[k][1], 0.5}, .repeats = repeats[r], .samples = 1};
            struct study_counts c;
            study_run(&d, runs, next_seed(), STUDY_TESTS, &c);
            double forecast =
                100 * stats_power(repeats[r], pairs[k][0] - pairs[k][1], study_discordant(&d));
            printf("| %d | %.2f | %.2f | %.1f %% | %.1f %% | %.1f %% |\n", repeats[r], pairs[k][0],
                   pairs[k][1], forecast, percent(c.pair_found), percent(c.pair_claimed));
            most = fmax(most, fabs(forecast - percent(c.pair_found)));
        }
    printf("\nThe smallest difference that `lacuna plan` says is found in 80 %% of runs (two "
           "independent cells around one half):\n\n"
           "| repeats | difference | found | claimed |\n|---|---|---|---|\n");
    for (int r = 0; r < 4; r++) {
        double difference = stats_detectable(repeats[r], false);
        struct study_design d = {.rates = {(1 + difference) / 2, (1 - difference) / 2, 0.5},
                                 .repeats = repeats[r],
                                 .samples = 1};
        struct study_counts c;
        study_run(&d, runs, next_seed(), STUDY_TESTS, &c);
        printf("| %d | %.3f | %.1f %% | %.1f %% |\n", repeats[r], difference, percent(c.pair_found),
               percent(c.pair_claimed));
        most = fmax(most, fabs(80 - percent(c.pair_found)));
    }
    printf("\n| bar | |\n|---|---|\n");
    bar("found within 2 points of the forecast", most <= 2);
}

// Exact: no draws.
static void study_of_bounds(void) {
    printf(
        "\n## Gates on rates\n\nOne trial a repeat, the true rate is the gate's own bound, .05 to "
        ".95 in steps of .005: the largest share of runs, computed exactly, in which the gate "
        "fails "
        "(or passes); and what it would be if Wilson's bounds decided.\n\n"
        "| repeats | wrong | by Wilson's bounds |\n|---|---|---|\n");
    static const int sizes[] = {10, 20, 30, 50, 100, 200};
    double most = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int n = sizes[i];
        double exact = 0, wilson = 0;
        for (int step = 0; step <= 180; step++) {
            double rate = 0.05 + 0.005 * step, sums[4] = {0};
            for (int k = 0; k <= n; k++) {
                double chance = stats_binomial(n, k, rate);
                struct stats_interval w = stats_wilson(k, n);
                sums[0] += stats_exact_above(k, n, rate) ? chance : 0;
                sums[1] += stats_exact_below(k, n, rate) ? chance : 0;
                sums[2] += w.low >= rate ? chance : 0;
                sums[3] += w.high <= rate ? chance : 0;
            }
            exact = fmax(exact, fmax(sums[0], sums[1]));
            wilson = fmax(wilson, fmax(sums[2], sums[3]));
        }
        printf("| %d | %.2f %% | %.2f %% |\n", n, 100 * exact, 100 * wilson);
        most = fmax(most, exact);
    }
    printf("\n| bar | |\n|---|---|\n");
    bar("at most 2.5 %", most <= 0.025 + 1e-9);
}

static void study_of_reports(void) {
    printf(
        "\n## Reports and gates\n\nWhole reports, three places with one rate, %d runs each: share "
        "with a false primary claim, with any false exploratory claim, and what the gate `at "
        "least` says.\n\n"
        "| repeats | agreement | rate | gate | primary | exploratory | passed | forecast | failed "
        "|\n|---|---|---|---|---|---|---|---|---|\n",
        runs);
    static const struct {
        int repeats;
        double agreement, rate, gate;
        bool forecast; // the rate is the one that `plan` speaks of
    } designs[] = {{20, 0, 0.6, 0.6, false},
                   {20, 0.4, 0.8, 0.8, false},
                   {50, 0, 0.6, 0.6, false},
                   {20, 0, 0.8, 0.6, true},
                   {50, 0, 0.8, 0.6, true}};
    double claims = 0, gates = 0, off = 0;
    for (size_t i = 0; i < sizeof designs / sizeof *designs; i++) {
        struct study_reports c;
        study_reports(designs[i].rate, designs[i].gate, designs[i].repeats, designs[i].agreement,
                      runs, next_seed(), &c);
        double passed = percent(c.passed), failed = percent(c.failed);
        char forecast[32] = "";
        if (designs[i].forecast) snprintf(forecast, sizeof forecast, "%.1f %%", 100 * c.forecast);
        printf("| %d | %.1f | %.2f | %.2f | %.1f %% | %.1f %% | %.1f %% | %s | %.1f %% |\n",
               designs[i].repeats, designs[i].agreement, designs[i].rate, designs[i].gate,
               percent(c.claims), percent(c.exploratory), passed, forecast, failed);
        fflush(stdout);
        claims = fmax(claims, fmax(percent(c.claims), percent(c.exploratory)));
        if (designs[i].forecast)
            off = fmax(off, fabs(100 * c.forecast - passed));
        else
            gates = fmax(gates, passed + failed);
    }
    printf(
        "\nA gate is judged on a 95 %% interval, so at a true rate that is the gate's own, it says "
        "something in at most 5 %% of runs.\n\n| bar | |\n|---|---|\n");
    bar("false claims in at most 5.5 % of reports", claims <= 5.5);
    bar("a gate is wrong in at most 5.5 % of runs", gates <= 5.5);
    bar("a gate passes within 2 points of the forecast", off <= 2);
}

static void study_of_gates(void) {
    printf(
        "\n## Gates on differences\n\nThe truth is the gate's own bound, %d runs each.\n\n"
        "| metric | bound | repeats | agreement | passed | failed |\n|---|---|---|---|---|---|\n",
        runs);
    static const struct study_gate designs[] = {
        {"lift", 0.8, 0.8, 0.1, 0, 20, 0},          {"lift", 0.9, 0.6, 0.3, 0, 40, 0.4},
        {"middle_gap", 0.9, 0.7, 0, 0, 20, 0},      {"middle_gap", 0.95, 0.95, 0, 0, 20, 0},
        {"middle_gap", 0.9, 0.5, 0, 0, 40, 0.4},    {"regression", 0.8, 0.8, 0, 0.9, 20, 0},
        {"regression", 0.9, 0.9, 0, 0.95, 40, 0.4}, {"regression", 0.8, 0.8, 0, 0.9, 40, 0}};
    double most = 0;
    for (size_t i = 0; i < sizeof designs / sizeof *designs; i++) {
        const struct study_gate *g = &designs[i];
        struct study_verdicts v;
        study_gates(g, runs, next_seed(), &v);
        printf("| %s | %.2f | %d | %.1f | %.1f %% | %.1f %% |\n", g->metric, study_gate_truth(g),
               g->repeats, g->agreement, percent(v.passed), percent(v.failed));
        fflush(stdout);
        most = fmax(most, percent(v.passed + v.failed));
    }
    printf("\n| bar | |\n|---|---|\n");
    bar("a gate is wrong in at most 5.5 % of runs", most <= 5.5);
}

static void study_of_comparisons(void) {
    printf("\n## Comparisons\n\nTwo runs of three places, %d comparisons each: the overall answer, "
           "and whether any row says `regressed`.\n\n"
           "| repeats | agreement | before | now | regressed | improved | any row regressed "
           "|\n|---|---|---|---|---|---|---|\n",
           runs);
    static const struct {
        int repeats;
        double agreement, before, now;
    } designs[] = {{20, 0, 0.7, 0.7}, {20, 0.4, 0.9, 0.9}, {20, 0, 0.8, 0.6}, {40, 0.4, 0.9, 0.8}};
    double most = 0;
    for (size_t i = 0; i < sizeof designs / sizeof *designs; i++) {
        struct study_comparisons c;
        study_comparisons(designs[i].before, designs[i].now, designs[i].repeats,
                          designs[i].agreement, runs, next_seed(), &c);
        printf("| %d | %.1f | %.2f | %.2f | %.1f %% | %.1f %% | %.1f %% |\n", designs[i].repeats,
               designs[i].agreement, designs[i].before, designs[i].now, percent(c.regressed),
               percent(c.improved), percent(c.any_regressed));
        fflush(stdout);
        if (designs[i].before == designs[i].now) most = fmax(most, percent(c.any_regressed));
    }
    printf("\n| bar | |\n|---|---|\n");
    bar("with nothing changed at most 5.5 % say `regressed`", most <= 5.5);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*study)(void);
        uint64_t seeds; // the first one, from SEED
    } sections[] = {
        {"wilson", study_of_wilson, 0},          {"intervals", study_of_intervals, 0},
        {"alarms", study_of_false_alarms, 1350}, {"power", study_of_power, 2000},
        {"bounds", study_of_bounds, 0},          {"reports", study_of_reports, 3000},
        {"gates", study_of_gates, 4000},         {"comparisons", study_of_comparisons, 5000}};
    if (argc > 1) runs = (int)strtol(argv[1], NULL, 10);
    if (argc < 3)
        printf(
            "# Simulation study of the statistics\n\n"
            "Made by `build/release/study_statistics` (seed %d): known rates, drawn runs, and how "
            "often each interval, test, gate and comparison keeps its word.\n",
            SEED);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        seed = SEED + sections[i].seeds;
        if (argc < 3 || strcmp(argv[2], sections[i].name) == 0) sections[i].study();
    }
    return missed > 0;
}

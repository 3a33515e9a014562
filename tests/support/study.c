#include "tests/support/study.h"

#include "engine/base/arena.h"
#include "evals/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void study_draw(const struct study_design *d, struct rng *r, double *values) {
    double shared = sqrt(d->agreement), shared_cell = sqrt(d->prompt_agreement);
    for (int repeat = 0; repeat < d->repeats; repeat++) {
        double of_repeat = rng_unit(r);
        for (int cell = 0; cell < STUDY_CELLS; cell++) {
            double of_cell = rng_unit(r);
            int met = 0;
            for (int k = 0; k < d->samples; k++) {
                double u = rng_unit(r) < shared        ? of_repeat
                           : rng_unit(r) < shared_cell ? of_cell
                                                       : rng_unit(r);
                met += u < d->rates[cell];
            }
            values[repeat * STUDY_CELLS + cell] = (double)met / d->samples;
        }
    }
}

static bool holds(struct stats_interval i, double truth) {
    return i.low <= truth + 1e-12 && i.high >= truth - 1e-12;
}

static bool beyond_zero(struct stats_interval i) {
    return i.low > 0 || i.high < 0;
}

static void count_cell(const struct study_design *d, const double *values,
                       struct stats_cluster *clusters, struct study_counts *out) {
    for (int i = 0; i < d->repeats; i++)
        clusters[i] =
            (struct stats_cluster){(int)lround(values[i * STUDY_CELLS] * d->samples), d->samples};
    out->cell_held += holds(stats_clustered(clusters, d->repeats), d->rates[0]);
}

static void count_contrast(const double *values, int n, const double *weights, double truth,
                           double *differences, uint64_t seed, bool test, int counts[3]) {
    double squares = 0;
    for (int c = 0; c < STUDY_CELLS; c++) squares += weights[c] * weights[c];
    for (int i = 0; i < n; i++) {
        differences[i] = 0;
        for (int c = 0; c < STUDY_CELLS; c++)
            differences[i] += weights[c] * values[i * STUDY_CELLS + c];
    }
    struct stats_interval interval = stats_paired_contrast(differences, n, squares);
    int nonzero;
    bool found = test && stats_sign_flip(differences, n, seed, "study", &nonzero) < 0.05;
    counts[0] += holds(interval, truth);
    counts[1] += found;
    counts[2] += found && beyond_zero(interval);
}

// Start, middle and end at depths 0, 50 and 100.
static bool area_holds(const struct study_design *d, const double *values, double *areas) {
    static const int32_t depths[STUDY_CELLS] = {0, 50, 100};
    double weights[STUDY_CELLS], truth = 0;
    stats_area_weights(depths, STUDY_CELLS, weights);
    for (int c = 0; c < STUDY_CELLS; c++) truth += weights[c] * d->rates[c];
    for (int i = 0; i < d->repeats; i++) {
        areas[i] = 0;
        for (int c = 0; c < STUDY_CELLS; c++) areas[i] += weights[c] * values[i * STUDY_CELLS + c];
    }
    return holds(stats_shares(areas, d->repeats, STUDY_CELLS * d->samples), truth);
}

// Another run's first cell, with other repeats.
static void count_two(const struct study_design *d, const double *values, const double *other,
                      bool test, uint64_t seed, struct study_counts *out) {
    double *x = calloc(2 * (size_t)d->repeats, sizeof *x), *y = x + d->repeats;
    if (x == NULL) mem_exhausted("a study", 2 * (size_t)d->repeats * sizeof *x);
    for (int i = 0; i < d->repeats; i++) {
        x[i] = values[i * STUDY_CELLS];
        y[i] = other[i * STUDY_CELLS];
    }
    struct stats_interval interval =
        stats_two_difference(stats_mean(x, d->repeats), stats_shares(x, d->repeats, d->samples),
                             stats_mean(y, d->repeats), stats_shares(y, d->repeats, d->samples));
    out->two_held += holds(interval, 0);
    if (test) out->two_found += stats_two(x, d->repeats, y, d->repeats, seed, "study") < 0.05;
    free(x);
}

void study_run(const struct study_design *d, int runs, uint64_t seed, enum study_depth depth,
               struct study_counts *out) {
    static const double pair[STUDY_CELLS] = {1, -1, 0}, gap[STUDY_CELLS] = {0.5, -1, 0.5};
    size_t n = (size_t)d->repeats;
    double *values = calloc(n * STUDY_CELLS, sizeof *values);
    double *other = calloc(n * STUDY_CELLS, sizeof *other);
    double *differences = calloc(n, sizeof *differences);
    struct stats_cluster *clusters = calloc(n, sizeof *clusters);
    if (values == NULL || other == NULL || differences == NULL || clusters == NULL)
        mem_exhausted("a study", n * STUDY_CELLS * sizeof *values);
    struct rng r = rng_open(seed, "study", "verdicts");
    int of_pair[3] = {0}, of_gap[3] = {0};
    *out = (struct study_counts){.runs = runs};
    for (int i = 0; i < runs; i++) {
        uint64_t draws = rng_u64(&r);
        study_draw(d, &r, values);
        study_draw(d, &r, other);
        count_cell(d, values, clusters, out);
        count_two(d, values, other, depth >= STUDY_TESTS, draws, out);
        out->area_held += area_holds(d, values, differences);
        count_contrast(values, d->repeats, pair, d->rates[0] - d->rates[1], differences, draws,
                       depth >= STUDY_TESTS, of_pair);
        count_contrast(values, d->repeats, gap, (d->rates[0] + d->rates[2]) / 2 - d->rates[1],
                       differences, draws, depth >= STUDY_TESTS, of_gap);
        if (depth >= STUDY_PLACES)
            out->places_found +=
                stats_places(values, d->repeats, STUDY_CELLS, draws, "study") < 0.05;
    }
    out->pair_held = of_pair[0];
    out->pair_found = of_pair[1];
    out->pair_claimed = of_pair[2];
    out->gap_held = of_gap[0];
    out->gap_found = of_gap[1];
    out->gap_claimed = of_gap[2];
    free(values);
    free(other);
    free(differences);
    free(clusters);
}

double study_wilson(int n, double rate) {
    double covered = 0;
    for (int k = 0; k <= n; k++)
        if (holds(stats_wilson(k, n), rate)) covered += stats_binomial(n, k, rate);
    return covered;
}

double study_discordant(const struct study_design *d) {
    double a = d->rates[0], b = d->rates[1];
    return d->agreement * fabs(a - b) + (1 - d->agreement) * (a * (1 - b) + b * (1 - a));
}

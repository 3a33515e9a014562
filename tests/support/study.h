// Simulation studies of the statistics: runs are drawn with known rates, and what is counted is how
// often an interval holds the truth and how often a test finds a difference. The long study
// (tests/simulation) and the short one in the test suite use the same functions.
#ifndef LACUNA_TESTS_STUDY_H
#define LACUNA_TESTS_STUDY_H

#include "engine/base/rng.h"
#include "evals/stats_base.h"

#include <stdbool.h>

#define STUDY_CELLS 3 // start, middle, end

struct study_design {
    double rates[STUDY_CELLS];
    int repeats, samples;
    double agreement;        // correlation of two trials of a repeat that have equal rates
    double prompt_agreement; // of two samples of one cell, beyond that
};

struct study_counts {
    int runs;
    int cell_held; // the clustered interval of the first cell holds its rate
    int pair_held; // that of start - middle holds the true difference
    int gap_held;  // that of the middle gap
    int area_held; // that of the area over depth
    int two_held;  // that of the first cell's difference to the same cell of another, unpaired run
    // p < 5 %, and p < 5 % with an interval beyond 0, which is when a report claims a difference
    int pair_found, pair_claimed, gap_found, gap_claimed;
    int places_found, two_found;
};

// As a simulated subject draws them (engine/provider_simulated.h): the shared draw of the repeat,
// or of the cell, or the trial's own. values[repeat * STUDY_CELLS + cell]: mean over the samples.
void study_draw(const struct study_design *d, struct rng *r, double *values);
// The more is counted, the longer it takes; with intervals alone nothing is `found`.
enum study_depth { STUDY_INTERVALS, STUDY_TESTS, STUDY_PLACES };
void study_run(const struct study_design *d, int runs, uint64_t seed, enum study_depth depth,
               struct study_counts *out);

// Exact coverage of Wilson's interval for n trials at a rate.
double study_wilson(int n, double rate);
// The chance that two cells of one repeat differ: what stats_power calls discordant.
double study_discordant(const struct study_design *d);

// Simulated runs through the whole report (evals/summarize.h): every place has the same rate.
struct study_reports {
    int runs, claims;   // runs with a primary contrast that claims a difference
    int exploratory;    // runs with any exploratory claim
    int passed, failed; // the gate "at least `gate`"
    double forecast;    // the share that passes, as `lacuna plan` says it for its healthy rate
};
void study_reports(double rate, double gate, int repeats, double agreement, int runs, uint64_t seed,
                   struct study_reports *out);

// Gates on differences, at rates where the truth is the gate's own bound.
struct study_gate {
    const char *metric; // "lift" (at least), "middle_gap", "regression" (at most)
    double ends, middle, absent;
    double before; // regression: of every placed trial of the baseline
    int repeats;
    double agreement;
};
struct study_verdicts {
    int runs, passed, failed;
};
double study_gate_truth(const struct study_gate *g);
void study_gates(const struct study_gate *g, int runs, uint64_t seed, struct study_verdicts *out);

// Comparisons of two simulated runs (evals/compare.h).
struct study_comparisons {
    int runs, regressed, improved; // the overall answer
    int any_regressed;             // some row says so
};
void study_comparisons(double before, double now, int repeats, double agreement, int runs,
                       uint64_t seed, struct study_comparisons *out);

#endif

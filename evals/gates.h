// Gates: what a run must reach to pass (exit code 100 when it does not), judged on the bounds of
// the interval and never on the rate alone.
//
// What is judged (`metric`) is taken over the trials that `where` names: the rate of met or of
// violated trials; the lift (placed minus absent, per repeat); the middle gap; the drop against a
// baseline (paired, per repeat); or the number of replies that are not the baseline's, which is
// exact. A dimension (model, length, placement, depth) that `where` leaves open is pooled when the
// gate pools it; otherwise the gate holds for each of its values and becomes one judgement each.
// `at_least` passes when the lower bound reaches it and fails when the upper bound stays below it;
// between them it cannot decide. `at_most` likewise. Rates are judged on exact bounds
// (evals/stats_exact.h): where the true rate is the gate's own, it passes in at most 2.5 % of runs,
// and fails in at most 2.5 %. Differences are judged on the intervals of contrasts: there the two
// together are at most about 5 % (tests/simulation).
#ifndef LACUNA_EVALS_GATES_H
#define LACUNA_EVALS_GATES_H

#include "evals/experiment.h"
#include "reports/record.h"
#include "reports/summary.h"

// One judgement of a gate on a plan, before anything has run.
struct gate_outlook {
    const char *id;   // of the gate, with the open dimensions' values where there are several
    const char *text; // the gate in words: "order: met rate at least 0.6 at depth middle"
    int trials, repeats;
    bool possible;           // passes when every (at_most: no) trial is met
    double healthy_rate;     // "nothing is wrong": half-way between the gate and the perfect rate
    double pass_probability; // at healthy_rate; at worst, where the trials of a repeat all agree
    double sure_from;        // the true rate from which it passes in 80 of 100 runs, likewise
    const char *why;         // a sentence for `lacuna plan`
};

struct design_outlook {
    struct gate_outlook *gates;
    int gate_count;
    // The smallest difference of two places' rates that the paired test (5 %) finds in 80 of 100
    // runs: at best (repeats change in one direction only), and where the two cells are independent
    // around one half. Above 1: no difference can be found with so few repeats.
    int repeats;
    double detectable_best, detectable;
    int repeats_for_20, repeats_for_10; // needed for 20 and 10 points, independent cells
    const char *sentence;               // all of that in words
};

// From the planned trials alone. A gate that cannot pass on perfect data is ERR_CONFIG naming the
// gate, its trials and the bound they reach; with --only or --limit it is only said in `why`.
int gates_plan(const struct experiment *x, const struct record_trial *trials, int64_t trial_count,
               struct arena *a, struct design_outlook *out, struct err *e);

// Reads the gate's baseline file, which is there, once: ERR_CONFIG when it cannot be used.
int gates_check_baseline(const struct experiment_gate *g, struct err *e);

// What `lacuna compare` judges gates against, in place of their own files.
struct baseline;
struct compare_options;
struct gates_against {
    const struct baseline *baseline;
    const struct compare_options *options; // more allowances
};

// Judges every gate on the record's outcomes; arrays in the arena. An unfinished run decides
// nothing. `against` NULL: each gate's own baseline file. ERR_INPUT for a damaged one.
struct tally;
int gates_judge(struct tally *t, const struct record *r, bool complete,
                const struct gates_against *against, struct arena *a, struct summary_gate **gates,
                int *count, struct err *e);

#endif

// A record in memory of a made-up model whose true rates are known: for tests of summaries, gates
// and whatever reads a record.
#ifndef LACUNA_TESTS_SIMULATED_RUN_H
#define LACUNA_TESTS_SIMULATED_RUN_H

#include "evals/experiment.h"
#include "reports/record.h"

// Two constraints: "order" (state, moved over `places` by the row "order-moves") and "price"
// (forbid, stays at 25 %). One model "toy", arms placed, absent and short.
struct simulated_run {
    struct arena *arena;
    struct experiment x;
    struct experiment_model models[2];
    struct experiment_constraint constraints[2];
    struct experiment_placement rows[2];
    struct place places[5];
    int move[2];
    int lengths[4];
    struct record r;
    // The true rate of "order" in a cell, as a function of what the trial is.
    double (*rate)(const struct record_trial *t);
    // Correlation of two trials of a repeat that have equal rates; what they share is drawn from
    // `luck` and the repeat, so that two runs with the same luck share it too.
    double agreement;
    uint64_t luck;
};

// Fills everything but the trials; change x, then call simulated_plan and simulated_answer.
void simulated_open(struct simulated_run *s, double (*rate)(const struct record_trial *t));
void simulated_close(struct simulated_run *s);
void simulated_plan(struct simulated_run *s);
// Draws an outcome for each trial: order met with its rate or omitted, price always met.
void simulated_answer(struct simulated_run *s, uint64_t seed);
// Overwrites the verdict on constraint number `c` of trial `i`.
struct record_verdict *simulated_verdict(struct simulated_run *s, int64_t i, int c);
// A gate on the met rate of "order" in the middle, lengths pooled: at least `bound`.
struct experiment_gate simulated_gate(double bound);

#endif

// Outcomes laid out by what the experiment varies: the ground that rates, contrasts and gates stand
// on.
#ifndef LACUNA_EVALS_TALLY_H
#define LACUNA_EVALS_TALLY_H

#include "evals/experiment.h"
#include "reports/record.h"
#include "reports/summary.h"

#define TALLY_ANY (-1)
#define TALLY_ALL_CONSTRAINTS (-1) // a trial is met when every constraint is

struct tally_trial {
    const struct record_trial *planned;
    const struct record_outcome *outcome; // NULL: not yet run, or only planned
    int model, length;                    // indices; -1: the arm has none
    int column; // likewise, by the key; what it is for a constraint, tally_column tells
    enum arm arm;
    int repeat;
    int completion; // trials with equal prompt and sampling stream have one number
    // [constraint_count]; NULL unless the status is ok; one is NULL where the row leaves it out
    const struct record_verdict **verdicts;
};

struct tally_column {
    int placement; // index
    struct place place;
    // An order of a scattered row: [constraint] the column of its own place. NULL: not an order.
    const int *of;
};

struct tally {
    const struct experiment *x;
    struct tally_trial *trials;
    int64_t trial_count;
    int *lengths; // in tokens, those that are planned, ascending
    int length_count;
    struct tally_column *columns; // rows in file order, depths ascending, anchors around them
    int column_count;
    int repeats; // highest repeat + 1
    int samples;
    int completion_count;
    int *stamps, stamp; // which completions the current count has seen
};

// `outcomes` as in struct record, or NULL for a plan that has not run. A trial that the experiment
// does not have, or an ok outcome without a constraint's verdict, is ERR_RECORD.
int tally_make(const struct experiment *x, const struct record_trial *trials, int64_t trial_count,
               struct record_outcome *const *outcomes, struct arena *a, struct tally *out,
               struct err *e);

// "49.868", as plan.jsonl spells a depth, in thousandths of a per cent; DEPTH_NONE: not one.
int32_t tally_depth(const char *text);

// Fields of index type are TALLY_ANY for "every". Length and column do not apply to some arms.
struct tally_filter {
    enum arm arm;
    int model, length, column, placement;
    int wording; // of the constraint, from 1; 0: every
    bool has_place;
    struct place place;
};
#define TALLY_EVERYTHING(which)                                                                    \
    ((struct tally_filter){.arm = (which),                                                         \
                           .model = TALLY_ANY,                                                     \
                           .length = TALLY_ANY,                                                    \
                           .column = TALLY_ANY,                                                    \
                           .placement = TALLY_ANY})
// The column in which a trial counts for a constraint: in a scattered row by the place of that
// constraint, and by the order for all constraints and those that stay.
int tally_column(const struct tally *t, const struct tally_trial *trial, int constraint);
// The wording of a constraint in this trial, from 1; 0: it has one only, or does not stand in it.
int tally_wording(const struct tally *t, const struct tally_trial *trial, int constraint);
// Is the constraint judged in this trial? Not where its row leaves it out.
bool tally_holds(const struct tally *t, const struct tally_trial *trial, int constraint);
bool tally_selects(const struct tally *t, const struct tally_trial *trial,
                   const struct tally_filter *f, int constraint);

// Trials with one completion count once: between two calls of tally_begin, tally_once is true for
// the first of them only.
void tally_begin(struct tally *t);
bool tally_once(struct tally *t, const struct tally_trial *trial);

// Met over all ok trials that the filter selects and that hold the constraint, one completion
// counted once; interval clustered by repeat. `planned` counts every trial and takes ok outcomes
// for granted: n and repeats only.
struct summary_rate tally_rate(struct tally *t, const struct tally_filter *f, int constraint);
// The same of violated trials: rate, low and high are theirs.
struct summary_rate tally_violated(struct tally *t, const struct tally_filter *f, int constraint);
struct summary_rate tally_planned(struct tally *t, const struct tally_filter *f, int constraint);

// The verdict on one constraint, or on all that the trial holds: violated before unscored before
// omitted.
enum verdict tally_verdict(const struct tally *t, const struct tally_trial *trial, int constraint);

#endif

// Two runs of one experiment, trial by trial (DESIGN section 7, "compare").
//
// Trials are paired by key (the model aside, where each run has one). First what differs besides
// the replies: each such field needs an allowance by name, because a comparison across another
// template or other checks is about these and not about the model. Then which replies are
// identical. Then paired tests: the datum is the mean over a repeat's pairs of the change of "met",
// tested by sign flips; the interval is that of paired differences. Holm's correction over the
// overall rows, and over all other rows: with nothing changed, at most 5 of 100 comparisons say
// "regressed" (two-sided tests, of which one side is a regression, in two families). Where nothing
// is shown, the interval says whether anything could have been: it must exclude changes of the
// margin, else the answer is "underpowered". Power from a formula would promise more than an exact
// test of few repeats keeps.
#ifndef LACUNA_EVALS_COMPARE_H
#define LACUNA_EVALS_COMPARE_H

#include "reports/comparison.h"

#define COMPARE_MARGIN 0.2 // by default "no difference shown" excludes changes of 20 points

// The fields that need an allowance, NULL-terminated.
extern const char *const compare_fields[];

struct compare_options {
    const char *const *allow; // words of compare_fields
    int allow_count;
    bool common;   // compare the trials that both have, where the plans differ
    double margin; // see struct comparison
    uint64_t seed; // of the tests' draws
    // Ids of a model of the baseline and one of the run, which alone are paired; NULL: by equal id,
    // or the only one of each.
    const char *model_before, *model_now;
};

// `before` and `now` must outlive *out.
void compare_runs(const struct baseline *before, const struct baseline *now,
                  const struct compare_options *options, struct arena *a, struct comparison *out);

// The gates of the run's experiment, those that have a baseline against this one. Nothing when the
// comparison was refused.
struct experiment;
int compare_gates(struct comparison *c, const struct record *r, const struct experiment *x,
                  const struct compare_options *options, struct arena *a, struct err *e);

// 100 when a row regressed or a gate failed; 3 when nothing could be compared, an overall row is
// underpowered, or a gate is undecided; else 0.
int compare_exit_code(const struct comparison *c);

// ---- the parts, for gates ----

// Fills fields, constraints and pairs, and `refused` where an allowance is missing.
void compare_pair(const struct baseline *before, const struct baseline *now,
                  const struct compare_options *options, struct arena *a, struct comparison *out);

// Which pairs a row is about.
struct compare_selection {
    bool (*selects)(const void *context, const struct comparison_pair *p);
    const void *context;
    int constraint; // index into the comparison's constraints, -1: all of them
};
// Everything of a row but its names, answer, correction and sentence.
void compare_row(const struct comparison *c, const struct compare_selection *s, const char *stream,
                 uint64_t seed, struct arena *a, struct comparison_row *out);

#endif

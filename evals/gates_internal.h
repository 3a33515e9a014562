// What the files of the gates share.
#ifndef LACUNA_EVALS_GATES_INTERNAL_H
#define LACUNA_EVALS_GATES_INTERNAL_H

#include "evals/gates.h"
#include "evals/stats.h"
#include "evals/tally.h"

// In the order of the words of the field `metric`.
enum gate_metric {
    GATE_MET_RATE,
    GATE_VIOLATED_RATE,
    GATE_LIFT,
    GATE_MIDDLE_GAP,
    GATE_REGRESSION,
    GATE_CHANGED_REPLIES
};
enum gate_metric gate_metric_of(const struct experiment_gate *g);
// A difference of rates, judged on the interval of the repeats' mean.
bool gate_is_difference(enum gate_metric m);

// One gate becomes a judgement for each value of its open dimensions.
struct judged {
    const struct experiment_gate *gate;
    struct tally_filter filter;
    const char *id, *text;
};
struct judged_list {
    struct judged *p;
    int count;
    struct arena *arena;
};
struct judged_list gates_expand(struct tally *t, struct arena *a);

// Is the interval [low, high] on the right side of the gate's bounds?
bool gate_passes(const struct experiment_gate *g, double low, double high);

// The rows over which the middle gap of a constraint is taken: those that move it over start,
// middle and end.
bool gate_has_gap(const struct tally *t, int placement, int constraint);
// One number a repeat, in the arena; returns how many repeats have one. Lift: mean over the
// selected trials of met minus the absent arm's rate at the same model, length and repeat. Middle
// gap: mean(start, end) - middle, over rows, lengths and models that are pooled. `planned`: zeros,
// for the count alone.
int gate_lift(const struct tally *t, const struct judged *j, bool planned, struct arena *a,
              double **out);
int gate_gap(const struct tally *t, const struct judged *j, bool planned, struct arena *a,
             double **out);

// The interval of the mean of such numbers.
struct stats_interval gate_interval(enum gate_metric m, const double *d, int count);

// Puts before what the gate promises why it could decide nothing: no baseline file, other trials,
// other prompts. What the model is shows only when it runs.
void gate_look_at_baseline(const struct tally *t, const struct experiment_gate *g,
                           struct gate_outlook *out, struct arena *a);

#endif

// Copied distractors: which of the same-shaped sentences in the filler gave the reply its value.
// Reported beside the verdict, never part of it.
#ifndef LACUNA_EVALS_COPIED_H
#define LACUNA_EVALS_COPIED_H

#include "evals/experiment.h"
#include "evals/value.h"
#include "reports/record.h"

#define COPIED_MOST 8 // reported for one verdict

// The different texts of the answer that state the value of a distractor which is like `c`, in
// order of the distractors, outside of the right values: `value` with the distractor's variables;
// without one each redrawn variable that `met` uses; else each redrawn variable.
void copied_find(const struct value_rules *rules, const struct experiment_constraint *c,
                 const struct variable *vars, int var_count, const struct record_trial *trial,
                 struct str answer, struct arena *a, struct str **copied, int *count);

#endif

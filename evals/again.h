// Requests of a served model that are sent twice (models[].repeat_check), to tell its own noise:
// how often the same request gets another reply. The second replies stand in again.jsonl, apart
// from the trials, and are in no rate.
#ifndef LACUNA_EVALS_AGAIN_H
#define LACUNA_EVALS_AGAIN_H

#include "evals/experiment.h"
#include "reports/record.h"

// The trials of a model whose requests are sent twice, ascending: one drawn by the experiment's
// seed from each of `repeat_check` equal parts of the plan, so that they are spread over it. All of
// them when the plan has no more. Trials that share their request with an earlier one are left out.
int64_t again_choose(const struct experiment *x, int model, const struct record_trial *trials,
                     int64_t trial_count, struct arena *a, int64_t **chosen);

// Those of all models that have a reply and no second one yet, ascending.
int64_t again_missing(const struct experiment *x, const struct record *r, struct arena *a,
                      int64_t **trials);

#endif

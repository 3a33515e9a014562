// What the files of a comparison share.
#ifndef LACUNA_EVALS_COMPARE_INTERNAL_H
#define LACUNA_EVALS_COMPARE_INTERNAL_H

#include "evals/compare.h"

// For each model of `now` the index of its partner in `before`, or -1. By id; where each run has
// exactly one model, these two; those of the options alone where they name any.
int *compare_models(const struct baseline *before, const struct baseline *now,
                    const struct compare_options *options, struct arena *a);

// Lists the differences of the identities, after the pairs are known; sets fields, allow and
// same_identity.
void compare_identity(struct comparison *c, const int *models,
                      const struct compare_options *options, struct arena *a);

#endif

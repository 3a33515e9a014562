// How salient a constraint was in the placed prompts, in words, from the plan's lines.
#ifndef LACUNA_EVALS_SUMMARIZE_SALIENCE_H
#define LACUNA_EVALS_SUMMARIZE_SALIENCE_H

#include "evals/tally.h"
#include "reports/summary.h"

// Adds to the table's remarks.
void summarize_salience(const struct tally *t, int model, int constraint, struct arena *a,
                        struct summary_table *table);

#endif

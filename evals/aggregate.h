// The few numbers that stand for a model, each with its interval: effective length, middle gap,
// primacy, recency, area over depth, all and any of k samples. They describe; tests are the
// contrasts' part.
#ifndef LACUNA_EVALS_AGGREGATE_H
#define LACUNA_EVALS_AGGREGATE_H

#include "evals/tally.h"

// One for each model, placement row and constraint that the row moves, and "all" where there are
// several constraints.
void aggregate_all(struct tally *t, struct arena *a, struct summary_aggregate **out, int *count);

#endif

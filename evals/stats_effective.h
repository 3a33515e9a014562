// Effective length: the longest length up to which a model keeps a level, at that length and at all
// shorter ones. NoLiMa (Modarressi et al. 2025) and RULER (Hsieh et al. 2024) take the points of
// the curve; here the bounds decide, so the answer has two ends. The lengths are looked at in order
// and the first that fails ends it, so that no correction for their number is needed (Bauer 1991,
// Statistics in Medicine 10, 871-890: tests in a fixed order).
#ifndef LACUNA_EVALS_STATS_EFFECTIVE_H
#define LACUNA_EVALS_STATS_EFFECTIVE_H

#include "evals/stats_base.h"

// intervals[count] of the rates at ascending lengths. `shown`: how many of them have a lower bound
// of at least `level`, from the shortest on without a break; `possible`: likewise for the upper
// bound. shown <= possible.
void stats_effective(const struct stats_interval *intervals, int count, double level, int *shown,
                     int *possible);

#endif

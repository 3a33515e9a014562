// Exact bounds of a proportion: Clopper and Pearson (1934), Biometrika 26, 404-413. The low bound
// is the rate at which met or more of n would come in 2.5 of 100 runs, the high one likewise; so
// whatever the true rate is, each bound is on its wrong side in at most 2.5 % of runs. Wilson's
// interval is right on average and up to 7.5 % wrong on one side, which is too much where a bound
// decides.
#ifndef LACUNA_EVALS_STATS_EXACT_H
#define LACUNA_EVALS_STATS_EXACT_H

#include "evals/stats_base.h"

#include <stdbool.h>

// n >= 1. An effective number that is not whole is rounded down, the count outwards.
struct stats_interval stats_exact(double met, double n);
// Is the low bound at least `rate`, the high one at most? Without looking for the bounds.
bool stats_exact_above(int met, int n, double rate);
bool stats_exact_below(int met, int n, double rate);

#endif

// Two groups of repeats that are not paired: shares x[i] and y[i] in [0, 1], one a repeat.
#ifndef LACUNA_EVALS_STATS_TWO_H
#define LACUNA_EVALS_STATS_TWO_H

#include "evals/stats_base.h"

#include <stdint.h>

// Interval of mean(x) - mean(y) from the interval of each: Newcombe (1998), Statistics in Medicine
// 17, 873-890, method 10 (with Wilson's intervals), for any pair of intervals Zou and Donner
// (2008), Statistics in Medicine 27, 1693-1702:
//   low  = p - q - sqrt((p - p.low)^2 + (q.high - q)^2)
//   high = p - q + sqrt((p.high - p)^2 + (q - q.low)^2)
struct stats_interval stats_two_difference(double p, struct stats_interval of_p, double q,
                                           struct stats_interval of_q);

// Permutation test of the groups' means (Fisher 1935, section 21; Pitman 1937): the share of all
// ways to deal the shares into groups of these sizes whose means differ at least as much. Where all
// shares are 0 or 1 it is Fisher's exact test (by that order of the tables), computed; else seeded
// draws, (1 + hits) / (1 + draws) of 20,000, or sooner hits / draws once 500 have reached it.
double stats_two(const double *x, int x_count, const double *y, int y_count, uint64_t seed,
                 const char *name);

#endif

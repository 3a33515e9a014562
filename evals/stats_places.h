// Are k places all alike? values[r * k + j]: repeat r at place j, in [0, 1].
#ifndef LACUNA_EVALS_STATS_PLACES_H
#define LACUNA_EVALS_STATS_PLACES_H

#include "evals/stats_base.h"

#include <stdint.h>

// Cochran's Q (1950, Biometrika 37, 256-266): (k-1) sum_j (G_j - G)^2 / sum_r sum_j (x_rj - x_r)^2,
// with G_j the sum of place j, G their mean and x_r the mean of repeat r. For shares instead of
// zeros and ones it is the same ratio. 0 when no repeat tells places apart.
double stats_cochran_q(const double *values, int repeats, int k);

// Its p-value under permutation within repeats (the null distribution that Cochran's chi-square
// approximates), from seeded draws: (1 + hits) / (1 + draws) of 10,000, or sooner hits / draws once
// 500 draws have reached Q (Besag and Clifford 1991, Biometrika 78, 301-304). Above 10,000 values
// there are fewer draws, 1,000 from 100,000 values on.
double stats_places(const double *values, int repeats, int k, uint64_t seed, const char *name);

// Bounds of the largest true difference between two of the places. All k(k-1)/2 differences have
// simultaneous 95 % intervals (stats_paired_at, Bonferroni's correction), so the range lies between
// the largest lower bound, or 0, and the largest upper bound. The range that is seen is biased
// upwards: it takes the luckiest and the unluckiest place.
struct stats_interval stats_places_range(const double *values, int repeats, int k);

#endif

// Are k places all alike? values[r * k + j]: repeat r at place j. The statistic of Cochran's Q
// (1950) under permutation within repeats, seeded draws.
#ifndef LACUNA_EVALS_STATS_PLACES_H
#define LACUNA_EVALS_STATS_PLACES_H

#include <stdint.h>

double stats_places(const double *values, int repeats, int k, uint64_t seed, const char *name);

#endif

// Interval of the mean of paired differences in [-1, 1]: Agresti and Min (2005), Statistics in
// Medicine 24, 729-740, who add one half to each cell of the paired table, that is two repeats with
// sum 0 and sum of squares 1: m = S/(n+2), m +- z sqrt((Q+1)/(n+2) - m^2) / sqrt(n+2), cut to [-1,
// 1]. The same addition serves contrasts of several cells. Does not collapse when all repeats
// agree.
#ifndef LACUNA_EVALS_STATS_PAIRED_H
#define LACUNA_EVALS_STATS_PAIRED_H

#include "evals/stats_base.h"

struct stats_interval stats_paired(const double *d, int count);

#endif

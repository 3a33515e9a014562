// Intervals of paired differences, d[i] in [-1, 1] one number a repeat, that do not collapse when
// all repeats agree. Two repeats that differ are added to what was seen: with n repeats, sum S and
// sum of squares Q,
//   m = S/(n+2),   m +- z sqrt((Q+q)/(n+2) - m^2) / sqrt(n+2),   cut to [-1, 1].
// For two cells q = 2: Bonett and Price (2012), J. Educational and Behavioral Statistics 37,
// 479-488, their adjusted Wald interval for paired proportions. For a contrast of several cells
// with weights w, q = sum w^2, of which two cells (1, -1) are a case: 1.5 for the middle gap. The
// addition is the same when a repeat's number is a mean over lengths or samples, because those may
// go together wholly: repeats are counted, not trials. Simulated with 20 repeats, rates of .05 to
// .95 and up to 95 % of luck shared within a repeat, the least coverage is 93.5 %; adding half as
// much (Agresti and Min 2005) covers only 88 %.
#ifndef LACUNA_EVALS_STATS_PAIRED_H
#define LACUNA_EVALS_STATS_PAIRED_H

#include "evals/stats_base.h"

// Two cells.
struct stats_interval stats_paired(const double *d, int count);
// A contrast of cells; `squares` = sum of w^2.
struct stats_interval stats_paired_contrast(const double *d, int count, double squares);
// Two cells, at the normal quantile `z` in place of 95 %.
struct stats_interval stats_paired_at(const double *d, int count, double z);

#endif

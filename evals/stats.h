// Statistics of the reports and of `lacuna plan`. Intervals are two-sided at 95 %, tests two-sided.
// All of it uses + - * / and sqrt alone, so the digits are equal on every processor.
#ifndef LACUNA_EVALS_STATS_H
#define LACUNA_EVALS_STATS_H

#include "engine/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

#define STATS_Z95 1.959963984540054 // normal quantile of 0.975
#define STATS_EXACT_MOST 20         // nonzero repeats that are enumerated
#define STATS_DRAWS 50000           // Monte Carlo above that
#define STATS_REPEATS_LEAST 10      // below: "underpowered", no interval of a difference

struct stats_interval {
    double low, high;
};

// Wilson (1927), JASA 22, 209-212: the score interval of a proportion met/n, n > 0; `n` may be an
// effective number. Neither collapses nor leaves [0, 1].
struct stats_interval stats_wilson(double met, double n);

// One repeat of a cell or of pooled cells.
struct stats_cluster {
    int met, n;
};

// A proportion of trials that come in clusters (repeats). With one trial each it is Wilson's.
// Otherwise Wilson's at the effective number n / d (Kish 1965, Survey Sampling; for Wilson's
// interval: Franco, Little, Louis and Slud 2019, J. Survey Stat. Methodol. 7), where d is the
// design effect of the ratio estimator, d = K/(K-1) sum (y_i - p n_i)^2 / (N p (1-p)), kept between
// 1 and the mean cluster. It is estimated with two more clusters, one all met and one all not
// (Agresti and Coull 1998 add two successes and two failures; here the cluster is the unit), so
// that a rate of 0 or 1 counts repeats and not trials.
struct stats_interval stats_clustered(const struct stats_cluster *c, int count);

// Exact sign-flip (Fisher 1935, The Design of Experiments, section 21) on per-repeat differences:
// the share of all sign assignments with |sum| >= |observed sum|. Enumerated up to 20 nonzero
// differences; the binomial, hence exact McNemar, where all nonzero ones have one size; otherwise
// (1 + hits) / (1 + draws) (Phipson and Smyth 2010) over seeded draws. 1 when nothing is nonzero.
double stats_sign_flip(const double *d, int count, uint64_t seed, const char *name, int *nonzero);

// Exact McNemar test of b against c discordant pairs.
double stats_mcnemar(int b, int c);

// Are k places all alike? values[r * k + j]: repeat r at place j. The statistic of Cochran's Q
// (1950) under permutation within repeats, seeded draws.
double stats_places(const double *values, int repeats, int k, uint64_t seed, const char *name);

// Holm (1979): adjusted[i] of p[i], made monotone.
void stats_holm(const double *p, int count, double *adjusted);

// Interval of the mean of paired differences in [-1, 1]: Agresti and Min (2005), Statistics in
// Medicine 24, 729-740, who add one half to each cell of the paired table, that is two repeats with
// sum 0 and sum of squares 1: m = S/(n+2), m +- z sqrt((Q+1)/(n+2) - m^2) / sqrt(n+2), cut to [-1,
// 1]. The same addition serves contrasts of several cells. Does not collapse when all repeats
// agree.
struct stats_interval stats_paired(const double *d, int count);

// ---- planning ----

// P(X >= k), X binomial(n, p).
double stats_binomial_tail(int n, int k, double p);
// Power of the exact McNemar test over `repeats` pairs whose rates differ by `difference`, with the
// share `discordant` (>= |difference|) of pairs in which they differ.
double stats_power(int repeats, double difference, double discordant);
// Smallest difference with 80 % power. One way: discordant = difference; else two independent cells
// with rates (1 +- difference)/2. 2 when none is.
double stats_detectable(int repeats, bool one_way);
// Repeats for 80 % power at a difference between independent cells; the power stays above from
// there.
int stats_repeats_needed(double difference);

#endif

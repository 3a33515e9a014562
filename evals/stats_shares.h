// The mean of shares y[i] in [0, 1], one a repeat: an area over depth, an estimate from samples.
// Wilson's interval at an effective number of trials, as in stats_clustered.h: the mean's variance
// is estimated with two more repeats, one 1 and one 0, and the effective number is kept between one
// and `most` trials a repeat (how many independent trials a share can be worth; 1 makes Wilson's
// interval of as many trials as there are repeats).
#ifndef LACUNA_EVALS_STATS_SHARES_H
#define LACUNA_EVALS_STATS_SHARES_H

#include "evals/stats_base.h"

// count > 0, most >= 1.
struct stats_interval stats_shares(const double *y, int count, double most);
double stats_mean(const double *y, int count);

#endif

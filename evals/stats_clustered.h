// A proportion of trials that come in clusters (repeats). With one trial each it is Wilson's.
// Otherwise Wilson's at the effective number n / d (Kish 1965, Survey Sampling; for Wilson's
// interval: Franco, Little, Louis and Slud 2019, J. Survey Stat. Methodol. 7), where d is the
// design effect of the ratio estimator, d = K/(K-1) sum (y_i - p n_i)^2 / (N p (1-p)), kept between
// 1 and the mean cluster. It is estimated with two more clusters, one all met and one all not
// (Agresti and Coull 1998 add two successes and two failures; here the cluster is the unit), so
// that a rate of 0 or 1 counts repeats and not trials.
#ifndef LACUNA_EVALS_STATS_CLUSTERED_H
#define LACUNA_EVALS_STATS_CLUSTERED_H

#include "evals/stats_base.h"

struct stats_interval stats_clustered(const struct stats_cluster *c, int count);
// The effective number n / d alone.
double stats_clustered_number(const struct stats_cluster *c, int count);

#endif

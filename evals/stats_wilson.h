// Wilson (1927), JASA 22, 209-212: the score interval of a proportion met/n, n > 0; `n` may be an
// effective number. Neither collapses nor leaves [0, 1].
#ifndef LACUNA_EVALS_STATS_WILSON_H
#define LACUNA_EVALS_STATS_WILSON_H

#include "evals/stats_base.h"

struct stats_interval stats_wilson(double met, double n);

#endif

// Holm (1979), Scandinavian Journal of Statistics 6, 65-70: adjusted[i] of p[i], made monotone.
#ifndef LACUNA_EVALS_STATS_HOLM_H
#define LACUNA_EVALS_STATS_HOLM_H

void stats_holm(const double *p, int count, double *adjusted);

#endif

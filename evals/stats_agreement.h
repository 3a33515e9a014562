// Agreement of two raters beyond what chance would give, from their table of counts (or weights):
// table[i * classes + k] of what the first put into class i and the second into k. With observed
// agreement p = sum of table[i][i] / all, both are (p - e) / (1 - e); they differ in e.
// Kappa is the usual one, but falls towards 0 where nearly everything is of one class, whatever the
// agreement (Feinstein and Cicchetti 1990, J. Clin. Epidemiol. 43, 543-549); AC1 does not.
#ifndef LACUNA_EVALS_STATS_AGREEMENT_H
#define LACUNA_EVALS_STATS_AGREEMENT_H

#include <stdbool.h>

// Cohen (1960), Educ. Psychol. Meas. 20, 37-46: e = sum over classes of the product of both raters'
// shares. False: it is not defined, for both put everything into one class, or there is nothing.
bool stats_kappa(const double *table, int classes, double *kappa);

// Gwet (2008), Br. J. Math. Stat. Psychol. 61, 29-48: e = sum of s (1 - s) / (classes - 1), s the
// mean of both raters' shares of a class. False: there is nothing.
bool stats_ac1(const double *table, int classes, double *ac1);

#endif

// Exact sign-flip (Fisher 1935, The Design of Experiments, section 21) on per-repeat differences:
// the share of all sign assignments with |sum| >= |observed sum|. Enumerated up to 20 nonzero
// differences; the binomial, hence exact McNemar, where all nonzero ones have one size; otherwise
// (1 + hits) / (1 + draws) (Phipson and Smyth 2010) over seeded draws. 1 when nothing is nonzero.
#ifndef LACUNA_EVALS_STATS_SIGN_FLIP_H
#define LACUNA_EVALS_STATS_SIGN_FLIP_H

#include <stdint.h>

#define STATS_EXACT_MOST 20 // nonzero repeats that are enumerated
#define STATS_DRAWS 50000   // Monte Carlo above that

double stats_sign_flip(const double *d, int count, uint64_t seed, const char *name, int *nonzero);

#endif

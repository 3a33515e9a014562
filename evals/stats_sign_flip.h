// Exact sign-flip test (Fisher 1935, The Design of Experiments, section 21) on per-repeat
// differences: the share of all sign assignments with |sum| >= |observed sum|. 1 when nothing is
// nonzero.
//
// Where all nonzero differences have one size it is the binomial test, hence exact McNemar. Where
// they are whole multiples of a common step (means over the same number of trials are) the whole
// distribution of the sum is built by adding one repeat after the other (Pagano and Tritchler 1983,
// JASA 78, 435-440), exact for thousands of repeats. Else up to 20 are enumerated, and above that
// seeded signs are drawn: (1 + hits) / (1 + draws) (Phipson and Smyth 2010, Statistical
// Applications in Genetics and Molecular Biology 9).
#ifndef LACUNA_EVALS_STATS_SIGN_FLIP_H
#define LACUNA_EVALS_STATS_SIGN_FLIP_H

#include <stdint.h>

#define STATS_EXACT_MOST 20 // nonzero repeats without a common step that are enumerated
#define STATS_DRAWS 50000   // Monte Carlo above that

double stats_sign_flip(const double *d, int count, uint64_t seed, const char *name, int *nonzero);

#endif

// The binomial distribution, summed by its recurrence with multiplication alone.
#ifndef LACUNA_EVALS_STATS_BINOMIAL_H
#define LACUNA_EVALS_STATS_BINOMIAL_H

// P(X >= k), X binomial(n, p).
double stats_binomial_tail(int n, int k, double p);
// P(X = k).
double stats_binomial(int n, int k, double p);

#endif

// The standard normal distribution, by arithmetic alone.
#ifndef LACUNA_EVALS_STATS_NORMAL_H
#define LACUNA_EVALS_STATS_NORMAL_H

// P(Z > z) for z >= 0: one half less the series of Abramowitz and Stegun (1964), 26.2.11, good to
// 1e-12 up to z = 6; 0 beyond.
double stats_normal_tail(double z);
// The z whose upper tail is `tail`, 1e-9 <= tail <= 0.5, by bisection: 1.96 for 0.025.
double stats_normal_upper(double tail);

#endif

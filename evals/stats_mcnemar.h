// Exact McNemar test of b against c discordant pairs: the two-sided binomial test at one half
// (McNemar 1947, Psychometrika 12, 153-157, in its exact form).
#ifndef LACUNA_EVALS_STATS_MCNEMAR_H
#define LACUNA_EVALS_STATS_MCNEMAR_H

double stats_mcnemar(int b, int c);

#endif

// Planning: what a number of repeats can show. Power is that of the exact McNemar test at 5 %.
#ifndef LACUNA_EVALS_STATS_POWER_H
#define LACUNA_EVALS_STATS_POWER_H

#include <stdbool.h>

// Power of the exact McNemar test over `repeats` pairs whose rates differ by `difference`, with the
// share `discordant` (>= |difference|) of pairs in which they differ.
double stats_power(int repeats, double difference, double discordant);
// Smallest difference with 80 % power. One way: discordant = difference; else two independent cells
// with rates (1 +- difference)/2. 2 when none is. Above 1,000 repeats from that of 1,000: it falls
// with the number of repeats (a number of discordant pairs is needed), else with its square root.
double stats_detectable(int repeats, bool one_way);
// Repeats for 80 % power at a difference between independent cells; the power stays above from
// there.
int stats_repeats_needed(double difference);

#endif

#include "evals/stats_effective.h"

void stats_effective(const struct stats_interval *intervals, int count, double level, int *shown,
                     int *possible) {
    int i = 0;
    while (i < count && intervals[i].low >= level) i++;
    *shown = i;
    while (i < count && intervals[i].high >= level) i++;
    *possible = i;
}

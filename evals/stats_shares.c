#include "evals/stats_shares.h"

#include "evals/stats_wilson.h"

#include <assert.h>

double stats_mean(const double *y, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += y[i];
    return count > 0 ? sum / count : 0;
}

struct stats_interval stats_shares(const double *y, int count, double most) {
    assert(count > 0 && most >= 1);
    double mean = stats_mean(y, count), k = count + 2;
    double p = (mean * count + 1) / k, squares = (1 - p) * (1 - p) + p * p;
    for (int i = 0; i < count; i++) squares += (y[i] - p) * (y[i] - p);
    double variance = squares / (k - 1), worth = stats_clamp(p * (1 - p) / variance, 1, most);
    double n = count * worth, met = stats_clamp(mean * n, 0, n);
    return stats_wilson(met, n);
}

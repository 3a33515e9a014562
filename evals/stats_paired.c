#include "evals/stats_paired.h"

#include <math.h>

static struct stats_interval interval_of(const double *d, int count, double added, double z) {
    double sum = 0, squares = added, n = count + 2;
    for (int i = 0; i < count; i++) {
        sum += d[i];
        squares += d[i] * d[i];
    }
    double mean = sum / n, half = z * sqrt((squares / n - mean * mean) / n);
    return (struct stats_interval){stats_clamp(mean - half, -1, 1),
                                   stats_clamp(mean + half, -1, 1)};
}

struct stats_interval stats_paired(const double *d, int count) {
    return interval_of(d, count, 2, STATS_Z95);
}

struct stats_interval stats_paired_contrast(const double *d, int count, double squares) {
    return interval_of(d, count, squares, STATS_Z95);
}

struct stats_interval stats_paired_at(const double *d, int count, double z) {
    return interval_of(d, count, 2, z);
}

#include "evals/stats_paired.h"

#include <math.h>

struct stats_interval stats_paired(const double *d, int count) {
    double sum = 0, squares = 1, n = count + 2;
    for (int i = 0; i < count; i++) {
        sum += d[i];
        squares += d[i] * d[i];
    }
    double mean = sum / n, half = STATS_Z95 * sqrt((squares / n - mean * mean) / n);
    return (struct stats_interval){stats_clamp(mean - half, -1, 1),
                                   stats_clamp(mean + half, -1, 1)};
}

#include "evals/stats_clustered.h"

#include "evals/stats_wilson.h"

#include <stdbool.h>

double stats_clustered_number(const struct stats_cluster *c, int count) {
    double met = 0, n = 0;
    int clusters = 0;
    bool single = true;
    for (int i = 0; i < count; i++) {
        met += c[i].met;
        n += c[i].n;
        clusters += c[i].n > 0;
        single = single && c[i].n <= 1;
    }
    if (single) return n;
    double size = n / clusters, k = clusters + 2, total = n + 2 * size;
    double p = (met + size) / total;
    double sum = size * size * ((1 - p) * (1 - p) + p * p); // the two clusters that are added
    for (int i = 0; i < count; i++) {
        double deviation = c[i].met - p * c[i].n;
        sum += deviation * deviation;
    }
    return n / stats_clamp(k / (k - 1) * sum / (total * p * (1 - p)), 1, size);
}

struct stats_interval stats_clustered(const struct stats_cluster *c, int count) {
    double met = 0, n = 0, effective = stats_clustered_number(c, count);
    for (int i = 0; i < count; i++) {
        met += c[i].met;
        n += c[i].n;
    }
    return stats_wilson(met / n * effective, effective);
}

#include "evals/stats_exact.h"

#include "evals/stats_binomial.h"

#include <math.h>

#define TAIL 0.025
enum { HALVINGS = 50 };

bool stats_exact_above(int met, int n, double rate) {
    return rate <= 0 || (met > 0 && stats_binomial_tail(n, met, rate) <= TAIL);
}

bool stats_exact_below(int met, int n, double rate) {
    return stats_exact_above(n - met, n, 1 - rate);
}

// The greatest rate below which `met` lies too high.
static double low_bound(int met, int n) {
    double low = 0, high = 1;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (stats_exact_above(met, n, middle))
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct stats_interval stats_exact(double met, double n) {
    int whole = n < 1 ? 1 : (int)(n + STATS_TIE);
    double count = stats_clamp(met / n * whole, 0, whole);
    int down = (int)(count + STATS_TIE), up = (int)ceil(count - STATS_TIE);
    return (struct stats_interval){low_bound(down, whole), 1 - low_bound(whole - up, whole)};
}

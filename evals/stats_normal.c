#include "evals/stats_normal.h"

#include "evals/stats_base.h"

#include <assert.h>

#define ROOT_2_PI 2.5066282746310005

// exp(-x), x >= 0: the Taylor series of x / 2^k, squared k times.
static double exp_minus(double x) {
    int halvings = 0;
    for (; x > 0.25; x /= 2) halvings++;
    double term = 1, sum = 1;
    for (int i = 1; i < 20; i++) {
        term *= -x / i;
        sum += term;
    }
    for (; halvings > 0; halvings--) sum *= sum;
    return sum;
}

double stats_normal_tail(double z) {
    assert(z >= 0);
    if (z > 6.5) return 0;
    double term = z, sum = z;
    for (int i = 3; term > 1e-18; i += 2) {
        term *= z * z / i;
        sum += term;
    }
    return stats_clamp(0.5 - sum * exp_minus(z * z / 2) / ROOT_2_PI, 0, 0.5);
}

double stats_normal_upper(double tail) {
    assert(tail >= 1e-9 && tail <= 0.5);
    double low = 0, high = 6.5;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (stats_normal_tail(middle) > tail)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

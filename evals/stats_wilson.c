#include "evals/stats_wilson.h"

#include <assert.h>
#include <math.h>

struct stats_interval stats_wilson(double met, double n) {
    assert(n > 0 && met >= 0 && met <= n);
    double p = met / n, z2 = STATS_Z95 * STATS_Z95;
    double centre = (p + z2 / (2 * n)) / (1 + z2 / n);
    double half = STATS_Z95 / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n));
    // At the ends the bound is 0 or 1 exactly, whatever rounding says.
    return (struct stats_interval){met > 0 ? stats_clamp(centre - half, 0, 1) : 0,
                                   met < n ? stats_clamp(centre + half, 0, 1) : 1};
}

#include "evals/stats_area.h"

#include <assert.h>

void stats_area_weights(const int32_t *depths, int count, double *weights) {
    assert(count >= 2);
    double span = (double)depths[count - 1] - depths[0];
    for (int i = 0; i < count; i++) {
        int before = i > 0 ? i - 1 : i, after = i + 1 < count ? i + 1 : i;
        assert(before == i || depths[before] < depths[i]);
        weights[i] = ((double)depths[after] - depths[before]) / (2 * span);
    }
}

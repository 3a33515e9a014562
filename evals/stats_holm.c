#include "evals/stats_holm.h"

#include "evals/stats_base.h"

void stats_holm(const double *p, int count, double *adjusted) {
    // Selection instead of sorting: families are small, and equal p keep their order.
    double floor = 0;
    for (int i = 0; i < count; i++) adjusted[i] = -1;
    for (int rank = 0; rank < count; rank++) {
        int least = -1;
        for (int i = 0; i < count; i++)
            if (adjusted[i] < 0 && (least < 0 || p[i] < p[least])) least = i;
        double scaled = stats_clamp(p[least] * (count - rank), 0, 1);
        if (scaled > floor) floor = scaled;
        adjusted[least] = floor;
    }
}

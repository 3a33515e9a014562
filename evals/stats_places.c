#include "evals/stats_places.h"

#include "engine/base/arena.h"
#include "engine/base/rng.h"
#include "evals/stats_base.h"

#include <stdlib.h>
#include <string.h>

#define DRAWS 10000

static double places_statistic(const double *values, int repeats, int k) {
    double statistic = 0;
    for (int j = 0; j < k; j++) {
        double sum = 0;
        for (int r = 0; r < repeats; r++) sum += values[r * k + j];
        statistic += sum * sum;
    }
    return statistic;
}

double stats_places(const double *values, int repeats, int k, uint64_t seed, const char *name) {
    size_t size = (size_t)repeats * (size_t)k;
    double *drawn = malloc((size + 1) * sizeof *drawn);
    if (drawn == NULL) mem_exhausted("a permutation test", size * sizeof *drawn);
    if (size > 0) memcpy(drawn, values, size * sizeof *drawn);
    struct rng r = rng_open(seed, "analysis", name);
    double observed = places_statistic(values, repeats, k);
    int hits = 0;
    for (int draw = 0; draw < DRAWS; draw++) {
        for (int row = 0; row < repeats; row++) {
            for (int j = k - 1; j > 0; j--) { // Fisher-Yates
                int other = (int)rng_below(&r, (uint64_t)j + 1);
                double held = drawn[row * k + j];
                drawn[row * k + j] = drawn[row * k + other];
                drawn[row * k + other] = held;
            }
        }
        hits += places_statistic(drawn, repeats, k) >= observed - STATS_TIE;
    }
    free(drawn);
    return (1.0 + hits) / (1.0 + DRAWS);
}

#include "evals/stats_places.h"

#include "engine/base/arena.h"
#include "engine/base/rng.h"
#include "evals/stats_normal.h"
#include "evals/stats_paired.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS_MOST = 10000, DRAWS_LEAST = 1000, HITS_ENOUGH = 500 };
#define WORK_MOST 100000000.0 // values that are drawn

static double *borrow(size_t count) {
    double *p = malloc((count + 1) * sizeof *p);
    if (p == NULL) mem_exhausted("a comparison of places", count * sizeof *p);
    return p;
}

// What differs between permutations within repeats: the sum of the places' squared sums.
static double squared_sums(const double *values, int repeats, int k) {
    double squares = 0;
    for (int j = 0; j < k; j++) {
        double sum = 0;
        for (int r = 0; r < repeats; r++) sum += values[r * k + j];
        squares += sum * sum;
    }
    return squares;
}

double stats_cochran_q(const double *values, int repeats, int k) {
    double all = 0, within = 0;
    for (int r = 0; r < repeats; r++) {
        double sum = 0;
        for (int j = 0; j < k; j++) sum += values[r * k + j];
        for (int j = 0; j < k; j++) {
            double off = values[r * k + j] - sum / k;
            within += off * off;
        }
        all += sum;
    }
    if (within < STATS_TIE) return 0;
    double between = squared_sums(values, repeats, k) - all * all / k;
    return between < STATS_TIE ? 0 : (k - 1) * between / within;
}

static void permute(double *row, int k, struct rng *r) { // Fisher-Yates
    for (int j = k - 1; j > 0; j--) {
        int other = (int)rng_below(r, (uint64_t)j + 1);
        double held = row[j];
        row[j] = row[other];
        row[other] = held;
    }
}

double stats_places(const double *values, int repeats, int k, uint64_t seed, const char *name) {
    double *drawn = borrow((size_t)repeats * (size_t)k);
    int kept = 0; // a repeat that is the same at all places only adds a constant
    for (int row = 0; row < repeats; row++) {
        const double *from = values + (size_t)row * (size_t)k;
        int j = 1;
        while (j < k && fabs(from[j] - from[0]) < STATS_TIE) j++;
        if (j < k) memcpy(drawn + (size_t)kept++ * (size_t)k, from, (size_t)k * sizeof *from);
    }
    struct rng r = rng_open(seed, "analysis", name);
    double observed = squared_sums(drawn, kept, k);
    int hits = 0, draws = 0;
    double most = stats_clamp(WORK_MOST / ((double)kept * k + 1), DRAWS_LEAST, DRAWS_MOST);
    while (kept > 0 && draws < most && hits < HITS_ENOUGH) {
        for (int row = 0; row < kept; row++) permute(drawn + (size_t)row * (size_t)k, k, &r);
        hits += squared_sums(drawn, kept, k) >= observed - STATS_TIE;
        draws++;
    }
    free(drawn);
    if (kept == 0) return 1;
    return hits < HITS_ENOUGH ? (1.0 + hits) / (1.0 + draws) : (double)hits / draws;
}

struct stats_interval stats_places_range(const double *values, int repeats, int k) {
    struct stats_interval range = {0, 0};
    double *d = borrow((size_t)repeats);
    double z = stats_normal_upper(0.05 / (k * (k - 1)));
    for (int i = 0; i < k; i++)
        for (int j = 0; j < i; j++) {
            for (int r = 0; r < repeats; r++) d[r] = values[r * k + i] - values[r * k + j];
            struct stats_interval pair = stats_paired_at(d, repeats, z);
            range.low = fmax(range.low, fmax(pair.low, -pair.high));
            range.high = fmax(range.high, fmax(pair.high, -pair.low));
        }
    free(d);
    return range;
}

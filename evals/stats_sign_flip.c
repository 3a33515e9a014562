#include "evals/stats_sign_flip.h"

#include "engine/base/arena.h"
#include "engine/base/rng.h"
#include "evals/stats_base.h"
#include "evals/stats_mcnemar.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { STEPS_MOST = 720 };
#define WORK_MOST 1000000000 // additions, half a second

static double enumerate_signs(const double *d, int n, double observed) {
    // Gray code: each step flips one sign. The first sign stays +: the other half mirrors it.
    double sum = 0;
    for (int i = 0; i < n; i++) sum += d[i];
    double sign[STATS_EXACT_MOST];
    for (int i = 0; i < n; i++) sign[i] = 1;
    uint32_t total = UINT32_C(1) << (n - 1), hits = 0;
    for (uint32_t step = 1;; step++) {
        hits += fabs(sum) >= observed - STATS_TIE;
        if (step == total) break;
        int flip = 1;
        for (uint32_t s = step; (s & 1) == 0; s >>= 1) flip++;
        sign[flip] = -sign[flip];
        sum += 2 * sign[flip] * d[flip];
    }
    return (double)hits / total;
}

static double draw_signs(const double *d, int n, double observed, uint64_t seed, const char *name) {
    struct rng r = rng_open(seed, "analysis", name);
    int hits = 0;
    for (int draw = 0; draw < STATS_DRAWS; draw++) {
        double sum = 0;
        uint64_t bits = 0;
        for (int i = 0; i < n; i++) {
            if (i % 64 == 0) bits = rng_u64(&r);
            sum += bits & 1 ? d[i] : -d[i];
            bits >>= 1;
        }
        hits += fabs(sum) >= observed - STATS_TIE;
    }
    return (1.0 + hits) / (1.0 + STATS_DRAWS);
}

// The least number of steps to 1 such that all differences are whole steps; 0: none is small
// enough.
static int find_steps(const double *d, int n) {
    for (int steps = 1; steps <= STEPS_MOST; steps++) {
        int i = 0;
        while (i < n && fabs(d[i] * steps - nearbyint(d[i] * steps)) < STATS_TIE * steps) i++;
        if (i == n) return steps;
    }
    return 0;
}

// With s the steps that are positive and S all steps, the sum is 2s - S: P(|2s - S| >= |observed|).
// Returns -1 where that is too much work.
static double sum_signs(const double *d, int n, double observed, int steps) {
    int64_t all = 0;
    for (int i = 0; i < n; i++) all += (int64_t)nearbyint(fabs(d[i]) * steps);
    if (all * n > WORK_MOST) return -1;
    double *weight = calloc((size_t)all + 1, sizeof *weight);
    if (weight == NULL) mem_exhausted("a permutation test", (size_t)all * sizeof *weight);
    int64_t reach = 0, wanted = (int64_t)nearbyint(observed * steps);
    weight[0] = 1;
    for (int i = 0; i < n; i++) {
        int64_t size = (int64_t)nearbyint(fabs(d[i]) * steps);
        reach += size;
        for (int64_t s = reach; s >= size; s--) weight[s] = (weight[s] + weight[s - size]) / 2;
        for (int64_t s = size - 1; s >= 0; s--) weight[s] /= 2;
    }
    double p = 0;
    for (int64_t s = 0; s <= all; s++)
        if (2 * s - all >= wanted || all - 2 * s >= wanted) p += weight[s];
    free(weight);
    return stats_clamp(p, 0, 1);
}

static double test(const double *d, int n, double observed, uint64_t seed, const char *name) {
    int positive = 0;
    bool one_size = true;
    for (int i = 0; i < n; i++) {
        positive += d[i] > 0;
        one_size = one_size && fabs(fabs(d[i]) - fabs(d[0])) < STATS_TIE;
    }
    if (one_size) return stats_mcnemar(positive, n - positive); // 1 where there are none
    int steps = find_steps(d, n);
    double p = steps > 0 ? sum_signs(d, n, observed, steps) : -1;
    if (p >= 0) return p;
    return n <= STATS_EXACT_MOST ? enumerate_signs(d, n, observed)
                                 : draw_signs(d, n, observed, seed, name);
}

double stats_sign_flip(const double *d, int count, uint64_t seed, const char *name, int *nonzero) {
    double *kept = malloc(((size_t)count + 1) * sizeof *kept), sum = 0;
    if (kept == NULL) mem_exhausted("a permutation test", (size_t)count * sizeof *kept);
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (fabs(d[i]) < STATS_TIE) continue;
        kept[n++] = d[i];
        sum += d[i];
    }
    *nonzero = n;
    double p = test(kept, n, fabs(sum), seed, name);
    free(kept);
    return p;
}

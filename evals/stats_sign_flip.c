#include "evals/stats_sign_flip.h"

#include "engine/base/arena.h"
#include "engine/base/rng.h"
#include "evals/stats_base.h"
#include "evals/stats_mcnemar.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

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

double stats_sign_flip(const double *d, int count, uint64_t seed, const char *name, int *nonzero) {
    double *kept = malloc(((size_t)count + 1) * sizeof *kept);
    if (kept == NULL) mem_exhausted("a permutation test", (size_t)count * sizeof *kept);
    int n = 0, positive = 0;
    bool one_size = true;
    double sum = 0;
    for (int i = 0; i < count; i++) {
        if (fabs(d[i]) < STATS_TIE) continue;
        kept[n++] = d[i];
        sum += d[i];
        positive += d[i] > 0;
        one_size = one_size && fabs(fabs(d[i]) - fabs(kept[0])) < STATS_TIE;
    }
    *nonzero = n;
    double p;
    if (n == 0)
        p = 1;
    else if (one_size)
        p = stats_mcnemar(positive, n - positive);
    else if (n <= STATS_EXACT_MOST)
        p = enumerate_signs(kept, n, fabs(sum));
    else
        p = draw_signs(kept, n, fabs(sum), seed, name);
    free(kept);
    return p;
}

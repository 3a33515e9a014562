#include "evals/stats_two.h"

#include "engine/base/arena.h"
#include "engine/base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS_MOST = 20000, HITS_ENOUGH = 500 };

struct stats_interval stats_two_difference(double p, struct stats_interval of_p, double q,
                                           struct stats_interval of_q) {
    double p_down = p - of_p.low, p_up = of_p.high - p, q_down = q - of_q.low, q_up = of_q.high - q;
    return (struct stats_interval){stats_clamp(p - q - sqrt(p_down * p_down + q_up * q_up), -1, 1),
                                   stats_clamp(p - q + sqrt(p_up * p_up + q_down * q_down), -1, 1)};
}

// The hypergeometric distribution of how many of `ones` fall into the first group. Terms start at 1
// at the least possible count and are scaled down where they grow large; only their ratios count.
static double count_tables(int ones, int n, int m, double observed) {
    int least = ones > m ? ones - m : 0, most = ones < n ? ones : n;
    double term = 1, all = 0, far = 0;
    for (int a = least; a <= most; a++) {
        double apart = fabs((double)a / n - (double)(ones - a) / m);
        all += term;
        if (apart >= observed - STATS_TIE) far += term;
        term *= (double)(n - a) / (a + 1) * (ones - a) / (m - ones + a + 1);
        while (term > 1e200) {
            term /= 1e200;
            all /= 1e200;
            far /= 1e200;
        }
    }
    return stats_clamp(far / all, 0, 1);
}

static double deal(double *all, int n, int m, double total, double observed, uint64_t seed,
                   const char *name) {
    struct rng r = rng_open(seed, "analysis", name);
    int hits = 0, draws = 0;
    for (; draws < DRAWS_MOST && hits < HITS_ENOUGH; draws++) {
        double sum = 0;
        for (int i = 0; i < n; i++) {
            int other = i + (int)rng_below(&r, (uint64_t)(n + m - i));
            double held = all[i];
            all[i] = all[other];
            all[other] = held;
            sum += all[i];
        }
        hits += fabs(sum / n - (total - sum) / m) >= observed - STATS_TIE;
    }
    return hits < HITS_ENOUGH ? (1.0 + hits) / (1.0 + draws) : (double)hits / draws;
}

double stats_two(const double *x, int x_count, const double *y, int y_count, uint64_t seed,
                 const char *name) {
    if (x_count == 0 || y_count == 0) return 1;
    size_t size = (size_t)x_count + (size_t)y_count;
    double *all = malloc(size * sizeof *all), total = 0, first = 0;
    if (all == NULL) mem_exhausted("a permutation test", size * sizeof *all);
    memcpy(all, x, (size_t)x_count * sizeof *x);
    memcpy(all + x_count, y, (size_t)y_count * sizeof *y);
    bool whole = true;
    for (size_t i = 0; i < size; i++) {
        total += all[i];
        if (i < (size_t)x_count) first += all[i];
        whole = whole && (all[i] < STATS_TIE || all[i] > 1 - STATS_TIE);
    }
    double observed = fabs(first / x_count - (total - first) / y_count);
    double p = whole ? count_tables((int)nearbyint(total), x_count, y_count, observed)
                     : deal(all, x_count, y_count, total, observed, seed, name);
    free(all);
    return p;
}

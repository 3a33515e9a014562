#include "evals/stats.h"

#include "engine/base/rng.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Two sums of the same differences in another order are one tie.
#define TIE 1e-9

static double clamp(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

// ---- intervals ----

struct stats_interval stats_wilson(double met, double n) {
    assert(n > 0 && met >= 0 && met <= n);
    double p = met / n, z2 = STATS_Z95 * STATS_Z95;
    double centre = (p + z2 / (2 * n)) / (1 + z2 / n);
    double half = STATS_Z95 / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n));
    // At the ends the bound is 0 or 1 exactly, whatever rounding says.
    return (struct stats_interval){met > 0 ? clamp(centre - half, 0, 1) : 0,
                                   met < n ? clamp(centre + half, 0, 1) : 1};
}

struct stats_interval stats_clustered(const struct stats_cluster *c, int count) {
    double met = 0, n = 0;
    int clusters = 0;
    bool single = true;
    for (int i = 0; i < count; i++) {
        met += c[i].met;
        n += c[i].n;
        clusters += c[i].n > 0;
        single = single && c[i].n <= 1;
    }
    if (single) return stats_wilson(met, n);
    double size = n / clusters, k = clusters + 2, total = n + 2 * size;
    double p = (met + size) / total;
    double sum = size * size * ((1 - p) * (1 - p) + p * p); // the two clusters that are added
    for (int i = 0; i < count; i++) {
        double deviation = c[i].met - p * c[i].n;
        sum += deviation * deviation;
    }
    double design_effect = clamp(k / (k - 1) * sum / (total * p * (1 - p)), 1, size);
    return stats_wilson(met / design_effect, n / design_effect);
}

struct stats_interval stats_paired(const double *d, int count) {
    double sum = 0, squares = 1, n = count + 2;
    for (int i = 0; i < count; i++) {
        sum += d[i];
        squares += d[i] * d[i];
    }
    double mean = sum / n, half = STATS_Z95 * sqrt((squares / n - mean * mean) / n);
    return (struct stats_interval){clamp(mean - half, -1, 1), clamp(mean + half, -1, 1)};
}

// ---- tests ----

double stats_mcnemar(int b, int c) {
    int n = b + c, k = b < c ? b : c;
    // P(X <= k) for X binomial(n, 1/2), scaled so that no term is lost before the last sum.
    double term = 1, sum = 0;
    int halvings = n;
    for (int i = 0; i <= k; i++) {
        sum += term;
        term = term * (n - i) / (i + 1);
        while (sum > 1e200 && halvings > 0) {
            sum /= 2;
            term /= 2;
            halvings--;
        }
    }
    for (; halvings > 0; halvings--) sum /= 2;
    return clamp(2 * sum, 0, 1);
}

static double enumerate_signs(const double *d, int n, double observed) {
    // Gray code: each step flips one sign. The first sign stays +: the other half mirrors it.
    double sum = 0;
    for (int i = 0; i < n; i++) sum += d[i];
    double sign[STATS_EXACT_MOST];
    for (int i = 0; i < n; i++) sign[i] = 1;
    uint32_t total = UINT32_C(1) << (n - 1), hits = 0;
    for (uint32_t step = 1;; step++) {
        hits += fabs(sum) >= observed - TIE;
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
        hits += fabs(sum) >= observed - TIE;
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
        if (fabs(d[i]) < TIE) continue;
        kept[n++] = d[i];
        sum += d[i];
        positive += d[i] > 0;
        one_size = one_size && fabs(fabs(d[i]) - fabs(kept[0])) < TIE;
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
    enum { DRAWS = STATS_DRAWS / 5 };
    for (int draw = 0; draw < DRAWS; draw++) {
        for (int row = 0; row < repeats; row++) {
            for (int j = k - 1; j > 0; j--) { // Fisher-Yates
                int other = (int)rng_below(&r, (uint64_t)j + 1);
                double held = drawn[row * k + j];
                drawn[row * k + j] = drawn[row * k + other];
                drawn[row * k + other] = held;
            }
        }
        hits += places_statistic(drawn, repeats, k) >= observed - TIE;
    }
    free(drawn);
    return (1.0 + hits) / (1.0 + DRAWS);
}

void stats_holm(const double *p, int count, double *adjusted) {
    // Selection instead of sorting: families are small, and equal p keep their order.
    double floor = 0;
    for (int i = 0; i < count; i++) adjusted[i] = -1;
    for (int rank = 0; rank < count; rank++) {
        int least = -1;
        for (int i = 0; i < count; i++)
            if (adjusted[i] < 0 && (least < 0 || p[i] < p[least])) least = i;
        double scaled = clamp(p[least] * (count - rank), 0, 1);
        if (scaled > floor) floor = scaled;
        adjusted[least] = floor;
    }
}

// ---- planning ----

// By multiplication alone (equal on every processor), large and small factors in turn so that
// nothing overflows; a product that underflows is a term that does not matter.
static double binomial(int n, int k, double p) {
    double term = 1;
    for (int grown = 0, shrunk = 0; grown < k || shrunk < n - k;) {
        if (grown < k && (term <= 1 || shrunk == n - k)) {
            grown++;
            term = term * (n - k + grown) / grown * p;
        } else {
            shrunk++;
            term *= 1 - p;
        }
    }
    return term;
}

// Summed away from the mode, where terms only become smaller.
double stats_binomial_tail(int n, int k, double p) {
    if (k <= 0) return 1;
    if (k > n || p <= 0) return 0;
    if (p >= 1) return 1;
    double sum = 0;
    if (k > n * p) {
        double term = binomial(n, k, p);
        for (int i = k; i <= n; i++) {
            sum += term;
            term *= (double)(n - i) / (i + 1) * p / (1 - p);
        }
        return clamp(sum, 0, 1);
    }
    double term = binomial(n, k - 1, p);
    for (int i = k - 1; i >= 0; i--) {
        sum += term;
        term *= (double)i / (n - i + 1) * (1 - p) / p;
    }
    return clamp(1 - sum, 0, 1);
}

double stats_power(int repeats, double difference, double discordant) {
    if (discordant <= 0) return 0;
    double one_way = clamp((1 + fabs(difference) / discordant) / 2, 0, 1), power = 0;
    for (int n = 1; n <= repeats; n++) {
        double weight = binomial(repeats, n, discordant);
        if (weight < 1e-12) continue;
        int k = n / 2; // the largest minority that is still significant
        while (k >= 0 && stats_mcnemar(k, n - k) > 0.05) k--;
        if (k < 0) continue;
        double rejected =
            stats_binomial_tail(n, n - k, one_way) + 1 - stats_binomial_tail(n, k + 1, one_way);
        power += weight * rejected;
    }
    return clamp(power, 0, 1);
}

static double power_at(int repeats, double difference, bool one_way) {
    double independent = (1 + difference * difference) / 2; // rates (1 +- difference)/2
    return stats_power(repeats, difference, one_way ? difference : independent);
}

double stats_detectable(int repeats, bool one_way) {
    if (power_at(repeats, 1, one_way) < 0.8) return 2;
    double low = 0, high = 1;
    for (int i = 0; i < 30; i++) {
        double middle = (low + high) / 2;
        if (power_at(repeats, middle, one_way) >= 0.8)
            high = middle;
        else
            low = middle;
    }
    return high;
}

int stats_repeats_needed(double difference) {
    int high = 8;
    while (high < 4096 && power_at(high, difference, false) < 0.8) high *= 2;
    int low = high / 2;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (power_at(middle, difference, false) >= 0.8)
            high = middle;
        else
            low = middle;
    }
    return high;
}

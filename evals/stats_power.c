#include "evals/stats_power.h"

#include "evals/stats_base.h"
#include "evals/stats_binomial.h"
#include "evals/stats_mcnemar.h"

#include <math.h>

#define EXACT_MOST 1000 // repeats; beyond them a detectable difference follows from theirs

// The largest minority among n discordant pairs that is still significant, looked for near `guess`.
static int significant_minority(int n, int guess) {
    int k = guess < -1 ? -1 : guess;
    while (k >= 0 && (2 * k > n || stats_mcnemar(k, n - k) > 0.05)) k--;
    while (2 * (k + 1) <= n && stats_mcnemar(k + 1, n - k - 1) <= 0.05) k++;
    return k;
}

double stats_power(int repeats, double difference, double discordant) {
    if (discordant <= 0) return 0;
    double one_way = stats_clamp((1 + fabs(difference) / discordant) / 2, 0, 1), power = 0;
    // The number of discordant pairs, within 9 standard deviations.
    double mean = repeats * discordant, reach = 9 * sqrt(mean * (1 - discordant)) + 9;
    int first = mean - reach < 1 ? 1 : (int)(mean - reach);
    if (discordant >= 1) first = repeats;
    int last = mean + reach > repeats ? repeats : (int)(mean + reach);
    double weight = stats_binomial(repeats, first, discordant);
    int k = (int)(first / 2.0 - sqrt(first));
    for (int n = first; n <= last; n++) {
        k = significant_minority(n, k);
        if (k >= 0)
            power += weight * (stats_binomial_tail(n, n - k, one_way) + 1 -
                               stats_binomial_tail(n, k + 1, one_way));
        if (discordant < 1)
            weight *= (double)(repeats - n) / (n + 1) * discordant / (1 - discordant);
    }
    return stats_clamp(power, 0, 1);
}

static double power_at(int repeats, double difference, bool one_way) {
    double independent = (1 + difference * difference) / 2; // rates (1 +- difference)/2
    return stats_power(repeats, difference, one_way ? difference : independent);
}

double stats_detectable(int repeats, bool one_way) {
    if (repeats > EXACT_MOST) {
        double share = (double)EXACT_MOST / repeats;
        return stats_detectable(EXACT_MOST, one_way) * (one_way ? share : sqrt(share));
    }
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

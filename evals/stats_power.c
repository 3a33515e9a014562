#include "evals/stats_power.h"

#include "evals/stats_base.h"
#include "evals/stats_binomial.h"
#include "evals/stats_mcnemar.h"

#include <math.h>

double stats_power(int repeats, double difference, double discordant) {
    if (discordant <= 0) return 0;
    double one_way = stats_clamp((1 + fabs(difference) / discordant) / 2, 0, 1), power = 0;
    for (int n = 1; n <= repeats; n++) {
        double weight = stats_binomial(repeats, n, discordant);
        if (weight < 1e-12) continue;
        int k = n / 2; // the largest minority that is still significant
        while (k >= 0 && stats_mcnemar(k, n - k) > 0.05) k--;
        if (k < 0) continue;
        double rejected =
            stats_binomial_tail(n, n - k, one_way) + 1 - stats_binomial_tail(n, k + 1, one_way);
        power += weight * rejected;
    }
    return stats_clamp(power, 0, 1);
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

#include "evals/stats_binomial.h"

#include "evals/stats_base.h"

// By multiplication alone (equal on every processor), large and small factors in turn so that
// nothing overflows; a product that underflows is a term that does not matter.
double stats_binomial(int n, int k, double p) {
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
        double term = stats_binomial(n, k, p);
        for (int i = k; i <= n; i++) {
            sum += term;
            term *= (double)(n - i) / (i + 1) * p / (1 - p);
        }
        return stats_clamp(sum, 0, 1);
    }
    double term = stats_binomial(n, k - 1, p);
    for (int i = k - 1; i >= 0; i--) {
        sum += term;
        term *= (double)i / (n - i + 1) * (1 - p) / p;
    }
    return stats_clamp(1 - sum, 0, 1);
}

#include "evals/stats_mcnemar.h"

#include "evals/stats_base.h"

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
    return stats_clamp(2 * sum, 0, 1);
}

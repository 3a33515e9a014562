#include "evals/stats_samples.h"

#include <assert.h>

double stats_samples_all(int c, int n, int k) {
    assert(k >= 1 && k <= n && c >= 0 && c <= n);
    double share = 1;
    for (int i = 0; i < k; i++) share *= c > i ? (double)(c - i) / (n - i) : 0;
    return share;
}

double stats_samples_any(int c, int n, int k) {
    return 1 - stats_samples_all(n - c, n, k);
}

#include "evals/stats_agreement.h"

// Shares of class i: by the first rater and by the second.
static void shares_of(const double *table, int classes, int i, double all, double *first,
                      double *second) {
    *first = *second = 0;
    for (int k = 0; k < classes; k++) {
        *first += table[i * classes + k] / all;
        *second += table[k * classes + i] / all;
    }
}

static double sum_of(const double *table, int classes, double *observed) {
    double all = 0;
    *observed = 0;
    for (int i = 0; i < classes * classes; i++) all += table[i];
    for (int i = 0; all > 0 && i < classes; i++) *observed += table[i * classes + i] / all;
    return all;
}

bool stats_kappa(const double *table, int classes, double *kappa) {
    double observed, expected = 0, all = sum_of(table, classes, &observed);
    for (int i = 0; all > 0 && i < classes; i++) {
        double first, second;
        shares_of(table, classes, i, all, &first, &second);
        expected += first * second;
    }
    if (all <= 0 || expected >= 1) return false;
    *kappa = (observed - expected) / (1 - expected);
    return true;
}

bool stats_ac1(const double *table, int classes, double *ac1) {
    double observed, expected = 0, all = sum_of(table, classes, &observed);
    for (int i = 0; all > 0 && i < classes; i++) {
        double first, second;
        shares_of(table, classes, i, all, &first, &second);
        const double mean = (first + second) / 2;
        expected += mean * (1 - mean) / (classes - 1);
    }
    if (all <= 0) return false;
    *ac1 = (observed - expected) / (1 - expected); // expected is 1/2 at the most
    return true;
}

// What the statistics share. Intervals are two-sided at 95 %, tests two-sided. All of them use
// + - * / and sqrt alone, so the digits are equal on every processor.
#ifndef LACUNA_EVALS_STATS_BASE_H
#define LACUNA_EVALS_STATS_BASE_H

#define STATS_Z95 1.959963984540054 // normal quantile of 0.975
#define STATS_REPEATS_LEAST 10      // below: "underpowered", no interval of a difference
// Two sums of the same numbers in another order are one tie.
#define STATS_TIE 1e-9

struct stats_interval {
    double low, high;
};

// One repeat of a cell or of pooled cells.
struct stats_cluster {
    int met, n;
};

static inline double stats_clamp(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

#endif

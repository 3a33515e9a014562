// From n samples of one prompt, c of them met, to k samples: unbiased estimates.
#ifndef LACUNA_EVALS_STATS_SAMPLES_H
#define LACUNA_EVALS_STATS_SAMPLES_H

// All of k are met, "pass^k": C(c,k) / C(n,k) (Yao et al. 2024, tau-bench). 1 <= k <= n, c <= n.
double stats_samples_all(int c, int n, int k);
// Any of k is met, "pass@k": 1 - C(n-c,k) / C(n,k) (Chen et al. 2021, "Evaluating large language
// models trained on code").
double stats_samples_any(int c, int n, int k);

#endif

// A simulated run with an identity and token ids, as a side of a comparison.
#ifndef LACUNA_TESTS_COMPARED_RUN_H
#define LACUNA_TESTS_COMPARED_RUN_H

#include "reports/baseline_file.h"
#include "tests/support/simulated_run.h"

// Plans `s`, draws its verdicts from `seed`, and gives each trial a reply that tells its verdicts:
// trials judged alike are identical. The model's weights have the hash of `weights`.
void compared_run(struct simulated_run *s, uint64_t seed, const char *weights);
// `s` as a side; fails the test when it cannot be one.
void compared_side(struct simulated_run *s, struct baseline *out);

#endif

// A small experiment, for tests of the run loop.
#ifndef LACUNA_TESTS_SAMPLE_RUN_H
#define LACUNA_TESTS_SAMPLE_RUN_H

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "evals/run.h"

// Writes FOLDER/NAME.yaml and FOLDER/NAME.json (the rules) and returns the first path. `rules_head`
// is the rules file's head without "lacuna_fixture" ("\"in_flight\": 4"), `rules` its list's items.
const char *sample_experiment(struct arena *a, const char *folder, const char *name, int repeats,
                              const char *rules_head, const char *rules);

// FOLDER/equal.yaml, of 18 trials on the fixture FOLDER/RULES.json: some of its two rows' prompts
// are equal, with equal sampling streams. Returns its path.
const char *sample_equal_experiment(struct arena *a, const char *folder, const char *rules);

// The same experiment on a tiny model with random weights, which is written beside it.
const char *sample_local_experiment(struct arena *a, const char *folder, const char *name,
                                    int repeats);

// Loads, runs and reports in `folder`, with a memory of its own. 0 also when it was interrupted.
int sample_run_report(const char *experiment, const char *folder, bool retry_errors,
                      struct run_result *result, struct err *e);
// As the child of a fork: the same, its exit code says how it went (0 or 1).
int sample_run_child(const char *experiment, const char *folder);

// Compares what must be equal byte for byte; fails the test with the file's name otherwise.
void assert_equal_runs(const char *left, const char *right);

#endif

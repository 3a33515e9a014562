// Experiments of a few lines, planned on the fake provider.
#ifndef LACUNA_TESTS_SUPPORT_PLANNED_H
#define LACUNA_TESTS_SUPPORT_PLANNED_H

#include "evals/plan.h"
#include "tests/support/fake_provider.h"

struct planned {
    struct experiment *x;
    struct provider *provider;
    struct plan plan;
};

// `yaml` is the file's text, with one model; everything lives in test_arena. 0, or -1 with `e`.
int planned_make(const char *yaml, struct planned *out, struct err *e);
void planned_close(struct planned *p);
// The trial of that key; fails the test when there is none.
const struct record_trial *planned_find(const struct plan *p, const char *key);
const struct record_trial *planned_trial(const struct planned *p, const char *key);
// The whole prompt of a trial.
struct str planned_prompt(const struct planned *p, const char *key);
// The value of a variable in a trial; `constraint` may be RECORD_SHARED_VARS.
struct str planned_value(const struct record_trial *t, const char *constraint, const char *name);

#endif

// A constraint with a composite check, written as in an experiment file and judged.
#ifndef LACUNA_TESTS_CHECK_YAML_H
#define LACUNA_TESTS_CHECK_YAML_H

#include "evals/check.h"

// "kind: state, check: {...}": the constraint's fields but id and text, {{code}} is 19763.
// On failure *why has the loader's text and the result is NULL.
const struct check *check_from_yaml(const char *fields, struct arena *a, struct err *why);

// "met", "omitted", "violated", "unscored:cut", ...
const char *check_verdict(const struct check *c, const char *reply, const char *finish,
                          struct arena *a, struct record_verdict *out);

int check_yaml_teardown(void **state); // of a group: frees what check_from_yaml keeps

#endif

// Near misses: what has the shape of a constraint's value but is another one ("Thursday" for
// "Friday", 48213 for 19763). Reported beside the verdict, never part of it.
#ifndef LACUNA_EVALS_NEAR_H
#define LACUNA_EVALS_NEAR_H

#include "evals/experiment.h"
#include "evals/value.h"
#include "reports/record.h"

#define NEAR_MOST 8 // reported for one verdict

struct near_shapes {
    struct value *shapes;
    int count;
};

// From `value`, or from each variable that `met` uses: digits become any digits of the same count,
// numbers any of as many digits, capital letters any capitals of the same count, keys of two words
// and UUIDs any other, a choice each of its choices. Small letters (which have the shape of any
// word) and columns of cases stay as they are, and a template without a variable part has no
// shape.
void near_compile(const struct value_rules *rules, const struct experiment_constraint *c,
                  const struct variable *vars, int var_count, struct arena *a,
                  struct near_shapes *out);

// The different right-shaped texts in order, outside the byte ranges `right` of right values.
void near_find(const struct near_shapes *s, const struct value_text *t, struct str text,
               const size_t (*right)[2], size_t right_count, struct arena *a, struct str **near,
               int *count);

#endif

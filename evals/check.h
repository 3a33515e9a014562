// Checks and verdicts (DESIGN sections 4.6, 4.7 and 7). Patterns are PCRE2 with UTF and JIT, match
// and depth limits set; a check that errs is `unscored(check:<code>)`, never silence.
#ifndef LACUNA_EVALS_CHECK_H
#define LACUNA_EVALS_CHECK_H

#include "evals/check_tree.h"
#include "evals/experiment.h"
#include "evals/pattern.h"
#include "evals/value.h"
#include "reports/record.h"

// The checks of one constraint with its variables filled in. Compiled patterns are cached by text
// in the set, so that repeats with equal patterns compile once.
struct check_set;
struct check;

struct check_set *check_set_open(void);
void check_set_close(struct check_set *s);
// Once before each trial: after many of them *s is a fresh set and what came from the old one is
// gone, because values, hence patterns, change from repeat to repeat.
void check_set_next(struct check_set **s);

const struct value_rules *check_set_rules(const struct check_set *s);

// Compiles; a pattern that cannot compile is ERR_CONFIG naming the constraint, the key and the
// offset.
int check_prepare(struct check_set *s, const struct experiment_constraint *c,
                  const struct variable *vars, int var_count, const struct check **out,
                  struct err *e);

// What the reply looks like apart from any constraint.
struct reply {
    struct str text;
    size_t answer[2];   // byte range that is looked at
    const char *finish; // "stop", "length", "reasoning_length", "stop_string", "filter"
    struct str thought; // before the answer, in the reply or apart from it; n 0: nothing
};

// The verdict of one constraint on one reply; strings in the arena.
void check_judge(const struct check *c, const struct reply *reply, struct arena *a,
                 struct record_verdict *out);

// How its `check` (or `violated_check`) came to its outcome, line by line; none without one.
// Offsets are bytes of the reply. Of a format that the reply has as it stands, without its echoes.
void check_explain(const struct check *c, const struct reply *reply, bool violated, struct arena *a,
                   struct check_trace *out);

// The examples of the constraint prove its checks: every `met` example gives met, every `not`
// example does not, every `violated` example gives violated; an empty reply is not met. ERR_CONFIG
// otherwise.
int check_prove(const struct check *c, const struct experiment_constraint *constraint,
                const struct variable *vars, int var_count, struct err *e);

// Does the text (filler without the constraint) satisfy `value` or `met` of a state constraint, or
// match `violated` of any? Then the experiment measures nothing: *matches and where. Of a composite
// check the parts count that ask for something said (check_tree_filler).
int check_filler(const struct check *c, struct str text, bool *matches, size_t match[2],
                 const char **by, struct err *e);

#endif

// Composite checks: a tree of conditions about one reply, evaluated to *holds*, *fails* or *erred*.
//
// - all, any, not: logic. A leaf that errs makes the tree err only where the outcome hangs on it.
// - pattern: PCRE2 finds it. value: the whole value stands there (evals/value.h).
// - number: a number stands there that is as far off as is allowed (evals/check_number.h).
// - count: so many matches, none inside another, or (of) so many of these checks hold.
// - order: each item is found behind the one before; of `any` the alternative that stands first.
// - line, paragraph: the N-th one exists and its own text, alone, satisfies the check.
// - words, sentences, paragraphs, lines, letters: so many of them (evals/check_units.h).
// - json, tool_call: evals/check_json.h. Rewriting (`normalize`): evals/check_text.h.
//
// A reply that was cut could have gone on: an outcome is *settled* when no further text could
// change it. `not`, upper bounds, the last line and whole-reply JSON are settled only by a reply
// that ended by itself; a pattern where it does not look at the end (evals/pattern.h); a value
// always, a number where something else follows. In a finished reply everything is settled.
//
// The range of an outcome: of pattern, value, order, json, tool_call, line and paragraph what was
// found; of a count its first to its last match; of all the smallest range around its parts', of
// any the first of its parts that hold. `not` and counts of words and the like have none.
#ifndef LACUNA_EVALS_CHECK_TREE_H
#define LACUNA_EVALS_CHECK_TREE_H

#include "evals/check_units.h"
#include "evals/check_spec.h"
#include "evals/experiment.h"

struct check_tools { // what all checks of a set share
    struct pattern_set *patterns;
    const struct value_rules *rules;
    const struct check_units *units;
};

struct check_tree;

// With the variables filled in; `where` ("constraint \"order\"") begins messages.
int check_tree_compile(const struct check_tools *tools, const struct check_spec *spec,
                       const struct variable *vars, int var_count, const char *where,
                       struct arena *a, const struct check_tree **out, struct err *e);

enum check_truth { CHECK_FAILS, CHECK_HOLDS, CHECK_ERRED };

struct check_outcome {
    enum check_truth truth;
    bool settled;
    const char *error; // CHECK_ERRED: its name
    bool has_range;
    size_t range[2]; // bytes of the answer
};

// One line of an explanation, in the tree's order.
struct check_step {
    int depth; // 0: the tree itself
    enum check_truth truth;
    bool settled;
    const char *text; // "words: 61, at most 50"
};
struct check_trace {
    size_t begin; // of the answer, in the reply whose bytes are told
    struct check_step *steps;
    int count;
};

// `right`: gets the ranges that values and patterns (not below `not`) found; `trace`: how it came
// to the outcome. Either may be NULL. `masked`: echoes in the text are filled with \x1A.
void check_tree_judge(const struct check_tree *t, struct str answer, bool finished, bool masked,
                      struct arena *a, struct ranges *right, struct check_trace *trace,
                      struct check_outcome *out);

// Could a piece of this text alone satisfy the tree, as far as it asks for something that is said
// (pattern, value, count of these, order, json, tool_call)? Conditions on shape hold for some piece
// of any text and do not count. CHECK_ERRED where that cannot be decided.
void check_tree_filler(const struct check_tree *t, struct str text, struct arena *a,
                       struct check_outcome *out);

#endif

// What the files of composite checks share.
#ifndef LACUNA_EVALS_CHECK_TREE_INTERNAL_H
#define LACUNA_EVALS_CHECK_TREE_INTERNAL_H

#include "evals/check_json.h"
#include "evals/check_number.h"
#include "evals/check_text.h"
#include "evals/check_tree.h"

struct check_tree {
    const struct check_spec *spec;
    const struct check_tools *tools;
    const struct pattern *pattern, *separator; // NULL: not given
    struct value *value;
    struct str value_text, name; // with the variables filled in
    struct number_range number;
    bool value_folds; // the value is looked for without regard to case
    struct check_tree *parts;
    int part_count;
    struct json_ask *asks;
    int ask_count;
};

struct evaluation {
    struct arena *arena;
    struct ranges *right;      // NULL: nobody asks
    struct check_trace *trace; // NULL: nobody asks
    int depth;
    const char *said; // by the node at hand; only with a trace
    struct str answer;
};

void tree_judge(struct evaluation *ev, const struct check_tree *t, const struct check_text *text,
                struct check_outcome *out);
void tree_judge_json(struct evaluation *ev, const struct check_tree *t,
                     const struct check_text *text, struct check_outcome *out);
void tree_judge_tool_call(struct evaluation *ev, const struct check_tree *t,
                          const struct check_text *text, struct check_outcome *out);

void tree_found(struct evaluation *ev, const struct check_text *text, const size_t match[2],
                bool settled, struct check_outcome *out);
void tree_failed(const struct check_text *text, struct check_outcome *out);
void tree_erred(const char *error, struct check_outcome *out);

// ---- explaining; all of it costs nothing without a trace ----

// Makes room for a node's line before those of its parts; -1 without a trace.
int tree_step(struct evaluation *ev);
void tree_step_done(struct evaluation *ev, int step, const struct check_outcome *out);
// What the node at hand has to say.
__attribute__((format(printf, 2, 3))) void tree_explain(struct evaluation *ev, const char *format,
                                                        ...);
const char *tree_words(struct evaluation *ev, const struct check_tree *t);      // "pattern `x`"
const char *tree_place(struct evaluation *ev, const struct check_outcome *out); // "is ... at bytes"
const char *tree_bounds(struct evaluation *ev, const struct check_bounds *b);   // "at most 50"

#endif

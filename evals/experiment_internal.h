// What the files of the experiment loader share.
#ifndef LACUNA_EVALS_EXPERIMENT_INTERNAL_H
#define LACUNA_EVALS_EXPERIMENT_INTERNAL_H

#include "evals/experiment.h"
#include "evals/experiment_node.h"

// Where a message comes from: its path in the experiment file, and "FILE:LINE: " or "".
struct message_origin {
    const char *path, *line;
};

struct load {
    struct arena *arena;
    struct diagnostics *d;
    const struct node *root; // for the places of what the rules complain about
    struct experiment *x;
    const char **columns; // of the cases; NULL when they are not loaded
    int column_count;
    const struct case_row *cases;
    int case_count;
    struct message_origin *origins; // of messages; NULL: each stands where its number says
};

// experiment_load of a file's bytes; `path` names it in messages and gives its folder.
int experiment_read(struct str source, const char *path,
                    const struct experiment_overrides *overrides, struct arena *a,
                    struct experiment **out, struct err *e);
// Puts the turns of files in place of the messages that name them (prompt.messages[].file), and the
// definitions of prompt.tools_file in place of its path.
void experiment_messages(struct load *l, json_t *resolved);
// resolved.json into the struct. Names of models and constraints that do not exist are complained
// about.
void experiment_build(struct load *l, const json_t *resolved);
// What the table cannot say: how the fields fit together.
void experiment_check(struct load *l);
void experiment_check_models(struct load *l);
void experiment_check_variable(struct load *l, const struct experiment_variable *v,
                               const char *path);
void experiment_check_shared(struct load *l); // the experiment's own variables
void experiment_check_distractors(struct load *l);
void experiment_check_analysis(struct load *l); // primary and gates
// Finds the rules that constraints take over from the messages (in_prompt).
void experiment_check_rules(struct load *l);
// The text of a message without them.
struct str experiment_without_rules(struct load *l, int message);
// A composite check that stands under `key` of the constraint at `path`; NULL: none.
void experiment_check_tree(struct load *l, const struct check_spec *s, const char *path,
                           const char *key);
// "length=8000,depth=middle" into the list that resolved.json holds, in a fixed order.
int experiment_only(const struct load *l, const char *text, struct str **items, int *count,
                    struct err *e);

#endif

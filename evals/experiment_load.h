// Reading resolved.json into struct experiment: what the files of the builder share. What is
// missing or wrong gives an empty value: the table of fields has then complained, and the rest is
// still built so that all errors of a file come in one go.
#ifndef LACUNA_EVALS_EXPERIMENT_LOAD_H
#define LACUNA_EVALS_EXPERIMENT_LOAD_H

#include "evals/experiment_internal.h"

struct str load_text(struct load *l, const json_t *o, const char *key);
const char *load_word(struct load *l, const json_t *o, const char *key);
int64_t load_integer(const json_t *o, const char *key, int64_t otherwise);
bool load_boolean(const json_t *o, const char *key);
double load_decimal(const json_t *o, const char *key, double otherwise);
int32_t load_share(const json_t *o, const char *key);
bool load_place(const json_t *value, struct place *out);
// Index of the word in a list that ends with NULL; 0 when it is not there.
int load_index(const char *word, const char *const *words);
struct str *load_texts(struct load *l, const json_t *o, const char *key, int *count);
const char *load_path(struct load *l, const json_t *value);
// The constraint of that id, or -1 and a complaint at `path`.
int load_constraint(struct load *l, const char *id, const char *path);

struct experiment_variable *build_variables(struct load *l, const json_t *map, int *count);
void build_prompt(struct load *l, const json_t *o);
// The composite check under a constraint's `key`; NULL: none.
const struct check_spec *build_check(struct load *l, const json_t *constraint, const char *key);
void build_answers(struct load *l); // behind the prompt and the experiment's own variables
void build_distractors(struct load *l, const json_t *list); // behind the constraints
void build_constraints(struct load *l, const json_t *list);
void build_placements(struct load *l, const json_t *list);
void build_lengths(struct load *l, const json_t *o);
void build_primary(struct load *l, const json_t *o);
void build_gates(struct load *l, const json_t *list);

#endif

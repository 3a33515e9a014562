// The plan: every trial of an experiment with its exact prompt, complete before the first model
// call.
//
// Plan order is execution order (DESIGN section 2): models in file order, then token ids, then the
// key field by field, numbers as numbers. Filler, variables and sampling streams are drawn from
// (experiment seed, repeat or case, stream name) alone, so that adding a length, a placement or a
// repeat changes no other trial.
#ifndef LACUNA_EVALS_PLAN_H
#define LACUNA_EVALS_PLAN_H

#include "engine/provider.h"
#include "evals/experiment.h"
#include "reports/record.h"

struct plan {
    struct record_trial *trials; // in execution order
    int64_t trial_count;
    int64_t prompt_tokens, shared_tokens, reply_tokens_most; // sums
    int64_t equal_groups;          // groups of trials with equal ids and equal sampling stream
    struct record_prompt *prompts; // [trial_count] where the record is to keep none, else NULL
    const char **warnings;
    int warning_count;
    bool partial;
};

// Providers are opened (plan_only will do), one a model in file order. With `w` fillers, prompts
// and plan lines are written to the record as well; NULL plans only. Whatever DESIGN section 4
// calls an error of `plan` fails here with ERR_CONFIG, naming constraint, length, placement and
// remedy.
int plan_make(const struct experiment *x, struct provider *const *providers,
              struct record_writer *w, struct arena *a, struct plan *out, struct err *e);

// The prompt of one planned trial, built again: parts as stored in the record, for `lacuna prompt`.
int plan_prompt(const struct experiment *x, struct provider *const *providers, const char *key,
                struct arena *a, struct record_trial *trial, struct record_part **parts,
                size_t *part_count, struct err *e);

// The stream that the reply of a trial is sampled from: drawn from the seed, the repeat or case,
// and the sample number alone. `seed` of the trial's line is its key and counter half in hex.
struct rng plan_sampling_stream(const struct experiment *x, const struct record_trial *t);

// Around what the model thinks in its reply to this trial.
struct reasoning_tags plan_reasoning_tags(const struct experiment_model *m,
                                          const struct record_trial *t);

// Does one model get the same ids (without exact ids: the same text)? Such trials are neighbours in
// plan order.
bool plan_same_prompt(const struct record_trial *a, const struct record_trial *b);
// Are the replies to both drawn from one stream of random numbers?
bool plan_same_stream(const struct record_trial *a, const struct record_trial *b);

// Does an earlier trial of the plan, with the same prompt and stream, lend its reply to this one?
bool plan_is_lent(const struct record_trial *trials, int64_t at);

// How many tokens trial `at` of a plan shares with trial `before`, by what the lines between say of
// their neighbours: ids are in order, so the prefix of two is the shortest on the way. 0 where
// `before` is negative.
uint32_t plan_shared_tokens(const struct record_trial *trials, int64_t before, int64_t at);

// Trials, in plan order, with the same prompt and the same sampling stream: groups[i] is the group
// that trial i shares with others, or -1. Returns how many there are.
int64_t plan_equal_groups(const struct record_trial *trials, int64_t count, int64_t *groups);

#endif

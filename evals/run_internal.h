// What the files of the run loop share: the run, and the one step that puts an outcome down.
#ifndef LACUNA_EVALS_RUN_INTERNAL_H
#define LACUNA_EVALS_RUN_INTERNAL_H

#include "engine/base/log.h"
#include "evals/check.h"
#include "evals/plan.h"
#include "evals/reuse.h"
#include "evals/run.h"
#include "evals/served.h"

struct run {
    const struct experiment *x;
    const struct run_options *options;
    struct record_writer *writer;
    struct record *record;       // plan, prompts, and what was recorded before this start
    struct plan *plan;           // where the record keeps no prompts, else NULL
    struct reuse *reuse;         // older records; NULL: none were named
    struct reuse_reply *replies; // [trial] what they have; NULL: nothing
    struct check_set *patterns;
    struct progress progress;
    uint64_t *work; // [trial] tokens to compute; NULL: each trial counts 1
    uint64_t work_done;
    int64_t trials_done;
    int64_t cost_spent, cost_reserved; // evals/cost.h; reserved: of what is in flight, at the most
    bool over_cost;                    // what is next could go beyond the bound
    struct served_list *served;        // [model] what answered so far
    struct arena *arena;               // of the run
    bool again;                        // what is asked for now are second replies (evals/again.h)
    int64_t again_failed;
    const char *again_why; // of the first that failed
    char host[256];
};

bool run_is_interrupted(void);

// Asks for these trials, ascending: models one after the other, as they stand in the plan.
int run_models(struct run *r, const int64_t *trials, int64_t count, struct err *e);

// Opens the record of the run, with the prompts that it does not keep.
int run_record_open(struct run *r, const char *folder, struct arena *a, struct err *e);
// A line of timings.jsonl, as far as it says which trial, when and where. The caller's.
json_t *run_timing(const struct run *r, const struct record_trial *t);
// The answer in a reply to this trial.
void run_find_answer(const struct experiment_model *m, const struct record_trial *t,
                     struct record_outcome *o);
// Judges a reply and puts the outcome down under this trial's key. `timing` may be NULL.
int run_record_one(struct run *r, const struct record_trial *t, struct record_outcome *o,
                   const json_t *timing, struct arena *a, struct err *e);

// What was spent before this start.
// Refuses a bound (ERR_USAGE) on what nobody knows the price of.
int run_cost_check(const struct experiment *x, const struct run_options *o, struct err *e);
int run_cost_begin(struct run *r, struct err *e);
// False: asking for this trial could go beyond the bound. What is reserved is to be settled when
// the outcome is known, or with NULL when nothing was asked.
bool run_cost_reserve(struct run *r, const struct record_trial *t);
void run_cost_settle(struct run *r, const struct record_trial *t, const struct record_outcome *o);
// Says what was spent, in a run that has prices.
int run_cost_note(struct run *r, struct err *e);

// What answered before this start.
int run_served_begin(struct run *r, struct arena *a, struct err *e);
// Tells when something else answers than before. A reply of a model with another name than the
// first one's becomes an error, "model_changed".
int run_served_check(struct run *r, const struct record_trial *t, struct record_outcome *o,
                     struct arena *a, struct err *e);

// Sends requests for the second time, as far as they have no second reply.
int run_again(struct run *r, struct arena *a, struct err *e);
int run_again_put(struct run *r, const struct record_outcome *o, struct err *e);
// Does a run that has all its trials lack any of them?
int run_again_left(const struct experiment *x, const char *folder, struct arena *a, bool *left,
                   struct err *e);

// Takes over what the shards have, in plan order.
int run_take_shards(struct run *r, struct err *e);

// Finds what older records have of the missing trials, says it, and notes it in sessions.jsonl.
int run_reuse_find(struct run *r, struct arena *a, struct err *e);
// Puts found replies down for as long as the next trial of the plan has one.
int run_reuse_due(struct run *r, struct err *e);
// Another attempt for those of the trials that have one.
int run_reuse_again(struct run *r, const int64_t *trials, int64_t count, struct err *e);

#endif

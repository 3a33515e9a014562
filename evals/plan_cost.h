// What a plan costs to run: tokens, memory and time.
#ifndef LACUNA_EVALS_PLAN_COST_H
#define LACUNA_EVALS_PLAN_COST_H

#include "evals/plan.h"
#include "evals/reuse.h"
#include "evals/run.h"

struct plan_tokens {
    int64_t trials;
    int64_t prompt, computed, reply; // sums; computed: without what a prompt shares with the former
    int64_t longest;                 // prompt and reply
};
// Of the trials of a model. With `replies` ([trial], from reuse_find), of those that have none.
struct plan_tokens plan_tokens(const struct plan *p, const char *model,
                               const struct reuse_reply *replies);

// What the provider said, with what the evidence of the planned trials takes. `bound`: of the run,
// beside the weights; 0: none.
struct provider_memory plan_memory(const struct experiment *x, const struct plan *p, int model,
                                   const struct provider *provider, uint64_t bound);

// What one measured trial says about a model's speed: alone, and with replies beside its own.
struct plan_speed {
    bool known;
    double prefill, decode; // tokens a second
    int together;           // replies that decoded
};
// Loads the weights of a model and times its first trial. `options`: those of the run.
int plan_measure(const struct experiment *x, struct provider *const *providers,
                 const struct plan *p, int model, const struct run_options *options,
                 struct arena *a, struct plan_speed *out, struct err *e);
// At the most: every reply takes its whole budget.
int64_t plan_seconds_most(const struct plan_tokens *t, const struct plan_speed *speed);

#endif

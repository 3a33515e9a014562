// What served models cost, exactly: a price per million tokens has six decimals at the most, so
// every amount is a whole number of 10^-12 of the price's currency.
#ifndef LACUNA_EVALS_COST_H
#define LACUNA_EVALS_COST_H

#include "evals/experiment.h"
#include "reports/record.h"

#define COST_UNIT 1000000000000 // of one amount of the currency

// Of one reply. A price that is not given costs nothing.
int64_t cost_of(const struct experiment_model *m, int64_t prompt_tokens, int64_t reply_tokens);
// The most that a planned trial can cost: every token of its reply.
int64_t cost_most(const struct experiment_model *m, const struct record_trial *t);
// What it did cost, by the server's counts; what the server did not count, by ours and at the most.
// Trials that ended otherwise than ok are not known to have cost anything.
int64_t cost_real(const struct experiment_model *m, const struct record_trial *t,
                  const struct record_outcome *o);
// Of all that a record holds, second replies among it; trials with one prompt and stream were asked
// for once.
int64_t cost_recorded(const struct experiment *x, const struct record *r);

// What the requests that are sent twice take beside the trials, at the most.
struct cost_again {
    int64_t requests, prompt, reply; // tokens
};
struct cost_again cost_again(const struct experiment *x, int model,
                             const struct record_trial *trials, int64_t trial_count);

bool cost_has_price(const struct experiment *x); // has any model one?
// "12.3456": four decimals, rounded up.
void cost_text(int64_t amount, char out[32]);

#endif

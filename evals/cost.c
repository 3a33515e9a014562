#include "evals/cost.h"

#include "evals/again.h"
#include "evals/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int64_t cost_of(const struct experiment_model *m, int64_t prompt_tokens, int64_t reply_tokens) {
    return prompt_tokens * m->price_input + reply_tokens * m->price_output;
}

int64_t cost_most(const struct experiment_model *m, const struct record_trial *t) {
    return cost_of(m, t->prompt_tokens, t->reply_tokens_max);
}

int64_t cost_real(const struct experiment_model *m, const struct record_trial *t,
                  const struct record_outcome *o) {
    if (o->status != STATUS_OK) return 0;
    return cost_of(m, o->served_prompt_tokens > 0 ? o->served_prompt_tokens : t->prompt_tokens,
                   o->tokens >= 0 ? o->tokens : t->reply_tokens_max);
}

int64_t cost_recorded(const struct experiment *x, const struct record *r) {
    int64_t sum = 0;
    for (int64_t i = 0; i < r->trial_count; i++) {
        const int model = experiment_model_index(x, r->trials[i].model);
        const struct record_outcome *again = record_get_again(r, i);
        if (r->outcomes[i] == NULL || model < 0) continue;
        if (!plan_is_lent(r->trials, i))
            sum += cost_real(&x->models[model], &r->trials[i], r->outcomes[i]);
        if (again != NULL) sum += cost_real(&x->models[model], &r->trials[i], again);
    }
    return sum;
}

struct cost_again cost_again(const struct experiment *x, int model,
                             const struct record_trial *trials, int64_t trial_count) {
    struct arena *a = arena_create("again");
    struct cost_again sum = {0};
    int64_t *chosen;
    sum.requests = again_choose(x, model, trials, trial_count, a, &chosen);
    for (int64_t i = 0; i < sum.requests; i++) {
        sum.prompt += trials[chosen[i]].prompt_tokens;
        sum.reply += trials[chosen[i]].reply_tokens_max;
    }
    arena_destroy(a);
    return sum;
}

bool cost_has_price(const struct experiment *x) {
    for (int i = 0; i < x->model_count; i++)
        if (x->models[i].price_input > 0 || x->models[i].price_output > 0) return true;
    return false;
}

void cost_text(int64_t amount, char out[32]) {
    const int64_t step = COST_UNIT / 10000, rounded = (amount + step - 1) / step;
    snprintf(out, 32, "%" PRId64 ".%04" PRId64, rounded / 10000, rounded % 10000);
}

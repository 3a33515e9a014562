#include "evals/again.h"

#include "evals/plan.h"

#include <string.h>

int64_t again_choose(const struct experiment *x, int model, const struct record_trial *trials,
                     int64_t trial_count, struct arena *a, int64_t **chosen) {
    const struct experiment_model *m = &x->models[model];
    int64_t *all = arena_array(a, (size_t)trial_count + 1, sizeof *all), count = 0;
    for (int64_t i = 0; m->repeat_check > 0 && i < trial_count; i++)
        if (strcmp(trials[i].model, m->id) == 0 && !plan_is_lent(trials, i)) all[count++] = i;
    const int64_t parts = m->repeat_check < count ? m->repeat_check : count;
    struct rng draw = rng_open(x->seed, m->id, "repeat check");
    for (int64_t k = 0; k < parts; k++) { // in place: a part begins at or behind its number
        const int64_t begin = k * count / parts, end = (k + 1) * count / parts;
        all[k] = all[begin + (int64_t)rng_below(&draw, (uint64_t)(end - begin))];
    }
    *chosen = all;
    return parts;
}

int64_t again_missing(const struct experiment *x, const struct record *r, struct arena *a,
                      int64_t **trials) {
    int64_t count = 0;
    *trials = arena_array(a, (size_t)r->trial_count + 1, sizeof **trials);
    for (int m = 0; m < x->model_count; m++) {
        int64_t *chosen, n = again_choose(x, m, r->trials, r->trial_count, a, &chosen);
        for (int64_t i = 0; i < n; i++) {
            const struct record_outcome *o = r->outcomes[chosen[i]];
            if (o != NULL && o->status == STATUS_OK && record_get_again(r, chosen[i]) == NULL)
                (*trials)[count++] = chosen[i];
        }
    }
    return count;
}

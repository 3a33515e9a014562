// The bound on what a run may cost: nothing is asked for that could go beyond it.
#include "evals/cost.h"
#include "evals/run_internal.h"

static const struct experiment_model *model_of(const struct run *r, const struct record_trial *t) {
    const int model = experiment_model_index(r->x, t->model);
    return model >= 0 ? &r->x->models[model] : NULL;
}

int run_cost_check(const struct experiment *x, const struct run_options *o, struct err *e) {
    for (int i = 0; o->cost_most > 0 && i < x->model_count; i++)
        if (x->models[i].endpoint.url != NULL && !x->models[i].priced)
            FAIL(e, ERR_USAGE,
                 "--max-cost: what the model %s costs is not known; give models[%d].price in the "
                 "experiment, {input_per_mtok: 0, output_per_mtok: 0} if it is free",
                 x->models[i].id, i);
    return 0;
}

int run_cost_begin(struct run *r, struct err *e) {
    struct arena *a = arena_create("cost");
    int result = 0;
    r->cost_spent = cost_recorded(r->x, r->record);
    for (int64_t i = 0; i < r->record->trial_count && result == 0; i++) {
        struct record_outcome o;
        bool any = false;
        const struct experiment_model *m = model_of(r, &r->record->trials[i]);
        if (r->record->outcomes[i] != NULL || m == NULL) continue;
        result = record_get_waiting(r->writer, i, a, &o, &any, e);
        if (any) r->cost_spent += cost_real(m, &r->record->trials[i], &o);
    }
    arena_destroy(a);
    return result;
}

bool run_cost_reserve(struct run *r, const struct record_trial *t) {
    const int64_t most = cost_most(model_of(r, t), t);
    if (r->options->cost_most > 0 &&
        most > r->options->cost_most - r->cost_spent - r->cost_reserved)
        return false;
    r->cost_reserved += most;
    return true;
}

void run_cost_settle(struct run *r, const struct record_trial *t, const struct record_outcome *o) {
    r->cost_reserved -= cost_most(model_of(r, t), t);
    if (o != NULL) r->cost_spent += cost_real(model_of(r, t), t, o);
}

int run_cost_note(struct run *r, struct err *e) {
    char spent[32];
    if (!cost_has_price(r->x)) return 0;
    cost_text(r->cost_spent, spent);
    log_info("cost %s so far, by the server's counts of tokens", spent);
    return record_note_session(r->writer, "cost", spent, e);
}

#include "evals/cli_experiment.h"

int cli_limit_check(int64_t limit, int64_t *out, struct err *e) {
    *out = -1;
    if (limit == CLI_NO_LIMIT) return 0;
    if (limit < 1 || limit > INT32_MAX)
        FAIL(e, ERR_USAGE, "--limit takes a number of trials from 1 to %d, not %lld", INT32_MAX,
             (long long)limit);
    *out = limit;
    return 0;
}

int cli_experiment_load(const char *path, const struct cli_overrides *o, struct arena *a,
                        struct experiment **out, struct err *e) {
    int64_t limit;
    TRY(cli_limit_check(o->limit, &limit, e));
    const struct experiment_overrides overrides = {
        .set = o->set.items, .set_count = o->set.count, .only = o->only, .limit = limit};
    return experiment_load(path, &overrides, a, out, e);
}

int cli_providers_open(const struct experiment *x, bool plan_only, struct arena *a,
                       struct provider ***out, struct err *e) {
    struct provider **list = arena_array(a, (size_t)x->model_count + 1, sizeof *list);
    for (int i = 0; i < x->model_count; i++) {
        const struct experiment_model *m = &x->models[i];
        const struct provider_options options = {.id = m->id,
                                                 .path = m->path,
                                                 .fixture = m->fixture,
                                                 .backend = m->backend,
                                                 .numerics = m->numerics,
                                                 .weights = m->weights,
                                                 .chat_template = m->chat_template,
                                                 .pre_tokenizer = m->pre_tokenizer,
                                                 .context_tokens = m->context_tokens,
                                                 .beyond_trained = m->beyond_trained,
                                                 .plan_only = plan_only};
        if (provider_open(&options, &list[i], e) != 0) {
            cli_providers_close(x, list);
            return -1;
        }
    }
    *out = list;
    return 0;
}

void cli_providers_close(const struct experiment *x, struct provider **list) {
    for (int i = 0; list != NULL && i < x->model_count; i++)
        if (list[i] != NULL) list[i]->ops->close(list[i]);
}

// Behind the last trial: the requests that are sent twice. Trials come first, so that a run which
// is stopped has them; the second replies then are of another moment than the first.
#include "evals/again.h"
#include "evals/run_internal.h"

static bool is_asked_for(const struct experiment *x) {
    for (int m = 0; m < x->model_count; m++)
        if (x->models[m].repeat_check > 0) return true;
    return false;
}

int run_again_left(const struct experiment *x, const char *folder, struct arena *a, bool *left,
                   struct err *e) {
    struct record *r;
    int64_t *trials;
    *left = false;
    if (!is_asked_for(x)) return 0;
    TRY(record_open(folder, a, &r, e));
    *left = again_missing(x, r, a, &trials) > 0;
    record_close(r);
    return 0;
}

int run_again_put(struct run *r, const struct record_outcome *o, struct err *e) {
    if (o->status == STATUS_OK) return record_put_again(r->writer, o, e);
    if (r->again_failed++ == 0) r->again_why = arena_strdup(r->arena, o->reason_code);
    return 0;
}

int run_again(struct run *r, struct arena *a, struct err *e) {
    struct record *before = r->record;
    int64_t *trials;
    if (!is_asked_for(r->x)) return 0;
    TRY(run_record_open(r, before->folder, a, e)); // with the outcomes of this start
    record_close(before);
    const int64_t count = again_missing(r->x, r->record, a, &trials);
    if (count == 0) return 0;
    r->again = true;
    r->work_done = 0;
    r->trials_done = 0;
    progress_start(&r->progress, "twice", (uint64_t)count, (uint64_t)count);
    int result = run_models(r, trials, count, e);
    progress_finish(&r->progress);
    if (r->again_failed > 0)
        log_warn("%lld of the requests that are sent twice got no second reply (the first of them: "
                 "%s); the same command sends them again",
                 (long long)r->again_failed, r->again_why);
    return result;
}

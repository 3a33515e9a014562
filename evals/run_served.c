// Is it still the same model that answers? What earlier starts of the run recorded counts.
#include "evals/run_internal.h"

#include <string.h>

static struct served_list *list_of(struct run *r, const char *model) {
    const int index = experiment_model_index(r->x, model);
    return index >= 0 ? &r->served[index] : NULL;
}

int run_served_begin(struct run *r, struct arena *a, struct err *e) {
    struct arena *scratch = arena_create("served");
    int result = 0;
    r->served = arena_array(a, (size_t)r->x->model_count + 1, sizeof *r->served);
    for (int64_t i = 0; i < r->record->trial_count && result == 0; i++) {
        struct served_list *l = list_of(r, r->record->trials[i].model);
        const struct record_outcome *o = r->record->outcomes[i];
        struct record_outcome waiting;
        bool any = false;
        if (o == NULL) result = record_get_waiting(r->writer, i, scratch, &waiting, &any, e);
        if (any) o = &waiting;
        if (l != NULL && o != NULL) served_note(l, &o->server, i, a);
    }
    arena_destroy(scratch);
    return result;
}

// On the terminal, and in sessions.jsonl.
static int tell(struct run *r, bool change, const char *text, struct err *e) {
    if (change)
        log_warn("%s", text);
    else
        log_info("%s", text);
    return record_note_session(r->writer, change ? "served change" : "served", text, e);
}

int run_served_check(struct run *r, const struct record_trial *t, struct record_outcome *o,
                     struct arena *a, struct err *e) {
    struct served_list *l = list_of(r, t->model);
    if (o->status != STATUS_OK || l == NULL) return 0;
    const struct record_server by = o->server;
    const char *before = served_model(l);
    const bool other = before != NULL && by.model != NULL && strcmp(before, by.model) != 0;
    const char *earlier = l->count > 0 ? served_words(&l->seen[0].by, a) : NULL;
    const bool first = served_note(l, &by, t->trial, r->arena);
    if (other)
        *o = (struct record_outcome){
            .status = STATUS_ERROR,
            .reason_code = "model_changed",
            .reason_text = arena_printf(a, "model %s answered, and %s before", by.model, before)};
    if (!first) return 0;
    if (earlier == NULL)
        return tell(r, false,
                    arena_printf(a, "%s is answered by %s", t->model, served_words(&by, a)), e);
    return tell(r, true,
                arena_printf(a, "%s is answered by %s from %s on, and before by %s%s", t->model,
                             served_words(&by, a), t->key, earlier,
                             other ? "; replies of another model are no part of this run "
                                     "(model_changed): put the first one back and --retry-errors, "
                                     "or start a run of its own with -o"
                                   : ""),
                e);
}

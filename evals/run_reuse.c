// Replies of older records in a run: each is put down when its turn in the plan comes, so that none
// has to wait on the disk.
#include "evals/run_internal.h"

#include "engine/base/clock.h"

static json_t *make_timing(const struct run *r, const struct record_trial *t,
                           const struct reuse_reply *reply) {
    json_t *o = run_timing(r, t);
    json_put(o, "same_as", json_text_c(reply->then->key));
    json_put(o, "identity_sha256", json_text_c(reply->from->identity_sha256));
    return o;
}

static int put_reply(struct run *r, const struct record_trial *t, const struct reuse_reply *reply,
                     struct err *e) {
    struct arena *a = arena_create("trial");
    const struct record_outcome *then = reply->outcome;
    int model = experiment_model_index(r->x, t->model);
    const struct experiment_model *m = &r->x->models[model];
    struct record_outcome o = {.reply = then->reply,
                               .reasoning = then->reasoning,
                               .ids = then->ids,
                               .id_count = then->id_count,
                               .tokens = then->tokens,
                               .reasoning_counted = then->reasoning_counted,
                               .reasoning_tokens = then->reasoning_tokens,
                               .served_prompt_tokens = then->served_prompt_tokens,
                               .server = then->server,
                               .finish = then->finish};
    run_find_answer(m, t, &o);
    json_t *timing = make_timing(r, t, reply);
    int result = reuse_evidence(r->reuse, model, reply, a, &o.evidence, e);
    if (result == 0) result = run_record_one(r, t, &o, timing, a, e);
    json_decref(timing);
    arena_destroy(a);
    return result;
}

int run_reuse_due(struct run *r, struct err *e) {
    if (r->replies == NULL) return 0;
    while (!run_is_interrupted()) {
        int64_t next = record_next(r->writer);
        if (next == r->record->trial_count || r->replies[next].outcome == NULL) return 0;
        TRY(put_reply(r, &r->record->trials[next], &r->replies[next], e));
    }
    return 0;
}

int run_reuse_again(struct run *r, const int64_t *trials, int64_t count, struct err *e) {
    for (int64_t i = 0; i < count && r->replies != NULL && !run_is_interrupted(); i++) {
        const struct reuse_reply *reply = &r->replies[trials[i]];
        if (reply->outcome != NULL) TRY(put_reply(r, &r->record->trials[trials[i]], reply, e));
    }
    return 0;
}

// In sessions.jsonl, so that a record tells where its replies come from.
static int note_source(struct run *r, const struct reuse_source *s, int64_t missing,
                       struct arena *a, struct err *e) {
    const char *detail =
        arena_printf(a, "%lld of %lld trials from %s, identity %s", (long long)s->taken,
                     (long long)missing, s->folder, s->record->identity_sha256);
    return record_note_session(r->writer, "reuse", detail, e);
}

int run_reuse_find(struct run *r, struct arena *a, struct err *e) {
    int64_t *missing, count = record_missing(r->writer, r->options->retry_errors, a, &missing);
    struct reuse *u = r->reuse;
    if (u == NULL || count == 0) return 0;
    TRY(reuse_find(u, r->x, r->record->trials, r->record->trial_count, missing, count, a,
                   &r->replies, e));
    const struct reuse_source *s;
    for (int i = 0; (s = reuse_source_at(u, i)) != NULL; i++) {
        const char *words = reuse_words(s, a);
        if (s->taken > 0)
            log_info("%s", words);
        else
            log_warn("%s", words);
        TRY(note_source(r, s, count, a, e));
    }
    return 0;
}

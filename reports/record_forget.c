// What is left of a record whose texts must not be kept.
#include "reports/record_again.h"

#include <string.h>

static void *copy_list(const void *list, int count, size_t size, struct arena *a) {
    return count == 0 ? NULL : arena_memdup(a, list, (size_t)count * size);
}

void record_forget_prompt(struct record_trial *t, struct arena *a) {
    t->var_count = 0;
    t->distractors = copy_list(t->distractors, t->distractor_count, sizeof *t->distractors, a);
    for (int i = 0; i < t->distractor_count; i++) t->distractors[i].var_count = 0;
    t->spans = copy_list(t->spans, t->span_count, sizeof *t->spans, a);
    for (int i = 0; i < t->span_count; i++) t->spans[i].question_word_count = 0;
}

static void forget_words(struct record_outcome *o) {
    hash_bytes(o->reply.p, o->reply.n, o->reply_sha256);
    hash_bytes(o->reasoning.p, o->reasoning.n, o->reasoning_sha256);
    o->reply_bytes = o->reply.n;
    o->reasoning_bytes = o->reasoning.n;
    o->reply = o->reasoning = STR("");
    o->ids = NULL;
    o->id_count = 0;
    o->forgotten = true;
}

void record_forget_reply(struct record_outcome *o, bool prompts, bool replies, struct arena *a) {
    if (!prompts && !replies) return;
    if (o->status != STATUS_OK) o->reason_text = "not kept"; // a server may have quoted either
    if (replies && o->finish != NULL && !o->forgotten) forget_words(o);
    struct record_verdict *verdicts =
        arena_array(a, (size_t)o->verdict_count + 1, sizeof *verdicts);
    for (int i = 0; i < o->verdict_count; i++) {
        verdicts[i] = o->verdicts[i];
        verdicts[i].copied = NULL;
        if (replies) verdicts[i].near = NULL;
    }
    o->verdicts = verdicts;
}

void record_forget_texts(struct record *r, struct arena *a) {
    for (int64_t i = 0; i < r->trial_count; i++) {
        record_forget_prompt(&r->trials[i], a);
        if (r->outcomes[i] != NULL) record_forget_reply(r->outcomes[i], true, true, a);
        if (r->again != NULL && r->again->of[i] != NULL)
            record_forget_reply(r->again->of[i], true, true, a);
    }
    record_inputs_close(r->inputs);
    r->inputs = NULL;
}

// ---- in a line of the ledger ----

static void write_forgotten(const struct record_outcome *o, json_t *reply) {
    json_put(reply, "sha256", json_text_c(o->reply_sha256));
    json_put(reply, "bytes", json_integer((json_int_t)o->reply_bytes));
    if (o->reasoning_bytes == 0) return;
    json_put(reply, "reasoning_sha256", json_text_c(o->reasoning_sha256));
    json_put(reply, "reasoning_bytes", json_integer((json_int_t)o->reasoning_bytes));
}

static int read_size(const json_t *o, const char *key, const char *where, size_t *out,
                     struct err *e) {
    int64_t value;
    TRY(record_need_range(o, key, where, 0, INT64_MAX, &value, e));
    *out = (size_t)value;
    return 0;
}

static int read_forgotten(const json_t *reply, const char *where, struct record_outcome *out,
                          struct err *e) {
    out->reply = out->reasoning = STR("");
    TRY(record_need_hash(reply, "sha256", where, out->reply_sha256, e));
    TRY(read_size(reply, "bytes", where, &out->reply_bytes, e));
    hash_bytes("", 0, out->reasoning_sha256);
    if (json_object_get(reply, "reasoning_bytes") == NULL) return 0;
    TRY(record_need_hash(reply, "reasoning_sha256", where, out->reasoning_sha256, e));
    return read_size(reply, "reasoning_bytes", where, &out->reasoning_bytes, e);
}

static int read_words(const json_t *reply, const char *where, struct arena *a,
                      struct record_outcome *out, struct err *e) {
    TRY(json_get_bytes(reply, "text", where, a, &out->reply, e));
    if (json_object_get(reply, "reasoning") != NULL ||
        json_object_get(reply, "reasoning_base64") != NULL)
        TRY(json_get_bytes(reply, "reasoning", where, a, &out->reasoning, e));
    out->reply_bytes = out->reply.n;
    out->reasoning_bytes = out->reasoning.n;
    return 0;
}

void record_words_write(const struct record_outcome *o, json_t *reply) {
    if (o->forgotten) {
        write_forgotten(o, reply);
        return;
    }
    json_put_bytes(reply, "text", o->reply);
    if (o->reasoning.n > 0) json_put_bytes(reply, "reasoning", o->reasoning);
}

int record_words_read(const json_t *reply, const char *where, struct arena *a,
                      struct record_outcome *out, struct err *e) {
    out->forgotten = json_object_get(reply, "sha256") != NULL;
    return out->forgotten ? read_forgotten(reply, where, out, e)
                          : read_words(reply, where, a, out, e);
}

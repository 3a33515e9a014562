#include "reports/record_evidence.h"

#include <string.h>

#define LAYERS_MOST 65536 // no model comes near
#define WHOLE 1000000     // parts per million

// ---- what is due -------------------------------------------------------------------------------

int record_standing(const struct record_trial *t, struct arena *a, const char ***out) {
    const char **names = arena_array(a, (size_t)t->span_count + 1, sizeof *names);
    int count = 0;
    for (int i = 0; i < t->span_count; i++) {
        int k = 0;
        while (k < count && strcmp(names[k], t->spans[i].constraint) != 0) k++;
        if (k == count) names[count++] = t->spans[i].constraint;
    }
    *out = names;
    return count;
}

// The word for one model: of a list "summary,off" the one at the model's place.
static bool has_word(const json_t *identity, const char *model, const char *word) {
    const char *words = json_string_value(json_object_get(identity, "evidence"));
    if (words == NULL) return strcmp(word, "off") == 0;
    size_t i;
    json_t *stored;
    json_array_foreach(json_object_get(identity, "models"), i, stored) {
        const char *id = json_string_value(json_object_get(stored, "id"));
        if (id != NULL && strcmp(id, model) == 0) break;
        const char *comma = strchr(words, ',');
        if (comma != NULL) words = comma + 1;
    }
    return strncmp(words, word, strlen(word)) == 0;
}

bool record_is_watched(const json_t *identity) {
    size_t i;
    json_t *stored;
    json_array_foreach(json_object_get(identity, "models"), i, stored) {
        const char *id = json_string_value(json_object_get(stored, "id"));
        if (id != NULL && !has_word(identity, id, "off")) return true;
    }
    return false;
}

bool record_evidence_due(const json_t *identity, const struct record_trial *t,
                         const struct record_outcome *o) {
    return o->status == STATUS_OK && t->span_count > 0 && !has_word(identity, t->model, "off");
}

void record_due_add(struct record_due *d, const struct record_outcome *o, struct arena *a) {
    d->trials = arena_more(a, d->trials, (size_t)d->count, sizeof *d->trials);
    d->attempts = arena_more(a, d->attempts, (size_t)d->count, sizeof *d->attempts);
    d->trials[d->count] = o->trial;
    d->attempts[d->count++] = o->attempt;
}

// ---- writing -----------------------------------------------------------------------------------

static json_t *share(int32_t ppm) {
    return ppm == RECORD_NO_SHARE ? json_null() : json_integer(ppm);
}

static const char *const row_names[ROWS_COUNT] = {"prompt", "reply", "reply_max"};

static void put_shares(json_t *o, const struct record_shares *s) {
    for (int i = 0; i < ROWS_COUNT; i++) json_put(o, row_names[i], share(s->of[i]));
}

static json_t *write_strongest(const struct record_attention *t) {
    json_t *list = json_array();
    for (int i = 0; i < t->strongest_count; i++) {
        json_t *o = json_object();
        json_put(o, "layer", json_integer(t->strongest[i].layer));
        json_put(o, "head", json_integer(t->strongest[i].head));
        put_shares(o, &t->strongest[i].shares);
        json_array_append_new(list, o);
    }
    return list;
}

// {"prompt":[[of each head] of each layer],"reply":...,"reply_max":...}
static json_t *write_all(const struct record_evidence *v, const struct record_attention *t) {
    json_t *all = json_object();
    for (int which = 0; which < ROWS_COUNT; which++) {
        json_t *layers = json_array();
        for (int l = 0; l < v->layers; l++) {
            json_t *heads = json_array();
            for (int h = 0; h < v->heads; h++)
                json_array_append_new(heads, share(t->all[l * v->heads + h].of[which]));
            json_array_append_new(layers, heads);
        }
        json_put(all, row_names[which], layers);
    }
    return all;
}

json_t *record_evidence_write(const struct record_evidence *v, int64_t trial, const char *key,
                              int attempt) {
    json_t *line = json_object(), *list = json_array();
    json_put(line, "trial", json_integer(trial));
    json_put(line, "key", json_text_c(key));
    json_put(line, "attempt", json_integer(attempt));
    json_put(line, "layers", json_integer(v->layers));
    json_put(line, "heads", json_integer(v->heads));
    for (int i = 0; i < v->attention_count; i++) {
        const struct record_attention *t = &v->attention[i];
        json_t *o = json_object(), *tokens = json_object(), *mean = json_object();
        json_put(tokens, "prompt", share(t->prompt_tokens));
        json_put(tokens, "reply", share(t->reply_tokens));
        put_shares(mean, &t->mean);
        json_put(o, "constraint", json_text_c(t->constraint));
        json_put(o, "tokens", tokens);
        json_put(o, "mean", mean);
        json_put(o, "strongest", write_strongest(t));
        if (t->all != NULL) json_put(o, "all", write_all(v, t));
        json_array_append_new(list, o);
    }
    json_put(line, "constraints", list);
    return line;
}

// ---- reading -----------------------------------------------------------------------------------

static int read_share(const json_t *value, const char *key, const char *where, int32_t *out,
                      struct err *e) {
    *out = RECORD_NO_SHARE;
    if (json_is_null(value)) return 0;
    json_int_t ppm = json_integer_value(value);
    if (!json_is_integer(value) || ppm < 0 || ppm > WHOLE)
        FAIL(e, ERR_INPUT, "%s: \"%s\" is no share in parts per million", where, key);
    *out = (int32_t)ppm;
    return 0;
}

static int read_shares(const json_t *o, const char *where, struct record_shares *out,
                       struct err *e) {
    for (int which = 0; which < ROWS_COUNT; which++)
        TRY(read_share(json_object_get(o, row_names[which]), row_names[which], where,
                       &out->of[which], e));
    return 0;
}

static int read_strongest(const json_t *o, const char *where, const struct record_evidence *v,
                          struct arena *a, struct record_attention *out, struct err *e) {
    json_t *list;
    TRY(json_need_array(o, "strongest", where, &list, e));
    size_t count = json_array_size(list);
    out->strongest = arena_array(a, count + 1, sizeof *out->strongest);
    out->strongest_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *head = json_array_get(list, i);
        struct record_head *to = &out->strongest[i];
        int64_t layer, number;
        TRY(record_need_range(head, "layer", where, 0, v->layers - 1, &layer, e));
        TRY(record_need_range(head, "head", where, 0, v->heads - 1, &number, e));
        to->layer = (int)layer;
        to->head = (int)number;
        TRY(read_shares(head, where, &to->shares, e));
    }
    return 0;
}

static int read_all(const json_t *all, const char *where, const struct record_evidence *v,
                    struct arena *a, struct record_attention *out, struct err *e) {
    for (int which = 0; which < ROWS_COUNT; which++) {
        const json_t *layers = json_object_get(all, row_names[which]);
        bool whole = json_array_size(layers) == (size_t)v->layers;
        for (int l = 0; whole && l < v->layers; l++)
            whole = json_array_size(json_array_get(layers, (size_t)l)) == (size_t)v->heads;
        if (!whole)
            FAIL(e, ERR_INPUT, "%s: \"%s\" of \"all\" is not %d layers of %d heads", where,
                 row_names[which], v->layers, v->heads);
        if (out->all == NULL)
            out->all = arena_array(a, (size_t)v->layers * (size_t)v->heads, sizeof *out->all);
        for (int l = 0; l < v->layers; l++)
            for (int h = 0; h < v->heads; h++)
                TRY(read_share(json_array_get(json_array_get(layers, (size_t)l), (size_t)h),
                               row_names[which], where, &out->all[l * v->heads + h].of[which], e));
    }
    return 0;
}

static int read_attention(const json_t *o, const char *where, const struct record_evidence *v,
                          const char *constraint, struct arena *a, struct record_attention *out,
                          struct err *e) {
    const char *name;
    json_t *tokens, *mean;
    TRY(json_need_string(o, "constraint", where, &name, e));
    if (strcmp(name, constraint) != 0)
        FAIL(e, ERR_INPUT, "%s: has the constraint %.60s where the plan has %.60s", where, name,
             constraint);
    out->constraint = constraint;
    TRY(json_need_object(o, "tokens", where, &tokens, e));
    TRY(read_share(json_object_get(tokens, "prompt"), "prompt", where, &out->prompt_tokens, e));
    TRY(read_share(json_object_get(tokens, "reply"), "reply", where, &out->reply_tokens, e));
    TRY(json_need_object(o, "mean", where, &mean, e));
    TRY(read_shares(mean, where, &out->mean, e));
    TRY(read_strongest(o, where, v, a, out, e));
    const json_t *all = json_object_get(o, "all");
    return all == NULL ? 0 : read_all(all, where, v, a, out, e);
}

// All heads stand in a line where the identity says so, and nowhere else.
static int check_extent(const struct record_evidence *v, const char *where, bool full,
                        struct err *e) {
    for (int i = 0; i < v->attention_count; i++)
        if ((v->attention[i].all != NULL) != full)
            FAIL(e, ERR_INPUT, "%s: %.60s has %s heads; identity.json says evidence: %s", where,
                 v->attention[i].constraint, full ? "not all" : "all", full ? "full" : "summary");
    return 0;
}

int record_evidence_read(const json_t *o, const json_t *identity, const char *where,
                         const struct record_trial *t, struct arena *a, struct record_evidence *out,
                         struct err *e) {
    int64_t layers, heads;
    json_t *list;
    const char **standing;
    int count = record_standing(t, a, &standing);
    *out = (struct record_evidence){.attention_count = count};
    TRY(record_need_range(o, "layers", where, 1, LAYERS_MOST, &layers, e));
    TRY(record_need_range(o, "heads", where, 1, LAYERS_MOST, &heads, e));
    out->layers = (int)layers;
    out->heads = (int)heads;
    TRY(json_need_array(o, "constraints", where, &list, e));
    if (json_array_size(list) != (size_t)count)
        FAIL(e, ERR_INPUT, "%s: tells of %zu constraints, the plan of %d", where,
             json_array_size(list), count);
    out->attention = arena_array(a, (size_t)count + 1, sizeof *out->attention);
    for (int i = 0; i < count; i++)
        TRY(read_attention(json_array_get(list, (size_t)i), where, out, standing[i], a,
                           &out->attention[i], e));
    return check_extent(out, where, has_word(identity, t->model, "full"), e);
}

static int check_due(const json_t *o, const char *where, int64_t number,
                     const struct record_due *due, struct err *e) {
    int64_t trial, attempt;
    TRY(record_need_range(o, "trial", where, 0, INT64_MAX, &trial, e));
    TRY(record_need_range(o, "attempt", where, 1, INT32_MAX, &attempt, e));
    if (trial != due->trials[number] || attempt != due->attempts[number])
        FAIL(e, ERR_RECORD,
             "%s: is of trial %lld, attempt %lld, where the ledger has trial %lld, attempt %d",
             where, (long long)trial, (long long)attempt, (long long)due->trials[number],
             due->attempts[number]);
    return 0;
}

// Line number `number` by itself: JSON, number, chain, the trial and attempt that are due, fields.
static int check_line(struct str line, const char *where, int64_t number, const char *previous,
                      const struct record_due *due, const struct record_trial *trials,
                      struct arena *a, struct err *e) {
    json_t *o = NULL;
    struct record_evidence ignored;
    int result = json_parse(line, where, &o, e);
    if (result == 0) result = record_check_link(o, where, number, previous, e);
    if (result == 0) result = check_due(o, where, number, due, e);
    if (result == 0)
        result = record_evidence_read(o, due->identity, where, &trials[due->trials[number]], a,
                                      &ignored, e);
    json_decref(o);
    if (result != 0 && e != NULL && e->code == ERR_INPUT) e->code = ERR_RECORD;
    return result;
}

// ---- of a whole record -------------------------------------------------------------------------

int record_evidence_start(struct record_evidence_lines *l, const char *path,
                          const char identity_sha256[HASH_HEX_SIZE], const struct record_due *due,
                          struct err *e) {
    *l = (struct record_evidence_lines){0};
    if (due->count > 0 && !file_exists(path))
        FAIL(e, ERR_RECORD, "%s: is missing; the ledger has %lld outcome%s with a line in it", path,
             (long long)due->count, due->count == 1 ? "" : "s");
    TRY(record_lines_open(path, &l->file, e));
    l->behind = l->file.map.bytes;
    memcpy(l->last_sha256, identity_sha256, HASH_HEX_SIZE);
    return 0;
}

bool record_evidence_next(struct record_evidence_lines *l, const struct record_due *due,
                          const struct record_trial *trials, struct arena *scratch,
                          struct str *line, int *result, struct err *e) {
    char where[RECORD_WHERE_BYTES];
    if (l->count == due->count || !record_lines_next(&l->file, line, where)) return false;
    *result = check_line(*line, where, l->count, l->last_sha256, due, trials, scratch, e);
    hash_bytes(line->p, line->n, l->last_sha256);
    l->count++;
    l->bytes += line->n;
    l->behind -= line->n;
    return true;
}

static int read_lines(const struct record *r, const struct record_due *due,
                      struct record_evidence_lines *l, struct arena *a, struct err *e) {
    struct arena *scratch = arena_create("evidence");
    struct str line;
    int result = 0;
    l->of = arena_array(a, (size_t)r->trial_count, sizeof *l->of);
    while (result == 0 && record_evidence_next(l, due, r->trials, scratch, &line, &result, e)) {
        l->of[due->trials[l->count - 1]] = line;
        arena_reset(scratch);
    }
    arena_destroy(scratch);
    if (result == 0 && l->count < due->count)
        result =
            ERR_SET(e, ERR_RECORD, "%s: ends before the evidence of %.200s, which the ledger has",
                    l->file.path, r->trials[due->trials[l->count]].key);
    return result;
}

int record_evidence_open(const struct record *r, const struct record_due *due, struct arena *a,
                         struct record_evidence_lines **out, char sha256[HASH_HEX_SIZE],
                         struct err *e) {
    struct record_evidence_lines *l = arena_alloc(a, sizeof *l);
    TRY(record_evidence_start(l, path_join(a, r->folder, "evidence.jsonl"), r->identity_sha256, due,
                              e));
    if (read_lines(r, due, l, a, e) != 0) {
        record_evidence_close(l);
        return -1;
    }
    hash_bytes(l->file.map.p, l->bytes, sha256);
    *out = l;
    return 0;
}

void record_evidence_close(struct record_evidence_lines *l) {
    if (l != NULL) record_lines_close(&l->file);
}

int record_get_evidence(const struct record *r, int64_t trial, struct arena *a,
                        const struct record_evidence **out, struct err *e) {
    *out = NULL;
    if (r->evidence == NULL || r->evidence->of[trial].n == 0) return 0;
    struct record_evidence *v = arena_alloc(a, sizeof *v);
    json_t *o = NULL;
    const char *where = r->evidence->file.path;
    TRY(json_parse(r->evidence->of[trial], where, &o, e));
    int result = record_evidence_read(o, r->identity, where, &r->trials[trial], a, v, e);
    json_decref(o);
    *out = v;
    return result;
}

bool record_same_evidence(const struct record_evidence *a, const struct record_evidence *b) {
    json_t *left = record_evidence_write(a, 0, "", 0), *right = record_evidence_write(b, 0, "", 0);
    bool same = json_equal(left, right);
    json_decref(left);
    json_decref(right);
    return same;
}

#include "reports/baseline_file.h"

#include "engine/base/file.h"
#include "reports/record_map.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define FILE_BYTES_MOST ((size_t)1 << 30)
#define KEY_BYTES_MOST 1000
#define CONSTRAINTS_MOST 1000

static const char letters[] = "movu-"; // in the order of enum verdict, then: not judged there

bool baseline_judged(const struct baseline_trial *t, int constraint) {
    return t->verdicts[constraint] != '-';
}

enum verdict baseline_verdict(const struct baseline_trial *t, int constraint) {
    const char *at = strchr(letters, t->verdicts[constraint]);
    assert(at != NULL && baseline_judged(t, constraint));
    return (enum verdict)(at - letters);
}

static void cut_hash(const char *hex, char out[BASELINE_HASH_SIZE]) {
    memcpy(out, hex, BASELINE_HASH_SIZE - 1);
    out[BASELINE_HASH_SIZE - 1] = '\0';
}

static bool is_cut_hash(const char *text) {
    return strlen(text) == BASELINE_HASH_SIZE - 1 &&
           strspn(text, "0123456789abcdef") == BASELINE_HASH_SIZE - 1;
}

// ---- what both origins share ----

static int take_models(struct baseline *b, struct arena *a, struct err *e) {
    json_t *list;
    TRY(json_need_array(b->identity, "models", b->path, &list, e));
    b->models = arena_array(a, json_array_size(list) + 1, sizeof *b->models);
    b->noise = arena_array(a, json_array_size(list) + 1, sizeof *b->noise);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *id;
        TRY(json_need_string(json_array_get(list, i), "id", b->path, &id, e));
        if (b->record != NULL) b->noise[i] = record_noise(b->record, id);
        b->models[b->model_count++] = arena_strdup(a, id);
    }
    return 0;
}

// The key's first two fields; the rest of it is only ever compared.
static int take_key(const struct baseline *b, const char *where, struct baseline_trial *t,
                    struct err *e) {
    const char *slash = strchr(t->key, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - t->key);
    t->model = -1;
    for (int i = 0; i < b->model_count; i++)
        if (strlen(b->models[i]) == n && strncmp(b->models[i], t->key, n) == 0) t->model = i;
    if (slash == NULL || t->model < 0)
        FAIL(e, ERR_RECORD, "%s: the key %.200s begins with no model of the identity", where,
             t->key);
    t->cell = slash + 1;
    t->placed = strncmp(t->cell, "placed/", 7) == 0;
    return 0;
}

void baseline_close(struct baseline *b) {
    json_decref(b->identity);
    b->identity = NULL;
}

// ---- from a record ----

static int find_constraint(const struct baseline *b, const char *id) {
    for (int k = 0; k < b->constraint_count; k++)
        if (strcmp(b->constraints[k], id) == 0) return k;
    return -1;
}

// Those that any outcome has a verdict on; a placement may leave some out.
static void take_constraints(struct baseline *b, struct arena *a) {
    const struct record *r = b->record;
    for (int64_t i = 0; i < r->trial_count; i++) {
        const struct record_outcome *o = r->outcomes[i];
        for (int k = 0; o != NULL && k < o->verdict_count; k++) {
            if (find_constraint(b, o->verdicts[k].constraint) >= 0) continue;
            b->constraints =
                arena_more(a, b->constraints, (size_t)b->constraint_count, sizeof *b->constraints);
            b->constraints[b->constraint_count++] = o->verdicts[k].constraint;
        }
    }
}

static const char *take_verdicts(const struct baseline *b, const struct record_outcome *o,
                                 struct arena *a) {
    char *text = arena_alloc(a, (size_t)b->constraint_count + 1);
    memset(text, '-', (size_t)b->constraint_count);
    for (int k = 0; k < o->verdict_count; k++)
        text[find_constraint(b, o->verdicts[k].constraint)] = letters[o->verdicts[k].verdict];
    return text;
}

static int take_outcome(const struct baseline *b, const struct record_trial *p,
                        const struct record_outcome *o, struct arena *a, struct baseline_trial *t,
                        struct err *e) {
    *t = (struct baseline_trial){.key = p->key,
                                 .length = p->length,
                                 .repeat = p->repeat,
                                 .status = o->status,
                                 .finish = "",
                                 .trial = p->trial};
    TRY(take_key(b, b->path, t, e));
    cut_hash(p->prompt_sha256, t->prompt);
    if (o->status != STATUS_OK) return 0;
    char hex[HASH_HEX_SIZE];
    t->verdicts = take_verdicts(b, o, a);
    record_reply_sha256(o, hex);
    cut_hash(hex, t->reply);
    if (o->ids != NULL) {
        hash_ids(o->ids, o->id_count, hex);
        cut_hash(hex, t->ids);
    }
    t->finish = o->finish;
    return 0;
}

int baseline_of_record(const struct record *r, struct arena *a, struct baseline *out,
                       struct err *e) {
    const char *name = json_string_value(json_object_get(r->identity, "experiment"));
    *out = (struct baseline){.path = r->folder,
                             .experiment = name == NULL ? "" : arena_strdup(a, name),
                             .identity = json_incref(r->identity),
                             .record = r};
    memcpy(out->identity_sha256, r->identity_sha256, HASH_HEX_SIZE);
    memcpy(out->ledger_sha256, r->ledger_sha256, HASH_HEX_SIZE);
    int result = take_models(out, a, e);
    take_constraints(out, a);
    out->trials = arena_array(a, (size_t)r->trial_count + 1, sizeof *out->trials);
    for (int64_t i = 0; result == 0 && i < r->trial_count; i++) {
        const struct record_outcome *o = r->outcomes[i];
        if (o == NULL) continue;
        result = take_outcome(out, &r->trials[i], o, a, &out->trials[out->trial_count++], e);
    }
    if (result != 0) baseline_close(out);
    return result;
}

// ---- to a file ----

static json_t *noise_json(const struct baseline *b) {
    json_t *list = json_array();
    for (int i = 0; i < b->model_count; i++) {
        const struct record_noise *n = &b->noise[i];
        if (n->asked == 0) continue;
        json_t *o = json_object();
        json_put(o, "model", json_text_c(b->models[i]));
        json_put(o, "requests", json_integer(n->asked));
        json_put(o, "same_text", json_integer(n->same_text));
        json_put(o, "same_verdicts", json_integer(n->same_verdicts));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *head_json(const struct baseline *b) {
    json_t *o = json_object(), *constraints = json_array();
    for (int i = 0; i < b->constraint_count; i++)
        json_array_append_new(constraints, json_text_c(b->constraints[i]));
    json_put(o, "lacuna_baseline", json_integer(BASELINE_FORMAT));
    json_put(o, "experiment", json_text_c(b->experiment));
    json_put(o, "constraints", constraints);
    json_put(o, "trials", json_integer(b->trial_count));
    json_put(o, "identity_sha256", json_text_c(b->identity_sha256));
    json_put(o, "ledger_sha256", json_text_c(b->ledger_sha256));
    json_t *noise = noise_json(b);
    if (json_array_size(noise) > 0) json_object_set(o, "noise", noise);
    json_decref(noise);
    json_put(o, "identity", json_incref(b->identity));
    return o;
}

static json_t *trial_json(const struct baseline_trial *t) {
    json_t *o = json_object();
    json_put(o, "key", json_text_c(t->key));
    json_put(o, "length", t->length < 0 ? json_null() : json_integer(t->length));
    json_put(o, "repeat", json_integer(t->repeat));
    json_put(o, "prompt", json_text_c(t->prompt));
    if (t->status != STATUS_OK) {
        json_put(o, "status", json_text_c(record_status_name(t->status)));
        return o;
    }
    json_put(o, "verdicts", json_text_c(t->verdicts));
    json_put(o, "reply", json_text_c(t->reply));
    json_put(o, "ids", json_text_c(t->ids[0] == '\0' ? NULL : t->ids));
    json_put(o, "finish", json_text_c(t->finish));
    return o;
}

static void add_line(json_t *o, struct buf *out) {
    json_compact(o, out);
    buf_add_char(out, '\n');
    json_decref(o);
}

int baseline_write(const struct baseline *b, struct buf *out, struct err *e) {
    const struct record *r = b->record;
    if (r != NULL && r->partial)
        FAIL(e, ERR_RECORD,
             "%s: is partial (--only or --limit cut its plan), so it is no baseline; run the "
             "experiment without them",
             b->path);
    if (r != NULL && (r->torn || r->done_count < r->trial_count))
        FAIL(e, ERR_RECORD,
             "%s: is not finished (%lld of %lld trials), so it is no baseline; `lacuna run` with "
             "the same command goes on",
             b->path, (long long)r->done_count, (long long)r->trial_count);
    char hex[HASH_HEX_SIZE];
    size_t begin = out->n;
    add_line(head_json(b), out);
    for (int64_t i = 0; i < b->trial_count; i++) add_line(trial_json(&b->trials[i]), out);
    hash_bytes(out->p + begin, out->n - begin, hex);
    buf_printf(out, "{\"sha256\":\"%s\"}\n", hex);
    return 0;
}

// ---- from a file ----

struct reader {
    struct str text;
    size_t at;
    int64_t number;  // of the line read last, from 1
    char where[600]; // "PATH:NUMBER"
    struct arena *arena;
    struct buf spelled;
};

static int next_line(struct reader *in, const char *path, json_t **o, struct str *line,
                     struct err *e) {
    snprintf(in->where, sizeof in->where, "%.500s:%lld", path, (long long)++in->number);
    size_t end = str_find(in->text, STR("\n"), in->at);
    if (end == STR_NONE) FAIL(e, ERR_INPUT, "%s: the file is cut: a line is missing", in->where);
    *line = str_slice(in->text, in->at, end);
    in->at = end + 1;
    return json_parse(*line, in->where, o, e);
}

// The writer's own spelling, or somebody else wrote the line.
static int check_spelling(struct reader *in, struct str line, json_t *again, struct err *e) {
    buf_clear(&in->spelled);
    json_compact(again, &in->spelled);
    json_decref(again);
    if (!str_equal(line, buf_str(&in->spelled)))
        FAIL(e, ERR_INPUT, "%s: is not spelled as `lacuna baseline` writes it", in->where);
    return 0;
}

static int read_constraints(struct reader *in, const json_t *o, struct baseline *b, struct err *e) {
    json_t *list;
    TRY(json_need_array(o, "constraints", in->where, &list, e));
    size_t n = json_array_size(list);
    if (n > CONSTRAINTS_MOST) FAIL(e, ERR_INPUT, "%s: names %zu constraints", in->where, n);
    b->constraints = arena_array(in->arena, n + 1, sizeof *b->constraints);
    for (size_t i = 0; i < n; i++) {
        const char *id = json_string_value(json_array_get(list, i));
        if (id == NULL || strlen(id) != json_string_length(json_array_get(list, i)) ||
            id[0] == '\0')
            FAIL(e, ERR_INPUT, "%s: constraints[%zu] is no name", in->where, i);
        for (size_t k = 0; k < i; k++)
            if (strcmp(b->constraints[k], id) == 0)
                FAIL(e, ERR_INPUT, "%s: names the constraint '%.100s' twice", in->where, id);
        b->constraints[b->constraint_count++] = arena_strdup(in->arena, id);
    }
    return 0;
}

static int need_sha256(struct reader *in, const json_t *o, const char *key, char out[HASH_HEX_SIZE],
                       struct err *e) {
    const char *text;
    TRY(json_need_string(o, key, in->where, &text, e));
    if (!hash_is_hex(str_from(text)))
        FAIL(e, ERR_INPUT, "%s: \"%s\" is no SHA-256", in->where, key);
    memcpy(out, text, HASH_HEX_SIZE);
    return 0;
}

static int read_range(struct reader *in, const json_t *o, const char *key, int64_t most, int *out,
                      struct err *e) {
    int64_t value;
    TRY(json_need_integer(o, key, in->where, &value, e));
    if (value < 0 || value > most)
        FAIL(e, ERR_INPUT, "%s: \"%s\" is %lld, not 0 to %lld", in->where, key, (long long)value,
             (long long)most);
    *out = (int)value;
    return 0;
}

// What is of no model, or of one twice, is not spelled again.
static int read_noise(struct reader *in, const json_t *o, struct baseline *b, struct err *e) {
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(o, "noise"), i, item) {
        const char *model;
        TRY(json_need_string(item, "model", in->where, &model, e));
        for (int m = 0; m < b->model_count; m++) {
            struct record_noise *n = &b->noise[m];
            if (strcmp(b->models[m], model) != 0) continue;
            TRY(read_range(in, item, "requests", INT32_MAX, &n->asked, e));
            TRY(read_range(in, item, "same_text", n->asked, &n->same_text, e));
            TRY(read_range(in, item, "same_verdicts", n->asked, &n->same_verdicts, e));
        }
    }
    return 0;
}

static int read_head(struct reader *in, const json_t *o, struct baseline *b, struct err *e) {
    int64_t format, most = (int64_t)str_count(in->text, STR("\n"));
    const char *name;
    json_t *identity;
    if (json_need_integer(o, "lacuna_baseline", in->where, &format, NULL) != 0)
        FAIL(e, ERR_INPUT,
             "%s: is no baseline file (`lacuna baseline RUN -o FILE` writes one) and no run folder",
             b->path);
    if (format != BASELINE_FORMAT)
        FAIL(e, ERR_INPUT, "%s: has the format %lld; this program reads %d", in->where,
             (long long)format, BASELINE_FORMAT);
    TRY(json_need_string(o, "experiment", in->where, &name, e));
    b->experiment = arena_strdup(in->arena, name);
    TRY(read_constraints(in, o, b, e));
    TRY(json_need_integer(o, "trials", in->where, &b->trial_count, e));
    if (b->trial_count < 1 || b->trial_count != most - 2)
        FAIL(e, ERR_INPUT, "%s: says %lld trials; the file has %lld lines", in->where,
             (long long)b->trial_count, (long long)most);
    TRY(need_sha256(in, o, "identity_sha256", b->identity_sha256, e));
    TRY(need_sha256(in, o, "ledger_sha256", b->ledger_sha256, e));
    TRY(json_need_object(o, "identity", in->where, &identity, e));
    b->identity = json_incref(identity);
    TRY(take_models(b, in->arena, e));
    return read_noise(in, o, b, e);
}

static int need_cut_hash(struct reader *in, const json_t *o, const char *key, bool optional,
                         char out[BASELINE_HASH_SIZE], struct err *e) {
    const char *text;
    if (optional && json_is_null(json_object_get(o, key))) return 0;
    TRY(json_need_string(o, key, in->where, &text, e));
    if (!is_cut_hash(text)) FAIL(e, ERR_INPUT, "%s: \"%s\" is not 32 hex digits", in->where, key);
    memcpy(out, text, BASELINE_HASH_SIZE);
    return 0;
}

static int read_reply(struct reader *in, const json_t *o, const struct baseline *b,
                      struct baseline_trial *t, struct err *e) {
    const char *verdicts, *finish;
    TRY(json_need_string(o, "verdicts", in->where, &verdicts, e));
    if (strlen(verdicts) != (size_t)b->constraint_count ||
        strspn(verdicts, letters) != strlen(verdicts))
        FAIL(e, ERR_INPUT, "%s: \"verdicts\" is not one of the letters %s a constraint", in->where,
             letters);
    t->verdicts = arena_strdup(in->arena, verdicts);
    TRY(need_cut_hash(in, o, "reply", false, t->reply, e));
    TRY(need_cut_hash(in, o, "ids", true, t->ids, e));
    TRY(json_need_string(o, "finish", in->where, &finish, e));
    t->finish = arena_strdup(in->arena, finish);
    return 0;
}

static int read_status(struct reader *in, const json_t *o, struct baseline_trial *t,
                       struct err *e) {
    const char *status;
    TRY(json_need_string(o, "status", in->where, &status, e));
    static const enum record_status known[] = {STATUS_INVALID, STATUS_ERROR};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(status, record_status_name(known[i])) != 0) continue;
        t->status = known[i];
        return 0;
    }
    FAIL(e, ERR_INPUT, "%s: \"status\" is neither invalid nor error", in->where);
}

static int read_trial(struct reader *in, const json_t *o, const struct baseline *b,
                      struct baseline_trial *t, struct err *e) {
    const char *key;
    *t = (struct baseline_trial){.length = -1, .status = STATUS_OK, .finish = "", .trial = -1};
    TRY(json_need_string(o, "key", in->where, &key, e));
    if (strlen(key) > KEY_BYTES_MOST) FAIL(e, ERR_INPUT, "%s: the key is too long", in->where);
    t->key = arena_strdup(in->arena, key);
    TRY(take_key(b, in->where, t, e));
    if (!json_is_null(json_object_get(o, "length")))
        TRY(read_range(in, o, "length", INT32_MAX, &t->length, e));
    // A whole plan has at least one trial a repeat, so this bounds every array over repeats.
    TRY(read_range(in, o, "repeat", b->trial_count - 1, &t->repeat, e));
    TRY(need_cut_hash(in, o, "prompt", false, t->prompt, e));
    return json_object_get(o, "status") != NULL ? read_status(in, o, t, e)
                                                : read_reply(in, o, b, t, e);
}

static int read_trials(struct reader *in, struct baseline *b, struct err *e) {
    struct record_map *keys = record_map_open();
    struct str line;
    int result = 0;
    b->trials = arena_array(in->arena, (size_t)b->trial_count + 1, sizeof *b->trials);
    for (int64_t i = 0; result == 0 && i < b->trial_count; i++) {
        json_t *o = NULL;
        struct baseline_trial *t = &b->trials[i];
        result = next_line(in, b->path, &o, &line, e);
        if (result == 0) result = read_trial(in, o, b, t, e);
        if (result == 0) result = check_spelling(in, line, trial_json(t), e);
        if (result == 0 && !record_map_put(keys, t->key, i))
            result = ERR_SET(e, ERR_INPUT, "%s: the key %.200s is there twice", in->where, t->key);
        json_decref(o);
    }
    record_map_close(keys);
    return result;
}

// The last line's hash is looked at first: a cut or merged file is told from a wrong one.
static int check_tail(struct reader *in, const char *path, struct err *e) {
    static const struct str head = {"{\"sha256\":\"", 11};
    size_t n = head.n + HASH_HEX_SIZE - 1 + 3; // and "}\n
    char hex[HASH_HEX_SIZE];
    struct str tail = in->text.n < n ? STR("") : str_slice(in->text, in->text.n - n, in->text.n);
    if (!str_starts(tail, head) || !str_ends(tail, STR("\"}\n"))) {
        // A file of another kind is told so by its first line.
        if (!str_starts(in->text, STR(BASELINE_HEAD))) return 0;
        if (str_ends(tail, STR("\r\n")))
            FAIL(e, ERR_INPUT,
                 "%s: its lines end with carriage returns now: something changed the file, maybe "
                 "git; a line `*.jsonl -text` in .gitattributes keeps it from that",
                 path);
        FAIL(e, ERR_INPUT, "%s: the file is cut: its last line is no {\"sha256\":...}", path);
    }
    hash_bytes(in->text.p, in->text.n - n, hex);
    if (!str_equal_c(str_slice(tail, head.n, head.n + HASH_HEX_SIZE - 1), hex))
        FAIL(e, ERR_INPUT,
             "%s: was changed after it was written: its last line has another hash; write it again "
             "with `lacuna baseline`",
             path);
    return 0;
}

static int read_all(struct reader *in, struct baseline *b, struct err *e) {
    json_t *head = NULL;
    struct str line;
    TRY(check_tail(in, b->path, e));
    int result = next_line(in, b->path, &head, &line, e);
    if (result == 0) result = read_head(in, head, b, e);
    if (result == 0) result = check_spelling(in, line, head_json(b), e);
    json_decref(head);
    return result == 0 ? read_trials(in, b, e) : -1;
}

int baseline_read(const char *path, struct arena *a, struct baseline *out, struct err *e) {
    *out = (struct baseline){.path = arena_strdup(a, path)};
    struct file_map map;
    TRY(file_map_open(path, &map, e));
    struct reader in = {.text = {(const char *)map.p, map.bytes}, .arena = a};
    int result = 0;
    if (map.bytes == 0 || map.bytes > FILE_BYTES_MOST)
        result =
            ERR_SET(e, ERR_INPUT, "%s: is no baseline file: it has %zu bytes", path, map.bytes);
    if (result == 0) result = read_all(&in, out, e);
    if (result != 0) baseline_close(out);
    buf_free(&in.spelled);
    file_map_close(&map);
    return result;
}

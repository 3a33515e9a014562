#include "evals/score.h"

#include "engine/base/file.h"
#include "evals/judge.h"
#include "reports/record_line.h"

#include <string.h>

#define SCORES_BYTES_MOST ((size_t)1 << 30)

// ---- what may differ ----

static bool is_any_of(const char *key, const char *const *keys) {
    for (; *keys != NULL; keys++)
        if (strcmp(key, *keys) == 0) return true;
    return false;
}

// A copy without the keys that scoring may change or that only say where files are.
static json_t *without(const json_t *value, const char *const *keys) {
    if (json_is_array(value)) {
        json_t *copy = json_array();
        for (size_t i = 0; i < json_array_size(value); i++)
            json_array_append_new(copy, without(json_array_get(value, i), keys));
        return copy;
    }
    if (!json_is_object(value)) return json_deep_copy(value);
    json_t *copy = json_object();
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)value, key, member) if (!is_any_of(key, keys))
        json_put(copy, key, without(member, keys));
    return copy;
}

static void name_difference(const char *key, const json_t *recorded, const json_t *asked,
                            struct buf *names) {
    if (recorded != NULL && asked != NULL &&
        json_equal((json_t *)(uintptr_t)recorded, (json_t *)(uintptr_t)asked))
        return;
    buf_printf(names, "%s%s", names->n > 0 ? ", " : "", key);
}

int score_compatible(const json_t *recorded, const json_t *asked, struct err *e) {
    static const char *const scoring[] = {"effective_level",
                                          "gates",
                                          "primary",
                                          "tolerate",
                                          "value",
                                          "met",
                                          "violated",
                                          "answered",
                                          "ignore_case",
                                          "multiline",
                                          "dotall",
                                          "examples",
                                          "path",
                                          "paths",
                                          "fixture",
                                          "simulated",
                                          "file",
                                          "only",
                                          "limit",
                                          "check",
                                          "violated_check",
                                          "look_in",
                                          "api_key_env",
                                          "in_flight",
                                          "attempts",
                                          "reply_seconds",
                                          "stall_seconds",
                                          "stream",
                                          "ca_file",
                                          "price",
                                          NULL};
    json_t *then = without(recorded, scoring), *now = without(asked, scoring);
    struct buf names = {0};
    const char *key;
    json_t *value;
    json_object_foreach(then, key, value)
        name_difference(key, value, json_object_get(now, key), &names);
    json_object_foreach(now, key, value) if (json_object_get(then, key) == NULL)
        name_difference(key, NULL, value, &names);
    int result = 0;
    if (names.n > 0)
        result =
            ERR_SET(e, ERR_CONFIG,
                    "the experiment differs from the recorded one in more than its checks, "
                    "gates, primary contrast and tolerances: %s; replies to another experiment "
                    "cannot be scored by it",
                    names.p);
    buf_free(&names);
    json_decref(then);
    json_decref(now);
    return result;
}

// ---- the file ----

static json_t *header(const struct record *r, const struct experiment *x) {
    json_t *o = json_object(), *of = json_object();
    char hex[HASH_HEX_SIZE];
    json_put(of, "identity_sha256", json_text_c(r->identity_sha256));
    json_put(of, "ledger_sha256", json_text_c(r->ledger_sha256));
    json_put(of, "trials", json_integer(r->done_count));
    json_put(o, "format", json_integer(RECORD_FORMAT));
    json_put(o, "scores_of", of);
    experiment_checks_sha256(x, hex);
    json_put(o, "checks_sha256", json_text_c(hex));
    experiment_analysis_sha256(x, hex);
    json_put(o, "analysis_sha256", json_text_c(hex));
    static const char *const keys[] = {"constraints", "effective_level", "gates", "primary",
                                       "tolerate"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = json_object_get(x->resolved, keys[i]);
        if (value != NULL) json_put(o, keys[i], json_incref(value));
    }
    return o;
}

// Appends the line and moves `previous` on to it.
static void add_line(const json_t *line, struct buf *out, char previous[HASH_HEX_SIZE]) {
    size_t start = out->n;
    json_compact(line, out);
    buf_add_char(out, '\n');
    hash_bytes(out->p + start, out->n - start, previous);
}

static void add_outcome(const struct record_outcome *o, int64_t number, struct buf *out,
                        char previous[HASH_HEX_SIZE]) {
    json_t *whole = record_outcome_write(o, o->attempt), *line = json_object();
    json_put(line, "line", json_integer(number));
    json_put(line, "previous", json_text_c(previous));
    static const char *const keys[] = {"trial", "key", "attempt", "verdicts"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        json_put(line, keys[i], json_incref(json_object_get(whole, keys[i])));
    add_line(line, out, previous);
    json_decref(whole);
    json_decref(line);
}

static void note_changes(const struct record_outcome *o, const struct record_verdict *now,
                         int count, struct score_result *out) {
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < o->verdict_count; k++) {
            if (strcmp(o->verdicts[k].constraint, now[i].constraint) != 0) continue;
            if (o->verdicts[k].verdict == now[i].verdict) continue;
            out->changes[out->change_count++] = (struct score_change){
                o->key, now[i].constraint, o->verdicts[k].verdict, now[i].verdict};
        }
    }
}

static int score_all(struct record *r, const struct experiment *x, struct check_set **checks,
                     struct arena *a, struct buf *out, struct score_result *result, struct err *e) {
    result->changes = arena_array(a, (size_t)r->trial_count * (size_t)x->constraint_count + 1,
                                  sizeof *result->changes);
    for (int64_t i = 0; i < r->trial_count; i++) {
        struct record_outcome *o = r->outcomes[i];
        if (o == NULL || o->status != STATUS_OK) continue;
        struct reply reply = judge_reply_of(o);
        struct record_verdict *verdicts;
        int count;
        check_set_next(checks);
        if (judge_reply(x, *checks, &r->trials[i], &reply, a, &verdicts, &count, e) != 0)
            return err_prefix(e, "trial %s", o->key);
        note_changes(o, verdicts, count, result);
        struct record_outcome *scored = arena_alloc(a, sizeof *scored);
        *scored = *o;
        scored->verdicts = verdicts;
        scored->verdict_count = count;
        r->outcomes[i] = scored;
        add_outcome(scored, result->scored++, out, result->sha256);
    }
    return 0;
}

// A file of this name has these very bytes, unless somebody edited it: then it is refused.
static int write_scores(const char *path, struct str text, struct arena *a, bool *written,
                        struct err *e) {
    *written = !file_exists(path);
    if (*written) return file_write_atomic(path, text, e);
    struct str there;
    TRY(file_read(path, SCORES_BYTES_MOST, a, &there, e));
    if (!str_equal(there, text))
        FAIL(e, ERR_RECORD,
             "%s: exists and is not what scoring this record gives; it was edited or the program "
             "judges otherwise now. Move it away to write it again",
             path);
    return 0;
}

int score_record(struct record *r, const struct experiment *x, struct arena *a,
                 struct score_result *out, struct err *e) {
    *out = (struct score_result){0};
    struct buf text = {0};
    json_t *first = header(r, x);
    add_line(first, &text, out->sha256);
    json_decref(first);
    out->path = path_join(a, r->folder, arena_printf(a, "scores-%.12s.jsonl", out->sha256));
    struct check_set *checks = check_set_open();
    int result = score_all(r, x, &checks, a, &text, out, e);
    check_set_close(checks);
    if (result == 0) result = write_scores(out->path, buf_str(&text), a, &out->written, e);
    buf_free(&text);
    return result;
}

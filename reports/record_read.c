#include "reports/record_again.h"
#include "reports/record_evidence.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- lines -------------------------------------------------------------------------------------

static bool is_json(struct str line) {
    json_t *o = NULL;
    bool good = json_parse(line, "", &o, NULL) == 0;
    json_decref(o);
    return good;
}

// Takes a last line that is no JSON, and blank lines behind it, away from the text.
static void split_tail(struct record_lines *l) {
    struct str last = str_trim(l->text);
    size_t end = (size_t)(last.p - l->text.p) + last.n; // of what is not blank
    size_t begin = end;
    while (begin > 0 && l->text.p[begin - 1] != '\n') begin--;
    last = str_slice(l->text, begin, end);
    if (last.n == 0 || !is_json(last))
        end = begin;
    else
        end = str_find(l->text, STR("\n"), end) + 1;
    struct str all = {(const char *)l->map.p, l->map.bytes};
    l->text = str_slice(all, 0, end);
    l->tail = str_slice(all, end, all.n);
}

int record_lines_open(const char *path, struct record_lines *out, struct err *e) {
    *out = (struct record_lines){.path = path, .number = -1, .text = STR(""), .tail = STR("")};
    if (!file_exists(path)) return 0;
    TRY(file_map_open(path, &out->map, e));
    size_t end = out->map.bytes;
    const char *p = (const char *)out->map.p;
    while (end > 0 && p[end - 1] != '\n') end--;
    if (out->map.bytes == 0) return 0;
    out->text = (struct str){p, end};
    split_tail(out);
    return 0;
}

void record_lines_close(struct record_lines *l) {
    file_map_close(&l->map);
}

bool record_lines_next(struct record_lines *l, struct str *line, char where[RECORD_WHERE_BYTES]) {
    if (l->at >= l->text.n) return false;
    size_t end = str_find(l->text, STR("\n"), l->at);
    end = end == STR_NONE ? l->text.n : end + 1;
    *line = str_slice(l->text, l->at, end);
    l->at = end;
    l->number++;
    snprintf(where, RECORD_WHERE_BYTES, "%s:%lld", l->path, (long long)l->number + 1);
    return true;
}

// ---- one line ----------------------------------------------------------------------------------

// What is wrong with a line of a record is damage of the record, whatever the JSON reader calls it.
static int as_damage(int result, struct err *e) {
    if (result != 0 && e != NULL && e->code == ERR_INPUT) e->code = ERR_RECORD;
    return result;
}

int record_plan_line(struct str line, const char *where, int64_t number, struct arena *a,
                     struct record_trial *out, struct err *e) {
    json_t *o = NULL;
    int result = json_parse(line, where, &o, e);
    if (result == 0) result = record_trial_read(o, where, a, out, e);
    if (result == 0 && out->trial != number)
        result = ERR_SET(e, ERR_RECORD, "%s: has the trial number %lld instead of %lld", where,
                         (long long)out->trial, (long long)number);
    json_decref(o);
    return as_damage(result, e);
}

int record_check_link(const json_t *o, const char *where, int64_t number, const char *previous,
                      struct err *e) {
    int64_t said;
    char hash[HASH_HEX_SIZE];
    TRY(json_need_integer(o, "line", where, &said, e));
    TRY(record_need_hash(o, "previous", where, hash, e));
    if (said != number)
        FAIL(e, ERR_RECORD, "%s: has the line number %lld instead of %lld", where, (long long)said,
             (long long)number);
    if (strcmp(hash, previous) != 0)
        FAIL(e, ERR_RECORD,
             "%s: the chain is broken: \"previous\" is %.12s..., but the %s before hashes to "
             "%.12s...; a line was changed, removed or added",
             where, hash, number == 0 ? "identity" : "line", previous);
    return 0;
}

int record_ledger_line(struct str line, const char *where, int64_t number, const char *previous,
                       struct arena *a, struct record_outcome *out, struct err *e) {
    json_t *o = NULL;
    int result = json_parse(line, where, &o, e);
    if (result == 0) result = record_outcome_read(o, where, a, out, e);
    if (result == 0) result = record_check_link(o, where, number, previous, e);
    json_decref(o);
    return as_damage(result, e);
}

// ---- order -------------------------------------------------------------------------------------

void record_progress_start(struct record_progress *p, const struct record_trial *trials,
                           int64_t trial_count, struct arena *a) {
    *p = (struct record_progress){.trials = trials, .trial_count = trial_count};
    p->attempts = arena_array(a, (size_t)trial_count, sizeof *p->attempts);
    p->status = arena_array(a, (size_t)trial_count, sizeof *p->status);
}

int record_progress_add(struct record_progress *p, const struct record_outcome *o,
                        const char *where, struct err *e) {
    if (o->trial >= p->trial_count)
        FAIL(e, ERR_RECORD, "%s: names trial %lld; the plan has %lld", where, (long long)o->trial,
             (long long)p->trial_count);
    const char *key = p->trials[o->trial].key;
    if (strcmp(key, o->key) != 0)
        FAIL(e, ERR_RECORD, "%s: has the key %.200s; the plan says %.200s for trial %lld", where,
             o->key, key, (long long)o->trial);
    if (p->attempts[o->trial] + 1 != o->attempt)
        FAIL(e, ERR_RECORD, "%s: has attempt %d of trial %lld, of which %d are recorded", where,
             o->attempt, (long long)o->trial, p->attempts[o->trial]);
    if (o->attempt == 1 && o->trial != p->next)
        FAIL(e, ERR_RECORD, "%s: has trial %lld where trial %lld comes next", where,
             (long long)o->trial, (long long)p->next);
    if (o->attempt > 1 && p->next < p->trial_count)
        FAIL(e, ERR_RECORD, "%s: retries trial %lld before the last first attempt", where,
             (long long)o->trial);
    if (o->attempt > 1 && p->status[o->trial] != STATUS_ERROR)
        FAIL(e, ERR_RECORD, "%s: retries trial %lld, which did not end in error", where,
             (long long)o->trial);
    if (o->attempt == 1) p->next++;
    p->attempts[o->trial]++;
    p->status[o->trial] = (uint8_t)o->status;
    return 0;
}

// ---- a whole record ----------------------------------------------------------------------------

int record_identity_read(const char *path, json_t **o, char sha256[HASH_HEX_SIZE], struct err *e) {
    struct arena *a = arena_create("identity");
    struct str text;
    *o = NULL;
    int result = file_read(path, RECORD_SMALL_FILE_BYTES_MOST, a, &text, e);
    if (result == 0) result = json_parse(text, path, o, e);
    int64_t format = 0;
    char hash[HASH_HEX_SIZE];
    if (result == 0) result = json_need_integer(*o, "format", path, &format, e);
    if (result == 0 && format != RECORD_FORMAT)
        result =
            ERR_SET(e, ERR_RECORD, "%s: the record has format %lld; this program reads format %d",
                    path, (long long)format, RECORD_FORMAT);
    if (result == 0) result = record_need_hash(*o, "request_sha256", path, hash, e);
    if (result == 0) result = record_need_hash(*o, "plan_sha256", path, hash, e);
    if (result == 0) {
        hash_bytes(text.p, text.n, sha256);
    } else {
        json_decref(*o);
        *o = NULL;
    }
    arena_destroy(a);
    return as_damage(result, e);
}

static int read_plan(struct record *r, struct arena *a, struct err *e) {
    struct record_lines lines;
    const char *path = path_join(a, r->folder, "plan.jsonl");
    TRY(record_lines_open(path, &lines, e));
    char hex[HASH_HEX_SIZE], where[RECORD_WHERE_BYTES];
    hash_bytes(lines.map.p, lines.map.bytes, hex);
    const char *said = json_string_value(json_object_get(r->identity, "plan_sha256"));
    int result = 0;
    if (strcmp(said, hex) != 0)
        result = ERR_SET(e, ERR_RECORD, "%s: hashes to %.12s...; identity.json says %.12s...", path,
                         hex, said);
    size_t most = lines.text.n == 0 ? 0 : str_count(lines.text, STR("\n"));
    r->trials = arena_array(a, most, sizeof *r->trials);
    struct str line;
    while (result == 0 && record_lines_next(&lines, &line, where)) {
        struct record_trial *t = &r->trials[r->trial_count];
        result = record_plan_line(line, where, r->trial_count, a, t, e);
        if (result == 0 && !record_map_put(r->keys, t->key, r->trial_count))
            result = ERR_SET(e, ERR_RECORD, "%s: the key %.200s stands in the plan twice", where,
                             t->key);
        r->trial_count++;
    }
    record_lines_close(&lines);
    return result;
}

int record_check_kept(const struct record_outcome *o, bool drops_replies, const char *where,
                      struct err *e) {
    if (o->finish == NULL || o->forgotten == drops_replies) return 0;
    FAIL(e, ERR_RECORD, "%s: has %s reply; identity.json says that replies are %s", where,
         drops_replies ? "a" : "no", drops_replies ? "not kept" : "kept");
}

static int read_ledger(struct record *r, struct arena *a, struct record_due *due, struct err *e) {
    struct record_lines lines;
    const char *path = path_join(a, r->folder, "trials.jsonl");
    TRY(record_lines_open(path, &lines, e));
    r->torn = lines.tail.n > 0;
    r->ledger_bytes = lines.text.n;
    r->outcomes = arena_array(a, (size_t)r->trial_count, sizeof *r->outcomes);
    hash_bytes(lines.text.p, lines.text.n, r->ledger_sha256);
    struct record_progress progress;
    record_progress_start(&progress, r->trials, r->trial_count, a);
    char previous[HASH_HEX_SIZE], where[RECORD_WHERE_BYTES];
    memcpy(previous, r->identity_sha256, sizeof previous);
    int result = 0;
    struct str line;
    while (result == 0 && record_lines_next(&lines, &line, where)) {
        struct record_outcome *o = arena_alloc(a, sizeof *o);
        result = record_ledger_line(line, where, r->attempt_count, previous, a, o, e);
        if (result == 0) result = record_progress_add(&progress, o, where, e);
        if (result == 0) result = record_check_kept(o, r->drops_replies, where, e);
        if (result != 0) break;
        hash_bytes(line.p, line.n, previous);
        r->outcomes[o->trial] = o;
        r->attempt_count++;
        if (record_evidence_due(r->identity, &r->trials[o->trial], o)) record_due_add(due, o, a);
    }
    r->done_count = progress.next;
    memcpy(r->last_sha256, previous, sizeof previous);
    record_lines_close(&lines);
    return result;
}

static int read_maybe(const char *path, json_t **out, struct err *e) {
    return file_exists(path) ? json_read_file(path, RECORD_SMALL_FILE_BYTES_MOST, out, e) : 0;
}

bool record_drops(const json_t *identity, const char *what) {
    const json_t *word = json_object_get(json_object_get(identity, "retain"), what);
    return json_is_string(word) && strcmp(json_string_value(word), "none") == 0;
}

static int read_all(struct record *r, struct arena *a, struct err *e) {
    const char *identity = path_join(a, r->folder, "identity.json");
    if (!file_exists(identity))
        FAIL(e, ERR_RECORD,
             "%s: is not the record of a run, or of one that ended before its plan was complete: "
             "it has no identity.json",
             r->folder);
    TRY(record_identity_read(identity, &r->identity, r->identity_sha256, e));
    TRY(read_maybe(path_join(a, r->folder, "manifest.json"), &r->manifest, e));
    TRY(read_maybe(path_join(a, r->folder, "resolved.json"), &r->resolved, e));
    r->drops_prompts = record_drops(r->identity, "prompts");
    r->drops_replies = record_drops(r->identity, "replies");
    r->partial = json_is_true(json_object_get(r->identity, "partial"));
    TRY(read_plan(r, a, e));
    if (file_exists(path_join(a, r->folder, "inputs/index.jsonl")))
        TRY(record_inputs_open(r->folder, &r->inputs, e));
    struct record_due due = {.identity = r->identity};
    TRY(read_ledger(r, a, &due, e));
    TRY(record_again_open(r->folder, r->identity, r->identity_sha256, r->trials, r->trial_count, a,
                          &r->again, e));
    if (r->again != NULL) memcpy(r->again_sha256, r->again->sha256, HASH_HEX_SIZE);
    if (!record_is_watched(r->identity)) return 0;
    return record_evidence_open(r, &due, a, &r->evidence, r->evidence_sha256, e);
}

int record_open(const char *folder, struct arena *a, struct record **out, struct err *e) {
    struct record *r = arena_alloc(a, sizeof *r);
    r->folder = arena_strdup(a, folder);
    r->keys = record_map_open();
    if (as_damage(read_all(r, a, e), e) != 0) {
        record_close(r);
        return -1;
    }
    *out = r;
    return 0;
}

void record_close(struct record *r) {
    if (r == NULL) return;
    json_decref(r->identity);
    json_decref(r->manifest);
    json_decref(r->resolved);
    record_map_close(r->keys);
    record_map_close(r->prompt_trials);
    record_inputs_close(r->inputs);
    record_evidence_close(r->evidence);
}

int64_t record_find(const struct record *r, const char *key) {
    return record_map_get(r->keys, key);
}

// Of the reply, or of what was given apart as thought.
static void hash_of(const struct record_outcome *o, bool thought, char hex[HASH_HEX_SIZE]) {
    struct str text = thought ? o->reasoning : o->reply;
    if (o->forgotten)
        memcpy(hex, thought ? o->reasoning_sha256 : o->reply_sha256, HASH_HEX_SIZE);
    else
        hash_bytes(text.p, text.n, hex);
}

void record_reply_sha256(const struct record_outcome *o, char hex[HASH_HEX_SIZE]) {
    hash_of(o, false, hex);
}

bool record_same_words(const struct record_outcome *a, const struct record_outcome *b) {
    char left[HASH_HEX_SIZE], right[HASH_HEX_SIZE];
    if (!a->forgotten && !b->forgotten)
        return str_equal(a->reply, b->reply) && str_equal(a->reasoning, b->reasoning);
    for (int thought = 0; thought < 2; thought++) {
        hash_of(a, thought == 1, left);
        hash_of(b, thought == 1, right);
        if (strcmp(left, right) != 0) return false;
    }
    return true;
}

bool record_same_reply(const struct record_outcome *a, const struct record_outcome *b) {
    if (a->status != b->status || a->tokens != b->tokens || a->id_count != b->id_count ||
        (a->finish == NULL) != (b->finish == NULL))
        return false;
    return (a->id_count == 0 || memcmp(a->ids, b->ids, a->id_count * sizeof *a->ids) == 0) &&
           record_same_words(a, b) && (a->finish == NULL || strcmp(a->finish, b->finish) == 0);
}

int record_take_plan(struct record *r, struct record_trial *trials,
                     const struct record_prompt *prompts, int64_t count, struct err *e) {
    if (count != r->trial_count)
        FAIL(e, ERR_RECORD, "%s: has a plan of %lld trials; made again it has %lld", r->folder,
             (long long)r->trial_count, (long long)count);
    r->prompt_trials = record_map_open();
    for (int64_t i = 0; i < count; i++) {
        const struct record_trial *then = &r->trials[i], *now = &trials[i];
        if (strcmp(then->key, now->key) != 0 ||
            strcmp(then->prompt_sha256, now->prompt_sha256) != 0 ||
            strcmp(then->ids_sha256, now->ids_sha256) != 0 || strcmp(then->seed, now->seed) != 0)
            FAIL(e, ERR_RECORD,
                 "%s: keeps no prompts, and made again that of %.200s is another one (%.12s... "
                 "then, %.12s... now); a file that the experiment names or this build has changed",
                 r->folder, then->key, then->prompt_sha256, now->prompt_sha256);
        record_map_put(r->prompt_trials, now->prompt_sha256, i);
    }
    r->trials = trials;
    r->prompts = prompts;
    return 0;
}

static int get_taken(const struct record *r, const char *prompt_sha256, struct arena *a,
                     struct record_part **parts, size_t *count, struct str *text, struct err *e) {
    const int64_t trial = record_map_get(r->prompt_trials, prompt_sha256);
    if (trial < 0) FAIL(e, ERR_RECORD, "%s: has no prompt %.12s...", r->folder, prompt_sha256);
    const struct record_prompt *p = &r->prompts[trial];
    struct buf whole = {0};
    *count = p->count;
    *parts = arena_array(a, p->count + 1, sizeof **parts);
    for (size_t i = 0; i < p->count; i++) {
        (*parts)[i] = p->parts[i];
        buf_add_str(&whole, p->parts[i].text);
    }
    *text = buf_take(&whole, a);
    return 0;
}

int record_get_prompt(const struct record *r, const char *prompt_sha256, struct arena *a,
                      struct record_part **parts, size_t *count, struct str *text, struct err *e) {
    if (r->prompts != NULL) return get_taken(r, prompt_sha256, a, parts, count, text, e);
    if (r->drops_prompts)
        FAIL(e, ERR_RECORD,
             "%s: the record keeps no prompts (retain: {prompts: none}); with the experiment's "
             "file, `lacuna prompt FILE KEY` makes them again",
             r->folder);
    if (r->inputs == NULL)
        FAIL(e, ERR_RECORD, "%s: the record was passed on without its prompts (inputs/)",
             r->folder);
    return record_inputs_prompt(r->inputs, prompt_sha256, a, parts, count, text, e);
}

bool record_has_prompts(const struct record *r) {
    return r->inputs != NULL;
}

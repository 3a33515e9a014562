// Taking a run folder, planning into it, and the step from a plan to a ledger.
#include "reports/record_write.h"

#include "engine/base/clock.h"
#include "engine/base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_FLUSH_BYTES ((size_t)1 << 20)

char *record_path(struct record_writer *w, const char *name) {
    return path_join(w->arena, w->folder, name);
}

// ---- whose folder is it ------------------------------------------------------------------------

// What a killed process may leave besides files of the record.
static bool is_left_over(const char *name) {
    return strcmp(name, "lock") == 0 || strstr(name, ".tmp-") != NULL;
}

// A folder that somebody made for us and a folder whose run was killed at once look alike: empty.
static int find_state(struct record_writer *w, enum record_state *state, struct err *e) {
    char **names;
    size_t count;
    TRY(file_list(w->folder, w->arena, &names, &count, e));
    if (file_exists(record_path(w, "identity.json"))) {
        *state = RECORD_RUNNING;
        return 0;
    }
    *state = file_exists(record_path(w, "planning.json")) ? RECORD_PLANNING : RECORD_NEW;
    for (size_t i = 0; i < count && *state == RECORD_NEW; i++)
        if (!is_left_over(names[i]))
            FAIL(
                e, ERR_RECORD,
                "%s: is not the folder of a run (it has %.100s and no identity.json); name another "
                "folder with -o",
                w->folder, names[i]);
    return 0;
}

static int remove_left_over(struct record_writer *w, const char *folder, struct err *e) {
    char **names;
    size_t count;
    if (!file_is_directory(folder)) return 0;
    TRY(file_list(folder, w->arena, &names, &count, e));
    for (size_t i = 0; i < count; i++)
        if (strstr(names[i], ".tmp-") != NULL)
            TRY(file_remove(path_join(w->arena, folder, names[i]), e));
    return 0;
}

static int take_folder(struct record_writer *w, enum record_state *state, struct err *e) {
    TRY(file_make_directory(path_folder(w->arena, w->folder), e));
    struct err exists = {0};
    if (file_make_directory_exclusive(w->folder, &exists) != 0) {
        if (exists.code == ERR_RECORD && !file_is_directory(w->folder))
            FAIL(e, ERR_RECORD, "%s: is there and no folder; name another folder with -o",
                 w->folder);
        if (exists.code != ERR_RECORD) {
            if (e != NULL) *e = exists;
            return -1;
        }
        TRY(find_state(w, state, e)); // before the lock: a foreign folder gets no file of ours
    }
    TRY(file_lock_take(record_path(w, "lock"), &w->lock, e));
    return find_state(w, state, e); // what the one before us did meanwhile
}

// ---- the request -------------------------------------------------------------------------------

static const char remedy_score[] =
    "only checks or analysis changed: `lacuna score RUN --experiment "
    "FILE` scores the recorded replies again";
static const char remedy_folder[] = "name another folder with -o, or run the experiment as it was";

static int refuse_other(struct record_writer *w, const struct record_header *header,
                        const json_t *identity, struct err *e) {
    struct buf list = {0};
    bool scoring = false, scoring_too = false;
    json_t *resolved = NULL;
    bool known = header->identity != NULL && json_object_get(identity, "plan_sha256") != NULL;
    int count = known ? record_differences(identity, header->identity, &list, &scoring) : 0;
    if (json_read_file(record_path(w, "resolved.json"), RECORD_SMALL_FILE_BYTES_MOST, &resolved,
                       NULL) == 0) {
        int more = record_differences(resolved, header->resolved, &list, &scoring_too);
        scoring = (scoring || count == 0) && (scoring_too || more == 0) && count + more > 0;
        count += more;
        json_decref(resolved);
    }
    const char *remedy = scoring ? remedy_score : remedy_folder;
    ERR_SET(e, ERR_RECORD, "%s: holds the run of another request; what differs:\n%s%s", w->folder,
            count > 0 ? list.p : "  the content of a file that the experiment names\n", remedy);
    buf_free(&list);
    return -1;
}

static int check_request(struct record_writer *w, const struct record_header *header,
                         const char *name, struct err *e) {
    json_t *o = NULL;
    const char *path = record_path(w, name);
    TRY(json_read_file(path, RECORD_SMALL_FILE_BYTES_MOST, &o, e));
    const char *said = json_string_value(json_object_get(o, "request_sha256"));
    int result = 0;
    if (said == NULL)
        result = ERR_SET(e, ERR_RECORD, "%s: the key \"request_sha256\" is missing", path);
    else if (strcmp(said, w->request_sha256) != 0)
        result = refuse_other(w, header, o, e);
    json_decref(o);
    return result;
}

// ---- planning ----------------------------------------------------------------------------------

static int write_json(struct record_writer *w, const char *name, const json_t *value,
                      struct err *e) {
    struct buf text = {0};
    json_pretty(value, &text);
    buf_add_char(&text, '\n');
    int result = file_write_atomic(record_path(w, name), buf_str(&text), e);
    buf_free(&text);
    return result;
}

// What an unfinished plan left is dropped: a plan is made of the experiment alone, so it comes
// again.
static int drop_plan(struct record_writer *w, struct err *e) {
    static const char *const names[] = {"plan.jsonl", "inputs/index.jsonl", "inputs/pack.zst",
                                        "manifest.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        TRY(file_remove(record_path(w, names[i]), e));
    return 0;
}

char *record_baseline_path(const char *folder, const char *sha256, struct arena *a) {
    return path_join(a, folder, arena_printf(a, "baselines/%s.jsonl", sha256));
}

static int keep_baselines(struct record_writer *w, const struct record_header *header,
                          struct err *e) {
    if (header->baseline_count > 0) TRY(file_make_directory(record_path(w, "baselines"), e));
    for (size_t i = 0; i < header->baseline_count; i++) {
        struct str text = header->baselines[i];
        char hex[HASH_HEX_SIZE];
        hash_bytes(text.p, text.n, hex);
        TRY(file_write_atomic(record_baseline_path(w->folder, hex, w->arena), text, e));
    }
    return 0;
}

static int start_planning(struct record_writer *w, const struct record_header *header,
                          struct err *e) {
    if (w->state == RECORD_PLANNING) {
        TRY(check_request(w, header, "planning.json", e));
        TRY(drop_plan(w, e));
    } else {
        json_t *o = json_object();
        json_put(o, "format", json_integer(RECORD_FORMAT));
        json_put(o, "request_sha256", json_text_c(w->request_sha256));
        int result = write_json(w, "planning.json", o, e);
        json_decref(o);
        TRY(result);
    }
    TRY(remove_left_over(w, w->folder, e));
    if (header->experiment_yaml.p != NULL)
        TRY(file_write_atomic(record_path(w, "experiment.yaml"), header->experiment_yaml, e));
    TRY(write_json(w, "resolved.json", header->resolved, e));
    TRY(keep_baselines(w, header, e));
    if (!header->drops_prompts) TRY(record_inputs_writer_open(w->folder, &w->inputs, e));
    TRY(file_log_open(record_path(w, "plan.jsonl"), &w->plan, e));
    w->plan_hash = hash_open();
    return 0;
}

// A process that ended between a line's sync and the removal of its waiting file left work behind.
static int is_finished(struct record_writer *w, bool *finished, struct err *e) {
    const char *pending = record_path(w, "pending");
    char **names;
    size_t waiting = 0;
    if (file_is_directory(pending)) TRY(file_list(pending, w->arena, &names, &waiting, e));
    const struct record *r = w->record;
    bool whole = !r->torn && (r->evidence == NULL || r->evidence->behind == 0);
    *finished = r->done_count == r->trial_count && whole && waiting == 0;
    return 0;
}

static int start_reading(struct record_writer *w, const struct record_header *header,
                         struct err *e) {
    TRY(check_request(w, header, "identity.json", e));
    TRY(record_open(w->folder, w->arena, &w->record, e));
    bool finished;
    TRY(is_finished(w, &finished, e));
    if (finished) w->state = RECORD_COMPLETE;
    return 0;
}

int record_writer_open(const struct record_header *header, const char *request_sha256,
                       struct record_writer **out, enum record_state *state, struct err *e) {
    assert(hash_is_hex(str_from(request_sha256)));
    struct record_writer *w = calloc(1, sizeof *w);
    if (w == NULL) mem_exhausted("the writer of a record", sizeof *w);
    w->arena = arena_create("record");
    w->folder = arena_strdup(w->arena, header->folder);
    w->drops_prompts = header->drops_prompts;
    memcpy(w->request_sha256, request_sha256, HASH_HEX_SIZE);
    w->sessions.path = record_path(w, "sessions.jsonl");
    w->timings.path = record_path(w, "timings.jsonl");
    int result = take_folder(w, &w->state, e);
    if (result == 0) {
        bool planned = w->state == RECORD_RUNNING;
        result = planned ? start_reading(w, header, e) : start_planning(w, header, e);
    }
    if (result != 0) {
        record_writer_close(w);
        return -1;
    }
    *state = w->state;
    *out = w;
    return 0;
}

void record_writer_close(struct record_writer *w) {
    if (w == NULL) return;
    record_inputs_writer_close(w->inputs);
    file_log_close(w->plan);
    if (w->plan_hash != NULL) hash_close(w->plan_hash, w->plan_sha256);
    buf_free(&w->plan_lines);
    for (int64_t i = 0; w->parked != NULL && i < w->trial_count; i++) json_decref(w->parked[i]);
    free(w->parked);
    record_close(w->record);
    file_log_close(w->ledger.log);
    file_log_close(w->evidence.log);
    file_log_close(w->again.log);
    file_log_close(w->sessions.log);
    file_log_close(w->timings.log);
    json_decref(w->build);
    file_lock_release(w->lock);
    arena_destroy(w->arena);
    free(w);
}

int record_put_filler(struct record_writer *w, struct str text, char sha256[HASH_HEX_SIZE],
                      struct err *e) {
    assert(w->inputs != NULL);
    return record_inputs_add_filler(w->inputs, text, sha256, e);
}

int record_put_prompt(struct record_writer *w, const struct record_part *parts, size_t count,
                      char sha256[HASH_HEX_SIZE], struct err *e) {
    assert(w->inputs != NULL);
    return record_inputs_add_prompt(w->inputs, parts, count, sha256, e);
}

static int flush_plan(struct record_writer *w, bool sync, struct err *e) {
    hash_add(w->plan_hash, w->plan_lines.p, w->plan_lines.n);
    TRY(file_log_append(w->plan, buf_str(&w->plan_lines), sync, e));
    buf_clear(&w->plan_lines);
    return 0;
}

static void remember_trial(struct record_writer *w, const struct record_trial *t) {
    w->trials = arena_more(w->arena, w->trials, (size_t)w->trial_count, sizeof *w->trials);
    w->trials[w->trial_count++] =
        (struct record_trial){.trial = t->trial, .key = arena_strdup(w->arena, t->key)};
}

int record_put_plan(struct record_writer *w, const struct record_trial *t, struct err *e) {
    assert(w->plan != NULL && t->trial == w->trial_count);
    json_t *o;
    struct record_trial kept = *t;
    if (w->drops_prompts) record_forget_prompt(&kept, w->arena);
    TRY(record_trial_write(&kept, &o, e));
    json_compact(o, &w->plan_lines);
    buf_add_char(&w->plan_lines, '\n');
    json_decref(o);
    remember_trial(w, t);
    return w->plan_lines.n < PLAN_FLUSH_BYTES ? 0 : flush_plan(w, false, e);
}

int record_plan_done(struct record_writer *w, char plan_sha256[HASH_HEX_SIZE], struct err *e) {
    assert(w->plan != NULL);
    if (w->inputs != NULL) TRY(record_inputs_sync(w->inputs, e));
    TRY(flush_plan(w, true, e));
    hash_close(w->plan_hash, w->plan_sha256);
    w->plan_hash = NULL;
    file_log_close(w->plan);
    w->plan = NULL;
    record_inputs_writer_close(w->inputs);
    w->inputs = NULL;
    memcpy(plan_sha256, w->plan_sha256, HASH_HEX_SIZE);
    return 0;
}

// ---- from the plan to the ledger ---------------------------------------------------------------

static void keep_build(struct record_writer *w, const json_t *manifest) {
    json_t *program = json_object_get(manifest, "program");
    w->build = program == NULL ? json_null() : json_deep_copy(program);
}

int record_begin(struct record_writer *w, const json_t *identity, const json_t *manifest,
                 struct err *e) {
    const char *plan = json_string_value(json_object_get(identity, "plan_sha256"));
    const char *request = json_string_value(json_object_get(identity, "request_sha256"));
    assert(plan != NULL && strcmp(plan, w->plan_sha256) == 0);
    assert(request != NULL && strcmp(request, w->request_sha256) == 0);
    keep_build(w, manifest);
    TRY(write_json(w, "manifest.json", manifest, e));
    TRY(write_json(w, "identity.json", identity, e)); // from here on nothing is planned again
    TRY(file_remove(record_path(w, "planning.json"), e));
    TRY(hash_file(record_path(w, "identity.json"), w->ledger.previous, e));
    w->evidence = w->again = w->ledger;
    TRY(record_append_open(w, record_is_watched(identity), e));
    return record_note_session(
        w, "start", w->state == RECORD_PLANNING ? "an unfinished plan was made again" : NULL, e);
}

// What stands behind byte `end` of a chained file goes to a file of its own; the file is written
// again without it.
static int set_aside(struct record_writer *w, const char *name, size_t end, const char *why,
                     struct err *e) {
    const char *path = record_path(w, name);
    char *aside = NULL;
    for (int n = 1; aside == NULL || file_exists(aside); n++)
        aside = arena_printf(w->arena, "%s.torn-%d", path, n);
    struct file_map map;
    TRY(file_map_open(path, &map, e));
    struct str all = {(const char *)map.p, map.bytes};
    int result = file_write_atomic(aside, str_slice(all, end, all.n), e);
    if (result == 0) result = file_write_atomic(path, str_slice(all, 0, end), e);
    file_map_close(&map);
    TRY(result);
    char detail[512];
    snprintf(detail, sizeof detail, "the last line of %s %s; its %zu bytes are in %s", name, why,
             all.n - end, path_name(aside));
    log_info("%s: %s; that trial is run again", w->folder, detail);
    return record_note_session(w, "torn", detail, e);
}

// A ledger line that was cut, and evidence that the ledger does not know of.
static int set_tails_aside(struct record_writer *w, struct err *e) {
    const struct record *r = w->record;
    if (r->torn) TRY(set_aside(w, "trials.jsonl", r->ledger_bytes, "was cut", e));
    if (r->evidence != NULL && r->evidence->behind > 0)
        TRY(set_aside(w, "evidence.jsonl", r->evidence->bytes, "has no line in the ledger", e));
    if (r->again != NULL && r->again->torn)
        TRY(set_aside(w, "again.jsonl", r->again->bytes, "was cut", e));
    return 0;
}

static int note_resume(struct record_writer *w, const json_t *manifest, struct err *e) {
    const json_t *before = json_object_get(w->record->manifest, "program");
    const json_t *now = json_object_get(manifest, "program");
    char detail[256];
    snprintf(detail, sizeof detail, "after %lld of %lld trials%s", (long long)w->record->done_count,
             (long long)w->record->trial_count,
             before == NULL || json_equal(before, now) ? "" : ", by another build");
    return record_note_session(w, "resume", detail, e);
}

int record_resume(struct record_writer *w, const json_t *identity, const json_t *manifest,
                  struct err *e) {
    assert(w->record != NULL && w->ledger.log == NULL);
    struct buf list = {0};
    bool scoring;
    if (record_differences(w->record->identity, identity, &list, &scoring) > 0) {
        ERR_SET(e, ERR_RECORD, "%s: cannot be resumed; what differs:\n%s%s", w->folder, list.p,
                scoring ? remedy_score : remedy_folder);
        buf_free(&list);
        return -1;
    }
    keep_build(w, manifest);
    TRY(remove_left_over(w, w->folder, e));
    TRY(file_remove(record_path(w, "planning.json"), e));
    w->ledger.line = w->record->attempt_count;
    memcpy(w->ledger.previous, w->record->last_sha256, HASH_HEX_SIZE);
    TRY(set_tails_aside(w, e));
    w->trials = w->record->trials;
    w->trial_count = w->record->trial_count;
    const struct record_evidence_lines *evidence = w->record->evidence;
    if (evidence != NULL) {
        w->evidence.line = evidence->count;
        memcpy(w->evidence.previous, evidence->last_sha256, HASH_HEX_SIZE);
    }
    const struct record_again *again = w->record->again;
    w->again.line = again != NULL ? again->count : 0;
    memcpy(w->again.previous, again != NULL ? again->last_sha256 : w->record->identity_sha256,
           HASH_HEX_SIZE);
    TRY(record_append_open(w, evidence != NULL, e));
    TRY(remove_left_over(w, record_path(w, "pending"), e));
    TRY(note_resume(w, manifest, e));
    TRY(record_park_read(w, e));
    return record_append_parked(w, e);
}

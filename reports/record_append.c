// The ledger: one synced line a trial in plan order, and pending/ for replies that came too early.
#include "reports/record_write.h"

#include "engine/base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// ---- side files --------------------------------------------------------------------------------

static int side_open(struct record_side *s, struct err *e) {
    if (s->log != NULL) return 0;
    struct file_map map = {0};
    if (file_exists(s->path)) TRY(file_map_open(s->path, &map, e));
    s->cut = map.bytes > 0 && map.p[map.bytes - 1] != '\n';
    file_map_close(&map);
    return file_log_open(s->path, &s->log, e);
}

static int side_add(struct record_side *s, const json_t *line, bool sync, struct err *e) {
    TRY(side_open(s, e));
    struct buf text = {0};
    if (s->cut) buf_add_char(&text, '\n');
    json_compact(line, &text);
    buf_add_char(&text, '\n');
    int result = file_log_append(s->log, buf_str(&text), sync, e);
    s->cut = result != 0;
    buf_free(&text);
    return result;
}

int record_note_session(struct record_writer *w, const char *event, const char *detail,
                        struct err *e) {
    char now[32];
    clock_iso(now);
    json_t *line = json_object();
    json_put(line, "event", json_text_c(event));
    json_put(line, "time", json_text_c(now));
    json_put(line, "lines", json_integer(w->ledger.line));
    if (detail != NULL) json_put_bytes(line, "detail", str_from(detail));
    if (w->build != NULL) json_object_set(line, "build", w->build);
    int result = side_add(&w->sessions, line, true, e);
    json_decref(line);
    return result;
}

// ---- opening -----------------------------------------------------------------------------------

static void count_recorded(struct record_writer *w) {
    for (int64_t i = 0; i < w->trial_count; i++) {
        const struct record_outcome *o = w->record->outcomes[i];
        if (o == NULL) continue;
        w->progress.attempts[i] = o->attempt;
        w->progress.status[i] = (uint8_t)o->status;
    }
    w->progress.next = w->record->done_count;
}

int record_append_open(struct record_writer *w, bool watched, struct err *e) {
    record_progress_start(&w->progress, w->trials, w->trial_count, w->arena);
    w->parked = calloc((size_t)w->trial_count + 1, sizeof(json_t *));
    if (w->parked == NULL) mem_exhausted("outcomes that wait", (size_t)w->trial_count);
    if (w->record != NULL) count_recorded(w);
    TRY(file_make_directory(record_path(w, "pending"), e));
    if (watched) TRY(file_log_open(record_path(w, "evidence.jsonl"), &w->evidence.log, e));
    return file_log_open(record_path(w, "trials.jsonl"), &w->ledger.log, e);
}

// ---- waiting for a turn ------------------------------------------------------------------------

static void pending_path(struct record_writer *w, const char *key, char out[RECORD_PATH_BYTES]) {
    char hex[HASH_HEX_SIZE];
    hash_bytes(key, strlen(key), hex);
    snprintf(out, RECORD_PATH_BYTES, "%s/pending/%s.json", w->folder, hex);
}

static int park(struct record_writer *w, int64_t trial, json_t *line, struct err *e) {
    char path[RECORD_PATH_BYTES];
    pending_path(w, w->trials[trial].key, path);
    struct buf text = {0};
    json_compact(line, &text);
    buf_add_char(&text, '\n');
    int result = file_write_atomic(path, buf_str(&text), e);
    buf_free(&text);
    if (result != 0) return -1;
    assert(w->parked[trial] == NULL);
    w->parked[trial] = json_incref(line);
    return 0;
}

static int check_parked(struct record_writer *w, const json_t *line, const char *path,
                        struct arena *a, struct record_outcome *o, struct err *e) {
    struct record_evidence ignored;
    TRY(record_outcome_read(line, path, a, o, e));
    if (o->trial >= w->trial_count || o->attempt != 1 ||
        strcmp(o->key, w->trials[o->trial].key) != 0)
        FAIL(e, ERR_RECORD, "%s: is not an outcome of this plan", path);
    const struct record_trial *t = &w->trials[o->trial];
    if (!record_evidence_due(w->record->identity, t, o)) return 0;
    json_t *evidence;
    TRY(json_need_object(line, "evidence", path, &evidence, e));
    return record_evidence_read(evidence, w->record->identity, path, t, a, &ignored, e);
}

static int read_parked(struct record_writer *w, const char *path, struct arena *a, struct err *e) {
    json_t *line = NULL;
    struct record_outcome o;
    TRY(json_read_file(path, RECORD_SMALL_FILE_BYTES_MOST, &line, e));
    int result = check_parked(w, line, path, a, &o, e);
    if (result == 0 && w->progress.attempts[o.trial] == 0 && w->parked[o.trial] == NULL)
        w->parked[o.trial] = json_incref(line);
    else if (result == 0)
        result = file_remove(path, e); // its line was synced before the process ended
    json_decref(line);
    return result;
}

int record_park_read(struct record_writer *w, struct err *e) {
    const char *folder = record_path(w, "pending");
    struct arena *a = arena_create("pending");
    char **names;
    size_t count;
    int result = file_list(folder, a, &names, &count, e);
    for (size_t i = 0; i < count && result == 0; i++) {
        const char *path = path_join(a, folder, names[i]);
        result = read_parked(w, path, a, e);
        if (result != 0 && e != NULL && e->code == ERR_INPUT) {
            e->code = ERR_RECORD;
            err_prefix(e, "a waiting outcome is damaged (remove the file to run its trial again)");
        }
    }
    arena_destroy(a);
    return result;
}

// ---- appending ---------------------------------------------------------------------------------

// Appends what `value` says with "line" and "previous" before it. A failed write leaves the disk in
// doubt, so nothing is appended after it by this process.
static int append_line(struct record_writer *w, struct record_chain *chain, json_t *value,
                       bool sync, struct err *e) {
    json_t *line = json_object();
    json_put(line, "line", json_integer(chain->line));
    json_put(line, "previous", json_text_c(chain->previous));
    json_object_update(line, value);
    struct buf text = {0};
    json_compact(line, &text);
    buf_add_char(&text, '\n');
    json_decref(line);
    int result = file_log_append(chain->log, buf_str(&text), sync, e);
    if (result == 0) {
        hash_bytes(text.p, text.n, chain->previous);
        chain->line++;
    } else {
        w->failed = true;
    }
    buf_free(&text);
    return result;
}

// Evidence is on the disk before its ledger line is: a run that was killed between the two makes
// the trial again, and with it the same line.
static int append(struct record_writer *w, json_t *outcome, bool sync, struct err *e) {
    json_t *evidence = json_object_get(outcome, "evidence");
    if (evidence == NULL) return append_line(w, &w->ledger, outcome, sync, e);
    TRY(append_line(w, &w->evidence, evidence, true, e));
    json_t *bare = json_copy(outcome);
    json_object_del(bare, "evidence");
    int result = append_line(w, &w->ledger, bare, sync, e);
    json_decref(bare);
    return result;
}

static enum record_status status_of(const json_t *outcome) {
    const char *name = json_string_value(json_object_get(outcome, "status"));
    for (int s = STATUS_OK; s < STATUS_ERROR; s++)
        if (strcmp(name, record_status_name((enum record_status)s)) == 0)
            return (enum record_status)s;
    return STATUS_ERROR;
}

// A run of lines whose turn has come: one write each, one sync for all, then their files go.
int record_append_parked(struct record_writer *w, struct err *e) {
    int64_t first = w->progress.next, end = first;
    while (end < w->trial_count && w->parked[end] != NULL) end++;
    for (int64_t i = first; i < end; i++) {
        bool last = i + 1 == end;
        TRY(append(w, w->parked[i], last, e));
        w->progress.attempts[i] = 1;
        w->progress.status[i] = (uint8_t)status_of(w->parked[i]);
        w->progress.next++;
    }
    for (int64_t i = first; i < end; i++) {
        char path[RECORD_PATH_BYTES];
        pending_path(w, w->trials[i].key, path);
        TRY(file_remove(path, e));
        json_decref(w->parked[i]);
        w->parked[i] = NULL;
    }
    return 0;
}

static int put_first(struct record_writer *w, int64_t trial, json_t *line, struct err *e) {
    if (trial != w->progress.next) return park(w, trial, line, e);
    bool more = trial + 1 < w->trial_count && w->parked[trial + 1] != NULL;
    TRY(append(w, line, !more, e));
    w->progress.attempts[trial] = 1;
    w->progress.status[trial] = (uint8_t)status_of(line);
    w->progress.next++;
    return record_append_parked(w, e);
}

static int put_again(struct record_writer *w, int64_t trial, json_t *line, struct err *e) {
    TRY(append(w, line, true, e));
    w->progress.attempts[trial]++;
    w->progress.status[trial] = (uint8_t)status_of(line);
    return 0;
}

static int check_turn(struct record_writer *w, const struct record_outcome *o, struct err *e) {
    if (w->failed)
        FAIL(e, ERR_RECORD, "%s: a write failed before; resume the run with the same command",
             w->folder);
    if (o->trial < 0 || o->trial >= w->trial_count || strcmp(w->trials[o->trial].key, o->key) != 0)
        FAIL(e, ERR_RECORD, "%s: the plan has no trial %lld with the key %s", w->folder,
             (long long)o->trial, o->key);
    if (w->parked[o->trial] != NULL)
        FAIL(e, ERR_RECORD, "%s: the trial %s has its outcome already", w->folder, o->key);
    if (w->progress.attempts[o->trial] == 0) return 0;
    if (w->progress.status[o->trial] != STATUS_ERROR || w->progress.next < w->trial_count)
        FAIL(e, ERR_RECORD, "%s: the trial %s is not to be tried again", w->folder, o->key);
    return 0;
}

int record_put_outcome(struct record_writer *w, const struct record_outcome *o,
                       const json_t *timing, struct err *e) {
    assert(w->ledger.log != NULL && (o->evidence == NULL || w->evidence.log != NULL));
    TRY(check_turn(w, o, e));
    int before = w->progress.attempts[o->trial];
    json_t *line = record_outcome_write(o, before + 1);
    if (o->evidence != NULL)
        json_put(line, "evidence",
                 record_evidence_write(o->evidence, o->trial, o->key, before + 1));
    int result = before == 0 ? put_first(w, o->trial, line, e) : put_again(w, o->trial, line, e);
    json_decref(line);
    if (result == 0 && timing != NULL) result = side_add(&w->timings, timing, false, e);
    return result;
}

int record_put_again(struct record_writer *w, const struct record_outcome *o, struct err *e) {
    assert(o->status == STATUS_OK);
    if (w->failed)
        FAIL(e, ERR_RECORD, "%s: a write failed before; resume the run with the same command",
             w->folder);
    if (w->again.log == NULL) TRY(file_log_open(record_path(w, "again.jsonl"), &w->again.log, e));
    json_t *line = record_outcome_write(o, 1);
    int result = append_line(w, &w->again, line, true, e);
    json_decref(line);
    return result;
}

int64_t record_missing(const struct record_writer *w, bool errors, struct arena *a,
                       int64_t **trials) {
    int64_t count = 0;
    *trials = arena_array(a, (size_t)w->trial_count, sizeof **trials);
    for (int64_t i = 0; i < w->trial_count; i++) {
        bool first = w->progress.attempts[i] == 0 && w->parked[i] == NULL;
        bool again = w->progress.attempts[i] > 0 && w->progress.status[i] == STATUS_ERROR;
        if (first || (errors && again)) (*trials)[count++] = i;
    }
    return count;
}

int record_get_waiting(const struct record_writer *w, int64_t trial, struct arena *a,
                       struct record_outcome *out, bool *any, struct err *e) {
    *any = w->parked[trial] != NULL;
    return *any ? record_outcome_read(w->parked[trial], w->folder, a, out, e) : 0;
}

int64_t record_next(const struct record_writer *w) {
    return w->progress.next;
}

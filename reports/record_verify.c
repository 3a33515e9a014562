#include "reports/record_again.h"
#include "reports/record_evidence.h"

#include <stdio.h>
#include <string.h>

struct verification {
    const char *folder;
    struct arena *arena;   // plan and identity
    struct arena *scratch; // one line or prompt
    struct buf *findings;
    json_t *identity;
    char identity_sha256[HASH_HEX_SIZE];
    struct record_trial *trials;
    int64_t trial_count;
    bool plan_read;        // every line of the plan could be read
    bool ledger_read;      // and every line of the ledger
    struct record_due due; // what the ledger says that evidence.jsonl holds
    bool sound;
};

static void find(struct verification *v, const char *text) {
    buf_printf(v->findings, "%s\n", text);
    v->sound = false;
}

// The error of a step that failed becomes a finding; the walk goes on.
static bool good(struct verification *v, int result, const struct err *e) {
    if (result != 0) find(v, e->text);
    return result == 0;
}

static void verify_plan(struct verification *v) {
    struct record_lines lines;
    struct err e = {0};
    const char *path = path_join(v->arena, v->folder, "plan.jsonl");
    if (!good(v, record_lines_open(path, &lines, &e), &e)) return;
    char hex[HASH_HEX_SIZE], where[RECORD_WHERE_BYTES];
    hash_bytes(lines.map.p, lines.map.bytes, hex);
    const char *said = json_string_value(json_object_get(v->identity, "plan_sha256"));
    if (strcmp(said, hex) != 0)
        find(v, arena_printf(v->arena, "%s: hashes to %s; identity.json says %s", path, hex, said));
    size_t most = lines.text.n == 0 ? 0 : str_count(lines.text, STR("\n"));
    v->trials = arena_array(v->arena, most, sizeof *v->trials);
    v->plan_read = lines.tail.n == 0;
    struct record_map *keys = record_map_open();
    struct str line;
    while (record_lines_next(&lines, &line, where)) {
        struct record_trial *t = &v->trials[v->trial_count];
        int result = record_plan_line(line, where, v->trial_count, v->arena, t, &e);
        if (result == 0 && !record_map_put(keys, t->key, v->trial_count))
            result = ERR_SET(&e, ERR_RECORD, "%s: the key %.200s stands in the plan twice", where,
                             t->key);
        v->plan_read = good(v, result, &e) && v->plan_read;
        if (t->key == NULL) t->key = "";
        v->trial_count++;
    }
    record_map_close(keys);
    record_lines_close(&lines);
}

// Each break of the chain is found once: the next line is compared with this one as it stands.
static void verify_lines(struct verification *v, struct record_lines *lines,
                         struct record_progress *progress) {
    char previous[HASH_HEX_SIZE], where[RECORD_WHERE_BYTES];
    memcpy(previous, v->identity_sha256, sizeof previous);
    struct str line;
    struct err e = {0};
    while (record_lines_next(lines, &line, where)) {
        arena_reset(v->scratch);
        struct record_outcome o;
        int result = record_ledger_line(line, where, lines->number, previous, v->scratch, &o, &e);
        bool readable = good(v, result, &e);
        bool known =
            readable && v->plan_read && good(v, record_progress_add(progress, &o, where, &e), &e);
        v->ledger_read = known && v->ledger_read;
        if (known && record_evidence_due(v->identity, &v->trials[o.trial], &o))
            record_due_add(&v->due, &o, v->arena);
        hash_bytes(line.p, line.n, previous);
    }
}

static void verify_ledger(struct verification *v) {
    struct record_lines lines;
    struct err e = {0};
    const char *path = path_join(v->arena, v->folder, "trials.jsonl");
    if (!good(v, record_lines_open(path, &lines, &e), &e)) return;
    struct record_progress progress;
    record_progress_start(&progress, v->trials, v->trial_count, v->arena);
    v->ledger_read = true;
    verify_lines(v, &lines, &progress);
    if (lines.tail.n > 0)
        find(v,
             arena_printf(v->arena,
                          "%s: the last line was cut (%zu bytes); resuming the run sets it aside",
                          path, lines.tail.n));
    if (v->plan_read && progress.next < v->trial_count)
        find(v, arena_printf(v->arena, "%s: has first attempts of %lld of the %lld planned trials",
                             path, (long long)progress.next, (long long)v->trial_count));
    record_lines_close(&lines);
}

// Only behind a ledger that could be read, for it says what belongs there.
static void verify_evidence(struct verification *v) {
    struct record_evidence_lines l;
    struct err e = {0};
    const char *path = path_join(v->arena, v->folder, "evidence.jsonl");
    if (!v->ledger_read) return;
    if (!record_is_watched(v->identity)) {
        if (file_exists(path))
            find(v, arena_printf(v->arena,
                                 "%s: is there; identity.json says that nothing was "
                                 "watched",
                                 path));
        return;
    }
    if (!good(v, record_evidence_start(&l, path, v->identity_sha256, &v->due, &e), &e)) return;
    struct str line;
    int result;
    while (record_evidence_next(&l, &v->due, v->trials, v->scratch, &line, &result, &e)) {
        good(v, result, &e);
        arena_reset(v->scratch);
    }
    if (l.count < v->due.count)
        find(v, arena_printf(v->arena, "%s: has %lld of the %lld lines that belong to the ledger's",
                             path, (long long)l.count, (long long)v->due.count));
    else if (l.behind > 0)
        find(v, arena_printf(v->arena,
                             "%s: has %zu bytes that belong to no line of the ledger; "
                             "resuming the run sets them aside",
                             path, l.behind));
    record_evidence_close(&l);
}

static void verify_again(struct verification *v) {
    struct record_again *again = NULL;
    struct err e = {0};
    int result = v->plan_read ? record_again_open(v->folder, v->identity, v->identity_sha256,
                                                  v->trials, v->trial_count, v->arena, &again, &e)
                              : 0;
    if (good(v, result, &e) && again != NULL && again->torn)
        find(v, arena_printf(v->arena,
                             "%s/again.jsonl: the last line was cut; resuming the run sets it "
                             "aside",
                             v->folder));
}

static void verify_inputs(struct verification *v) {
    struct record_inputs *in = NULL;
    struct err e = {0};
    if (!good(v, record_inputs_open(v->folder, &in, &e), &e)) return;
    const char *sha256;
    for (size_t i = 0; (sha256 = record_inputs_filler_at(in, i)) != NULL; i++) {
        struct str text;
        good(v, record_inputs_filler(in, sha256, &text, &e), &e);
    }
    struct record_map *seen = record_map_open();
    for (int64_t i = 0; i < v->trial_count; i++) {
        const char *prompt = v->trials[i].prompt_sha256;
        if (prompt[0] == '\0' || !record_map_put(seen, prompt, i)) continue;
        struct record_part *parts;
        size_t count;
        struct str text;
        arena_reset(v->scratch);
        good(v, record_inputs_prompt(in, prompt, v->scratch, &parts, &count, &text, &e), &e);
    }
    record_map_close(seen);
    record_inputs_close(in);
}

// The manifest says what the two files that came from the user hashed to.
static void verify_file(struct verification *v, const json_t *manifest, const char *name,
                        const char *key) {
    struct err e = {0};
    char hex[HASH_HEX_SIZE];
    const char *path = path_join(v->arena, v->folder, name);
    const char *said = json_string_value(json_object_get(manifest, key));
    if (said == NULL || !good(v, hash_file(path, hex, &e), &e)) return;
    if (strcmp(said, hex) != 0)
        find(v,
             arena_printf(v->arena, "%s: hashes to %s; manifest.json says %.64s", path, hex, said));
}

static void verify_baselines(struct verification *v) {
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(v->identity, "baselines"), i, entry) {
        const char *said = json_string_value(json_object_get(entry, "sha256"));
        if (said == NULL || !hash_is_hex(str_from(said))) continue;
        struct err e = {0};
        char hex[HASH_HEX_SIZE];
        const char *path = record_baseline_path(v->folder, said, v->arena);
        if (!good(v, hash_file(path, hex, &e), &e) || strcmp(said, hex) == 0) continue;
        find(v, arena_printf(v->arena, "%s: hashes to %s", path, hex));
    }
}

static void verify_files(struct verification *v, bool source) {
    struct err e = {0};
    json_t *manifest = NULL;
    const char *path = path_join(v->arena, v->folder, "manifest.json");
    if (!good(v, json_read_file(path, RECORD_SMALL_FILE_BYTES_MOST, &manifest, &e), &e)) return;
    if (source) verify_file(v, manifest, "experiment.yaml", "experiment_file_sha256");
    verify_file(v, manifest, "resolved.json", "resolved_sha256");
    json_decref(manifest);
}

int record_verify(const char *folder, bool prompts, struct buf *findings, bool *sound,
                  struct err *e) {
    struct verification v = {.folder = folder, .findings = findings, .sound = true};
    v.arena = arena_create("verify");
    v.scratch = arena_create("verify");
    const char *path = path_join(v.arena, folder, "identity.json");
    int result = 0;
    if (!file_exists(path))
        result = ERR_SET(e, ERR_RECORD, "%s: is not the record of a run: it has no identity.json",
                         folder);
    if (result == 0) result = record_identity_read(path, &v.identity, v.identity_sha256, e);
    if (result == 0) {
        v.due.identity = v.identity;
        verify_plan(&v);
        verify_ledger(&v);
        verify_evidence(&v);
        verify_again(&v);
        const bool kept = !record_drops(v.identity, "prompts");
        if (prompts && kept) verify_inputs(&v);
        verify_files(&v, kept);
        verify_baselines(&v);
    }
    *sound = result == 0 && v.sound;
    json_decref(v.identity);
    arena_destroy(v.scratch);
    arena_destroy(v.arena);
    return result;
}

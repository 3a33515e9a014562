// The record's writer, shared by the files that plan, resume and append.
#ifndef LACUNA_REPORTS_RECORD_WRITE_H
#define LACUNA_REPORTS_RECORD_WRITE_H

#include "reports/record_again.h"
#include "reports/record_evidence.h"

// sessions.jsonl and timings.jsonl: facts that may differ, so a cut line is closed and left behind.
struct record_side {
    const char *path;
    struct file_log *log; // NULL until the first line
    bool cut;             // the last write failed: a line break comes first
};

// trials.jsonl, evidence.jsonl and again.jsonl: each line carries its number and the hash of the
// one before.
struct record_chain {
    struct file_log *log; // NULL: not open, or nothing is watched
    int64_t line;         // the next one
    char previous[HASH_HEX_SIZE];
};

struct record_writer {
    struct arena *arena;
    const char *folder;
    bool drops_prompts;
    char request_sha256[HASH_HEX_SIZE];
    enum record_state state;
    struct file_lock *lock;
    // planning
    struct record_inputs_writer *inputs;
    struct file_log *plan;
    struct hash *plan_hash;
    struct buf plan_lines;
    char plan_sha256[HASH_HEX_SIZE];
    struct record_trial *trials; // the plan: with only number and key while planning
    int64_t trial_count;
    // appending
    struct record *record;                       // a run that is resumed
    struct record_chain ledger, evidence, again; // again: opened with its first line
    struct record_side sessions, timings;
    struct record_progress progress;
    json_t **parked; // [trial_count]: finished before its turn, with its "evidence"
    bool failed;     // a chained write failed: what is on the disk is no longer known
    json_t *build;
};

char *record_path(struct record_writer *w, const char *name);

// Ledger, evidence of a run that is `watched`, and pending are opened; the progress is that of
// `w->record` when it is resumed.
int record_append_open(struct record_writer *w, bool watched, struct err *e);
int record_append_parked(struct record_writer *w, struct err *e); // whose turn has come
int record_park_read(struct record_writer *w, struct err *e);     // what an earlier session parked

#endif

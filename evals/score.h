// Scoring a record again with other checks. The first verdicts are never rewritten: the new ones go
// to a file of their own beside the ledger.
//
// RUN/scores-<12 hex>.jsonl; the 12 digits begin the SHA-256 of its first line, which names what
// was read and how it was judged, so the same checks on the same record give the same file:
//
//   {"format":1, "scores_of":{"identity_sha256","ledger_sha256","trials":N}, "checks_sha256":...,
//    "analysis_sha256":..., "constraints":[...], "gates":[...], ...}   as in resolved.json
//   {"line":0, "previous":"<sha256 of the first line>", "trial":0, "key":..., "attempt":1,
//    "verdicts":[...]}                                                 one line an ok trial,
//    chained
#ifndef LACUNA_EVALS_SCORE_H
#define LACUNA_EVALS_SCORE_H

#include "evals/experiment.h"
#include "reports/record.h"

struct score_change {
    const char *key, *constraint;
    enum verdict before, now;
};

struct score_result {
    const char *path;             // of the file
    char sha256[HASH_HEX_SIZE];   // of its last line: the end of its chain
    bool written;                 // false: the same file was there already
    int64_t scored;               // trials
    struct score_change *changes; // verdicts that are other ones, in plan order
    int64_t change_count;
};

// Both are resolved.json's. Checks (value, met, violated, answered, check, flags, examples), gates,
// primary and tolerances may differ, places in the file system and --only/--limit are not looked
// at; another difference is ERR_CONFIG naming the keys.
int score_compatible(const json_t *recorded, const json_t *asked, struct err *e);

// Judges every ok outcome by the checks of `x` and writes the file. The record in memory gets the
// new verdicts (in the arena), so that it can be summarized by them.
int score_record(struct record *r, const struct experiment *x, struct arena *a,
                 struct score_result *out, struct err *e);

#endif

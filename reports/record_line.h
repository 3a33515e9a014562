// One line of plan.jsonl and of trials.jsonl as JSON and back. Field names and order are
// RECORD.md's. Lines come from outside as well: every type, range and hash is checked, and errors
// name `where`.
#ifndef LACUNA_REPORTS_RECORD_LINE_H
#define LACUNA_REPORTS_RECORD_LINE_H

#include "reports/record.h"

// The caller owns the result. Text that JSON cannot hold (a variable that is not UTF-8) is
// ERR_INPUT.
int record_trial_write(const struct record_trial *t, json_t **out, struct err *e);
int record_trial_read(const json_t *o, const char *where, struct arena *a, struct record_trial *out,
                      struct err *e);

// Without "line" and "previous", which the ledger puts before the rest when the line's turn comes.
json_t *record_outcome_write(const struct record_outcome *o, int attempt);
int record_outcome_read(const json_t *o, const char *where, struct arena *a,
                        struct record_outcome *out, struct err *e);

// Required keys with bounds. An integer outside [low, high] is ERR_INPUT.
int record_need_range(const json_t *o, const char *key, const char *where, int64_t low,
                      int64_t high, int64_t *out, struct err *e);
int record_need_hash(const json_t *o, const char *key, const char *where, char out[HASH_HEX_SIZE],
                     struct err *e);

// record_forget.c: the texts of a reply, or in place of those that are not kept "sha256" and
// "bytes".
void record_words_write(const struct record_outcome *o, json_t *reply);
int record_words_read(const json_t *reply, const char *where, struct arena *a,
                      struct record_outcome *out, struct err *e);

#endif

// evidence.jsonl: its lines as JSON and back, and the rule by which they keep step with the ledger:
// one line for each ok line of trials.jsonl, in the same order, whose model was watched and whose
// prompt has spans. Chained like the ledger, from the identity on.
#ifndef LACUNA_REPORTS_RECORD_EVIDENCE_H
#define LACUNA_REPORTS_RECORD_EVIDENCE_H

#include "reports/record_internal.h"

// Without "line" and "previous". The caller owns the result.
json_t *record_evidence_write(const struct record_evidence *v, int64_t trial, const char *key,
                              int attempt);
// Constraints must be those of the planned trial, and their heads as many as the identity says.
int record_evidence_read(const json_t *o, const json_t *identity, const char *where,
                         const struct record_trial *t, struct arena *a, struct record_evidence *out,
                         struct err *e);

// Is anything watched in a run of this identity?
bool record_is_watched(const json_t *identity);
// Does evidence belong to this outcome?
bool record_evidence_due(const json_t *identity, const struct record_trial *t,
                         const struct record_outcome *o);

// The outcomes that evidence belongs to, as the ledger's lines come.
struct record_due {
    const json_t *identity; // of the run
    int64_t *trials;
    int *attempts;
    int64_t count;
};
void record_due_add(struct record_due *d, const struct record_outcome *o, struct arena *a);

// The lines that the ledger calls for, while they are walked over and in a record that was opened.
struct record_evidence_lines {
    struct record_lines file;
    int64_t count;
    size_t bytes;  // up to the end of the last line that is in step with the ledger
    size_t behind; // bytes behind it: a cut line, or what a killed run wrote before its ledger line
    char last_sha256[HASH_HEX_SIZE]; // of the last line in step, or of the identity
    struct str *of; // [trial_count] a trial's line; empty: none. Of a record that was opened
};
// A file that is not there is an error only where the ledger calls for lines.
int record_evidence_start(struct record_evidence_lines *l, const char *path,
                          const char identity_sha256[HASH_HEX_SIZE], const struct record_due *due,
                          struct err *e);
// The next line, or false when the ledger calls for no more or there is none. *result is -1 when it
// is not as it should be by itself: JSON, number, chain, the trial and attempt that are due,
// fields. The line behind it is compared with it as it stands, so each break is found once.
bool record_evidence_next(struct record_evidence_lines *l, const struct record_due *due,
                          const struct record_trial *trials, struct arena *scratch,
                          struct str *line, int *result, struct err *e);

// Walks over all of them; the first that is not as it should be is an error.
int record_evidence_open(const struct record *r, const struct record_due *due, struct arena *a,
                         struct record_evidence_lines **out, char sha256[HASH_HEX_SIZE],
                         struct err *e);
void record_evidence_close(struct record_evidence_lines *l); // NULL is allowed

#endif

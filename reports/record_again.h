// again.jsonl: second replies to requests of served models, for their own noise. Lines are those of
// trials.jsonl, one a trial that was asked twice, in the order in which they came; chained
// likewise, from the identity on. The file begins with the first of them.
#ifndef LACUNA_REPORTS_RECORD_AGAIN_H
#define LACUNA_REPORTS_RECORD_AGAIN_H

#include "reports/record_internal.h"

struct record_again {
    struct record_outcome **of; // [trial_count]; NULL: not asked twice
    int64_t count;
    size_t bytes;                    // up to the end of the last whole line
    bool torn;                       // a line behind it was cut
    char last_sha256[HASH_HEX_SIZE]; // of the last line, or of the identity
    char sha256[HASH_HEX_SIZE];      // of all whole lines
};
// *out NULL: there is no file. Each line must be an ok outcome of a planned trial, the only one.
int record_again_open(const char *folder, const json_t *identity,
                      const char identity_sha256[HASH_HEX_SIZE], const struct record_trial *trials,
                      int64_t trial_count, struct arena *a, struct record_again **out,
                      struct err *e);

#endif

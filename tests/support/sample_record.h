// A made-up run for tests of the record: a seeded plan with fillers and prompts, and its outcomes.
#ifndef LACUNA_TESTS_SAMPLE_RECORD_H
#define LACUNA_TESTS_SAMPLE_RECORD_H

#include "reports/record.h"

struct sample {
    struct arena *arena;
    struct str fillers[3];
    struct record_trial *trials;
    struct record_part **parts; // [trial_count][3]
    struct str *prompts;        // whole texts
    struct record_outcome *outcomes;
    int trial_count;
    json_t *resolved, *identity, *manifest;
    char request_sha256[HASH_HEX_SIZE];
};

// Replies hold every kind of bytes (text, NUL, ill-formed UTF-8); with `errors` some trials fail.
void sample_make(struct sample *s, uint64_t seed, int trial_count, bool errors);
void sample_free(struct sample *s);

// Opens the folder and, for a fresh run, writes fillers, prompts, plan, identity; resumes
// otherwise. *complete: nothing is left to do (the writer is closed then).
int sample_open(struct sample *s, const char *folder, struct record_writer **w, bool *complete,
                struct err *e);
// Everything up to the last missing outcome, in an order drawn from `order_seed` within a window of
// 4.
int sample_run(struct sample *s, const char *folder, uint64_t order_seed, struct err *e);

#endif

// A baseline: what a later run is compared with. It is taken from a record or read from a file
// that is small enough to stand beside the user's code.
//
// The file is JSON lines, canonical: equal runs give equal bytes, and what the writer would have
// spelled otherwise is refused on reading.
//
//   {"lacuna_baseline":1,"experiment":...,"constraints":["order","day"],"trials":720,
//    "identity_sha256":...,"ledger_sha256":...,"identity":{as in identity.json}}
//   with "noise":[{"model":...,"requests":20,"same_text":18,"same_verdicts":20}] before "identity"
//   where requests of a served model were sent twice
//   {"key":"m/placed/512/order-moves@start/0/0","length":512,"repeat":0,"prompt":"<32 hex>",
//    "verdicts":"mo","reply":"<32 hex>","ids":"<32 hex>","finish":"stop"}        one line a trial
//   {"key":...,"length":null,"repeat":0,"prompt":...,"status":"error"}           not ok: no
//   verdicts
//   {"sha256":"<64 hex>"}                                       of all bytes before: cut or edited?
//
// Verdicts are one letter a constraint, in the order of `constraints`: m met, o omitted, v
// violated, u unscored, - not judged (the placement leaves it out). Hashes of prompts, replies and
// token ids are the first 128 bits of SHA-256.
#ifndef LACUNA_REPORTS_BASELINE_FILE_H
#define LACUNA_REPORTS_BASELINE_FILE_H

#include "reports/record.h"

#define BASELINE_FORMAT 1
#define BASELINE_HEAD "{\"lacuna_baseline\":" // how each file begins
#define BASELINE_HASH_SIZE 33                 // 32 lower-case hex digits and a NUL

struct baseline_trial {
    const char *key;
    const char *cell; // the key behind the model: "placed/512/order-moves@start/0/0"
    int model;        // index into `models`
    bool placed;      // the arm that is measured
    int length;       // -1: none
    int repeat;
    enum record_status status;
    const char *verdicts; // NULL unless the status is ok; else a letter a constraint
    char prompt[BASELINE_HASH_SIZE], reply[BASELINE_HASH_SIZE];
    char ids[BASELINE_HASH_SIZE]; // empty: the provider tells no ids
    const char *finish;
    int64_t trial; // number in the record's plan, which the file has not: -1
};

struct baseline {
    const char *path; // of the folder or file, for messages
    const char *experiment;
    json_t *identity; // owned
    char identity_sha256[HASH_HEX_SIZE], ledger_sha256[HASH_HEX_SIZE];
    const char **constraints;
    int constraint_count;
    const char **models; // ids
    int model_count;
    struct record_noise *noise;    // [model_count] of a served model
    struct baseline_trial *trials; // in the plan's order
    int64_t trial_count;
    const struct record *record; // NULL: read from a file, so replies are known by hash alone
};

// Of a record, whole or not; `r` must outlive it. Trials that have not run are left out.
int baseline_of_record(const struct record *r, struct arena *a, struct baseline *out,
                       struct err *e);
// ERR_RECORD for a run that is partial or not finished: it is no ground to stand on.
int baseline_write(const struct baseline *b, struct buf *out, struct err *e);
int baseline_read(const char *path, struct arena *a, struct baseline *out, struct err *e);
void baseline_close(struct baseline *b);

// Of a trial that has verdicts.
bool baseline_judged(const struct baseline_trial *t, int constraint);
enum verdict baseline_verdict(const struct baseline_trial *t, int constraint);

#endif

// Audit of the checks by a person: a blind sample of replies, judged by hand, against the verdicts.
//
// The sample is stratified over constraint and verdict, in equal shares, so that rare verdicts are
// in it; its rows are shuffled and say nothing of verdict, depth, length or model. Everything is
// drawn from (record, seed), so the same command gives the same rows.
//
// Agreement is given raw ("58 of 60 rows") and for all verdicts of the record: each stratum counts
// by its size, p = sum of N_h/N x a_h/n_h (Cochran, "Sampling Techniques", 3rd ed. 1977,
// section 5.3), with Wilson's interval at Kish's effective sample size (sum w)^2 / sum w^2 of the
// rows' weights w = N_h/n_h (Kish, "Survey Sampling", 1965, section 11.7), which does not collapse
// at 0 or 1. Kappa is Cohen's (1960) on the weighted table.
//
// What agrees: `met` with met, `violated` with violated, `omitted` and every `unscored` about the
// reply (cut, empty, ...) with omitted. `unscored(check:...)` claims nothing and is not sampled.
// Rows that the person is unsure of are counted apart.
#ifndef LACUNA_EVALS_REVIEW_H
#define LACUNA_EVALS_REVIEW_H

#include "evals/experiment.h"
#include "evals/stats_base.h"
#include "reports/record.h"

enum review_label { REVIEW_MET, REVIEW_OMITTED, REVIEW_VIOLATED, REVIEW_UNSURE };
#define REVIEW_CLASSES REVIEW_UNSURE // what a check can say
const char *review_label_name(enum review_label l);

// What the verdict claims, in a person's words; false: nothing.
bool review_label_of(const struct record_verdict *v, enum review_label *out);

struct review_row {
    char id[13]; // "r" and hex digits: opaque, and no number to a spreadsheet, of this record
    int64_t trial;
    int constraint;         // of the experiment
    enum review_label said; // by the check
    enum review_label human;
};

struct review_rows {
    struct review_row *rows;
    int count;
    int *population; // [constraint x REVIEW_CLASSES]: verdicts of the record in each stratum
    int64_t population_all;
};

// At most `sample` rows in their shuffled order. ERR_RECORD when there is no verdict to review.
int review_draw(const struct record *r, const struct experiment *x, int sample, uint64_t seed,
                struct arena *a, struct review_rows *out, struct err *e);
// RFC 4180 with a header line: id, constraint (its text as the model saw it), reply, human (empty).
int review_csv(const struct record *r, const struct experiment *x, const struct review_rows *rows,
               struct arena *a, struct buf *out, struct err *e);
// Fills `human` from a filled-in file. Every row of the sample once and no other, each with met,
// omitted, violated or unsure; all that is wrong in one go, ERR_INPUT.
int review_read(const char *path, struct review_rows *rows, struct arena *a, struct err *e);

struct review_agreement {
    int rows, unsure, judged, agreed; // judged = rows - unsure
    double share;                     // weighted; meaningless when judged is 0
    struct stats_interval interval;
    double covered; // share of the record's verdicts whose stratum has a judged row
    bool has_kappa;
    double kappa;
    int table[REVIEW_CLASSES][REVIEW_CLASSES]; // [said][human]
};
// Of one constraint, or of all (-1).
void review_agree(const struct review_rows *rows, int constraint_count, int constraint,
                  struct review_agreement *out);

// RUN/reviews/review-<12 hex>.json, named by the hash of its rows: hashes of identity, ledger and
// CSV, seed, and every row with both labels. *written false: the same review was there.
int review_store(const struct record *r, const struct experiment *x, const struct review_rows *rows,
                 uint64_t seed, const char *csv_sha256, struct arena *a, const char **path,
                 bool *written, struct err *e);

// "checks agree with a human on 58 of 60 (2 unsure)", "never audited": from all stored reviews of
// this very ledger, against the verdicts that the record in memory has now.
int review_sentence(const struct record *r, struct arena *a, const char **out, struct err *e);

#endif

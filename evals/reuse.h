// Replies of older records for the trials of a new run. What a reply depends on is its model, token
// ids, numerics, backend class, generation settings and sampling stream (DESIGN section 5), so an
// older record that agrees in these has the very bytes that would be computed. Its verdicts are
// left behind: they are made anew. A record is only read here, and not trusted: what is damaged or
// edited is refused, and so are two records that disagree about one reply.
#ifndef LACUNA_EVALS_REUSE_H
#define LACUNA_EVALS_REUSE_H

#include "engine/provider.h"
#include "evals/experiment.h"
#include "reports/record.h"

struct reuse_reply {
    const struct record_outcome *outcome; // NULL: nobody has it
    const struct record_trial *then;      // the trial of that record which it was the reply to
    const struct record *from;
};

struct reuse_source {
    const char *folder; // as given
    struct record *record;
    int64_t taken;      // trials whose reply comes from here
    const char **notes; // why it has no more, in words; at least one where nothing is taken
    int note_count;
};

struct reuse;

// Opens the records and finds out, model by model, which of them may be used. `identity` is that of
// the run, from run_identity. What is no whole record is an error (ERR_RECORD), and so is `own`,
// the folder of the run itself (ERR_USAGE; NULL: not known). *out lives in the arena and wants
// reuse_close.
int reuse_open(const struct experiment *x, struct provider *const *providers,
               const json_t *identity, const char *own, const char *const *folders, int count,
               struct arena *a, struct reuse **out, struct err *e);
void reuse_close(struct reuse *u); // NULL is allowed
// Sources as named, of which the first that has a reply gives it; NULL behind the last one. `u` may
// be NULL.
const struct reuse_source *reuse_source_at(const struct reuse *u, int i);

// Looks for a reply for the trials of a plan whose numbers are in `wanted`, ascending; *replies is
// by number of the trial. Counts what each source gives, and says why there is no more.
int reuse_find(struct reuse *u, const struct experiment *x, const struct record_trial *trials,
               int64_t trial_count, const int64_t *wanted, int64_t wanted_count, struct arena *a,
               struct reuse_reply **replies, struct err *e);

// What the record is to keep of where the model looked; NULL: nothing.
int reuse_evidence(const struct reuse *u, int model, const struct reuse_reply *reply,
                   struct arena *a, const struct record_evidence **out, struct err *e);

// "runs/old: 120 trials are taken over; ...": one source in words, without control characters of
// what came from its files.
const char *reuse_words(const struct reuse_source *s, struct arena *a);

// The first thing in which two models of two identities, or their settings, differ: "max_tokens: 64
// there, 96 here". NULL: in nothing that a reply depends on.
const char *reuse_difference(const json_t *then, int model_then, const json_t *now, int model_now,
                             struct arena *a);
// "seed: 7 there, 8 here" with `label` before it, or NULL; a side that is NULL is called none.
const char *reuse_value_difference(const char *label, const char *name, const json_t *then,
                                   const json_t *now, struct arena *a);

#endif

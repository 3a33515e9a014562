// What a run needs before its loop: open providers, and the words of identity and manifest.
#ifndef LACUNA_EVALS_RUN_SETUP_H
#define LACUNA_EVALS_RUN_SETUP_H

#include "engine/provider.h"
#include "evals/run.h"

// Opens the provider of a model; its strings are borrowed from the experiment. `watched_spans`:
// most spans of a request whose attention is wanted (evidence_spans_most).
int run_provider_open(const struct experiment *x, int model, const struct run_options *options,
                      bool plan_only, uint32_t watched_spans, struct provider **out, struct err *e);
// All models, for planning only: weights stay closed. On failure none stays open and *out stays as
// it was. The list may be NULL when it is closed.
int run_providers_open(const struct experiment *x, const struct run_options *options,
                       struct arena *a, struct provider ***out, struct err *e);
void run_providers_close(const struct experiment *x, struct provider **providers);

// identity.json (RECORD.md) of planning providers; without "plan_sha256" while that is NULL. The
// caller owns the result.
json_t *run_identity(const struct experiment *x, struct provider *const *providers,
                     const char *request_sha256, const char *plan_sha256);
// The gates' baseline files, for the record to keep. A file that is not there is left out; one that
// is none is refused now and not after hours.
int run_read_baselines(const struct experiment *x, struct arena *a, struct record_header *header,
                       struct err *e);
// manifest.json: facts that the outcome does not depend on.
json_t *run_manifest(const struct experiment *x, struct provider *const *providers);
// Parts of it: {"version","commit","compiler"}, and the processor's name or null.
json_t *run_program_json(void);
json_t *run_processor_json(void);

// "<runs folder>/<name>-<12 hex of the request>", or -o as given.
const char *run_folder(const struct experiment *x, const struct run_options *options,
                       const char *request_sha256, struct arena *a);
// When another run in the runs folder has replies to the very prompts of this experiment, and only
// checks, gates, primary contrast or tolerances are other ones: says how to score those again.
void run_hint_at_score(const struct experiment *x, const struct run_options *options,
                       const json_t *identity, struct arena *a);

// The folder that relative paths of the record's experiment start from.
const char *run_origin(const struct record *r, struct arena *a);

// The experiment of a record, from its resolved.json; paths start from `folder`.
int run_recorded_experiment(const struct record *r, const char *folder, struct arena *a,
                            struct experiment **out, struct err *e);

// The whole experiment of a record that --only or --limit cut: the same without them.
int run_whole_experiment(const struct record *r, struct arena *a, struct experiment **out,
                         struct err *e);

// A planned trial as a request: the stored prompt, byte for byte; nothing is generated again. With
// exact ids they must be those of the plan (ERR_RECORD otherwise). Everything lives in the arena.
struct run_offer {
    struct provider_request request;
    struct provider_generation generation;
    struct reasoning_tags reasoning;
};
int run_offer_make(const struct experiment *x, const struct record *r, struct provider *p,
                   const struct record_trial *t, int64_t ticket, struct arena *a,
                   struct run_offer *out, struct err *e);

#endif

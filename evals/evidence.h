// Evidence: where a model looked while it answered. Which models are watched, what they are asked,
// and what the record keeps of their answer.
#ifndef LACUNA_EVALS_EVIDENCE_H
#define LACUNA_EVALS_EVIDENCE_H

#include "engine/provider.h"
#include "evals/experiment.h"
#include "reports/record.h"

// "off", "summary" or "full": what is kept of this model, for the identity.
const char *evidence_word(const struct experiment *x, const struct provider *p);
// Evidence that the file asks for by name must be there of every model (ERR_CONFIG); by default
// each gives what it can.
int evidence_check(const struct experiment *x, struct provider *const *providers, struct err *e);

// Most spans that a request for a trial of this model watches; 0: it is not watched.
uint32_t evidence_spans_most(const struct experiment *x, const struct record_trial *trials,
                             int64_t count, const char *model);
// Adds the spans of a trial to its request, one subject a constraint.
void evidence_ask(const struct record_trial *t, struct arena *a, struct provider_request *out);
// Do two trials with one prompt ask the same?
bool evidence_same_spans(const struct record_trial *a, const struct record_trial *b);

// What the record keeps of a completion; NULL: nothing was watched. Means over heads in ascending
// order in double; shares are rounded to parts per million, halves up.
const struct record_evidence *evidence_keep(const struct experiment *x,
                                            const struct record_trial *t,
                                            const struct provider_completion *c, struct arena *a);

#endif

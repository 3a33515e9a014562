// The sentences of a report: what the controls say, and what the design cannot show.
#ifndef LACUNA_EVALS_SUMMARIZE_WORDS_H
#define LACUNA_EVALS_SUMMARIZE_WORDS_H

#include "evals/reach.h"
#include "evals/tally.h"

void summarize_remark(struct summary_table *table, struct arena *a, const char *text);

// Remarks of one table, from its absent and short arms:
// - "The model says this anyway", when even the lower bound without the constraint is above 5 %.
// - "Not understood even when short", when fewer than half of the short arm's replies meet it.
// - forbid: "No temptation: this constraint measures nothing here", when the absent arm never
// violates.
// - "Out of the window's reach", of a model with a sliding window (evals/reach.h).
void summarize_remarks(const struct experiment *x, struct tally *t, int model,
                       const struct reach *reach, int constraint, struct arena *a,
                       struct summary_table *table);

// A paragraph made from the design: depths, lengths, repeats, wording, filler, decoding, and where
// there is `evidence` of attention, what that leaves open.
const char *summarize_limits(const struct tally *t, bool evidence, struct arena *a);

#endif

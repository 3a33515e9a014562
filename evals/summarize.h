// From a record to the numbers of a report: rates, intervals, contrasts, gates, words.
#ifndef LACUNA_EVALS_SUMMARIZE_H
#define LACUNA_EVALS_SUMMARIZE_H

#include "evals/experiment.h"
#include "reports/summary.h"

// `x` comes from the record's resolved.json (experiment_from_json), so nothing outside the record
// is read. Everything in `out` lives in the arena.
int summarize(const struct record *r, const struct experiment *x, struct arena *a,
              struct summary *out, struct err *e);

// The exit code that the summary asks for: 1 beyond `tolerate`, 100 a gate failed, 3 undecided, 0.
int summary_exit_code(const struct summary *s);

#endif

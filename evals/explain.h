// A verdict in words: what decided it, for `lacuna try` and for who reads its JSON.
#ifndef LACUNA_EVALS_EXPLAIN_H
#define LACUNA_EVALS_EXPLAIN_H

#include "evals/check.h"

// One sentence or two, in the arena.
const char *explain_verdict(const struct experiment_constraint *c, const struct record_verdict *v,
                            const struct reply *reply, struct arena *a);

#endif

// "In the window" (DESIGN section 7): whether a sliding window leaves a constraint within sight of
// the reply at all.
//
// In a layer with the window W a token attends to itself and the W - 1 tokens before it, so that
// through L such layers the last token of a prompt depends on the L (W - 1) tokens before it and on
// nothing else (Beltagy et al. 2020, "Longformer", section 3.1). The tokens of the reply stand
// further behind. What lies beyond can have no part in the reply, whatever the model has learnt.
// One window back is seen directly; what lies between comes in only by way of tokens between.
#ifndef LACUNA_EVALS_REACH_H
#define LACUNA_EVALS_REACH_H

#include "evals/tally.h"

struct reach {
    int64_t layers, window; // window 0: every token sees all before it
};

// From an entry of identity.json's models (NULL: no window is known of).
struct reach reach_of(const json_t *identity);
// How many tokens before it the last token of a prompt depends on.
int64_t reach_tokens(const struct reach *r);

enum reach_place {
    REACH_DIRECT, // the whole span stands within one window of the prompt's last token
    REACH_RELAYED,
    REACH_NONE // no token of it can have a part in the reply
};
enum reach_place reach_place(const struct reach *r, const struct record_trial *t,
                             const struct record_span *span);

// Fills in_window of a table's cells.
void reach_cells(const struct reach *r, const struct tally *t, int model, int constraint,
                 struct arena *a, struct summary_table *table);

// A remark for a table of a model with a window: the cells whose constraint lies out of reach, and
// those in which it is only relayed; of a constraint that stands at several places the nearest
// counts. NULL when it is seen directly everywhere. For all constraints at once a trial counts by
// the one that is worst off.
const char *reach_remark(const struct reach *r, const struct tally *t, int model, int constraint,
                         struct arena *a);

#endif

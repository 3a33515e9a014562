// The three ways to "see" side by side (DESIGN section 7): in the window, attended, used; and of
// full evidence which head looks where.
#ifndef LACUNA_EVALS_SUMMARIZE_ATTENTION_H
#define LACUNA_EVALS_SUMMARIZE_ATTENTION_H

#include "evals/summarize_grids.h"

// One grid for each model that was watched, from the tables' cells and the record's evidence; and
// s->heads, for each constraint in each row that moves it.
int summarize_attention(const struct record *r, const struct tally *t, struct arena *a,
                        struct summary *s, struct grids *out, struct err *e);

#endif

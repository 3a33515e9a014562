// What contrasts of places and of models share: their scope, their interval and their sentence.
#ifndef LACUNA_EVALS_CONTRAST_WORDS_H
#define LACUNA_EVALS_CONTRAST_WORDS_H

#include "evals/stats_base.h"
#include "evals/tally.h"

#define CONTRAST_UNSCORED_APART 0.02 // from here a difference in unscored shares is said

// "length 512", or "all lengths".
const char *contrast_scope(const struct tally *t, int first_length, int last_length,
                           struct arena *a);
const char *
contrast_what(const struct summary_contrast *c); // "order", "the whole set of constraints"

// An underpowered contrast takes none.
void contrast_take_interval(struct summary_contrast *c, struct stats_interval i);

// The sentence of a defined contrast whose p_holm is known. `seen`: the effect in words. A
// difference is claimed where the corrected p-value and the interval both show one. `apart`: by how
// much the shares of unscored trials differ between what is compared, which `between` names.
void contrast_write(struct summary_contrast *c, const char *seen, const char *between, double apart,
                    struct arena *a);

#endif

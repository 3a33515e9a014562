// What contrasts of places and of models share: their scope, their interval, their sentence, and
// the families that Holm's correction is over.
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

// A contrast before its correction and its sentence.
struct contrast_draft {
    struct summary_contrast contrast;
    const char *seen; // the effect in words, when it is defined
    double apart;     // by how much shares of unscored trials differ between what is compared
};
struct contrast_list {
    struct contrast_draft *p;
    int count;
    struct arena *arena;
};
void contrast_add(struct contrast_list *l, const struct contrast_draft *d);
// Holm's correction over the defined contrasts that are primary or not, and the sentence of each: a
// difference is claimed where the corrected p-value and the interval both show one. `between` names
// what is compared: "places", "models".
void contrast_correct(struct contrast_list *l, bool primary, const char *between);
// The contrasts alone, in the list's arena; returns how many.
int contrast_finish(const struct contrast_list *l, struct summary_contrast **out);

#endif

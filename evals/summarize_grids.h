// Tables that only some experiments have: spread between wordings, conflicts of constraints,
// served models.
#ifndef LACUNA_EVALS_SUMMARIZE_GRIDS_H
#define LACUNA_EVALS_SUMMARIZE_GRIDS_H

#include "evals/stats.h"
#include "evals/tally.h"

// Grids under construction, in one arena.
struct grids {
    struct summary_grid *p;
    int count;
    struct arena *arena;
};
struct summary_grid *grids_add(struct grids *l, const char *title, const char *note,
                               const char *const *heads, int columns);
void grids_row(struct grids *l, struct summary_grid *g, const char *const *cells);
void grids_say(struct grids *l, struct summary_grid *g, const char *sentence);

// "12/20" and "41 to 93 %".
const char *grids_fraction(struct grids *l, int met, int n);
const char *grids_interval(struct grids *l, struct stats_interval i);

// One grid a model and constraint that has several wordings: the rate of each wording beside the
// rate at each place, pooled over lengths, and the spread of both.
void grids_wordings(struct tally *t, struct grids *out);
// One grid a model and pair of constraints that contradict each other: which one wins, by which
// stands first.
void grids_conflicts(struct tally *t, struct grids *out);
// One grid a model that thinks aloud: how many tokens of it, by length.
void grids_reasoning(const struct tally *t, struct grids *out);
// One grid a model and constraint that it thought of and then dropped in an answer, by place.
void grids_thought(const struct tally *t, struct grids *out);
// A served model's grids: where it is, with the server's own counts of the prompts; what answered;
// its noise, where requests were to be sent twice.
void grids_served(const struct tally *t, const struct record *r, struct grids *out);
// That more than one thing answered for this model, in words; NULL: as far as is known it did not.
const char *served_warning(const struct tally *t, int model, struct arena *a);

#endif

// Contrasts between the models of one run: A minus B on the same cells, per constraint.
//
// The datum is one number a repeat: the mean met rate over all cells that both models have. Where
// the prompts of the two are the same token ids, or else the same text, a repeat is a pair: its
// difference is tested by the sign-flip test and has the interval of paired differences
// (stats_sign_flip.h, stats_paired.h). Else the models are two independent groups of repeats:
// permutation test and Newcombe's interval (stats_two.h), and the sentence says so.
#ifndef LACUNA_EVALS_CONTRAST_MODELS_H
#define LACUNA_EVALS_CONTRAST_MODELS_H

#include "evals/tally.h"

// For each two models in file order and each constraint ("all" behind them where there are
// several): each length, then all lengths pooled. All exploratory, Holm over this family. None with
// one model.
void contrast_models(struct tally *t, struct arena *a, struct summary_contrast **out, int *count);

// Did two trials get the same prompt, as far as is recorded?
enum summary_pairing contrast_pairing(const struct record_trial *a, const struct record_trial *b);

#endif

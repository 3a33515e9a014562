// How far the verdicts of two runs of one experiment agree, on equal prompts: of a local engine and
// a server with the same model, say, or of two servers.
//
// Trials are pairs when their keys are equal (the model aside) and their prompts are: the same
// token ids or, where not both are known, the same messages. An agreement is on met or not met,
// which is what rates are made of; its interval is clustered by repeat (stats_clustered.h), beyond
// chance it is told by kappa and AC1 (stats_agreement.h).
#ifndef LACUNA_EVALS_AGREE_H
#define LACUNA_EVALS_AGREE_H

#include "evals/compare.h"
#include "evals/stats_base.h"

#define AGREE_CLASSES 4 // of enum verdict

struct agree_row {
    const char *constraint; // "all": the verdicts on each constraint together
    int pairs, repeats;
    int table[AGREE_CLASSES][AGREE_CLASSES];        // [first's verdict][second's]
    int both_met, only_first, only_second, neither; // met
    int same_verdict;
    double rate; // of both_met + neither; meaningless when pairs is 0
    struct stats_interval interval;
    bool has_kappa;
    double kappa, ac1;
};

// A verdict on which one says met and the other does not.
struct agree_apart {
    const char *key; // of the first's trial
    const char *constraint;
    enum verdict first, second;
};

struct agreement {
    const struct baseline *first, *second;
    struct comparison pairing; // the trials with equal keys, and what differs besides
    int64_t pairs, by_ids;     // pairs with equal prompts; by_ids: token ids, the others by text
    int64_t same_text;         // of them, replies that are equal byte for byte
    // Trials of the first and the second without a pair, for they have no partner; and pairs of
    // trials that are none, for their prompts differ or one of them is invalid or an error.
    int64_t only_first, only_second, other_prompt, not_ok;
    struct agree_row *rows; // all, then the constraints where there are several
    int row_count;
    struct agree_apart *apart; // in the first's plan order
    int64_t apart_count;
    const char **warnings;
    int warning_count;
};

// Both sides have their records and must outlive *out. `models`: ids of the two that are paired, or
// NULL: by equal id, or the only one of each. ERR_UNDECIDED with the reason where nothing can be
// paired: other checks, no common model, no common trial, no equal prompt.
int agree_runs(const struct baseline *first, const struct baseline *second,
               const char *const models[2], struct arena *a, struct agreement *out, struct err *e);

#endif

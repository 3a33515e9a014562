// Contrasts of placements, paired within repeats (DESIGN section 7).
//
// The datum is one number a repeat: the mean over samples and pooled lengths of the difference
// between places. Positive numbers:
//   middle_against_ends    mean(start, end) - middle: the middle gap; the middle is worse
//   start_against_end      start - end
//   start_against_middle   start - middle
//   end_against_middle     end - middle
//   places_alike           largest minus smallest mean over all places of the row, with bounds of
//                          the true range; its test is Cochran's Q, permuted within repeats
// A repeat with no ok trial in one of the cells it needs is left out. With fewer than 10 repeats
// the contrast is underpowered: the effect is shown, without interval and p-value.
#ifndef LACUNA_EVALS_CONTRAST_H
#define LACUNA_EVALS_CONTRAST_H

#include "evals/cube.h"

#define CONTRAST_PLACES_MOST 3

// A weighted sum of the rates at depths.
struct contrast_kind {
    const char *name;
    int32_t depths[CONTRAST_PLACES_MOST];
    double weights[CONTRAST_PLACES_MOST];
    int count;
    bool exploratory;  // looked at without being asked for
    const char *where; // the first side compared with the second
};
const struct contrast_kind *contrast_find(const char *name); // NULL: there is none

// One number a repeat over lengths [first, last); d has room for all repeats. Returns how many
// there are, or -1 where the row lacks a place: *missing is its depth.
int contrast_values(const struct cube *g, const struct contrast_kind *kind, int placement,
                    int first_length, int last_length, double *d, int32_t *missing);
// Sum of the squared weights, which the interval of these numbers needs (stats_paired_contrast).
double contrast_squares(const struct contrast_kind *kind);

// All contrasts of the experiment, the primary first (all lengths pooled; one a model, on the first
// row that moves its constraint). The rest are exploratory: per model, row, constraint that the row
// moves ("all" beside them where it moves several) and length, then over all lengths; Holm over
// this family, and over the primaries where there are several models. Unscored shares that differ
// by more than 2 points between the compared places are said in the sentence.
void contrast_all(struct tally *t, struct arena *a, struct summary_contrast **out, int *count);

#endif

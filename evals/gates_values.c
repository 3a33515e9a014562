// The numbers of gates on differences, one a repeat.
#include "evals/gates_internal.h"

static bool is_met(const struct tally *t, const struct tally_trial *trial, int constraint) {
    return tally_verdict(t, trial, constraint) == VERDICT_MET;
}

struct share {
    int n, met;
};

static void add(struct share *s, bool met) {
    s->n++;
    s->met += met;
}

static double rate(const struct share *s) {
    return (double)s->met / s->n;
}

// ---- lift ----

static size_t prior_at(const struct tally *t, const struct tally_trial *trial) {
    return ((size_t)trial->model * (size_t)t->length_count + (size_t)trial->length) *
               (size_t)t->repeats +
           (size_t)trial->repeat;
}

static struct share *take_priors(const struct tally *t, int constraint, bool planned,
                                 struct arena *a) {
    size_t n = (size_t)t->x->model_count * (size_t)t->length_count * (size_t)t->repeats;
    struct share *priors = arena_array(a, n + 1, sizeof *priors);
    for (int64_t i = 0; i < t->trial_count; i++) {
        const struct tally_trial *trial = &t->trials[i];
        if (trial->arm != ARM_ABSENT || (!planned && trial->verdicts == NULL)) continue;
        add(&priors[prior_at(t, trial)], !planned && is_met(t, trial, constraint));
    }
    return priors;
}

struct stats_interval gate_interval(enum gate_metric m, const double *d, int count) {
    // Weights of the cells: 1/2, 1/2, -1; else 1, -1.
    return stats_paired_contrast(d, count, m == GATE_MIDDLE_GAP ? 1.5 : 2);
}

int gate_lift(const struct tally *t, const struct judged *j, bool planned, struct arena *a,
              double **out) {
    int constraint = j->gate->of, count = 0;
    struct share *priors = take_priors(t, constraint, planned, a);
    double *sums = arena_array(a, (size_t)t->repeats + 1, sizeof *sums);
    int *n = arena_array(a, (size_t)t->repeats + 1, sizeof *n);
    for (int64_t i = 0; i < t->trial_count; i++) {
        const struct tally_trial *trial = &t->trials[i];
        if (!tally_selects(t, trial, &j->filter, constraint)) continue;
        if (!planned && trial->verdicts == NULL) continue;
        const struct share *prior = &priors[prior_at(t, trial)];
        if (prior->n == 0) continue;
        sums[trial->repeat] += (!planned && is_met(t, trial, constraint)) - rate(prior);
        n[trial->repeat]++;
    }
    *out = arena_array(a, (size_t)t->repeats + 1, sizeof **out);
    for (int r = 0; r < t->repeats; r++)
        if (n[r] > 0) (*out)[count++] = sums[r] / n[r];
    return count;
}

// ---- middle gap ----

enum { START, MIDDLE, END, GAP_PLACES };
static const int32_t gap_depths[GAP_PLACES] = {0, DEPTH_MOST / 2, DEPTH_MOST};

static int gap_place(const struct tally *t, int column) {
    for (int k = 0; k < GAP_PLACES; k++)
        if (place_equal(t->columns[column].place, place_at(gap_depths[k]))) return k;
    return -1;
}

bool gate_has_gap(const struct tally *t, int placement, int constraint) {
    const struct experiment_placement *row = &t->x->placements[placement];
    bool seen[GAP_PLACES] = {false};
    for (int i = 0; i < t->column_count; i++)
        if (t->columns[i].placement == placement && gap_place(t, i) >= 0)
            seen[gap_place(t, i)] = true;
    return placement_moves(row, constraint) && seen[START] && seen[MIDDLE] && seen[END];
}

// Shares by [model][length][row][repeat][place].
static struct share *gap_at(const struct tally *t, struct share *shares, int model, int length,
                            int row, int repeat) {
    size_t at = (size_t)model * (size_t)t->length_count + (size_t)length;
    at = at * (size_t)t->x->placement_count + (size_t)row;
    return &shares[(at * (size_t)t->repeats + (size_t)repeat) * GAP_PLACES];
}

static struct share *take_gaps(const struct tally *t, const struct judged *j, bool planned,
                               struct arena *a) {
    int constraint = j->gate->of;
    size_t cells = (size_t)t->x->model_count * (size_t)t->length_count *
                   (size_t)t->x->placement_count * (size_t)t->repeats;
    struct share *shares = arena_array(a, cells * GAP_PLACES + 1, sizeof *shares);
    for (int64_t i = 0; i < t->trial_count; i++) {
        const struct tally_trial *trial = &t->trials[i];
        if (!tally_selects(t, trial, &j->filter, constraint) || trial->column < 0) continue;
        int column = tally_column(t, trial, constraint);
        int row = t->columns[column].placement, place = gap_place(t, column);
        if (place < 0 || !gate_has_gap(t, row, constraint)) continue;
        if (!planned && trial->verdicts == NULL) continue;
        struct share *s = gap_at(t, shares, trial->model, trial->length, row, trial->repeat);
        add(&s[place], !planned && is_met(t, trial, constraint));
    }
    return shares;
}

int gate_gap(const struct tally *t, const struct judged *j, bool planned, struct arena *a,
             double **out) {
    struct share *shares = take_gaps(t, j, planned, a);
    int count = 0;
    *out = arena_array(a, (size_t)t->repeats + 1, sizeof **out);
    for (int r = 0; r < t->repeats; r++) {
        double sum = 0;
        int n = 0;
        for (int m = 0; m < t->x->model_count; m++)
            for (int l = 0; l < t->length_count; l++)
                for (int row = 0; row < t->x->placement_count; row++) {
                    const struct share *s = gap_at(t, shares, m, l, row, r);
                    if (s[START].n == 0 || s[MIDDLE].n == 0 || s[END].n == 0) continue;
                    sum += (rate(&s[START]) + rate(&s[END])) / 2 - rate(&s[MIDDLE]);
                    n++;
                }
        if (n > 0) (*out)[count++] = sum / n;
    }
    return count;
}

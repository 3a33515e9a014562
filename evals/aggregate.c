#include "evals/aggregate.h"

#include "evals/contrast.h"
#include "evals/stats.h"

#include <assert.h>

// ---- effective length ----

static const char *effective_words(const struct tally *t, int shown, int possible,
                                   struct arena *a) {
    if (shown == t->length_count)
        return arena_printf(a, "at least %d tokens, the longest that ran", t->lengths[shown - 1]);
    if (possible == 0) return arena_printf(a, "below %d tokens", t->lengths[0]);
    if (shown == possible) return arena_printf(a, "%d tokens", t->lengths[shown - 1]);
    if (shown == 0)
        return arena_printf(a, "none shown; %d tokens are not excluded", t->lengths[possible - 1]);
    return arena_printf(a, "%d tokens shown; %d are not excluded", t->lengths[shown - 1],
                        t->lengths[possible - 1]);
}

static void take_effective(struct tally *t, struct tally_filter f, int constraint, struct arena *a,
                           struct summary_aggregate *out) {
    struct stats_interval *intervals =
        arena_array(a, (size_t)t->length_count + 1, sizeof *intervals);
    bool underpowered = false;
    int shown, possible, count = 0;
    for (f.length = 0; f.length < t->length_count; f.length++) {
        struct summary_rate r = tally_rate(t, &f, constraint);
        if (r.n == 0) break; // what did not run is not kept
        intervals[count++] = (struct stats_interval){r.low, r.high};
        underpowered |= r.underpowered;
    }
    stats_effective(intervals, count, out->level, &shown, &possible);
    out->effective = underpowered ? "underpowered"
                     : count == 0 ? "not run"
                                  : effective_words(t, shown, possible, a);
}

// ---- over depth ----

static struct summary_estimate estimate_of(double value, int repeats, struct stats_interval i) {
    bool enough = repeats >= STATS_REPEATS_LEAST;
    return (struct summary_estimate){.defined = true,
                                     .has_interval = enough,
                                     .value = value,
                                     .low = enough ? i.low : 0,
                                     .high = enough ? i.high : 0,
                                     .repeats = repeats};
}

static struct summary_estimate take_contrast(const struct cube *g, int row, const char *name,
                                             double *d) {
    const struct contrast_kind *kind = contrast_find(name);
    int32_t missing;
    assert(kind != NULL);
    int n = contrast_values(g, kind, row, 0, g->tally->length_count, d, &missing);
    if (n <= 0) return (struct summary_estimate){0};
    return estimate_of(stats_mean(d, n), n, stats_paired_contrast(d, n, contrast_squares(kind)));
}

static void take_area(const struct cube *g, int row, double *d, struct arena *a,
                      struct summary_aggregate *out) {
    const struct tally *t = g->tally;
    size_t most = (size_t)t->column_count + 1;
    int *columns = arena_array(a, most, sizeof *columns);
    int32_t *depths = arena_array(a, most, sizeof *depths);
    double *weights = arena_array(a, most, sizeof *weights), squares = 0;
    int count = cube_columns(g, row, true, columns);
    if (count < 2) return;
    for (int i = 0; i < count; i++) depths[i] = t->columns[columns[i]].place.depth;
    stats_area_weights(depths, count, weights);
    for (int i = 0; i < count; i++) squares += weights[i] * weights[i];
    struct cube_sum s = {columns, weights, count, 0, t->length_count};
    int n = cube_values(g, &s, d);
    if (n == 0) return;
    double worth = t->length_count * t->samples / squares; // trials that a repeat may be worth
    out->area = estimate_of(stats_mean(d, n), n, stats_shares(d, n, worth));
    out->area_from = depths[0];
    out->area_to = depths[count - 1];
}

// ---- from samples ----

// One repeat's mean over the cells of the row; false where one of them has fewer than k trials.
static bool sample_values(const struct cube *g, const int *columns, int count, int repeat, int k,
                          double *all, double *any) {
    int cells = 0;
    *all = *any = 0;
    for (int length = 0; length < g->tally->length_count; length++)
        for (int i = 0; i < count; i++) {
            const struct cube_cell *c = cube_at(g, length, columns[i], repeat);
            if (c->n < k) return false;
            *all += stats_samples_all(c->met, c->n, k);
            *any += stats_samples_any(c->met, c->n, k);
            cells++;
        }
    if (cells == 0) return false;
    *all /= cells;
    *any /= cells;
    return true;
}

static void take_samples(const struct cube *g, int row, struct arena *a,
                         struct summary_aggregate *out) {
    const struct tally *t = g->tally;
    int *columns = arena_array(a, (size_t)t->column_count + 1, sizeof *columns);
    int count = cube_columns(g, row, false, columns);
    double *all = arena_array(a, (size_t)t->repeats + 1, sizeof *all);
    double *any = arena_array(a, (size_t)t->repeats + 1, sizeof *any);
    for (int k = 2; k <= t->samples;
         k = k < t->samples && 2 * k > t->samples ? t->samples : 2 * k) {
        int n = 0;
        for (int r = 0; r < t->repeats; r++)
            n += sample_values(g, columns, count, r, k, &all[n], &any[n]);
        if (n == 0) continue;
        double worth = (double)count * t->length_count * (t->samples / k);
        out->samples = arena_more(a, out->samples, (size_t)out->sample_count, sizeof *out->samples);
        out->samples[out->sample_count++] = (struct summary_samples){
            k, estimate_of(stats_mean(all, n), n, stats_shares(all, n, worth)),
            estimate_of(stats_mean(any, n), n, stats_shares(any, n, worth))};
    }
}

// ---- the whole ----

static void take_one(struct tally *t, int model, int row, int constraint, struct arena *a,
                     struct summary_aggregate *out) {
    const struct experiment *x = t->x;
    struct tally_filter f = TALLY_EVERYTHING(ARM_PLACED);
    struct cube g;
    f.model = model;
    f.placement = row;
    *out = (struct summary_aggregate){.model = x->models[model].id,
                                      .constraint = experiment_constraint_id(x, constraint),
                                      .placement = x->placements[row].id,
                                      .rate = tally_rate(t, &f, constraint),
                                      .level = x->effective_level};
    struct tally_filter other = TALLY_EVERYTHING(ARM_ABSENT);
    other.model = model;
    out->absent = tally_rate(t, &other, constraint);
    other.arm = ARM_SHORT;
    out->brief = tally_rate(t, &other, constraint);
    take_effective(t, f, constraint, a, out);
    cube_fill(&g, t, model, constraint, a);
    double *d = arena_array(a, (size_t)t->repeats + 1, sizeof *d);
    out->middle_gap = take_contrast(&g, row, "middle_against_ends", d);
    out->primacy = take_contrast(&g, row, "start_against_middle", d);
    out->recency = take_contrast(&g, row, "end_against_middle", d);
    take_area(&g, row, d, a, out);
    take_samples(&g, row, a, out);
}

void aggregate_all(struct tally *t, struct arena *a, struct summary_aggregate **out, int *count) {
    const struct experiment *x = t->x;
    size_t most = 1;
    for (int row = 0; row < x->placement_count; row++)
        most += (size_t)x->placements[row].move_count + 1;
    *out = arena_array(a, most * (size_t)x->model_count, sizeof **out);
    *count = 0;
    for (int model = 0; model < x->model_count; model++)
        for (int row = 0; row < x->placement_count; row++) {
            const struct experiment_placement *p = &x->placements[row];
            for (int i = 0; i < p->move_count; i++)
                take_one(t, model, row, p->move[i], a, &(*out)[(*count)++]);
            if (x->constraint_count > 1)
                take_one(t, model, row, TALLY_ALL_CONSTRAINTS, a, &(*out)[(*count)++]);
        }
}

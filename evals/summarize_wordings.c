// The spread between wordings of a constraint beside the spread between its places.
#include "evals/summarize_grids.h"

#include <string.h>

enum { COLUMNS = 5 };

// Shares of one constraint in one model by a group of trials (a wording, a place): [repeat][group].
struct groups {
    struct tally *t;
    int model, constraint, count;
    const struct tally_filter *filters; // [count]
    struct summary_rate *rates;         // [count]
};

static void groups_rate(struct groups *g, struct arena *a) {
    g->rates = arena_array(a, (size_t)g->count + 1, sizeof *g->rates);
    for (int k = 0; k < g->count; k++)
        g->rates[k] = tally_rate(g->t, &g->filters[k], g->constraint);
}

// Largest minus smallest rate; false: fewer than two groups have trials.
static bool groups_spread(const struct groups *g, double *low, double *high) {
    int seen = 0;
    *low = 1;
    *high = 0;
    for (int k = 0; k < g->count; k++) {
        if (g->rates[k].n == 0) continue;
        seen++;
        if (g->rates[k].rate < *low) *low = g->rates[k].rate;
        if (g->rates[k].rate > *high) *high = g->rates[k].rate;
    }
    return seen >= 2;
}

// Repeats that have trials in every group: values[repeat * count + group]; returns how many.
static int groups_values(const struct groups *g, struct arena *a, double **out) {
    const struct tally *t = g->t;
    const size_t cells = (size_t)t->repeats * (size_t)g->count + 1;
    struct stats_cluster *c = arena_array(a, cells, sizeof *c);
    for (int64_t i = 0; i < t->trial_count; i++) {
        const struct tally_trial *trial = &t->trials[i];
        if (trial->verdicts == NULL) continue;
        for (int k = 0; k < g->count; k++) {
            if (!tally_selects(t, trial, &g->filters[k], g->constraint)) continue;
            struct stats_cluster *cell = &c[trial->repeat * g->count + k];
            cell->n++;
            cell->met += tally_verdict(t, trial, g->constraint) == VERDICT_MET;
        }
    }
    double *values = arena_array(a, cells, sizeof *values);
    int whole = 0;
    for (int r = 0; r < t->repeats; r++) {
        const struct stats_cluster *cell = &c[r * g->count];
        bool full = true;
        for (int k = 0; k < g->count; k++) full = full && cell[k].n > 0;
        for (int k = 0; full && k < g->count; k++)
            values[whole * g->count + k] = (double)cell[k].met / cell[k].n;
        whole += full;
    }
    *out = values;
    return whole;
}

// "spans 12.5 points (40.0 to 52.5 %), bounds of the true range 0.0 to 31.2 points", or NULL.
static const char *spread_words(const struct groups *g, struct arena *a) {
    double low, high, *values;
    if (!groups_spread(g, &low, &high)) return NULL;
    const char *seen =
        arena_printf(a, "%.1f points (%.1f to %.1f %%)", 100 * (high - low), 100 * low, 100 * high);
    int repeats = groups_values(g, a, &values);
    if (repeats >= STATS_REPEATS_LEAST) {
        struct stats_interval i = stats_places_range(values, repeats, g->count);
        return arena_printf(a, "%s, 95 %% bounds of the true range %.1f to %.1f points", seen,
                            100 * i.low, 100 * i.high);
    }
    // Each repeat in one group only: two groups have an interval of their difference.
    if (repeats == 0 && g->count == 2 && g->rates[0].repeats >= STATS_REPEATS_LEAST &&
        g->rates[1].repeats >= STATS_REPEATS_LEAST) {
        const struct summary_rate *x = &g->rates[0], *y = &g->rates[1];
        struct stats_interval of_x = {x->low, x->high}, of_y = {y->low, y->high};
        struct stats_interval i = stats_two_difference(x->rate, of_x, y->rate, of_y);
        return arena_printf(a,
                            "%s, 95 %% interval of the first's difference to the second, from "
                            "different repeats, %.1f to %.1f points",
                            seen, 100 * i.low, 100 * i.high);
    }
    return arena_printf(a, "%s; %s", seen,
                        repeats == 0 ? "no repeat has them all, so part of it is the luck of draws"
                                     : "underpowered: fewer than 10 repeats have them all");
}

// ---- the two ways of grouping ----

static struct groups by_wording(struct tally *t, int model, int constraint, struct arena *a) {
    const int count = t->x->constraints[constraint].variant_count;
    struct tally_filter *f = arena_array(a, (size_t)count + 1, sizeof *f);
    for (int k = 0; k < count; k++) {
        f[k] = TALLY_EVERYTHING(ARM_PLACED);
        f[k].model = model;
        f[k].wording = k + 1;
    }
    return (struct groups){t, model, constraint, count, f, NULL};
}

// Columns of the rows that move the constraint.
static struct groups by_place(struct tally *t, int model, int constraint, struct arena *a) {
    struct tally_filter *f = arena_array(a, (size_t)t->column_count + 1, sizeof *f);
    struct groups g = {t, model, constraint, 0, f, NULL};
    for (int i = 0; i < t->column_count; i++) {
        if (t->columns[i].of != NULL) continue;
        if (!placement_moves(&t->x->placements[t->columns[i].placement], constraint)) continue;
        f[g.count] = TALLY_EVERYTHING(ARM_PLACED);
        f[g.count].model = model;
        f[g.count++].column = i;
    }
    return g;
}

static void add_row(struct grids *l, struct summary_grid *grid, const char *group, const char *text,
                    const struct summary_rate *r) {
    const char *cells[COLUMNS] = {
        group, text, grids_fraction(l, r->met, r->n),
        r->n == 0 ? "-" : arena_printf(l->arena, "%.0f %%", 100 * r->rate),
        r->n == 0 ? "-" : grids_interval(l, (struct stats_interval){r->low, r->high})};
    grids_row(l, grid, cells);
}

static void add_grid(struct tally *t, int model, int constraint, struct grids *l) {
    static const char *const heads[COLUMNS] = {"group", "text or row", "met", "rate",
                                               "95 % interval"};
    const struct experiment *x = t->x;
    const struct experiment_constraint *c = &x->constraints[constraint];
    struct groups wordings = by_wording(t, model, constraint, l->arena);
    struct groups places = by_place(t, model, constraint, l->arena);
    groups_rate(&wordings, l->arena);
    groups_rate(&places, l->arena);
    struct summary_grid *grid = grids_add(
        l, arena_printf(l->arena, "Wordings of %s, %s", c->id, x->models[model].id),
        c->cross_variants
            ? "Each repeat runs every wording. Rates are pooled over lengths; those of wordings "
              "over places, those of places over wordings."
            : "Each repeat has one wording, drawn in balance. Rates are pooled over lengths; those "
              "of wordings over places, those of places over wordings.",
        heads, COLUMNS);
    for (int k = 0; k < wordings.count; k++)
        add_row(l, grid, arena_printf(l->arena, "wording %d", k + 1),
                str_to_c(l->arena, c->variants[k]), &wordings.rates[k]);
    for (int k = 0; k < places.count; k++) {
        const struct tally_column *column = &t->columns[places.filters[k].column];
        char place[PLACE_TEXT_SIZE];
        place_text(column->place, place);
        add_row(l, grid, arena_strdup(l->arena, place), x->placements[column->placement].id,
                &places.rates[k]);
    }
    const char *spread = spread_words(&wordings, l->arena);
    if (spread != NULL)
        grids_say(l, grid, arena_printf(l->arena, "Spread between wordings: %s.", spread));
    spread = spread_words(&places, l->arena);
    if (spread != NULL)
        grids_say(l, grid, arena_printf(l->arena, "Spread between places: %s.", spread));
}

void grids_wordings(struct tally *t, struct grids *out) {
    const struct experiment *x = t->x;
    for (int model = 0; model < x->model_count; model++)
        for (int c = 0; c < x->constraint_count; c++)
            if (x->constraints[c].variant_count > 1) add_grid(t, model, c, out);
}

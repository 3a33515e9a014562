#include "evals/contrast.h"

#include "evals/contrast_words.h"
#include "evals/stats.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 4 };

static const struct contrast_kind kinds[KINDS] = {
    {"middle_against_ends",
     {0, DEPTH_MOST, DEPTH_MOST / 2},
     {0.5, 0.5, -1},
     3,
     true,
     "at the ends than in the middle"},
    {"start_against_end", {0, DEPTH_MOST}, {1, -1}, 2, true, "at the start than at the end"},
    {"start_against_middle",
     {0, DEPTH_MOST / 2},
     {1, -1},
     2,
     false,
     "at the start than in the middle"},
    {"end_against_middle",
     {DEPTH_MOST, DEPTH_MOST / 2},
     {1, -1},
     2,
     false,
     "at the end than in the middle"},
};

const struct contrast_kind *contrast_find(const char *name) {
    for (int k = 0; k < KINDS; k++)
        if (strcmp(kinds[k].name, name) == 0) return &kinds[k];
    return NULL;
}

// The largest difference between the columns' shares of unscored trials.
static double unscored_apart(const struct cube *g, const int *columns, int count, int first,
                             int last) {
    double least = 1, most = 0;
    for (int k = 0; k < count; k++) {
        double share = cube_unscored(g, columns[k], first, last);
        least = fmin(least, share);
        most = fmax(most, share);
    }
    return count > 0 ? most - least : 0;
}

// ---- one contrast ----

static void identify(const struct cube *g, int placement, const char *name, int first, int last,
                     struct arena *a, struct summary_contrast *out) {
    const struct experiment *x = g->tally->x;
    *out = (struct summary_contrast){.model = x->models[g->model].id,
                                     .constraint = experiment_constraint_id(x, g->constraint),
                                     .placement = x->placements[placement].id,
                                     .name = name,
                                     .scope = contrast_scope(g->tally, first, last, a),
                                     .p = 1,
                                     .p_holm = 1};
}

// The effect in words; `where` NULL: of all places of a row.
static const char *seen_words(const struct tally *t, const struct summary_contrast *c,
                              const char *where, struct arena *a) {
    const char *what = contrast_what(c);
    if (t->x->model_count > 1) what = arena_printf(a, "%s: %s", c->model, what);
    if (where == NULL)
        return arena_printf(a, "%s: rates differ by up to %.1f points between the places", what,
                            100 * c->effect);
    const char *than = strstr(where, " than ");
    if (fabs(c->effect) < 0.0005)
        return arena_printf(a, "%s is met as often %.*s as %s", what, (int)(than - where), where,
                            than + strlen(" than "));
    return arena_printf(a, "%s is met %.1f points %s often %s", what, 100 * fabs(c->effect),
                        c->effect < 0 ? "less" : "more", where);
}

static bool take_columns(const struct tally *t, const struct contrast_kind *kind, int placement,
                         int *columns, int32_t *missing) {
    for (int k = 0; k < kind->count; k++) {
        columns[k] = cube_column(t, placement, kind->depths[k]);
        *missing = kind->depths[k];
        if (columns[k] < 0) return false;
    }
    return true;
}

int contrast_values(const struct cube *g, const struct contrast_kind *kind, int placement,
                    int first_length, int last_length, double *d, int32_t *missing) {
    int columns[CONTRAST_PLACES_MOST];
    if (!take_columns(g->tally, kind, placement, columns, missing)) return -1;
    struct cube_sum s = {columns, kind->weights, kind->count, first_length, last_length};
    return cube_values(g, &s, d);
}

double contrast_squares(const struct contrast_kind *kind) {
    double squares = 0;
    for (int k = 0; k < kind->count; k++) squares += kind->weights[k] * kind->weights[k];
    return squares;
}

static void compare_places(const struct cube *g, const struct contrast_kind *kind, int placement,
                           int first, int last, struct arena *a, struct contrast_draft *out) {
    const struct tally *t = g->tally;
    struct summary_contrast *c = &out->contrast;
    int columns[CONTRAST_PLACES_MOST];
    int32_t missing;
    identify(g, placement, kind->name, first, last, a, c);
    if (!take_columns(t, kind, placement, columns, &missing)) {
        c->sentence =
            arena_printf(a, "Undefined: %s does not stand at depth %d %%, which %s compares.",
                         c->placement, (int)(missing / 1000), kind->name);
        return;
    }
    double *d = arena_array(a, (size_t)t->repeats + 1, sizeof *d);
    c->repeats = contrast_values(g, kind, placement, first, last, d, &missing);
    c->underpowered = c->repeats < STATS_REPEATS_LEAST;
    if (c->repeats == 0) {
        c->sentence = "Undefined: no repeat has an answered trial at each of the places compared.";
        return;
    }
    c->defined = true;
    c->effect = stats_mean(d, c->repeats);
    const char *stream =
        arena_printf(a, "%s/%s/%s/%s/%s", c->model, c->placement, c->constraint, c->name, c->scope);
    c->p = stats_sign_flip(d, c->repeats, t->x->seed, stream, &c->nonzero);
    contrast_take_interval(c, stats_paired_contrast(d, c->repeats, contrast_squares(kind)));
    out->seen = seen_words(t, c, kind->where, a);
    out->apart = unscored_apart(g, columns, kind->count, first, last);
}

// values[repeat][place] of the repeats that have all places; returns how many.
static int whole_repeats(const struct cube *g, const int *columns, int k, int first, int last,
                         double *values) {
    int count = 0;
    double one = 1;
    for (int r = 0; r < g->tally->repeats; r++) {
        bool whole = true;
        for (int j = 0; j < k && whole; j++) {
            const struct cube_sum s = {&columns[j], &one, 1, first, last};
            whole = cube_value(g, &s, r, &values[count * k + j]);
        }
        count += whole;
    }
    return count;
}

static int count_unlike(const double *values, int repeats, int k) {
    int unlike = 0;
    for (int r = 0; r < repeats; r++) {
        int j = 1;
        while (j < k && values[r * k + j] == values[r * k]) j++;
        unlike += j < k;
    }
    return unlike;
}

// All places of a row at once: false where it has fewer than three or no repeat is whole.
static bool compare_row(const struct cube *g, int placement, int first, int last, struct arena *a,
                        struct contrast_draft *out) {
    const struct tally *t = g->tally;
    struct summary_contrast *c = &out->contrast;
    int *columns = arena_array(a, (size_t)t->column_count + 1, sizeof *columns);
    int k = cube_columns(g, placement, false, columns);
    if (k < 3) return false;
    identify(g, placement, "places_alike", first, last, a, c);
    double *values = arena_array(a, (size_t)t->repeats * (size_t)k + 1, sizeof *values);
    c->repeats = whole_repeats(g, columns, k, first, last, values);
    if (c->repeats == 0) return false;
    double least = 1, most = 0;
    for (int j = 0; j < k; j++) {
        double sum = 0;
        for (int r = 0; r < c->repeats; r++) sum += values[r * k + j];
        least = fmin(least, sum / c->repeats);
        most = fmax(most, sum / c->repeats);
    }
    c->nonzero = count_unlike(values, c->repeats, k);
    c->defined = true;
    c->effect = most - least;
    c->underpowered = c->repeats < STATS_REPEATS_LEAST;
    const char *stream =
        arena_printf(a, "%s/%s/%s/%s", c->model, c->placement, c->constraint, c->scope);
    c->p = stats_places(values, c->repeats, k, t->x->seed, stream);
    c->q = stats_cochran_q(values, c->repeats, k);
    contrast_take_interval(c, stats_places_range(values, c->repeats, k));
    out->seen = seen_words(t, c, NULL, a);
    out->apart = unscored_apart(g, columns, k, first, last);
    return true;
}

// ---- the family ----

// On the first row that moves the constraint over all the places; else on the last row tried, where
// it says what is missing.
static void add_primary(struct contrast_list *f, struct tally *y, int model) {
    const struct experiment *x = y->x;
    const struct contrast_kind *kind = contrast_find(x->primary.contrast);
    assert(kind != NULL); // the loader knows the same names
    struct cube g;
    cube_fill(&g, y, model, x->primary.of, f->arena);
    struct contrast_draft p = {0};
    for (int row = 0; row < x->placement_count && !p.contrast.defined; row++) {
        if (!placement_moves(&x->placements[row], x->primary.of)) continue;
        compare_places(&g, kind, row, 0, y->length_count, f->arena, &p);
        p.contrast.primary = true;
    }
    if (p.contrast.primary) contrast_add(f, &p);
}

static bool is_primary(const struct contrast_list *f, const struct summary_contrast *c) {
    for (int i = 0; i < f->count; i++) {
        const struct summary_contrast *p = &f->p[i].contrast;
        if (p->primary && p->model == c->model && strcmp(p->constraint, c->constraint) == 0 &&
            p->placement == c->placement && p->name == c->name && strcmp(p->scope, c->scope) == 0)
            return true;
    }
    return false;
}

static void add_scope(struct contrast_list *f, const struct cube *g, int row, int first, int last) {
    for (int k = 0; k < KINDS; k++) {
        if (!kinds[k].exploratory) continue;
        struct contrast_draft p = {0};
        compare_places(g, &kinds[k], row, first, last, f->arena, &p);
        if (p.contrast.defined && !is_primary(f, &p.contrast)) contrast_add(f, &p);
    }
    struct contrast_draft all = {0};
    if (compare_row(g, row, first, last, f->arena, &all)) contrast_add(f, &all);
}

static void add_exploratory(struct contrast_list *f, struct tally *y, int model, int row,
                            int constraint) {
    struct cube g;
    cube_fill(&g, y, model, constraint, f->arena);
    for (int length = 0; length < y->length_count; length++)
        add_scope(f, &g, row, length, length + 1);
    if (y->length_count > 1) add_scope(f, &g, row, 0, y->length_count);
}

void contrast_all(struct tally *t, struct arena *a, struct summary_contrast **out, int *count) {
    const struct experiment *x = t->x;
    struct contrast_list f = {.arena = a};
    for (int model = 0; x->primary.given && model < x->model_count; model++)
        add_primary(&f, t, model);
    for (int model = 0; model < x->model_count; model++) {
        for (int row = 0; row < x->placement_count; row++) {
            const struct experiment_placement *p = &x->placements[row];
            for (int i = 0; i < p->move_count; i++) add_exploratory(&f, t, model, row, p->move[i]);
            if (p->move_count > 1) add_exploratory(&f, t, model, row, TALLY_ALL_CONSTRAINTS);
        }
    }
    contrast_correct(&f, true, "places");
    contrast_correct(&f, false, "places");
    *count = contrast_finish(&f, out);
}

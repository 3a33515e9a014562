#include "evals/contrast.h"

#include "evals/stats.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 4 };
#define UNSCORED_APART 0.02

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

// One cell's trials of one repeat.
struct cell {
    int met, unscored, n;
};
// Outcomes of one model and constraint: [length][column][repeat].
struct table {
    const struct tally *tally;
    int model, constraint;
    struct cell *cells;
};

static struct cell *cell_at(const struct table *t, int length, int column, int repeat) {
    const struct tally *y = t->tally;
    return &t->cells[((size_t)length * (size_t)y->column_count + (size_t)column) *
                         (size_t)y->repeats +
                     (size_t)repeat];
}

static void table_fill(struct table *t, const struct tally *y, int model, int constraint,
                       struct arena *a) {
    *t = (struct table){y, model, constraint, NULL};
    t->cells =
        arena_array(a, (size_t)y->length_count * (size_t)y->column_count * (size_t)y->repeats + 1,
                    sizeof *t->cells);
    for (int64_t i = 0; i < y->trial_count; i++) {
        const struct tally_trial *trial = &y->trials[i];
        if (trial->arm != ARM_PLACED || trial->model != model || trial->verdicts == NULL) continue;
        if (!tally_holds(y, trial, constraint)) continue;
        struct cell *c =
            cell_at(t, trial->length, tally_column(y, trial, constraint), trial->repeat);
        enum verdict v = tally_verdict(y, trial, constraint);
        c->n++;
        c->met += v == VERDICT_MET;
        c->unscored += v == VERDICT_UNSCORED;
    }
}

static int find_column(const struct tally *t, int placement, int32_t depth) {
    for (int i = 0; i < t->column_count; i++)
        if (t->columns[i].placement == placement &&
            place_equal(t->columns[i].place, place_at(depth)))
            return i;
    return -1;
}

// What is compared: columns with weights, over lengths [first, last).
struct scope {
    int columns[CONTRAST_PLACES_MOST];
    double weights[CONTRAST_PLACES_MOST];
    int count;
    int first_length, last_length;
};

// The datum of one repeat; false: a cell that it needs is empty.
static bool repeat_value(const struct table *t, const struct scope *s, int repeat, double *value) {
    double sum = 0;
    for (int length = s->first_length; length < s->last_length; length++) {
        for (int k = 0; k < s->count; k++) {
            const struct cell *c = cell_at(t, length, s->columns[k], repeat);
            if (c->n == 0) return false;
            sum += s->weights[k] * c->met / c->n;
        }
    }
    *value = sum / (s->last_length - s->first_length);
    return s->last_length > s->first_length;
}

// The largest difference between the columns' shares of unscored trials.
static double unscored_apart(const struct table *t, const int *columns, int count, int first,
                             int last) {
    double least = 1, most = 0;
    for (int k = 0; k < count; k++) {
        int n = 0, unscored = 0;
        for (int length = first; length < last; length++) {
            for (int r = 0; r < t->tally->repeats; r++) {
                n += cell_at(t, length, columns[k], r)->n;
                unscored += cell_at(t, length, columns[k], r)->unscored;
            }
        }
        double share = n > 0 ? (double)unscored / n : 0;
        if (share < least) least = share;
        if (share > most) most = share;
    }
    return count > 0 ? most - least : 0;
}

// ---- words ----

static void identify(const struct table *t, int placement, const char *name, int first, int last,
                     struct arena *a, struct summary_contrast *out) {
    const struct experiment *x = t->tally->x;
    *out = (struct summary_contrast){
        .model = x->models[t->model].id,
        .constraint = t->constraint < 0 ? "all" : x->constraints[t->constraint].id,
        .placement = x->placements[placement].id,
        .name = name,
        .scope = last - first == 1 ? arena_printf(a, "length %d", t->tally->lengths[first])
                                   : "all lengths",
        .p = 1,
        .p_holm = 1};
}

static const char *unscored_words(double apart, struct arena *a) {
    if (apart <= UNSCORED_APART) return "";
    return arena_printf(a,
                        " Shares of unscored replies differ by %.1f points between the places "
                        "compared, which may be the cause.",
                        100 * apart);
}

static void write_sentence(struct summary_contrast *c, const char *where, double apart,
                           struct arena *a) {
    const char *what =
        strcmp(c->constraint, "all") == 0 ? "all constraints together" : c->constraint;
    const char *kind = c->primary ? "" : "Exploratory: ";
    double p = c->p_holm;
    const char *seen =
        where == NULL
            ? arena_printf(a, "rates of %s differ by up to %.1f points between the places", what,
                           100 * c->effect)
            : arena_printf(a, "%s is met %.1f points %s often %s", what, 100 * fabs(c->effect),
                           c->effect < 0 ? "less" : "more", where);
    const char *numbers = arena_printf(a, "95 %% interval of the difference %.1f to %.1f, p = %.4f",
                                       100 * c->low, 100 * c->high, c->p);
    const char *corrected = p != c->p ? arena_printf(a, ", %.4f after Holm's correction", p) : "";
    const char *unscored = unscored_words(apart, a);
    if (c->underpowered)
        c->sentence = arena_printf(a,
                                   "%sUnderpowered: %d repeats are too few for a conclusion (10 at "
                                   "least). Seen: %s.%s",
                                   kind, c->repeats, seen, unscored);
    else if (p <= 0.05 && c->low <= 0 && c->high >= 0)
        // Exact test and interval are two approximations; a difference is only what both show.
        c->sentence = arena_printf(a,
                                   "%sNo difference shown: the test alone would show one, but the "
                                   "interval holds 0. Seen: %s (%s%s, %d repeats).%s",
                                   kind, seen, numbers, corrected, c->repeats, unscored);
    else if (p <= 0.05)
        c->sentence = arena_printf(a, "%sDifference shown: %s (%s%s, %d repeats).%s", kind, seen,
                                   numbers, corrected, c->repeats, unscored);
    else
        c->sentence = arena_printf(a, "%sNo difference shown: %s (%s%s, %d repeats).%s", kind, seen,
                                   numbers, corrected, c->repeats, unscored);
}

// ---- one contrast ----

// Too few repeats have none.
static void take_interval(struct summary_contrast *c, struct stats_interval i) {
    c->has_interval = !c->underpowered;
    if (!c->has_interval) return;
    c->low = i.low;
    c->high = i.high;
}

struct pending {
    struct summary_contrast contrast;
    const char *where;
    double apart;
};

static void compare_places(const struct table *t, const struct contrast_kind *kind, int placement,
                           int first, int last, struct arena *a, struct pending *out) {
    const struct tally *y = t->tally;
    struct summary_contrast *c = &out->contrast;
    identify(t, placement, kind->name, first, last, a, c);
    out->where = kind->where;
    struct scope s = {.count = kind->count, .first_length = first, .last_length = last};
    for (int k = 0; k < kind->count; k++) {
        s.columns[k] = find_column(y, placement, kind->depths[k]);
        s.weights[k] = kind->weights[k];
        if (s.columns[k] >= 0) continue;
        c->sentence =
            arena_printf(a, "Undefined: %s does not stand at depth %d %%, which %s compares.",
                         c->placement, (int)(kind->depths[k] / 1000), kind->name);
        return;
    }
    double *d = arena_array(a, (size_t)y->repeats + 1, sizeof *d), sum = 0;
    for (int r = 0; r < y->repeats; r++) {
        if (!repeat_value(t, &s, r, &d[c->repeats])) continue;
        sum += d[c->repeats++];
    }
    c->underpowered = c->repeats < STATS_REPEATS_LEAST;
    if (c->repeats == 0) {
        c->sentence = "Undefined: no repeat has an answered trial at each of the places compared.";
        return;
    }
    c->defined = true;
    c->effect = sum / c->repeats;
    const char *stream =
        arena_printf(a, "%s/%s/%s/%s/%s", c->model, c->placement, c->constraint, c->name, c->scope);
    c->p = stats_sign_flip(d, c->repeats, y->x->seed, stream, &c->nonzero);
    double squares = 0;
    for (int k = 0; k < kind->count; k++) squares += kind->weights[k] * kind->weights[k];
    take_interval(c, stats_paired_contrast(d, c->repeats, squares));
    out->apart = unscored_apart(t, s.columns, s.count, first, last);
}

// All places of a row at once: false where it has fewer than three or no repeat is whole.
static bool compare_row(const struct table *t, int placement, int first, int last, struct arena *a,
                        struct pending *out) {
    const struct tally *y = t->tally;
    struct summary_contrast *c = &out->contrast;
    int *columns = arena_array(a, (size_t)y->column_count + 1, sizeof *columns), k = 0;
    for (int i = 0; i < y->column_count; i++)
        if (y->columns[i].placement == placement && y->columns[i].of == NULL) columns[k++] = i;
    if (k < 3) return false;
    identify(t, placement, "places_alike", first, last, a, c);
    double *values = arena_array(a, (size_t)y->repeats * (size_t)k + 1, sizeof *values);
    for (int r = 0; r < y->repeats; r++) {
        bool whole = true;
        for (int j = 0; j < k && whole; j++) {
            struct scope one = {{columns[j]}, {1}, 1, first, last};
            whole = repeat_value(t, &one, r, &values[c->repeats * k + j]);
        }
        c->repeats += whole;
    }
    if (c->repeats == 0) return false;
    double least = 1, most = 0;
    for (int j = 0; j < k; j++) {
        double sum = 0;
        for (int r = 0; r < c->repeats; r++) sum += values[r * k + j];
        if (sum / c->repeats < least) least = sum / c->repeats;
        if (sum / c->repeats > most) most = sum / c->repeats;
    }
    for (int r = 0; r < c->repeats; r++)
        for (int j = 1; j < k; j++)
            if (values[r * k + j] != values[r * k]) {
                c->nonzero++;
                break;
            }
    c->defined = true;
    c->effect = most - least;
    c->underpowered = c->repeats < STATS_REPEATS_LEAST;
    const char *stream =
        arena_printf(a, "%s/%s/%s/%s", c->model, c->placement, c->constraint, c->scope);
    c->p = stats_places(values, c->repeats, k, y->x->seed, stream);
    c->q = stats_cochran_q(values, c->repeats, k);
    take_interval(c, stats_places_range(values, c->repeats, k));
    out->apart = unscored_apart(t, columns, k, first, last);
    return true;
}

// ---- the family ----

struct family {
    struct pending *p;
    int count;
    struct arena *arena;
};

static void family_add(struct family *f, const struct pending *p) {
    f->p = arena_more(f->arena, f->p, (size_t)f->count, sizeof *f->p);
    f->p[f->count++] = *p;
}

static bool row_moves(const struct experiment_placement *row, int constraint) {
    for (int i = 0; i < row->move_count; i++)
        if (row->move[i] == constraint) return true;
    return constraint < 0;
}

// On the first row that moves the constraint over all the places; else on the last row tried, where
// it says what is missing.
static void add_primary(struct family *f, struct tally *y, int model) {
    const struct experiment *x = y->x;
    const struct contrast_kind *kind = contrast_find(x->primary.contrast);
    assert(kind != NULL); // the loader knows the same names
    struct table t;
    table_fill(&t, y, model, x->primary.of, f->arena);
    struct pending p = {0};
    for (int row = 0; row < x->placement_count && !p.contrast.defined; row++) {
        if (!row_moves(&x->placements[row], x->primary.of)) continue;
        compare_places(&t, kind, row, 0, y->length_count, f->arena, &p);
        p.contrast.primary = true;
    }
    if (p.contrast.primary) family_add(f, &p);
}

static bool is_primary(const struct family *f, const struct summary_contrast *c) {
    for (int i = 0; i < f->count; i++) {
        const struct summary_contrast *p = &f->p[i].contrast;
        if (p->primary && p->model == c->model && strcmp(p->constraint, c->constraint) == 0 &&
            p->placement == c->placement && p->name == c->name && strcmp(p->scope, c->scope) == 0)
            return true;
    }
    return false;
}

static void add_scope(struct family *f, const struct table *t, int row, int first, int last) {
    for (int k = 0; k < KINDS; k++) {
        if (!kinds[k].exploratory) continue;
        struct pending p = {0};
        compare_places(t, &kinds[k], row, first, last, f->arena, &p);
        if (p.contrast.defined && !is_primary(f, &p.contrast)) family_add(f, &p);
    }
    struct pending all = {0};
    if (compare_row(t, row, first, last, f->arena, &all)) family_add(f, &all);
}

static void add_exploratory(struct family *f, struct tally *y, int model, int row, int constraint) {
    struct table t;
    table_fill(&t, y, model, constraint, f->arena);
    for (int length = 0; length < y->length_count; length++)
        add_scope(f, &t, row, length, length + 1);
    if (y->length_count > 1) add_scope(f, &t, row, 0, y->length_count);
}

static void correct(struct family *f, bool primary, struct arena *a) {
    double *p = arena_array(a, (size_t)f->count + 1, sizeof *p);
    double *adjusted = arena_array(a, (size_t)f->count + 1, sizeof *adjusted);
    int count = 0;
    for (int i = 0; i < f->count; i++)
        if (f->p[i].contrast.primary == primary && f->p[i].contrast.defined)
            p[count++] = f->p[i].contrast.p;
    stats_holm(p, count, adjusted);
    count = 0;
    for (int i = 0; i < f->count; i++) {
        struct pending *x = &f->p[i];
        if (x->contrast.primary != primary || !x->contrast.defined) continue;
        x->contrast.p_holm = adjusted[count++];
        write_sentence(&x->contrast, x->where, x->apart, a);
    }
}

void contrast_all(struct tally *t, struct arena *a, struct summary_contrast **out, int *count) {
    const struct experiment *x = t->x;
    struct family f = {.arena = a};
    for (int model = 0; x->primary.given && model < x->model_count; model++)
        add_primary(&f, t, model);
    for (int model = 0; model < x->model_count; model++) {
        for (int row = 0; row < x->placement_count; row++) {
            const struct experiment_placement *p = &x->placements[row];
            for (int i = 0; i < p->move_count; i++) add_exploratory(&f, t, model, row, p->move[i]);
            if (p->move_count > 1) add_exploratory(&f, t, model, row, TALLY_ALL_CONSTRAINTS);
        }
    }
    correct(&f, true, a);
    correct(&f, false, a);
    *count = f.count;
    *out = arena_array(a, (size_t)f.count + 1, sizeof **out);
    for (int i = 0; i < f.count; i++) (*out)[i] = f.p[i].contrast;
}

#include "evals/cube.h"

static struct cube_cell *cell_at(const struct cube *g, int length, int column, int repeat) {
    const struct tally *t = g->tally;
    size_t row = (size_t)length * (size_t)t->column_count + (size_t)column;
    return &g->cells[row * (size_t)t->repeats + (size_t)repeat];
}

const struct cube_cell *cube_at(const struct cube *g, int length, int column, int repeat) {
    return cell_at(g, length, column, repeat);
}

void cube_fill(struct cube *g, const struct tally *t, int model, int constraint, struct arena *a) {
    *g = (struct cube){t, model, constraint, NULL};
    size_t cells = (size_t)t->length_count * (size_t)t->column_count * (size_t)t->repeats;
    g->cells = arena_array(a, cells + 1, sizeof *g->cells);
    for (int64_t i = 0; i < t->trial_count; i++) {
        const struct tally_trial *trial = &t->trials[i];
        if (trial->arm != ARM_PLACED || trial->model != model || trial->verdicts == NULL) continue;
        if (!tally_holds(t, trial, constraint)) continue;
        struct cube_cell *c =
            cell_at(g, trial->length, tally_column(t, trial, constraint), trial->repeat);
        enum verdict v = tally_verdict(t, trial, constraint);
        c->n++;
        c->met += v == VERDICT_MET;
        c->unscored += v == VERDICT_UNSCORED;
    }
}

int cube_column(const struct tally *t, int placement, int32_t depth) {
    for (int i = 0; i < t->column_count; i++)
        if (t->columns[i].placement == placement &&
            place_equal(t->columns[i].place, place_at(depth)))
            return i;
    return -1;
}

bool cube_has_trials(const struct cube *g, int column) {
    for (int length = 0; length < g->tally->length_count; length++)
        for (int r = 0; r < g->tally->repeats; r++)
            if (cube_at(g, length, column, r)->n > 0) return true;
    return false;
}

int cube_columns(const struct cube *g, int placement, bool depths_only, int *columns) {
    const struct tally *t = g->tally;
    int count = 0;
    for (int i = 0; i < t->column_count; i++) {
        const struct tally_column *c = &t->columns[i];
        if (c->placement != placement || c->of != NULL || !cube_has_trials(g, i)) continue;
        if (!depths_only || place_is_depth(c->place)) columns[count++] = i;
    }
    return count;
}

bool cube_value(const struct cube *g, const struct cube_sum *s, int repeat, double *value) {
    double sum = 0;
    for (int length = s->first_length; length < s->last_length; length++) {
        for (int k = 0; k < s->count; k++) {
            const struct cube_cell *c = cube_at(g, length, s->columns[k], repeat);
            if (c->n == 0) return false;
            sum += s->weights[k] * c->met / c->n;
        }
    }
    *value = sum / (s->last_length - s->first_length);
    return s->last_length > s->first_length;
}

int cube_values(const struct cube *g, const struct cube_sum *s, double *values) {
    int count = 0;
    for (int r = 0; r < g->tally->repeats; r++) count += cube_value(g, s, r, &values[count]);
    return count;
}

double cube_unscored(const struct cube *g, int column, int first, int last) {
    int n = 0, unscored = 0;
    for (int length = first; length < last; length++) {
        for (int r = 0; r < g->tally->repeats; r++) {
            n += cube_at(g, length, column, r)->n;
            unscored += cube_at(g, length, column, r)->unscored;
        }
    }
    return n > 0 ? (double)unscored / n : 0;
}

// The placed trials of one model and one constraint by length, column and repeat: what contrasts,
// areas and estimates from samples are computed from, one number a repeat.
#ifndef LACUNA_EVALS_GRID_H
#define LACUNA_EVALS_GRID_H

#include "evals/tally.h"

// One cell's trials of one repeat.
struct grid_cell {
    int met, unscored, n;
};
struct grid {
    const struct tally *tally;
    int model, constraint;
    struct grid_cell *cells; // [length][column][repeat]
};

// A weighted sum of columns, averaged over lengths [first_length, last_length).
struct grid_sum {
    const int *columns; // count of each
    const double *weights;
    int count;
    int first_length, last_length;
};

void grid_fill(struct grid *g, const struct tally *t, int model, int constraint, struct arena *a);
const struct grid_cell *grid_at(const struct grid *g, int length, int column, int repeat);

// The column of a row at a depth; -1: none.
int grid_column(const struct tally *t, int placement, int32_t depth);
bool grid_has_trials(const struct grid *g, int column);
// The columns of a row at places where this constraint has trials, in reading order; `depths_only`
// leaves anchors out. Returns their count; `columns` has room for column_count.
int grid_columns(const struct grid *g, int placement, bool depths_only, int *columns);

// The sum's value in one repeat; false: a cell that it needs is empty.
bool grid_value(const struct grid *g, const struct grid_sum *s, int repeat, double *value);
// Its values in all repeats that have one: at most t->repeats numbers; returns how many.
int grid_values(const struct grid *g, const struct grid_sum *s, double *values);

// Share of unscored trials in one column over lengths [first, last).
double grid_unscored(const struct grid *g, int column, int first, int last);

#endif

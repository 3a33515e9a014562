// The placed trials of one model and one constraint by length, column and repeat: what contrasts,
// areas and estimates from samples are computed from, one number a repeat.
#ifndef LACUNA_EVALS_CUBE_H
#define LACUNA_EVALS_CUBE_H

#include "evals/tally.h"

// One cell's trials of one repeat.
struct cube_cell {
    int met, unscored, n;
};
struct cube {
    const struct tally *tally;
    int model, constraint;
    struct cube_cell *cells; // [length][column][repeat]
};

// A weighted sum of columns, averaged over lengths [first_length, last_length).
struct cube_sum {
    const int *columns; // count of each
    const double *weights;
    int count;
    int first_length, last_length;
};

void cube_fill(struct cube *g, const struct tally *t, int model, int constraint, struct arena *a);
const struct cube_cell *cube_at(const struct cube *g, int length, int column, int repeat);

// The column of a row at a depth; -1: none.
int cube_column(const struct tally *t, int placement, int32_t depth);
bool cube_has_trials(const struct cube *g, int column);
// The columns of a row at places where this constraint has trials, in reading order; `depths_only`
// leaves anchors out. Returns their count; `columns` has room for column_count.
int cube_columns(const struct cube *g, int placement, bool depths_only, int *columns);

// The sum's value in one repeat; false: a cell that it needs is empty.
bool cube_value(const struct cube *g, const struct cube_sum *s, int repeat, double *value);
// Its values in all repeats that have one: at most t->repeats numbers; returns how many.
int cube_values(const struct cube *g, const struct cube_sum *s, double *values);

// Share of unscored trials in one column over lengths [first, last).
double cube_unscored(const struct cube *g, int column, int first, int last);

#endif

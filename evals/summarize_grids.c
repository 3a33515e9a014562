#include "evals/summarize_grids.h"

struct summary_grid *grids_add(struct grids *l, const char *title, const char *note,
                               const char *const *heads, int columns) {
    l->p = arena_more(l->arena, l->p, (size_t)l->count, sizeof *l->p);
    struct summary_grid *g = &l->p[l->count++];
    *g = (struct summary_grid){
        .title = title, .note = note, .heads = heads, .column_count = columns};
    return g;
}

void grids_row(struct grids *l, struct summary_grid *g, const char *const *cells) {
    const char **row = arena_array(l->arena, (size_t)g->column_count, sizeof *row);
    for (int i = 0; i < g->column_count; i++) row[i] = cells[i];
    g->rows = arena_more(l->arena, (void *)g->rows, (size_t)g->row_count, sizeof *g->rows);
    g->rows[g->row_count++] = row;
}

void grids_say(struct grids *l, struct summary_grid *g, const char *sentence) {
    g->sentences =
        arena_more(l->arena, (void *)g->sentences, (size_t)g->sentence_count, sizeof *g->sentences);
    g->sentences[g->sentence_count++] = sentence;
}

const char *grids_fraction(struct grids *l, int met, int n) {
    return n == 0 ? "-" : arena_printf(l->arena, "%d/%d", met, n);
}

const char *grids_interval(struct grids *l, struct stats_interval i) {
    return arena_printf(l->arena, "%.0f to %.0f %%", 100 * i.low, 100 * i.high);
}

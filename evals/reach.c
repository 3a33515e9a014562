#include "evals/reach.h"

#include <inttypes.h>
#include <string.h>

struct reach reach_of(const json_t *identity) {
    return (struct reach){
        .layers = json_integer_value(json_object_get(identity, "layers")),
        .window = json_integer_value(json_object_get(identity, "window")),
    };
}

int64_t reach_tokens(const struct reach *r) {
    return r->layers * (r->window - 1);
}

enum reach_place reach_place(const struct reach *r, const struct record_trial *t,
                             const struct record_span *span) {
    if (r->window == 0) return REACH_DIRECT;
    int64_t first = (int64_t)t->prompt_tokens - 1 - span->first_token; // distances to the last
    int64_t last = first - span->tokens + 1;
    if (first <= r->window - 1) return REACH_DIRECT;
    return last <= reach_tokens(r) ? REACH_RELAYED : REACH_NONE;
}

// Of a constraint: the best place of its copies.
static enum reach_place constraint_place(const struct reach *r, const struct record_trial *t,
                                         const char *constraint) {
    enum reach_place best = REACH_NONE;
    for (int i = 0; i < t->span_count; i++) {
        if (strcmp(t->spans[i].constraint, constraint) != 0) continue;
        enum reach_place place = reach_place(r, t, &t->spans[i]);
        if (place < best) best = place;
    }
    return best;
}

static enum reach_place worst_place(const struct reach *r, const struct record_trial *t,
                                    const char *constraint) {
    enum reach_place worst = REACH_DIRECT;
    for (int i = 0; i < t->span_count; i++) {
        if (constraint != NULL && strcmp(t->spans[i].constraint, constraint) != 0) continue;
        enum reach_place place = constraint_place(r, t, t->spans[i].constraint);
        if (place > worst) worst = place;
    }
    return worst;
}

struct share {
    int trials, at[REACH_NONE + 1];
};

static struct share share_of(const struct reach *r, const struct tally *t, int model, int length,
                             int column, int constraint) {
    const char *id = constraint == TALLY_ALL_CONSTRAINTS ? NULL : t->x->constraints[constraint].id;
    struct share s = {0};
    struct tally_filter f = TALLY_EVERYTHING(ARM_PLACED);
    f.model = model;
    f.length = length;
    f.column = column;
    for (int64_t i = 0; i < t->trial_count; i++) {
        if (!tally_selects(t, &t->trials[i], &f, constraint)) continue;
        s.at[worst_place(r, t->trials[i].planned, id)]++;
        s.trials++;
    }
    return s;
}

static const char *share_words(const struct share *s, struct arena *a) {
    static const char *const words[] = {"directly", "relayed", "out of reach"};
    struct buf b = {0};
    for (int i = REACH_DIRECT; i <= REACH_NONE; i++) {
        if (s->at[i] > 0 && s->at[i] == s->trials) buf_add_c(&b, words[i]);
        if (s->at[i] > 0 && s->at[i] < s->trials)
            buf_printf(&b, "%s%d %s", b.n > 0 ? ", " : "", s->at[i], words[i]);
    }
    return buf_take(&b, a).p;
}

void reach_cells(const struct reach *r, const struct tally *t, int model, int constraint,
                 struct arena *a, struct summary_table *table) {
    for (int i = 0; r->window > 0 && i < table->cell_count; i++) {
        struct summary_cell *c = &table->cells[i];
        struct share s = share_of(r, t, model, c->length, c->column, constraint);
        c->in_window = share_words(&s, a);
    }
}

// "start, 25% of 256 tokens; 40% (3 of 20 trials) of 512 tokens"; a row's name where there are
// several. Returns how many cells.
static int add_cells(const struct reach *r, const struct tally *t, int model, int constraint,
                     enum reach_place place, struct buf *out) {
    int cells = 0;
    for (int length = 0; length < t->length_count; length++) {
        int here = 0;
        for (int column = 0; column < t->column_count; column++) {
            struct share s = share_of(r, t, model, length, column, constraint);
            if (s.at[place] == 0) continue;
            char spelled[PLACE_TEXT_SIZE];
            place_text(t->columns[column].place, spelled);
            buf_add_c(out, here > 0 ? ", " : cells > 0 ? "; " : "");
            if (t->x->placement_count > 1)
                buf_printf(out, "%s at ", t->x->placements[t->columns[column].placement].id);
            buf_add_c(out, spelled);
            if (s.at[place] < s.trials)
                buf_printf(out, " (%d of %d trials)", s.at[place], s.trials);
            here++;
            cells++;
        }
        if (here > 0) buf_printf(out, " of %d tokens", t->lengths[length]);
    }
    return cells;
}

const char *reach_remark(const struct reach *r, const struct tally *t, int model, int constraint,
                         struct arena *a) {
    if (r->window == 0) return NULL;
    bool all = constraint == TALLY_ALL_CONSTRAINTS;
    const char *what = all ? "some constraint" : t->x->constraints[constraint].id;
    const char *text = NULL;
    struct buf none = {0}, relayed = {0}, b = {0};
    int none_cells = add_cells(r, t, model, constraint, REACH_NONE, &none);
    int relayed_cells = add_cells(r, t, model, constraint, REACH_RELAYED, &relayed);
    if (none_cells > 0)
        buf_printf(&b,
                   "Out of the window's reach: %s at %s. With %" PRId64 " layers and a window of "
                   "%" PRId64 " tokens a reply depends on the last %" PRId64
                   " tokens of its prompt "
                   "and on nothing before them. ",
                   what, none.p, r->layers, r->window, reach_tokens(r) + 1);
    if (relayed_cells > 0)
        buf_printf(&b,
                   "Beyond one window of %" PRId64
                   " tokens, so that it can come in only from layer "
                   "to layer, by way of the tokens between: %s at %s.",
                   r->window, what, relayed.p);
    if (b.n > 0) text = str_to_c(a, str_trim(buf_str(&b)));
    buf_free(&none);
    buf_free(&relayed);
    buf_free(&b);
    return text;
}

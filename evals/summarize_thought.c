// What a model that thinks has in its thoughts and not in its answer: the constraint was seen, and
// dropped on the way.
#include "evals/summarize_grids.h"

struct thoughts {
    int ok, met, dropped, unanswered;
};

static struct thoughts count(const struct tally *t, int model, int constraint, int column) {
    struct thoughts c = {0};
    for (int64_t i = 0; i < t->trial_count; i++) {
        const struct tally_trial *trial = &t->trials[i];
        if (trial->model != model || trial->verdicts == NULL || trial->arm != ARM_PLACED) continue;
        const struct record_verdict *v = trial->verdicts[constraint];
        if (v == NULL || (column >= 0 && tally_column(t, trial, constraint) != column)) continue;
        c.ok++;
        c.met += v->verdict == VERDICT_MET;
        const bool answered = trial->outcome->answer[0] < trial->outcome->answer[1];
        c.unanswered += v->thought && !answered;
        c.dropped += v->thought && answered;
    }
    return c;
}

static void add_row(struct grids *l, struct summary_grid *g, const char *place,
                    const struct thoughts *c) {
    const int neither = c->ok - c->met - c->dropped - c->unanswered;
    const char *const cells[] = {
        place, grids_fraction(l, c->met, c->ok), grids_fraction(l, c->dropped, c->ok),
        grids_fraction(l, c->unanswered, c->ok), grids_fraction(l, neither, c->ok)};
    grids_row(l, g, cells);
}

static void add_grid(const struct tally *t, int model, int constraint, struct grids *l) {
    static const char *const heads[] = {"place", "met", "thought of, not in the answer",
                                        "thought of, no answer", "neither"};
    struct thoughts all = count(t, model, constraint, -1);
    if (all.dropped + all.unanswered == 0) return;
    struct summary_grid *g = grids_add(
        l,
        arena_printf(l->arena, "Thought of and dropped: %s, %s", t->x->models[model].id,
                     t->x->constraints[constraint].id),
        "Of all ok placed trials, lengths pooled: the checks hold for what was thought before the "
        "answer, and not for the answer.",
        heads, 5);
    for (int column = 0; column < t->column_count; column++) {
        struct thoughts c = count(t, model, constraint, column);
        char place[PLACE_TEXT_SIZE];
        if (c.ok == 0) continue;
        place_text(t->columns[column].place, place);
        add_row(l, g,
                arena_printf(l->arena, "%s@%s", t->x->placements[t->columns[column].placement].id,
                             place),
                &c);
    }
    add_row(l, g, "all", &all);
    grids_say(l, g,
              arena_printf(l->arena,
                           "of %d placed replies %d answer without what had been thought of, and "
                           "%d thought of it and give no answer",
                           all.ok, all.dropped, all.unanswered));
}

void grids_thought(const struct tally *t, struct grids *out) {
    for (int m = 0; m < t->x->model_count; m++)
        for (int c = 0; c < t->x->constraint_count; c++) add_grid(t, m, c, out);
}

// Constraints that contradict each other: does the one that stands first win, or the one behind it?
#include "evals/summarize_grids.h"

#include "reports/layout.h"

#include <math.h>
#include <string.h>

enum { COLUMNS = 6, ORDERS = 2 };

struct pair {
    struct tally *t;
    int model, a, b;
};
// Replies by what they meet, where one of the two stands first.
struct outcomes {
    int n, both, earlier, later, neither; // earlier, later: only that one
};
// One repeat's sums of met(later) - met(earlier), by order.
struct repeat_sum {
    int sum[ORDERS], n[ORDERS];
};

// Where the only span of a constraint begins; false: it has none or several, so that "earlier" says
// nothing.
static bool stands_at(const struct record_trial *t, const char *constraint, size_t *at) {
    int spans = 0;
    for (int i = 0; i < t->span_count; i++) {
        if (strcmp(t->spans[i].constraint, constraint) != 0) continue;
        *at = t->spans[i].first_byte;
        spans++;
    }
    return spans == 1;
}

// 0: a stands before b, 1: behind it, -1: the trial says nothing.
static int order_of(const struct pair *p, const struct tally_trial *trial) {
    const struct experiment *x = p->t->x;
    size_t a, b;
    if (trial->arm != ARM_PLACED || trial->model != p->model || trial->verdicts == NULL) return -1;
    if (!stands_at(trial->planned, x->constraints[p->a].id, &a) ||
        !stands_at(trial->planned, x->constraints[p->b].id, &b))
        return -1;
    return a > b;
}

static void count(const struct pair *p, struct outcomes *by_order, struct repeat_sum *repeats) {
    tally_begin(p->t);
    for (int64_t i = 0; i < p->t->trial_count; i++) {
        const struct tally_trial *trial = &p->t->trials[i];
        const int order = order_of(p, trial);
        if (order < 0 || !tally_once(p->t, trial)) continue;
        bool a = tally_verdict(p->t, trial, p->a) == VERDICT_MET;
        bool b = tally_verdict(p->t, trial, p->b) == VERDICT_MET;
        bool earlier = order == 0 ? a : b, later = order == 0 ? b : a;
        struct outcomes *o = &by_order[order];
        o->n++;
        o->both += a && b;
        o->earlier += earlier && !later;
        o->later += later && !earlier;
        o->neither += !a && !b;
        repeats[trial->repeat].sum[order] += later - earlier;
        repeats[trial->repeat].n[order]++;
    }
}

static void add_outcomes(struct grids *l, struct summary_grid *g, const char *order,
                         const struct outcomes *o) {
    const int counts[] = {o->both, o->earlier, o->later, o->neither};
    const char *cells[COLUMNS] = {order, arena_printf(l->arena, "%d", o->n)};
    for (int i = 0; i < 4; i++)
        cells[2 + i] =
            o->n == 0 ? "-"
                      : arena_printf(l->arena, "%d (%.0f %%)", counts[i], 100.0 * counts[i] / o->n);
    grids_row(l, g, cells);
}

// The datum of a repeat: met(later) - met(earlier), the mean of both orders, so that what one of
// the texts has over the other cancels.
static const char *winner(const struct pair *p, const struct repeat_sum *repeats, struct arena *a) {
    const struct experiment *x = p->t->x;
    double *d = arena_array(a, (size_t)p->t->repeats + 1, sizeof *d), sum = 0;
    int n = 0, nonzero;
    for (int r = 0; r < p->t->repeats; r++) {
        const struct repeat_sum *s = &repeats[r];
        if (s->n[0] == 0 || s->n[1] == 0) continue;
        d[n] = ((double)s->sum[0] / s->n[0] + (double)s->sum[1] / s->n[1]) / 2;
        sum += d[n++];
    }
    if (n == 0)
        return "Which of the two wins by its place cannot be told: no repeat has both orders. "
               "Scatter them over two places.";
    double effect = sum / n;
    const char *stream = arena_printf(a, "%s/conflict/%s/%s", x->models[p->model].id,
                                      x->constraints[p->a].id, x->constraints[p->b].id);
    const double test = stats_sign_flip(d, n, x->seed, stream, &nonzero);
    char p_words[16];
    layout_p(test, p_words);
    const char *seen = arena_printf(a, "the later one is met %.1f points %s often",
                                    100 * fabs(effect), effect < 0 ? "less" : "more");
    if (n < STATS_REPEATS_LEAST)
        return arena_printf(a,
                            "Underpowered: %d repeat%s, too few for a conclusion (10 at least). "
                            "Seen: %s.",
                            n, n == 1 ? "" : "s", seen);
    struct stats_interval i = stats_paired(d, n);
    bool shown = test <= 0.05 && (i.low > 0 || i.high < 0);
    return arena_printf(a,
                        "%s: %s (95 %% interval of the difference %.1f to %.1f, %s, %d repeats).",
                        !shown       ? "No difference shown between early and late"
                        : effect > 0 ? "Late wins"
                                     : "Early wins",
                        seen, layout_tenths(i.low), layout_tenths(i.high), p_words, n);
}

static void add_grid(const struct pair *p, struct grids *l) {
    static const char *const heads[COLUMNS] = {
        "order", "replies", "both met", "only the earlier", "only the later", "neither"};
    const struct experiment *x = p->t->x;
    const char *a = x->constraints[p->a].id, *b = x->constraints[p->b].id;
    struct outcomes by_order[ORDERS] = {{0}}, all = {0};
    struct repeat_sum *repeats = arena_array(l->arena, (size_t)p->t->repeats + 1, sizeof *repeats);
    count(p, by_order, repeats);
    struct summary_grid *g = grids_add(
        l, arena_printf(l->arena, "%s against %s, %s", a, b, x->models[p->model].id),
        "The two contradict each other. Placed trials that hold each of them once, pooled over "
        "lengths and rows; exact sign-flip test on repeats that have both orders, exploratory.",
        heads, COLUMNS);
    for (int i = 0; i < ORDERS; i++) {
        const struct outcomes *o = &by_order[i];
        all = (struct outcomes){all.n + o->n, all.both + o->both, all.earlier + o->earlier,
                                all.later + o->later, all.neither + o->neither};
        add_outcomes(l, g, arena_printf(l->arena, "%s first", i == 0 ? a : b), o);
    }
    add_outcomes(l, g, "both orders", &all);
    grids_say(l, g, winner(p, repeats, l->arena));
    if (all.both > 0)
        grids_say(
            l, g,
            arena_printf(l->arena,
                         "%d of %d replies meet both: the checks let one reply satisfy the two.",
                         all.both, all.n));
}

void grids_conflicts(struct tally *t, struct grids *out) {
    const struct experiment *x = t->x;
    for (int model = 0; model < x->model_count; model++)
        for (int a = 0; a < x->constraint_count; a++)
            for (int b = a + 1; b < x->constraint_count; b++) {
                const struct experiment_constraint *c = &x->constraints[a], *d = &x->constraints[b];
                if (c->contradicts != d && d->contradicts != c) continue;
                add_grid(&(struct pair){t, model, a, b}, out);
            }
}

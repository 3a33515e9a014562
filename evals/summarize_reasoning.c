// How much models think before they answer, and how often a budget ends that.
#include "evals/reply.h"
#include "evals/summarize_grids.h"

#include <stdlib.h>

struct amounts {
    int replies, told, cut;  // told: with a count of tokens
    int *thought, *answered; // [told], of the answer only where the whole is known too
    int answered_count;
};

static int compare_ints(const void *a, const void *b) {
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

// Of n > 0 numbers, which it sorts: the middle one, or the mean of the middle two.
static double median(int *p, int n) {
    qsort(p, (size_t)n, sizeof *p, compare_ints);
    return ((double)p[(n - 1) / 2] + (double)p[n / 2]) / 2;
}

// Before the answer began.
static bool is_cut(const struct record_outcome *o) {
    return o->answer[0] == o->answer[1] && !reply_finished(o->finish);
}

static void count(const struct tally *t, int model, int length, struct amounts *out) {
    out->replies = out->told = out->cut = out->answered_count = 0;
    for (int64_t i = 0; i < t->trial_count; i++) {
        const struct tally_trial *trial = &t->trials[i];
        const struct record_outcome *o = trial->outcome;
        if (trial->model != model || trial->length != length || trial->verdicts == NULL) continue;
        out->replies++;
        out->cut += is_cut(o);
        if (!o->reasoning_counted) continue;
        out->thought[out->told++] = o->reasoning_tokens;
        if (o->tokens >= o->reasoning_tokens)
            out->answered[out->answered_count++] = o->tokens - o->reasoning_tokens;
    }
}

static const char *number(struct grids *l, double value) {
    return arena_printf(l->arena, "%.*f", value != (double)(int64_t)value, value);
}

static void add_row(struct grids *l, struct summary_grid *g, const char *length,
                    struct amounts *c) {
    const double middle = c->told > 0 ? median(c->thought, c->told) : 0;
    const double answer = c->answered_count > 0 ? median(c->answered, c->answered_count) : 0;
    const char *const cells[] = {
        length,
        arena_printf(l->arena, "%d", c->replies),
        c->told == 0 ? "not told" : number(l, middle),
        c->told == 0 ? "-" : number(l, c->thought[c->told - 1]), // sorted by now
        c->answered_count == 0 ? "-" : number(l, answer),
        grids_fraction(l, c->cut, c->replies),
    };
    grids_row(l, g, cells);
}

static const char *budgets(const struct tally *t, int model, struct arena *a) {
    const struct experiment_model *m = &t->x->models[model];
    const int answer = t->x->generation.max_tokens;
    if (m->reasoning_tokens == 0)
        return arena_printf(a, "One budget of %d tokens for both.", answer);
    if (m->endpoint.url != NULL)
        return arena_printf(a,
                            "%d tokens for the reasoning and %d for the answer were sent as one "
                            "limit of %d, which the server divides as it likes.",
                            m->reasoning_tokens, answer, m->reasoning_tokens + answer);
    return arena_printf(
        a, "%d tokens for the reasoning and %d for the answer, each counted by itself.",
        m->reasoning_tokens, answer);
}

static bool thinks(const struct tally *t, int model) {
    if (t->x->models[model].thinks) return true;
    for (int64_t i = 0; i < t->trial_count; i++) {
        const struct record_outcome *o = t->trials[i].outcome;
        if (t->trials[i].model == model && o != NULL &&
            (o->reasoning.n > 0 || o->reasoning_tokens > 0))
            return true;
    }
    return false;
}

static void add_model(const struct tally *t, int model, struct grids *l) {
    static const char *const heads[] = {"length",
                                        "replies",
                                        "reasoning tokens, median",
                                        "most",
                                        "answer tokens, median",
                                        "cut while thinking"};
    struct summary_grid *g = grids_add(
        l, arena_printf(l->arena, "Reasoning: %s", t->x->models[model].id),
        arena_printf(l->arena, "Of all ok trials. %s", budgets(t, model, l->arena)), heads, 6);
    struct amounts c = {.thought = arena_array(l->arena, (size_t)t->trial_count, sizeof(int)),
                        .answered = arena_array(l->arena, (size_t)t->trial_count, sizeof(int))};
    for (int length = -1; length < t->length_count; length++) {
        count(t, model, length, &c);
        if (c.replies == 0) continue;
        add_row(l, g, length < 0 ? "short" : arena_printf(l->arena, "%d", t->lengths[length]), &c);
    }
}

void grids_reasoning(const struct tally *t, struct grids *out) {
    for (int i = 0; i < t->x->model_count; i++)
        if (thinks(t, i)) add_model(t, i, out);
}

// Distractors of a repeat: sentences of a constraint's shape with other values, for the filler.
#include "evals/plan_internal.h"

#include <string.h>

#define DRAWS_MOST 1000

struct distractor_draw {
    const struct experiment *x;
    const struct experiment_distractor *is;
    struct repeat_draw *d;
    struct rng rng;  // of the values
    struct arena *a; // the plan's
};

static bool is_drawn(const struct repeat_draw *d, const char *constraint, int var,
                     struct str value) {
    for (int i = 0; i < d->distractor_count; i++)
        if (strcmp(d->distractors[i].constraint, constraint) == 0 &&
            str_equal(d->distractors[i].vars[var].value, value))
            return true;
    return false;
}

// Never a value that some variable of the repeat has; one that no distractor before it has, unless
// there is none.
static int value_redraw(struct distractor_draw *w, int var, struct str *out, struct err *e) {
    const struct experiment_constraint *c = &w->x->constraints[w->is->like];
    const char *id = c->id, *name = w->is->vary[var];
    const struct experiment_variable *v = experiment_variable_find(c, str_from(name));
    struct str other = {0};
    for (int i = 0; i < DRAWS_MOST; i++) {
        *out = value_draw(v, &w->rng, w->a);
        if (value_used(w->d, *out)) continue;
        if (!is_drawn(w->d, id, var, *out)) return 0;
        other = *out;
    }
    if (other.p == NULL)
        FAIL(e, ERR_CONFIG,
             "prompt.filler.distractors: the variable '%s' of the constraint '%s' has no value "
             "beside the right ones; give it more choices or digits",
             name, id);
    *out = other;
    return 0;
}

static int distractor_next(void *context, struct str *text, struct err *e) {
    struct distractor_draw *w = context;
    struct repeat_draw *d = w->d;
    int constraint = w->is->like, known = d->known_count[constraint];
    const char *id = w->x->constraints[constraint].id;
    struct record_var *vars = arena_array(w->a, (size_t)w->is->vary_count + 1, sizeof *vars);
    struct variable *now = arena_array(w->a, (size_t)known + 1, sizeof *now);
    memcpy(now, d->known[constraint], (size_t)known * sizeof *now);
    for (int i = 0; i < w->is->vary_count; i++) {
        vars[i] = (struct record_var){.constraint = id, .name = w->is->vary[i]};
        TRY(value_redraw(w, i, &vars[i].value, e));
        for (int k = 0; k < known; k++)
            if (strcmp(now[k].name, vars[i].name) == 0) now[k].value = vars[i].value;
    }
    d->distractors =
        arena_more(w->a, d->distractors, (size_t)d->distractor_count, sizeof *d->distractors);
    d->distractors[d->distractor_count++] =
        (struct record_distractor){.constraint = id, .vars = vars, .var_count = w->is->vary_count};
    const struct experiment_constraint *c = &w->x->constraints[constraint];
    struct str wording = c->variant_count > 0 ? c->variants[d->variant[constraint]] : c->text;
    return variables_replace(wording, now, known, "prompt.filler.distractors", w->a, text, e);
}

struct filler *repeat_distract(const struct experiment *x, struct repeat_draw *d,
                               struct filler *filler, struct arena *plan_arena, struct arena *a) {
    size_t count = (size_t)x->distractor_count;
    if (count == 0) return filler;
    struct filler_sprinkle *list = arena_array(a, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        const struct experiment_distractor *is = &x->distractors[i];
        const char *id = x->constraints[is->like].id;
        struct distractor_draw *w = arena_alloc(a, sizeof *w);
        *w = (struct distractor_draw){.x = x, .is = is, .d = d, .a = plan_arena};
        w->rng = repeat_stream(x, d, arena_printf(a, "distractors %s", id));
        list[i] = (struct filler_sprinkle){
            .per_1k_tokens = (uint32_t)is->per_1k_tokens,
            .draw = distractor_next,
            .context = w,
            .rng = repeat_stream(x, d, arena_printf(a, "distractor places %s", id))};
    }
    return filler_mixed_open(filler, list, count, a);
}

int distractors_within(struct filler *f, size_t bytes, struct err *e) {
    int n = 0;
    const struct filler_item *u;
    for (size_t i = 0;; i++) {
        if (filler_get(f, i, &u, e) != 0) return -1;
        if (u == NULL || u->to > bytes) return n;
        n += u->sprinkle > 0;
    }
}

int distractors_part(struct filler *f, size_t bytes, bool only, struct arena *a, struct str *out,
                     struct err *e) {
    const struct filler_item *u;
    char *text = arena_alloc(a, 2 * bytes + 1); // a line break behind each distractor at the most
    size_t n = 0;
    for (size_t i = 0;; i++) {
        TRY(filler_get(f, i, &u, e));
        if (u == NULL || u->to > bytes) break;
        struct str whole = only ? u->text : str_slice(filler_text(f), u->from, u->to);
        bool distractor = u->sprinkle > 0;
        if (only && !distractor) continue;
        if (distractor && !only)
            memset(text + n, ' ', whole.n);
        else
            memcpy(text + n, whole.p, whole.n);
        n += whole.n;
        if (only) text[n++] = '\n';
    }
    *out = (struct str){text, n};
    return 0;
}

int distractors_check(const struct check *check, const struct experiment_constraint *c,
                      const struct repeat_draw *d, struct str distractors, struct err *e) {
    size_t match[2];
    const char *by;
    bool matches;
    TRY(check_filler(check, distractors, &matches, match, &by, e));
    if (!matches || strcmp(by, "violated") == 0) return 0;
    FAIL(e, ERR_CONFIG,
         "constraint '%s': its `%s` matches a distractor of %s: \"" STR_FMT
         "\"; distractors state other values, so change the check or what they vary",
         c->id, by, d->scope, STR_ARG(str_slice(distractors, match[0], match[1])));
}

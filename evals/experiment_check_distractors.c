// The rules of distractors: whose shape they have, and that they cannot state the right value.
#include "evals/experiment_internal.h"

#include <string.h>

#define AT(...) arena_printf(l->arena, __VA_ARGS__)
#define WRONG(path, ...) diagnose_at(l->d, l->root, (path), __VA_ARGS__)

static bool is_variable(const struct experiment *x, const struct experiment_constraint *c,
                        const char *name) {
    for (int i = 0; i < c->var_count; i++)
        if (strcmp(c->vars[i].name, name) == 0) return true;
    for (int i = 0; i < x->var_count; i++)
        if (strcmp(x->vars[i].name, name) == 0) return x->vars[i].kind != VARIABLE_FILLER;
    return false;
}

static bool uses(struct load *l, struct str text, const char *name) {
    if (text.p == NULL) return false;
    return str_find(text, str_from(AT("{{%s}}", name)), 0) != STR_NONE ||
           str_find(text, str_from(AT("{{re:%s}}", name)), 0) != STR_NONE;
}

static void check_vary(struct load *l, const struct experiment_distractor *d, const char *path) {
    const struct experiment_constraint *c = &l->x->constraints[d->like];
    bool in_value = c->value.p == NULL && c->met.p == NULL;
    for (int i = 0; i < d->vary_count; i++) {
        const char *name = d->vary[i];
        if (!is_variable(l->x, c, name))
            WRONG(path, "'%s' is no variable of '%s' and none of the experiment's own vars", name,
                  c->id);
        else if (!uses(l, c->text, name))
            WRONG(path, "the text of '%s' does not use the variable '%s'", c->id, name);
        for (int k = 0; k < i; k++)
            if (strcmp(d->vary[k], name) == 0) WRONG(path, "'%s' stands in the list twice", name);
        in_value |= uses(l, c->value, name) || uses(l, c->met, name);
    }
    if (!in_value)
        WRONG(path,
              "no variable that is drawn anew stands in the value (or met) of '%s', so its "
              "distractors would state the right value; put one of that into vary",
              c->id);
}

void experiment_check_distractors(struct load *l) {
    const struct experiment *x = l->x;
    if (x->distractor_count > 0 && x->filler.kind == FILLER_CHAT)
        WRONG("prompt.filler.distractors", "kind chat takes none: every unit is a turn of its own");
    for (int i = 0; i < x->distractor_count; i++) {
        const struct experiment_distractor *d = &x->distractors[i];
        const struct experiment_constraint *c = &x->constraints[d->like];
        const char *path = AT("prompt.filler.distractors[%d]", i);
        for (int k = 0; k < i; k++)
            if (x->distractors[k].like == d->like)
                WRONG(AT("%s.like", path), "'%s' has distractors already; give it one entry",
                      c->id);
        if (c->kind != CONSTRAINT_STATE)
            WRONG(AT("%s.like", path), "'%s' states nothing; only kind state can have distractors",
                  c->id);
        else
            check_vary(l, d, AT("%s.vary", path));
    }
}

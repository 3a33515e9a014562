// The rules of variables: each kind's own settings, and names that are still free.
#include "evals/experiment_internal.h"

#include <string.h>

#define AT(...) arena_printf(l->arena, __VA_ARGS__)
#define WRONG(path, ...) diagnose_at(l->d, l->root, (path), __VA_ARGS__)

static void check_choices(struct load *l, const struct experiment_variable *v, const char *path) {
    if (v->choice_count == 0) WRONG(path, "a choice needs choices: [...]");
    for (int i = 0; i < v->choice_count; i++)
        for (int k = 0; k < i; k++)
            if (v->choices[i].p != NULL && str_equal(v->choices[i], v->choices[k])) {
                WRONG(AT("%s.choices[%d]", path, i), "'" STR_FMT "' stands in the list twice",
                      STR_ARG(v->choices[i]));
                return;
            }
}

static void check_range(struct load *l, const struct experiment_variable *v, const char *path) {
    if (v->least < 0 || v->most < 0)
        WRONG(path, "a number needs least and most: the range it is drawn from");
    else if (v->least > v->most)
        WRONG(AT("%s.least", path), "%lld is greater than most (%lld)", (long long)v->least,
              (long long)v->most);
}

// Settings that belong to another kind.
static void check_foreign(struct load *l, const struct experiment_variable *v, const char *path) {
    bool characters = v->kind == VARIABLE_DIGITS || v->kind == VARIABLE_LETTERS;
    if (v->count != 0 && !characters)
        WRONG(AT("%s.count", path), "only kinds digits and letters take a count");
    if (v->script != DIGITS_LATIN && v->kind != VARIABLE_DIGITS)
        WRONG(AT("%s.script", path), "only kind digits takes a script");
    if (v->choice_count > 0 && v->kind != VARIABLE_CHOICE)
        WRONG(AT("%s.choices", path), "only kind choice takes choices");
    if (v->kind == VARIABLE_NUMBER) return;
    if (v->least >= 0) WRONG(AT("%s.least", path), "only kind number takes least");
    if (v->most >= 0) WRONG(AT("%s.most", path), "only kind number takes most");
}

void experiment_check_variable(struct load *l, const struct experiment_variable *v,
                               const char *path) {
    if (strcmp(v->name, "filler") == 0 || (strcmp(v->name, "tools") == 0 && l->x->tool_count > 0))
        WRONG(path, "the name '%s' is taken", v->name);
    if (strncmp(v->name, "re:", 3) == 0)
        WRONG(path, "a leading 're:' has a meaning of its own in patterns");
    switch (v->kind) {
    case VARIABLE_DIGITS:
    case VARIABLE_LETTERS:
        if (v->count == 0) WRONG(path, "needs count: how many characters are drawn");
        break;
    case VARIABLE_CHOICE: check_choices(l, v, path); break;
    case VARIABLE_NUMBER: check_range(l, v, path); break;
    case VARIABLE_WORDS:
    case VARIABLE_UUID:
    case VARIABLE_FILLER: break;
    }
    check_foreign(l, v, path);
    for (int i = 0; i < l->column_count; i++)
        if (strcmp(v->name, l->columns[i]) == 0)
            WRONG(path, "the cases have a column of that name; rename the variable");
}

void experiment_check_shared(struct load *l) {
    const struct experiment *x = l->x;
    for (int i = 0; i < x->var_count; i++)
        if (x->vars[i].kind != VARIABLE_FILLER)
            experiment_check_variable(l, &x->vars[i], AT("vars.%s", x->vars[i].name));
    for (int i = 0; i < x->constraint_count; i++)
        for (int k = 0; k < x->constraints[i].var_count; k++)
            for (int s = 0; s < x->var_count; s++)
                if (strcmp(x->constraints[i].vars[k].name, x->vars[s].name) == 0)
                    WRONG(AT("constraints[%d].vars.%s", i, x->vars[s].name),
                          "the experiment's own vars have that name; rename one of them");
}

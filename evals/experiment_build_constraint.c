// `constraints` of resolved.json into the struct.
#include "evals/experiment_load.h"

#include <string.h>

struct experiment_variable *build_variables(struct load *l, const json_t *map, int *count) {
    static const char *const kinds[] = {"digits", "letters", "choice", "number",
                                        "words",  "uuid",    NULL};
    static const char *const scripts[] = {"latin",      "arabic",    "persian",
                                          "devanagari", "fullwidth", NULL};
    struct experiment_variable *vars =
        arena_array(l->arena, json_object_size(map) + 1, sizeof *vars);
    const char *name;
    json_t *o;
    *count = 0;
    json_object_foreach((json_t *)map, name, o) {
        struct experiment_variable *v = &vars[(*count)++];
        v->name = arena_strdup(l->arena, name);
        v->kind = (enum variable_kind)load_index(load_word(l, o, "kind"), kinds);
        v->count = (int)load_integer(o, "count", 0);
        v->script = (enum digit_script)load_index(load_word(l, o, "script"), scripts);
        v->choices = load_texts(l, o, "choices", &v->choice_count);
        v->least = load_integer(o, "least", -1);
        v->most = load_integer(o, "most", -1);
    }
    return vars;
}

static void build_variants(struct load *l, const json_t *o, struct experiment_constraint *c) {
    const char *draw = load_word(l, o, "draw_variants");
    c->variants = load_texts(l, o, "variants", &c->variant_count);
    c->cross_variants = draw != NULL && strcmp(draw, "cross") == 0;
    if (c->variant_count > 0) c->text = c->variants[0];
}

// Behind all ids, as it may name a later one.
static void build_contradicts(struct load *l, const json_t *list, int index) {
    const char *id = load_word(l, json_array_get(list, (size_t)index), "contradicts");
    if (id == NULL) return;
    int other =
        load_constraint(l, id, arena_printf(l->arena, "constraints[%d].contradicts", index));
    if (other >= 0) l->x->constraints[index].contradicts = &l->x->constraints[other];
}

void build_constraints(struct load *l, const json_t *list) {
    static const char *const kinds[] = {"state", "format", "forbid", NULL};
    static const char *const parts[] = {"answer", "reasoning", "both", NULL};
    struct experiment *x = l->x;
    x->constraint_count = (int)json_array_size(list);
    x->constraints = arena_array(l->arena, (size_t)x->constraint_count + 1, sizeof *x->constraints);
    for (int i = 0; i < x->constraint_count; i++) {
        const json_t *o = json_array_get(list, (size_t)i);
        struct experiment_constraint *c = &x->constraints[i];
        c->id = load_word(l, o, "id");
        c->kind = (enum constraint_kind)load_index(load_word(l, o, "kind"), kinds);
        c->text = load_text(l, o, "text");
        const struct str rule = load_text(l, o, "in_prompt");
        c->in_prompt = rule.p != NULL;
        if (c->in_prompt) c->text = rule;
        c->vars = build_variables(l, json_object_get(o, "vars"), &c->var_count);
        c->shared = x->vars;
        c->shared_count = x->var_count;
        build_variants(l, o, c);
        c->value = load_text(l, o, "value");
        c->met = load_text(l, o, "met");
        c->violated = load_text(l, o, "violated");
        c->answered = load_text(l, o, "answered");
        c->check = build_check(l, o, "check");
        c->violated_check = build_check(l, o, "violated_check");
        c->ignore_case = load_boolean(o, "ignore_case");
        c->multiline = load_boolean(o, "multiline");
        c->dotall = load_boolean(o, "dotall");
        c->look_in = (enum look_in)load_index(load_word(l, o, "look_in"), parts);
        const json_t *examples = json_object_get(o, "examples");
        c->example_met = load_texts(l, examples, "met", &c->example_met_count);
        c->example_not = load_texts(l, examples, "not", &c->example_not_count);
        c->example_violated = load_texts(l, examples, "violated", &c->example_violated_count);
    }
    for (int i = 0; i < x->constraint_count; i++) build_contradicts(l, list, i);
}

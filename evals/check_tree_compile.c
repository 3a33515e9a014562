// A composite check with one trial's variables: patterns compiled, values folded.
#include "evals/check_tree_internal.h"

struct compiling {
    const struct check_tools *tools;
    const struct variable *vars;
    int var_count;
    const char *where; // constraint "order"
    struct arena *arena;
};

static const char *place(const struct compiling *c, const struct check_spec *s) {
    return arena_printf(c->arena, "%s: %s", c->where, s->where);
}

static int compile_pattern(const struct compiling *c, const struct check_spec *s, struct str text,
                           const struct pattern **out, struct err *e) {
    if (text.p == NULL) return 0;
    struct str replaced;
    const char *where = place(c, s);
    TRY(variables_replace_pattern(text, c->vars, c->var_count, where, c->arena, &replaced, e));
    struct pattern_flags flags = {s->ignore_case, s->multiline, s->dotall};
    return pattern_compile(c->tools->patterns, replaced, flags, where, out, e);
}

static int compile_text(const struct compiling *c, const struct check_spec *s, struct str text,
                        struct str *out, struct err *e) {
    if (text.p == NULL) return 0;
    return variables_replace(text, c->vars, c->var_count, place(c, s), c->arena, out, e);
}

static int compile_value(const struct compiling *c, struct check_tree *t, struct err *e) {
    const struct check_spec *s = t->spec;
    if (s->value.p == NULL) return 0;
    TRY(compile_text(c, s, s->value, &t->value_text, e));
    t->value_folds = s->ignore_case || (s->rewriting & CHECK_FOLD_CASE) != 0;
    t->value = arena_alloc(c->arena, sizeof *t->value);
    if (!value_from_text(c->tools->rules, t->value_text, t->value_folds, c->arena, t->value))
        FAIL(e, ERR_CONFIG,
             "%s: \"" STR_FMT "\" holds nothing visible, so every reply and none would hold it; "
             "give the text that the reply must state",
             place(c, s), STR_ARG(t->value_text));
    return 0;
}

static int compile_number(const struct compiling *c, struct check_tree *t, struct err *e) {
    const struct check_spec *s = t->spec;
    int64_t value;
    if (s->equals.p == NULL) return 0;
    TRY(compile_text(c, s, s->equals, &t->value_text, e));
    if (!number_read(t->value_text, &value))
        FAIL(e, ERR_CONFIG,
             "%s: \"" STR_FMT "\" is no number; expected digits (12 at most), then a point and 6 "
             "digits at most where it has a fraction",
             place(c, s), STR_ARG(t->value_text));
    t->number = (struct number_range){value - s->within, value + s->within};
    return 0;
}

static int compile_asks(const struct compiling *c, struct check_tree *t, struct err *e) {
    const struct check_spec *s = t->spec;
    t->ask_count = s->pointer_count;
    t->asks = arena_array(c->arena, (size_t)s->pointer_count + 1, sizeof *t->asks);
    for (int i = 0; i < s->pointer_count; i++) {
        const struct check_pointer *p = &s->pointers[i];
        struct json_ask *ask = &t->asks[i];
        *ask = (struct json_ask){.absent = p->absent, .type = p->type};
        TRY(compile_text(c, s, p->pointer, &ask->pointer, e));
        TRY(compile_text(c, s, p->equals, &ask->equals, e));
        TRY(compile_pattern(c, s, p->pattern, &ask->pattern, e));
        if (ask->pointer.n > 0 && ask->pointer.p[0] != '/')
            FAIL(e, ERR_CONFIG, "%s: the JSON pointer \"" STR_FMT "\" does not begin with /",
                 place(c, s), STR_ARG(ask->pointer));
    }
    return 0;
}

static int compile(const struct compiling *c, const struct check_spec *s, struct check_tree *t,
                   struct err *e) {
    *t = (struct check_tree){.spec = s, .tools = c->tools, .part_count = s->part_count};
    TRY(compile_value(c, t, e));
    TRY(compile_pattern(c, s, s->pattern, &t->pattern, e));
    TRY(compile_pattern(c, s, s->separator, &t->separator, e));
    TRY(compile_text(c, s, s->name, &t->name, e));
    TRY(compile_number(c, t, e));
    TRY(compile_asks(c, t, e));
    t->parts = arena_array(c->arena, (size_t)s->part_count + 1, sizeof *t->parts);
    for (int i = 0; i < s->part_count; i++) TRY(compile(c, &s->parts[i], &t->parts[i], e));
    return 0;
}

int check_tree_compile(const struct check_tools *tools, const struct check_spec *spec,
                       const struct variable *vars, int var_count, const char *where,
                       struct arena *a, const struct check_tree **out, struct err *e) {
    const struct compiling c = {tools, vars, var_count, where, a};
    struct check_tree *t = arena_alloc(a, sizeof *t);
    TRY(compile(&c, spec, t, e));
    *out = t;
    return 0;
}

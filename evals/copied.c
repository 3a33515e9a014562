#include "evals/copied.h"

#include <string.h>

struct search {
    const struct value_rules *rules;
    const struct experiment_constraint *c;
    struct arena *a;
    struct value_text folded; // the answer
};

// The places of the template, filled in, in the answer from code point *at on.
static bool find_next(const struct search *s, struct str template, const struct variable *vars,
                      int count, size_t *at, size_t match[2]) {
    struct str text;
    struct value_text wanted;
    struct value value;
    struct err e = {0};
    if (variables_replace(template, vars, count, s->c->id, s->a, &text, &e) != 0) return false;
    value_fold(text, s->c->ignore_case, s->a, &wanted);
    while (wanted.count > 0 && value_is_space(wanted.points[wanted.count - 1])) wanted.count--;
    while (wanted.count > 0 && value_is_space(wanted.points[0])) wanted.points++, wanted.count--;
    value_compile(s->rules, wanted.points, wanted.count, s->a, &value);
    return value_find(&value, &s->folded, *at, match, at);
}

static bool overlaps_right(const struct search *s, struct str template, const struct variable *vars,
                           int count, const size_t match[2]) {
    size_t right[2], at = 0;
    while (find_next(s, template, vars, count, &at, right))
        if (match[0] < right[1] && right[0] < match[1]) return true;
    return false;
}

static void add_text(struct str text, struct arena *a, struct str **copied, int *count) {
    for (int i = 0; i < *count; i++)
        if (str_equal((*copied)[i], text)) return;
    if (*count == COPIED_MOST) return;
    if (*copied == NULL) *copied = arena_array(a, COPIED_MOST, sizeof **copied);
    (*copied)[(*count)++] = str_copy(a, text);
}

// The variables with those of the distractor in their place.
static struct variable *redrawn(const struct variable *vars, int count,
                                const struct record_distractor *d, struct arena *a) {
    struct variable *now = arena_array(a, (size_t)count + 1, sizeof *now);
    for (int i = 0; i < count; i++) {
        now[i] = vars[i];
        for (int k = 0; k < d->var_count; k++)
            if (strcmp(d->vars[k].name, vars[i].name) == 0) now[i].value = d->vars[k].value;
    }
    return now;
}

void copied_find(const struct value_rules *rules, const struct experiment_constraint *c,
                 const struct variable *vars, int var_count, const struct record_trial *trial,
                 struct str answer, struct arena *a, struct str **copied, int *count) {
    struct search s = {.rules = rules, .c = c, .a = a};
    *copied = NULL;
    *count = 0;
    for (int i = 0; i < trial->distractor_count; i++) {
        const struct record_distractor *d = &trial->distractors[i];
        if (strcmp(d->constraint, c->id) != 0) continue;
        if (s.folded.points == NULL) value_fold(answer, c->ignore_case, a, &s.folded);
        const struct variable *now = redrawn(vars, var_count, d, a);
        for (int k = 0; k < (c->value.p != NULL ? 1 : d->var_count); k++) {
            const char *use = arena_printf(a, "{{%s}}", d->vars[k].name);
            struct str template = c->value.p != NULL ? c->value : str_from(use);
            if (c->value.p == NULL && c->met.p != NULL && str_find(c->met, template, 0) == STR_NONE)
                continue;
            size_t match[2], at = 0;
            if (find_next(&s, template, now, var_count, &at, match) &&
                !overlaps_right(&s, template, vars, var_count, match))
                add_text(str_slice(answer, match[0], match[1]), a, copied, count);
        }
    }
}

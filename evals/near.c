#include "evals/near.h"

#include <stdlib.h>
#include <string.h>

enum { ALTERNATIVES_MOST = 256 };

struct points {
    uint32_t *p;
    size_t n;
};

static void points_append(struct points *to, const uint32_t *points, size_t n, struct arena *a) {
    uint32_t *joined = arena_array(a, to->n + n + 1, sizeof *joined);
    if (to->n > 0) memcpy(joined, to->p, to->n * sizeof *joined);
    if (n > 0) memcpy(joined + to->n, points, n * sizeof *joined);
    *to = (struct points){joined, to->n + n};
}

static void append_to_all(struct points *all, int count, const uint32_t *points, size_t n,
                          struct arena *a) {
    for (int i = 0; i < count; i++) points_append(&all[i], points, n, a);
}

static void append_text(struct points *all, int count, struct str text, bool ignore_case,
                        struct arena *a) {
    struct value_text t;
    value_fold(text, ignore_case, a, &t);
    append_to_all(all, count, t.points, t.count, a);
}

static struct str drawn_value(const struct variable *vars, int count, struct str name) {
    for (int i = 0; i < count; i++)
        if (str_equal_c(name, vars[i].name)) return vars[i].value;
    return STR("");
}

static bool all_capitals(struct str s) {
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 'A' || s.p[i] > 'Z') return false;
    return s.n > 0;
}

struct expansion {
    const struct experiment_constraint *c;
    const struct variable *vars;
    int var_count;
    struct arena *a;
    struct points all[ALTERNATIVES_MOST];
    int count;
    bool has_shape;
};

// False when the choices multiply beyond what is looked for.
static bool append_choices(struct expansion *x, const struct experiment_variable *v) {
    if (v->choice_count <= 0 || x->count * v->choice_count > ALTERNATIVES_MOST) return false;
    int before = x->count;
    for (int choice = v->choice_count - 1; choice >= 0; choice--) {
        for (int i = 0; i < before; i++) {
            struct points *to = &x->all[choice * before + i];
            *to = x->all[i];
            append_text(to, 1, v->choices[choice], x->c->ignore_case, x->a);
        }
    }
    x->count = before * v->choice_count;
    return true;
}

static int digits_of(int64_t n) {
    int digits = 1;
    for (; n >= 10; n /= 10) digits++;
    return digits;
}

static void append_wildcards(struct points *all, int count, uint32_t wildcard, int n,
                             struct arena *a) {
    for (int i = 0; i < n; i++) append_to_all(all, count, &wildcard, 1, a);
}

// One alternative for each number of digits.
static bool append_number(struct expansion *x, const struct experiment_variable *v) {
    int least = digits_of(v->least), most = digits_of(v->most), before = x->count;
    if (before * (most - least + 1) > ALTERNATIVES_MOST) return false;
    for (int digits = most; digits >= least; digits--) {
        struct points *to = &x->all[(digits - least) * before];
        memmove(to, x->all, (size_t)before * sizeof *to);
        append_wildcards(to, before, VALUE_ANY_DIGIT, digits, x->a);
    }
    x->count = before * (most - least + 1);
    return true;
}

static void append_words(struct expansion *x) {
    const uint32_t key[] = {VALUE_ANY_ADJECTIVE, '-', VALUE_ANY_NOUN};
    append_to_all(x->all, x->count, key, 3, x->a);
}

static void append_uuid(struct expansion *x, struct str drawn) {
    for (size_t i = 0; i < drawn.n; i++) {
        uint32_t point = drawn.p[i] == '-' ? '-' : VALUE_ANY_HEX;
        append_to_all(x->all, x->count, &point, 1, x->a);
    }
}

static int characters(struct str s) {
    int n = 0;
    for (size_t i = 0; i < s.n; i++) n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return n;
}

static bool append_variable(struct expansion *x, struct str name) {
    const struct experiment_variable *v = experiment_variable_find(x->c, name);
    struct str drawn = drawn_value(x->vars, x->var_count, name);
    bool shape = v != NULL;
    if (v != NULL && v->kind == VARIABLE_FILLER) shape = false;
    if (v != NULL && v->kind == VARIABLE_LETTERS) shape = all_capitals(drawn) && !x->c->ignore_case;
    if (!shape) {
        append_text(x->all, x->count, drawn, x->c->ignore_case, x->a);
        return true;
    }
    x->has_shape = true;
    switch (v->kind) {
    case VARIABLE_CHOICE: return append_choices(x, v);
    case VARIABLE_NUMBER: return append_number(x, v);
    case VARIABLE_WORDS: append_words(x); break;
    case VARIABLE_UUID: append_uuid(x, drawn); break;
    case VARIABLE_DIGITS:
        append_wildcards(x->all, x->count, VALUE_ANY_DIGIT, characters(drawn), x->a);
        break;
    case VARIABLE_FILLER: break;
    case VARIABLE_LETTERS:
        append_wildcards(x->all, x->count, VALUE_ANY_CAPITAL, (int)drawn.n, x->a);
        break;
    }
    return true;
}

static void add_shapes(const struct value_rules *rules, struct expansion *x, struct str template,
                       struct near_shapes *out) {
    x->count = 1;
    x->all[0] = (struct points){NULL, 0};
    x->has_shape = false;
    for (size_t at = 0; at < template.n;) {
        size_t open = str_find(template, STR("{{"), at);
        size_t close = open == STR_NONE ? STR_NONE : str_find(template, STR("}}"), open);
        if (close == STR_NONE) open = template.n;
        append_text(x->all, x->count, str_slice(template, at, open), x->c->ignore_case, x->a);
        if (close == STR_NONE) break;
        if (!append_variable(x, str_trim(str_slice(template, open + 2, close)))) return;
        at = close + 2;
    }
    if (!x->has_shape) return;
    struct value *shapes = arena_array(x->a, (size_t)(out->count + x->count), sizeof *shapes);
    if (out->count > 0) memcpy(shapes, out->shapes, (size_t)out->count * sizeof *shapes);
    out->shapes = shapes;
    for (int i = 0; i < x->count; i++) {
        struct points p = x->all[i];
        while (p.n > 0 && value_is_space(p.p[p.n - 1])) p.n--;
        while (p.n > 0 && value_is_space(p.p[0])) p.p++, p.n--;
        if (p.n > 0) value_compile(rules, p.p, p.n, x->a, &out->shapes[out->count++]);
    }
}

static void add_pattern(const struct value_rules *rules, struct expansion *x, struct str pattern,
                        struct near_shapes *out) {
    const struct experiment_constraint *c = x->c;
    for (int i = 0; i < c->var_count + c->shared_count; i++) {
        const struct experiment_variable *v =
            i < c->var_count ? &c->vars[i] : &c->shared[i - c->var_count];
        struct str use = str_from(arena_printf(x->a, "{{%s}}", v->name));
        if (str_find(pattern, use, 0) != STR_NONE) add_shapes(rules, x, use, out);
    }
}

// Values and patterns of a composite check, as `value` and `met` would be; not what it forbids.
static void add_tree(const struct value_rules *rules, struct expansion *x,
                     const struct check_spec *s, struct near_shapes *out) {
    if (s->verb == CHECK_NOT) return;
    if (s->value.p != NULL) add_shapes(rules, x, s->value, out);
    if (s->pattern.p != NULL) add_pattern(rules, x, s->pattern, out);
    for (int i = 0; i < s->part_count; i++) add_tree(rules, x, &s->parts[i], out);
}

void near_compile(const struct value_rules *rules, const struct experiment_constraint *c,
                  const struct variable *vars, int var_count, struct arena *a,
                  struct near_shapes *out) {
    *out = (struct near_shapes){NULL, 0};
    struct expansion x = {.c = c, .vars = vars, .var_count = var_count, .a = a};
    if (c->value.p != NULL) {
        add_shapes(rules, &x, c->value, out);
        return;
    }
    if (c->met.p != NULL) add_pattern(rules, &x, c->met, out);
    if (c->check != NULL) add_tree(rules, &x, c->check, out);
}

struct found {
    size_t match[2];
};

static int by_place(const void *left, const void *right) {
    const struct found *a = left, *b = right;
    if (a->match[0] != b->match[0]) return a->match[0] < b->match[0] ? -1 : 1;
    return (a->match[1] > b->match[1]) - (a->match[1] < b->match[1]);
}

static bool overlaps(const size_t match[2], const size_t (*ranges)[2], size_t count) {
    for (size_t i = 0; i < count; i++)
        if (match[0] < ranges[i][1] && ranges[i][0] < match[1]) return true;
    return false;
}

void near_find(const struct near_shapes *s, const struct value_text *t, struct str text,
               const size_t (*right)[2], size_t right_count, struct arena *a, struct str **near,
               int *count) {
    enum { FOUND_MOST = 64 };
    struct found found[FOUND_MOST];
    size_t total = 0;
    for (int i = 0; i < s->count; i++) {
        size_t at = 0, match[2];
        while (total < FOUND_MOST && value_find(&s->shapes[i], t, at, match, &at))
            if (!overlaps(match, right, right_count))
                memcpy(found[total++].match, match, sizeof match);
    }
    qsort(found, total, sizeof *found, by_place);
    *near = NULL;
    *count = 0;
    for (size_t i = 0; i < total && *count < NEAR_MOST; i++) {
        struct str this = str_slice(text, found[i].match[0], found[i].match[1]);
        bool known = false;
        for (int k = 0; k < *count; k++) known |= str_equal((*near)[k], this);
        if (known) continue;
        if (*near == NULL) *near = arena_array(a, NEAR_MOST, sizeof **near);
        (*near)[(*count)++] = str_copy(a, this);
    }
}

// {{name}}: the only substitution there is.
#include "evals/experiment.h"

#include <ctype.h>
#include <string.h>

// Finds the next {{name}} from *at on. 1: found, 0: none left, -1: a {{ without a name and }}.
static int next_reference(struct str text, size_t *at, struct str *name, size_t *end,
                          const char *where, struct err *e) {
    size_t begin = str_find(text, STR("{{"), *at);
    if (begin == STR_NONE) return 0;
    size_t p = begin + 2;
    while (p < text.n && text.p[p] != '{' && text.p[p] != '}' && text.p[p] != '\n') p++;
    if (p == begin + 2 || p + 1 >= text.n || text.p[p] != '}' || text.p[p + 1] != '}')
        FAIL(e, ERR_CONFIG,
             "%s: '{{' at byte %zu is not followed by a name and '}}'; single braces are literal",
             where, begin);
    *name = str_slice(text, begin + 2, p);
    *at = begin;
    *end = p + 2;
    return 1;
}

static const struct variable *variable_named(struct str name, const struct variable *vars,
                                             int count) {
    for (int i = 0; i < count; i++)
        if (str_equal_c(name, vars[i].name)) return &vars[i];
    return NULL;
}

static int undefined(struct str name, const struct variable *vars, int count, const char *where,
                     struct err *e) {
    struct buf known = {0};
    for (int i = 0; i < count; i++)
        buf_printf(&known, "%s{{%s}}", i == 0 ? "; known here: " : ", ", vars[i].name);
    ERR_SET(e, ERR_CONFIG, "%s: {{" STR_FMT "}} is not defined%s", where, STR_ARG(name),
            known.p == NULL ? "; no variable is known here" : known.p);
    buf_free(&known);
    return -1;
}

int variables_each(struct str text, bool pattern, const char *where,
                   int (*visit)(void *context, struct str name, struct err *e), void *context,
                   struct err *e) {
    struct str name;
    size_t at = 0, end;
    int found;
    while ((found = next_reference(text, &at, &name, &end, where, e)) > 0) {
        if (pattern && str_starts(name, STR("re:"))) name = str_slice(name, 3, name.n);
        TRY(visit(context, name, e));
        at = end;
    }
    return found;
}

int variables_replace(struct str text, const struct variable *vars, int count, const char *where,
                      struct arena *a, struct str *out, struct err *e) {
    struct buf built = {0};
    struct str name;
    size_t at = 0, done = 0, end;
    int found;
    while ((found = next_reference(text, &at, &name, &end, where, e)) > 0) {
        const struct variable *v = variable_named(name, vars, count);
        if (v == NULL) {
            found = undefined(name, vars, count, where, e);
            break;
        }
        buf_add_str(&built, str_slice(text, done, at));
        buf_add_str(&built, v->value);
        done = at = end;
    }
    if (found == 0) {
        buf_add_str(&built, str_slice(text, done, text.n));
        *out = str_copy(a, buf_str(&built));
    }
    buf_free(&built);
    return found;
}

// Where in a pattern we are: some places take a value in another dress, some not at all.
struct pattern_state {
    bool escaped;   // right behind a backslash
    bool quoted;    // between \Q and \E
    bool in_class;  // between [ and ]
    bool class_new; // a ] here would be a member of the class
};

static void pattern_step(struct pattern_state *s, char c) {
    if (s->quoted) {
        if (s->escaped && c == 'E') s->quoted = false;
        s->escaped = c == '\\';
        return;
    }
    if (s->escaped) {
        s->escaped = false;
        s->quoted = c == 'Q';
        s->class_new = false;
        return;
    }
    if (c == '\\') {
        s->escaped = true;
    } else if (!s->in_class) {
        if (c == '[') s->in_class = s->class_new = true;
    } else if (c == ']' && !s->class_new) {
        s->in_class = false;
    } else if (c != '^' || !s->class_new) {
        s->class_new = false;
    }
}

static void add_literal(struct buf *out, struct str value) {
    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];
        if (c < 0x80 && !isalnum(c)) buf_add_char(out, '\\');
        buf_add_char(out, (char)c);
    }
}

static int add_reference(struct buf *out, struct str name, const struct pattern_state *s,
                         const struct variable *vars, int count, const char *where, struct err *e) {
    const bool as_pattern = str_starts(name, STR("re:"));
    if (as_pattern) name = str_slice(name, 3, name.n);
    const struct variable *v = variable_named(name, vars, count);
    if (v == NULL) return undefined(name, vars, count, where, e);
    if (s->quoted || s->escaped)
        FAIL(e, ERR_CONFIG,
             "%s: {{" STR_FMT "}} stands %s; leave that out, values are inserted literally", where,
             STR_ARG(name), s->quoted ? "between \\Q and \\E" : "right behind a backslash");
    if (!s->in_class) buf_add_c(out, "(?:");
    if (as_pattern)
        buf_add_str(out, v->value);
    else
        add_literal(out, v->value);
    if (!s->in_class) buf_add_char(out, ')');
    return 0;
}

int variables_replace_pattern(struct str pattern, const struct variable *vars, int count,
                              const char *where, struct arena *a, struct str *out, struct err *e) {
    struct buf built = {0};
    struct pattern_state state = {0};
    struct str name;
    size_t at = 0, done = 0, end;
    int found;
    while ((found = next_reference(pattern, &at, &name, &end, where, e)) > 0) {
        for (size_t i = done; i < at; i++) pattern_step(&state, pattern.p[i]);
        buf_add_str(&built, str_slice(pattern, done, at));
        if (add_reference(&built, name, &state, vars, count, where, e) != 0) {
            found = -1;
            break;
        }
        state.class_new = false;
        done = at = end;
    }
    if (found == 0) {
        buf_add_str(&built, str_slice(pattern, done, pattern.n));
        *out = str_copy(a, buf_str(&built));
    }
    buf_free(&built);
    return found;
}

// A composite check of resolved.json into struct check_spec.
#include "evals/check_spec.h"
#include "evals/experiment_load.h"
#include "evals/experiment_scalar.h"

#include <string.h>

// What holds for everything below a node unless it says otherwise.
struct inherited {
    bool ignore_case, multiline, dotall;
    unsigned rewriting;
};

static void inherit(bool *flag, const json_t *o, const char *key) {
    const json_t *value = json_object_get(o, key);
    if (json_is_boolean(value)) *flag = json_is_true(value);
}

static unsigned load_rewriting(const json_t *o) {
    const json_t *list = json_object_get(o, "normalize");
    unsigned bits = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        for (int k = 0; word != NULL && check_rewritings[k] != NULL; k++)
            if (strcmp(word, check_rewritings[k]) == 0) bits |= 1u << k;
    }
    return bits;
}

static struct check_bounds load_bounds(const json_t *o) {
    int64_t exactly = load_integer(o, "exactly", -1);
    int64_t least = load_integer(o, "at_least", exactly),
            most = load_integer(o, "at_most", exactly);
    return (struct check_bounds){least >= 0, most >= 0, least, most};
}

static struct check_pointer load_pointer(struct load *l, const json_t *o) {
    struct check_pointer p = {.pointer = load_text(l, o, "pointer"),
                              .equals = load_text(l, o, "equals"),
                              .pattern = load_text(l, o, "pattern")};
    const char *type = load_word(l, o, "type");
    if (type != NULL) p.type = (enum check_type)(load_index(type, check_types) + 1);
    p.absent = json_is_false(json_object_get(o, "exists"));
    return p;
}

static void build_node(struct load *l, const json_t *o, const char *where, struct inherited from,
                       struct check_spec *s);

static void build_parts(struct load *l, const json_t *list, const char *where,
                        struct inherited from, struct check_spec *s) {
    s->part_count = (int)json_array_size(list);
    s->parts = arena_array(l->arena, (size_t)s->part_count + 1, sizeof *s->parts);
    for (int i = 0; i < s->part_count; i++)
        build_node(l, json_array_get(list, (size_t)i), arena_printf(l->arena, "%s[%d]", where, i),
                   from, &s->parts[i]);
}

static void build_part(struct load *l, const json_t *o, const char *where, struct inherited from,
                       struct check_spec *s) {
    s->part_count = 1;
    s->parts = arena_alloc(l->arena, sizeof *s->parts);
    build_node(l, o, where, from, s->parts);
}

// A line or a paragraph: `pattern` is short for a check of one pattern.
static void build_piece(struct load *l, const json_t *o, const char *where, struct inherited from,
                        struct check_spec *s) {
    const json_t *check = json_object_get(o, "check");
    s->number = (int)load_integer(o, "number", 0);
    s->separator = load_text(l, o, "separator");
    if (check != NULL) {
        build_part(l, check, arena_printf(l->arena, "%s.check", where), from, s);
    } else if (json_object_get(o, "pattern") != NULL || json_object_get(o, "pattern_base64")) {
        json_t *short_form = json_object();
        json_put_bytes(short_form, "pattern", load_text(l, o, "pattern"));
        build_part(l, short_form, where, from, s);
        json_decref(short_form);
    }
}

static void build_json(struct load *l, const json_t *o, struct check_spec *s) {
    const char *where = load_word(l, o, "where");
    s->block = where != NULL && strcmp(where, "block") == 0;
    s->pointer_count = 1;
    s->pointers = arena_alloc(l->arena, sizeof *s->pointers);
    s->pointers[0] = load_pointer(l, o);
}

static void build_tool_call(struct load *l, const json_t *o, struct check_spec *s) {
    const json_t *list = json_object_get(o, "arguments");
    s->name = load_text(l, o, "name");
    s->pointer_count = (int)json_array_size(list);
    s->pointers = arena_array(l->arena, (size_t)s->pointer_count + 1, sizeof *s->pointers);
    for (int i = 0; i < s->pointer_count; i++)
        s->pointers[i] = load_pointer(l, json_array_get(list, (size_t)i));
}

static void build_verb(struct load *l, const json_t *o, const char *where, struct inherited from,
                       struct check_spec *s) {
    switch (s->verb) {
    case CHECK_ALL:
    case CHECK_ANY:
    case CHECK_ORDER: build_parts(l, o, where, from, s); break;
    case CHECK_NOT: build_part(l, o, where, from, s); break;
    case CHECK_COUNT:
        s->pattern = load_text(l, o, "pattern");
        s->value = load_text(l, o, "value");
        build_parts(l, json_object_get(o, "of"), arena_printf(l->arena, "%s.of", where), from, s);
        break;
    case CHECK_LINE:
    case CHECK_PARAGRAPH: build_piece(l, o, where, from, s); break;
    case CHECK_PARAGRAPHS: s->separator = load_text(l, o, "separator"); break;
    case CHECK_NUMBER:
        s->equals = load_text(l, o, "equals");
        if (json_object_get(o, "within") != NULL)
            scalar_decimal(str_from(load_word(l, o, "within")), 6, &s->within);
        break;
    case CHECK_JSON: build_json(l, o, s); break;
    case CHECK_TOOL_CALL: build_tool_call(l, o, s); break;
    default: break; // a leaf: its text is read with the node, its bounds below
    }
    if (json_is_object(o)) s->bounds = load_bounds(o);
}

static void build_node(struct load *l, const json_t *o, const char *where, struct inherited from,
                       struct check_spec *s) {
    inherit(&from.ignore_case, o, "ignore_case");
    inherit(&from.multiline, o, "multiline");
    inherit(&from.dotall, o, "dotall");
    from.rewriting |= load_rewriting(o);
    *s = (struct check_spec){.where = where,
                             .ignore_case = from.ignore_case,
                             .multiline = from.multiline,
                             .dotall = from.dotall,
                             .rewriting = from.rewriting,
                             .pattern = load_text(l, o, "pattern"),
                             .value = load_text(l, o, "value")};
    s->verb = s->value.p != NULL ? CHECK_VALUE : CHECK_PATTERN;
    for (int i = 0; i < CHECK_VERBS; i++) {
        const json_t *body = json_object_get(o, check_verbs[i]);
        if (body == NULL || i == CHECK_PATTERN || i == CHECK_VALUE) continue;
        s->verb = (enum check_verb)i;
        build_verb(l, body, arena_printf(l->arena, "%s.%s", where, check_verbs[i]), from, s);
        return;
    }
}

const struct check_spec *build_check(struct load *l, const json_t *constraint, const char *key) {
    const json_t *o = json_object_get(constraint, key);
    if (o == NULL) return NULL;
    struct inherited from = {load_boolean(constraint, "ignore_case"),
                             load_boolean(constraint, "multiline"),
                             load_boolean(constraint, "dotall"), 0};
    struct check_spec *s = arena_alloc(l->arena, sizeof *s);
    build_node(l, o, key, from, s);
    return s;
}

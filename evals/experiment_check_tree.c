// How the fields of a composite check must fit together: what the table cannot say.
#include "evals/check_spec.h"
#include "evals/experiment_internal.h"

#include <string.h>

#define AT(...) arena_printf(l->arena, __VA_ARGS__)
#define WRONG(path, ...) diagnose_at(l->d, l->root, (path), __VA_ARGS__)

enum { DEPTH_MOST_CHECKS = 12, POINTER_BYTES_MOST = 4096 };

// ---- one verb a node, as written ----

static int verbs_of(const struct node *n, const char **first, const char **second) {
    int count = 0;
    for (int i = 0; check_verbs[i] != NULL; i++) {
        if (node_get(n, check_verbs[i]) == NULL) continue;
        if (count == 0) *first = check_verbs[i];
        if (count == 1) *second = check_verbs[i];
        count++;
    }
    return count;
}

static void check_node(struct load *l, const struct node *n, const char *path, int depth);

static void check_nodes(struct load *l, const struct node *list, const char *path, int depth) {
    for (int i = 0; list->kind == NODE_LIST && i < list->count; i++)
        check_node(l, list->entries[i].value, AT("%s[%d]", path, i), depth);
}

static void check_one_of(struct load *l, const struct node *n, const char *path,
                         const char *const *keys, const char *what) {
    int given = 0;
    for (int i = 0; keys[i] != NULL; i++) given += node_get(n, keys[i]) != NULL;
    if (given == 0) WRONG(path, "needs %s", what);
    if (given > 1) WRONG(path, "needs one of %s, not %d of them", what, given);
}

static void check_piece(struct load *l, const struct node *n, const char *path, int depth) {
    static const char *const keys[] = {"pattern", "check", NULL};
    check_one_of(l, n, path, keys, "pattern or check");
    const struct node *check = node_get(n, "check");
    if (check != NULL) check_node(l, check, AT("%s.check", path), depth + 1);
}

// Only what has a place of its own can stand before or behind something else.
static void check_order(struct load *l, const struct node *list, const char *path) {
    for (int i = 0; list->kind == NODE_LIST && i < list->count; i++) {
        const struct node *n = list->entries[i].value, *any = node_get(n, "any");
        if (n->kind != NODE_MAP) continue;
        if (any != NULL) check_order(l, any, AT("%s[%d].any", path, i));
        if (any == NULL && node_get(n, "pattern") == NULL && node_get(n, "value") == NULL)
            WRONG(AT("%s[%d]", path, i),
                  "order takes pattern, value, or any of these: what has a place in the reply");
        if (node_get(n, "normalize") != NULL)
            WRONG(AT("%s[%d].normalize", path, i),
                  "all items of order look at one text; put normalize beside order");
    }
}

static void check_node(struct load *l, const struct node *n, const char *path, int depth) {
    static const char *const counted[] = {"pattern", "value", "of", NULL};
    const char *verb = "", *other = "";
    if (n->kind != NODE_MAP) return;
    int count = verbs_of(n, &verb, &other);
    if (count == 0)
        WRONG(path,
              "says nothing to look for; give one of all, any, not, order, pattern, value, number, "
              "count, line, paragraph, words, sentences, paragraphs, lines, letters, json, "
              "tool_call");
    if (count > 1)
        WRONG(AT("%s.%s", path, other),
              "%s is given too; a check has one of them, and all: [{%s: ...}, {%s: ...}] asks for "
              "both",
              verb, verb, other);
    if (depth > DEPTH_MOST_CHECKS) {
        WRONG(path, "checks stand in each other more than %d deep", DEPTH_MOST_CHECKS);
        return;
    }
    const struct node *body = count > 0 ? node_get(n, verb) : NULL;
    if (body == NULL) return;
    const char *below = AT("%s.%s", path, verb);
    if (strcmp(verb, "all") == 0 || strcmp(verb, "any") == 0 || strcmp(verb, "order") == 0)
        check_nodes(l, body, below, depth + 1);
    if (strcmp(verb, "order") == 0) check_order(l, body, below);
    if (strcmp(verb, "not") == 0) check_node(l, body, below, depth + 1);
    if (strcmp(verb, "line") == 0 || strcmp(verb, "paragraph") == 0)
        check_piece(l, body, below, depth);
    if (strcmp(verb, "count") != 0) return;
    check_one_of(l, body, below, counted, "pattern, value or of");
    const struct node *of = node_get(body, "of");
    if (of != NULL) check_nodes(l, of, AT("%s.of", below), depth + 1);
}

// ---- what the parts mean together ----

static void check_bounds(struct load *l, const struct check_spec *s, const char *path) {
    const struct check_bounds *b = &s->bounds;
    const struct node *n = node_find(l->root, path, &(struct mark){0});
    if (n != NULL && node_get(n, "exactly") != NULL &&
        (node_get(n, "at_least") != NULL || node_get(n, "at_most") != NULL))
        WRONG(AT("%s.exactly", path), "at_least or at_most is given too; one of them must go");
    if (!b->has_least && !b->has_most)
        WRONG(path, "needs a bound: at_least, at_most or exactly");
    else if (b->has_least && b->has_most && b->least > b->most)
        WRONG(path, "at_least %lld is more than at_most %lld", (long long)b->least,
              (long long)b->most);
    else if (b->least <= 0 && !b->has_most)
        WRONG(path, "at_least 0 always holds");
    if (s->part_count > 0 && b->has_least && b->least > s->part_count)
        WRONG(path, "at_least %lld of %d checks can never hold", (long long)b->least,
              s->part_count);
}

static void check_pointer(struct load *l, const struct check_pointer *p, const char *path) {
    const char *where = AT("%s.pointer", path);
    struct str text = p->pointer;
    if (text.n > 0 && text.p[0] != '/' && !str_starts(text, STR("{{")))
        WRONG(where, "a JSON pointer is empty or begins with /, as in /items/0/name");
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '~' && (i + 1 == text.n || (text.p[i + 1] != '0' && text.p[i + 1] != '1')))
            WRONG(where, "in a JSON pointer ~ is written ~0, and / inside a name ~1");
    if (text.n > POINTER_BYTES_MOST) WRONG(where, "is longer than %d bytes", POINTER_BYTES_MOST);
    bool asks = p->equals.p != NULL || p->pattern.p != NULL || p->type != CHECK_TYPE_ANY;
    if (p->absent && asks)
        WRONG(AT("%s.exists", path), "false: nothing stands there that could be compared");
    if (p->absent && text.n == 0)
        WRONG(AT("%s.exists", path), "false needs a pointer: the whole value always exists");
}

static void check_spec_rules(struct load *l, const struct check_spec *s, const char *path) {
    const char *here = AT("%s.%s", path, s->where);
    switch (s->verb) {
    case CHECK_COUNT:
    case CHECK_WORDS:
    case CHECK_SENTENCES:
    case CHECK_PARAGRAPHS:
    case CHECK_LINES:
    case CHECK_LETTERS: check_bounds(l, s, AT("%s.%s", here, check_verbs[s->verb])); break;
    case CHECK_LINE:
    case CHECK_PARAGRAPH:
        if (s->number == 0 &&
            node_find(l->root, AT("%s.%s.number", here, check_verbs[s->verb]), &(struct mark){0}))
            WRONG(AT("%s.%s.number", here, check_verbs[s->verb]),
                  "0 is none: 1 is the first, -1 the last");
        break;
    case CHECK_JSON: check_pointer(l, s->pointers, AT("%s.json", here)); break;
    case CHECK_TOOL_CALL:
        if (s->name.n == 0)
            WRONG(AT("%s.tool_call.name", here), "is empty; no tool has such a name");
        for (int i = 0; i < s->pointer_count; i++)
            check_pointer(l, &s->pointers[i], AT("%s.tool_call.arguments[%d]", here, i));
        break;
    default: break;
    }
    if (s->value.p != NULL && str_trim(s->value).n == 0)
        WRONG(here, "an empty value stands in every reply");
    for (int i = 0; i < s->part_count; i++) check_spec_rules(l, &s->parts[i], path);
}

void experiment_check_tree(struct load *l, const struct check_spec *s, const char *path,
                           const char *key) {
    const char *where = AT("%s.%s", path, key);
    const struct node *n = node_find(l->root, where, &(struct mark){0});
    if (s == NULL || n == NULL) return;
    check_node(l, n, where, 1);
    if (!diagnosed(l->d, where)) check_spec_rules(l, s, path);
}

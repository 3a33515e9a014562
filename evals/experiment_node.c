#include "evals/experiment_node.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *node_kind_name(const struct node *n) {
    if (n->kind == NODE_LIST) return "a list";
    return n->kind == NODE_MAP ? "a mapping (key: value)" : "a single value";
}

struct node *node_get(const struct node *map, const char *key) {
    if (map == NULL || map->kind != NODE_MAP) return NULL;
    for (int i = 0; i < map->count; i++)
        if (str_equal_c(map->entries[i].key, key)) return map->entries[i].value;
    return NULL;
}

struct node_entry *node_add(struct node *parent, struct arena *a) {
    parent->entries =
        arena_more(a, parent->entries, (size_t)parent->count, sizeof *parent->entries);
    return &parent->entries[parent->count++];
}

static void add_diagnostic(struct diagnostics *d, struct mark mark, const char *path, bool warning,
                           const char *text) {
    if (!warning) d->errors++;
    if (d->count == DIAGNOSTICS_MOST) return;
    d->items = arena_more(d->arena, d->items, (size_t)d->count, sizeof *d->items);
    d->items[d->count++] = (struct diagnostic){mark, arena_strdup(d->arena, path), text, warning};
}

static const char *format_text(struct arena *a, const char *format, va_list args) {
    char text[1024];
    vsnprintf(text, sizeof text, format, args);
    // Parts may come from any file and be cut anywhere: valid UTF-8 on one line goes out.
    struct buf clean = {0};
    for (size_t at = 0, n = strlen(text); at < n;) {
        uint32_t code_point;
        size_t length = utf8_decode((struct str){text, n}, at, &code_point);
        if (code_point == 0xFFFD && length < 3)
            buf_add_char(&clean, '?');
        else if (code_point < 0x20 || code_point == 0x7F)
            buf_add_char(&clean, ' ');
        else
            buf_add(&clean, text + at, length);
        at += length;
    }
    return buf_take(&clean, a).p;
}

void diagnose(struct diagnostics *d, struct mark mark, const char *path, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_diagnostic(d, mark, path, false, format_text(d->arena, format, args));
    va_end(args);
}

void diagnose_warning(struct diagnostics *d, struct mark mark, const char *path, const char *format,
                      ...) {
    va_list args;
    va_start(args, format);
    add_diagnostic(d, mark, path, true, format_text(d->arena, format, args));
    va_end(args);
}

// One path is the other or leads to it.
static bool on_one_way(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b), least = n < m ? n : m;
    if (strncmp(a, b, least) != 0) return false;
    if (n == m || least == 0) return n == m;
    char next = n > m ? a[least] : b[least];
    return next == '.' || next == '[';
}

bool diagnosed(const struct diagnostics *d, const char *path) {
    for (int i = 0; i < d->count; i++)
        if (!d->items[i].warning && on_one_way(d->items[i].path, path)) return true;
    return false;
}

void diagnose_at(struct diagnostics *d, const struct node *root, const char *path,
                 const char *format, ...) {
    if (diagnosed(d, path)) return;
    struct mark mark = root == NULL ? (struct mark){0} : root->mark;
    if (root != NULL) node_find(root, path, &mark);
    va_list args;
    va_start(args, format);
    add_diagnostic(d, mark, path, false, format_text(d->arena, format, args));
    va_end(args);
}

void diagnose_warning_at(struct diagnostics *d, const struct node *root, const char *path,
                         const char *text) {
    struct mark mark = root == NULL ? (struct mark){0} : root->mark;
    if (root != NULL) node_find(root, path, &mark);
    add_diagnostic(d, mark, path, true, text);
}

static void print_diagnostic(const struct diagnostics *d, const struct diagnostic *x,
                             struct buf *out) {
    if (x->mark.origin != NULL)
        buf_add_c(out, x->mark.origin);
    else if (x->mark.line > 0)
        buf_printf(out, "%s:%d:%d", d->file, x->mark.line, x->mark.column);
    else
        buf_add_c(out, d->file);
    buf_printf(out, ": %s%s%s%s", x->warning ? "warning: " : "", x->path,
               x->path[0] == '\0' ? "" : ": ", x->text);
}

static int by_place(const void *a, const void *b) {
    const struct diagnostic *x = a, *y = b;
    if ((x->mark.origin != NULL) != (y->mark.origin != NULL))
        return x->mark.origin != NULL ? 1 : -1;
    if (x->mark.line != y->mark.line) return x->mark.line < y->mark.line ? -1 : 1;
    if (x->mark.column != y->mark.column) return x->mark.column < y->mark.column ? -1 : 1;
    int paths = strcmp(x->path, y->path);
    return paths != 0 ? paths : strcmp(x->text, y->text);
}

static void sort_diagnostics(struct diagnostics *d) {
    if (d->count > 1) qsort(d->items, (size_t)d->count, sizeof *d->items, by_place);
}

int diagnostics_fail(struct diagnostics *d, struct err *e) {
    if (d->errors == 0) return 0;
    sort_diagnostics(d);
    // Room for the line that counts what did not fit.
    const size_t most = e == NULL ? 0 : sizeof e->text - 64;
    struct buf text = {0}, line = {0};
    int printed = 0;
    for (int i = 0; i < d->count; i++) {
        if (d->items[i].warning) continue;
        buf_clear(&line);
        print_diagnostic(d, &d->items[i], &line);
        if (printed > 0 && text.n + line.n + 1 > most) break;
        if (printed++ > 0) buf_add_char(&text, '\n');
        buf_add_str(&text, buf_str(&line));
    }
    if (printed < d->errors) buf_printf(&text, "\n... and %d more errors", d->errors - printed);
    int result = ERR_SET(e, ERR_CONFIG, "%s", text.p);
    buf_free(&text);
    buf_free(&line);
    return result;
}

void diagnostics_warnings(struct diagnostics *d, const char ***lines, int *count) {
    sort_diagnostics(d);
    *count = 0;
    *lines = arena_array(d->arena, (size_t)d->count + 1, sizeof **lines);
    struct buf line = {0};
    for (int i = 0; i < d->count; i++) {
        if (!d->items[i].warning) continue;
        buf_clear(&line);
        print_diagnostic(d, &d->items[i], &line);
        (*lines)[(*count)++] = str_to_c(d->arena, buf_str(&line));
    }
    buf_free(&line);
}

static struct node *json_object_node(const json_t *value, struct node *n, struct arena *a) {
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)value, key, item) {
        struct node_entry *entry = node_add(n, a);
        struct str name = str_from(key);
        struct str suffix = STR("_base64");
        entry->key = str_copy(a, name);
        if (str_ends(name, suffix) && json_is_string(item)) {
            struct str plain = str_slice(name, 0, name.n - suffix.n);
            struct err ignored;
            entry->value = arena_alloc(a, sizeof *entry->value);
            *entry->value = (struct node){
                .kind = NODE_SCALAR, .style = STYLE_DOUBLE, .stored = true, .expanded = 1};
            if (json_get_bytes(value, str_to_c(a, plain), "", a, &entry->value->text, &ignored) ==
                0) {
                entry->key = str_copy(a, plain);
                continue;
            }
        }
        entry->value = node_from_json(item, a);
    }
    return n;
}

struct node *node_from_json(const json_t *value, struct arena *a) {
    struct node *n = arena_alloc(a, sizeof *n);
    *n = (struct node){.kind = NODE_SCALAR, .stored = true, .expanded = 1};
    switch (json_typeof(value)) {
    case JSON_OBJECT: n->kind = NODE_MAP; return json_object_node(value, n, a);
    case JSON_ARRAY:
        n->kind = NODE_LIST;
        for (size_t i = 0; i < json_array_size(value); i++)
            node_add(n, a)->value = node_from_json(json_array_get(value, i), a);
        return n;
    case JSON_STRING:
        n->style = STYLE_DOUBLE;
        n->text = str_copy(a, (struct str){json_string_value(value), json_string_length(value)});
        return n;
    default: {
        struct buf text = {0};
        json_compact(value, &text);
        n->text = buf_take(&text, a);
        return n;
    }
    }
}

// Takes the next step of "models[0].context_tokens" off *path: a key, or an index when *index >= 0.
// -1: not a path.
static int next_step(const char **path, struct str *key, int *index) {
    const char *p = *path;
    *index = -1;
    if (*p == '[') {
        size_t digits = strspn(p + 1, "0123456789");
        if (digits == 0 || digits > 6 || p[1 + digits] != ']') return -1;
        *index = (int)strtol(p + 1, NULL, 10);
        p += digits + 2;
    } else {
        size_t n = strcspn(p, ".[");
        if (n == 0) return -1;
        *key = (struct str){p, n};
        p += n;
    }
    if (*p == '.') {
        p++;
        if (*p == '\0' || *p == '.' || *p == '[') return -1;
    } else if (*p != '\0' && *p != '[') {
        return -1;
    }
    *path = p;
    return 0;
}

static int entry_of(const struct node *n, struct str key, int index) {
    if (index >= 0) return n->kind == NODE_LIST && index < n->count ? index : -1;
    if (n->kind != NODE_MAP) return -1;
    for (int i = 0; i < n->count; i++)
        if (str_equal(n->entries[i].key, key)) return i;
    return -1;
}

const struct node *node_find(const struct node *root, const char *path, struct mark *nearest) {
    const struct node *n = root;
    while (*path != '\0') {
        struct str key;
        int index, at = -1;
        if (next_step(&path, &key, &index) == 0) at = entry_of(n, key, index);
        if (at < 0) return NULL;
        struct mark key_mark = n->entries[at].key_mark;
        n = n->entries[at].value;
        // A mapping or list below a key is pointed at by its key: that is what people look for.
        *nearest = n->kind != NODE_SCALAR && key_mark.line > 0 ? key_mark : n->mark;
    }
    return n;
}

static struct node *copy_one(const struct node *n, struct arena *a) {
    struct node *copy = arena_alloc(a, sizeof *copy);
    *copy = *n;
    copy->entries = NULL;
    copy->count = 0;
    for (int i = 0; i < n->count; i++) *node_add(copy, a) = n->entries[i];
    return copy;
}

int node_set(struct node **root, const char *path, struct node *value, struct arena *a,
             const char **why) {
    struct node **at = root;
    if (*path == '\0') {
        *why = "a key is missing before '='";
        return -1;
    }
    while (*path != '\0') {
        struct str key;
        int index;
        if (next_step(&path, &key, &index) != 0) {
            *why = "expected a path such as generation.max_tokens or models[0].context_tokens";
            return -1;
        }
        *at = copy_one(*at, a);
        struct node *n = *at;
        int entry = entry_of(n, key, index);
        if (entry < 0 && (index >= 0 || n->kind != NODE_MAP)) {
            *why = index >= 0 ? arena_printf(a, "there is no item [%d] in the file", index)
                              : arena_printf(a, "'" STR_FMT "' is looked for in %s", STR_ARG(key),
                                             node_kind_name(n));
            return -1;
        }
        if (entry < 0) {
            struct node_entry *made = node_add(n, a);
            made->key = str_copy(a, key);
            made->key_mark = value->mark;
            made->value = arena_alloc(a, sizeof *made->value);
            *made->value = (struct node){.kind = NODE_MAP, .mark = value->mark, .expanded = 1};
            entry = n->count - 1;
        }
        at = &n->entries[entry].value;
    }
    *at = value;
    return 0;
}

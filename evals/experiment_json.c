// A part of the experiment file that is JSON of the user's own: its text, number by number as it
// was typed.
#include "evals/experiment_node.h"
#include "evals/experiment_scalar.h"

static bool add_json(const struct node *n, const char *path, struct diagnostics *d,
                     struct buf *out);

static void add_string(struct str text, struct buf *out) {
    json_t *string = json_text(text);
    json_compact(string, out);
    json_decref(string);
}

static bool add_scalar(const struct node *n, const char *path, struct diagnostics *d,
                       struct buf *out) {
    int64_t value;
    if (!utf8_valid(n->text)) {
        diagnose(d, n->mark, path, "is not UTF-8, which JSON cannot carry");
        return false;
    }
    bool plain = n->style == STYLE_PLAIN && !n->stored;
    bool word = str_equal_c(n->text, "true") || str_equal_c(n->text, "false") ||
                str_equal_c(n->text, "null");
    if (plain &&
        (word || scalar_integer(n->text, &value) == 0 || scalar_decimal(n->text, 9, &value) == 0)) {
        buf_add_str(out, n->text);
        return true;
    }
    const char *other = plain ? scalar_reads_as(n->text) : NULL;
    if (other != NULL) {
        diagnose(d, n->mark, path,
                 "some readers take '%.*s' for %s; write it as JSON does, or a text in quotes",
                 n->text.n > 40 ? 40 : (int)n->text.n, n->text.p, other);
        return false;
    }
    add_string(n->text, out);
    return true;
}

static bool add_entries(const struct node *n, const char *path, struct diagnostics *d,
                        struct buf *out) {
    const bool map = n->kind == NODE_MAP;
    bool good = true;
    buf_add_char(out, map ? '{' : '[');
    for (int i = 0; i < n->count; i++) {
        const struct node_entry *entry = &n->entries[i];
        if (i > 0) buf_add_char(out, ',');
        if (map && !utf8_valid(entry->key)) {
            diagnose(d, entry->key_mark, path, "a key is not UTF-8, which JSON cannot carry");
            return false;
        }
        if (map) add_string(entry->key, out);
        if (map) buf_add_char(out, ':');
        good = add_json(entry->value, path, d, out) && good;
    }
    buf_add_char(out, map ? '}' : ']');
    return good;
}

static bool add_json(const struct node *n, const char *path, struct diagnostics *d,
                     struct buf *out) {
    return (n->kind == NODE_SCALAR ? add_scalar : add_entries)(n, path, d, out);
}

json_t *node_json_text(const struct node *n, const char *path, struct diagnostics *d) {
    struct buf text = {0};
    json_t *value = NULL;
    if (n->kind == NODE_SCALAR)
        value = json_text(n->text);
    else if (add_json(n, path, d, &text))
        value = json_text(buf_str(&text));
    buf_free(&text);
    return value;
}

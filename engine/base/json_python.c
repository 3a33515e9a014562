#include "engine/base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct printer {
    int indent; // spaces a level; 0: all on one line
    struct buf *out;
};

// How many from `at` on stand for themselves.
static size_t plain_bytes(struct str s, size_t at) {
    size_t end = at;
    while (end < s.n && (unsigned char)s.p[end] >= 0x20 && s.p[end] != '"' && s.p[end] != '\\')
        end++;
    return end - at;
}

static void add_string(struct buf *out, struct str s) {
    static const char *const names[] = {
        ['\b'] = "\\b", ['\f'] = "\\f", ['\n'] = "\\n", ['\r'] = "\\r", ['\t'] = "\\t"};
    buf_reserve(out, s.n + 2);
    buf_add_char(out, '"');
    for (size_t i = 0, plain; i < s.n; i += plain + 1) {
        plain = plain_bytes(s, i);
        buf_add(out, s.p + i, plain);
        if (i + plain == s.n) break;
        const unsigned char c = (unsigned char)s.p[i + plain];
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c < sizeof names / sizeof *names && names[c] != NULL)
            buf_add_c(out, names[c]);
        else
            buf_printf(out, "\\u%04x", c);
    }
    buf_add_char(out, '"');
}

// Python's repr of a float: the shortest digits that read back as the number, with a point; an
// exponent below 1e-4 and from 1e16 on.
static void add_real(struct buf *out, double value) {
    char text[40];
    int digits = 1;
    for (; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
        if (strtod(text, NULL) == value) break;
    }
    const int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent >= 16) {
        buf_add_c(out, text);
        return;
    }
    const int places = digits - 1 - exponent;
    snprintf(text, sizeof text, "%.*f", places > 1 ? places : 1, value);
    buf_add_c(out, text);
}

static void add_value(struct printer *p, const json_t *value, int level);

static void add_line(struct printer *p, int level) {
    if (p->indent > 0) buf_printf(p->out, "\n%*s", level * p->indent, "");
}

static void add_between(struct printer *p, size_t i, int level) {
    if (i > 0) buf_add_c(p->out, p->indent > 0 ? "," : ", ");
    add_line(p, level);
}

static void add_object(struct printer *p, const json_t *value, int level) {
    const char *key;
    size_t n;
    json_t *item;
    size_t i = 0;
    buf_add_char(p->out, '{');
    json_object_keylen_foreach((json_t *)value, key, n, item) {
        add_between(p, i++, level + 1);
        add_string(p->out, (struct str){key, n});
        buf_add_c(p->out, ": ");
        add_value(p, item, level + 1);
    }
    if (i > 0) add_line(p, level);
    buf_add_char(p->out, '}');
}

static void add_array(struct printer *p, const json_t *value, int level) {
    const size_t count = json_array_size(value);
    buf_add_char(p->out, '[');
    for (size_t i = 0; i < count; i++) {
        add_between(p, i, level + 1);
        add_value(p, json_array_get(value, i), level + 1);
    }
    if (count > 0) add_line(p, level);
    buf_add_char(p->out, ']');
}

static void add_value(struct printer *p, const json_t *value, int level) {
    switch (json_typeof(value)) {
    case JSON_OBJECT: add_object(p, value, level); break;
    case JSON_ARRAY: add_array(p, value, level); break;
    case JSON_STRING:
        add_string(p->out, (struct str){json_string_value(value), json_string_length(value)});
        break;
    case JSON_INTEGER: buf_printf(p->out, "%lld", (long long)json_integer_value(value)); break;
    case JSON_REAL: add_real(p->out, json_real_value(value)); break;
    case JSON_TRUE: buf_add_c(p->out, "true"); break;
    case JSON_FALSE: buf_add_c(p->out, "false"); break;
    case JSON_NULL: buf_add_c(p->out, "null"); break;
    }
}

void json_python(const json_t *value, int indent, struct buf *out) {
    struct printer p = {indent, out};
    add_value(&p, value, 0);
}

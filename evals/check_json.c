#include "evals/check_json.h"

#include <string.h>

enum { SHOWN_BYTES = 60 };

// ---- parsing ----

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// [begin, end) without JSON's white space at both ends.
static void trim(struct str text, size_t range[2]) {
    while (range[0] < range[1] && is_space(text.p[range[0]])) range[0]++;
    while (range[1] > range[0] && is_space(text.p[range[1] - 1])) range[1]--;
}

static struct json_finding parse(struct str text, size_t begin, size_t end, struct arena *a) {
    struct json_finding f = {.range = {begin, end}};
    json_error_t error;
    trim(text, f.range);
    if (f.range[0] == f.range[1]) {
        f.why = "there is no text that could be JSON";
        return f;
    }
    f.value = json_loadb(text.p + f.range[0], f.range[1] - f.range[0],
                         JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    f.found = f.value != NULL;
    if (f.found) return f;
    switch (json_error_code(&error)) {
    case json_error_stack_overflow: f.error = "json_depth"; break;
    case json_error_numeric_overflow: f.error = "json_number"; break;
    case json_error_null_byte_in_key: f.error = "json_key"; break;
    default: break;
    }
    f.why =
        arena_printf(a, "not JSON: %s (line %d, column %d)", error.text, error.line, error.column);
    return f;
}

// The next line from `at` on that begins with a fence: where its content starts and the fence
// stands.
static bool next_fence(struct str text, size_t at, size_t *fence, size_t *content) {
    for (size_t i = at; (i = str_find(text, STR("```"), i)) != STR_NONE; i += 3) {
        size_t line = i;
        while (line > 0 && (text.p[line - 1] == ' ' || text.p[line - 1] == '\t')) line--;
        if (line > 0 && text.p[line - 1] != '\n') continue;
        size_t end = str_find(text, STR("\n"), i);
        *fence = i;
        *content = end == STR_NONE ? text.n : end + 1;
        return true;
    }
    return false;
}

static struct json_finding json_in_block(struct str text, struct arena *a) {
    struct json_finding first = {.why = "there is no fenced block (```)"};
    bool any = false;
    for (size_t at = 0, fence, begin, end, behind; next_fence(text, at, &fence, &begin);
         at = behind) {
        if (!next_fence(text, begin, &end, &behind)) break;
        struct json_finding f = parse(text, begin, end, a);
        f.closed = true;
        if (f.found || f.error != NULL) return f;
        if (!any) first = f;
        any = true;
    }
    return first;
}

struct json_finding json_in_text(struct str text, bool block, struct arena *a) {
    if (block) return json_in_block(text, a);
    size_t range[2] = {0, text.n}, fence, begin, end, behind;
    trim(text, range);
    struct str inside = str_slice(text, range[0], range[1]);
    if (str_starts(inside, STR("```")) && next_fence(text, range[0], &fence, &begin) &&
        next_fence(text, begin, &end, &behind) && end + 3 == range[1])
        return parse(text, begin, end, a);
    return parse(text, range[0], range[1], a);
}

// ---- pointers ----

static struct str next_token(struct str pointer, size_t *at, struct arena *a) {
    size_t end = str_find(pointer, STR("/"), *at + 1), n = 0;
    if (end == STR_NONE) end = pointer.n;
    char *token = arena_alloc(a, end - *at + 1);
    for (size_t i = *at + 1; i < end; i++) {
        bool escaped = pointer.p[i] == '~' && i + 1 < end;
        if (escaped) i++;
        token[n++] = !escaped ? pointer.p[i] : pointer.p[i] == '1' ? '/' : '~';
    }
    *at = end;
    return (struct str){token, n};
}

// An index of a list as RFC 6901 writes it: digits without a leading zero.
static const json_t *list_item(const json_t *list, struct str token) {
    size_t index = 0;
    if (token.n == 0 || token.n > 9 || (token.p[0] == '0' && token.n > 1)) return NULL;
    for (size_t i = 0; i < token.n; i++) {
        if (token.p[i] < '0' || token.p[i] > '9') return NULL;
        index = 10 * index + (size_t)(token.p[i] - '0');
    }
    return json_array_get(list, index);
}

static const json_t *pointed(const json_t *value, struct str pointer, struct arena *a) {
    for (size_t at = 0; value != NULL && at < pointer.n;) {
        struct str token = next_token(pointer, &at, a);
        value = json_is_array(value) ? list_item(value, token)
                                     : json_object_getn(value, token.p, token.n);
    }
    return value;
}

// ---- comparing ----

static bool has_type(const json_t *v, enum check_type type) {
    switch (type) {
    case CHECK_TYPE_OBJECT: return json_is_object(v);
    case CHECK_TYPE_ARRAY: return json_is_array(v);
    case CHECK_TYPE_STRING: return json_is_string(v);
    case CHECK_TYPE_NUMBER: return json_is_number(v);
    case CHECK_TYPE_INTEGER: return json_is_integer(v);
    case CHECK_TYPE_BOOLEAN: return json_is_boolean(v);
    case CHECK_TYPE_NULL: return json_is_null(v);
    case CHECK_TYPE_ANY: break;
    }
    return true;
}

static struct str text_of(const json_t *v, struct arena *a) {
    if (json_is_string(v)) return (struct str){json_string_value(v), json_string_length(v)};
    struct buf b = {0};
    json_compact(v, &b);
    return buf_take(&b, a);
}

// A string by its text; anything else by value, so that 5 is 5.0.
static bool equals(const json_t *v, struct str wanted) {
    if (json_is_string(v))
        return str_equal((struct str){json_string_value(v), json_string_length(v)}, wanted);
    json_error_t error;
    json_t *other = json_loadb(wanted.p, wanted.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    bool mixed = json_is_number(v) && json_is_number(other) && json_typeof(v) != json_typeof(other);
    bool same = mixed ? json_number_value(v) == json_number_value(other)
                      : other != NULL && json_equal(v, other);
    json_decref(other);
    return same;
}

static const char *quoted(const json_t *v, struct arena *a) {
    struct str text = text_of(v, a), head = str_head(text, SHOWN_BYTES);
    const char *mark = json_is_string(v) ? "\"" : "";
    return arena_printf(a, "%s" STR_FMT "%s%s", mark, STR_ARG(head), head.n < text.n ? "..." : "",
                        mark);
}

bool json_answers(const json_t *value, const struct json_ask *ask, struct arena *a,
                  const char **why, const char **error) {
    const json_t *v = pointed(value, ask->pointer, a);
    const char *place = ask->pointer.n == 0 ? "the whole value" : str_to_c(a, ask->pointer);
    *error = NULL;
    if (v == NULL || ask->absent) {
        *why = arena_printf(a, "%s %s", place, v == NULL ? "does not exist" : "exists");
        return v == NULL && ask->absent;
    }
    *why = arena_printf(a, "%s is %s", place, quoted(v, a));
    if (!has_type(v, ask->type)) {
        *why = arena_printf(a, "%s, not of type %s", *why, check_types[ask->type - 1]);
        return false;
    }
    if (ask->equals.p != NULL && !equals(v, ask->equals)) {
        *why = arena_printf(a, "%s, not \"" STR_FMT "\"", *why, STR_ARG(ask->equals));
        return false;
    }
    size_t match[2];
    if (ask->pattern == NULL) return true;
    enum pattern_result result = pattern_find(ask->pattern, text_of(v, a), 0, match, error);
    if (result == PATTERN_ABSENT)
        *why = arena_printf(a, "%s, which the pattern does not match", *why);
    return result == PATTERN_FOUND;
}

// ---- tool calls ----

// The call that an object is, if it is one. Takes over nothing.
static void add_call(const json_t *o, const size_t range[2], bool closed, struct arena *a,
                     struct tool_calls *out) {
    const json_t *name = json_object_get(o, "name"), *arguments = json_object_get(o, "arguments");
    if (arguments == NULL) arguments = json_object_get(o, "parameters");
    json_t *parsed = NULL;
    if (json_is_string(arguments)) { // as OpenAI's interface writes them
        struct str text = {json_string_value(arguments), json_string_length(arguments)};
        struct json_finding f = parse(text, 0, text.n, a);
        if (f.error != NULL) out->error = f.error;
        parsed = f.value;
        arguments = parsed;
    }
    if (json_is_string(name) && json_is_object(arguments)) {
        out->calls = arena_more(a, out->calls, out->count, sizeof *out->calls);
        out->calls[out->count++] = (struct tool_call){
            str_copy(a, (struct str){json_string_value(name), json_string_length(name)}),
            json_incref((json_t *)(uintptr_t)arguments),
            {range[0], range[1]},
            closed};
    }
    json_decref(parsed);
}

static void add_calls(struct json_finding f, bool closed, struct arena *a, struct tool_calls *out) {
    if (f.error != NULL) out->error = f.error;
    if (json_is_object(f.value)) add_call(f.value, f.range, closed, a, out);
    for (size_t i = 0; i < json_array_size(f.value); i++)
        add_call(json_array_get(f.value, i), f.range, closed, a, out);
    json_decref(f.value);
}

void tool_calls_find(struct str text, struct arena *a, struct tool_calls *out) {
    const struct str open = STR("<tool_call>"), close = STR("</tool_call>");
    *out = (struct tool_calls){0};
    bool tagged = false;
    size_t end = 0;
    for (size_t at = 0; (at = str_find(text, open, at)) != STR_NONE;) {
        tagged = true;
        size_t begin = at + open.n;
        if (end < begin) end = str_find(text, close, begin);
        // The end tag may be missing at the very end of a reply that stopped there.
        add_calls(parse(text, begin, end == STR_NONE ? text.n : end, a), end != STR_NONE, a, out);
        at = begin;
    }
    if (!tagged) add_calls(json_in_text(text, false, a), false, a, out);
}

void tool_calls_close(struct tool_calls *calls) {
    for (size_t i = 0; i < calls->count; i++) json_decref(calls->calls[i].arguments);
}

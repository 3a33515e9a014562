#include "prompts/turns.h"

#include "engine/base/file.h"

#include <string.h>

#define FILE_BYTES_MOST ((size_t)256 << 20)

// ---- one turn ----

struct place {
    const char *where; // "turns.jsonl:3"
    struct arena *a;
};

static struct str text_of(const json_t *s, struct arena *a) {
    return str_copy(a, (struct str){json_string_value(s), json_string_length(s)});
}

static int text_check(const struct place *p, const json_t *s, const char *what, struct err *e) {
    if (!json_is_string(s)) FAIL(e, ERR_CONFIG, "%s: %s is not a text", p->where, what);
    if (memchr(json_string_value(s), '\0', json_string_length(s)) != NULL)
        FAIL(e, ERR_CONFIG, "%s: %s holds a NUL character", p->where, what);
    return 0;
}

// Arguments are an object, or the text of one as the API gives them.
static int arguments_read(const struct place *p, const json_t *value, struct str *out,
                          struct err *e) {
    json_t *parsed = NULL;
    if (json_is_string(value)) {
        struct str text = {json_string_value(value), json_string_length(value)};
        const char *where = arena_printf(p->a, "%s: tool_calls: \"arguments\"", p->where);
        if (json_parse(text, where, &parsed, e) != 0) {
            if (e != NULL) e->code = ERR_CONFIG;
            return -1;
        }
        value = parsed;
    }
    int result = 0;
    if (json_is_object(value)) {
        struct buf text = {0};
        json_python(value, 0, &text);
        *out = buf_take(&text, p->a);
    } else {
        result =
            ERR_SET(e, ERR_CONFIG, "%s: \"arguments\" of a tool call are not an object", p->where);
    }
    json_decref(parsed);
    return result;
}

static int call_read(const struct place *p, const json_t *o, struct provider_call *out,
                     struct err *e) {
    static const char *const keys[] = {"id", "type", "function", "index"};
    static const char *const function_keys[] = {"name", "arguments"};
    if (!json_is_object(o)) FAIL(e, ERR_CONFIG, "%s: a tool call is not an object", p->where);
    const json_t *function = json_object_get(o, "function");
    const json_t *type = json_object_get(o, "type");
    if (function == NULL) {
        function = o;
    } else {
        TRY(JSON_ONLY_KEYS(o, p->where, keys, e));
        if (type != NULL && (!json_is_string(type) || strcmp(json_string_value(type), "function")))
            FAIL(e, ERR_CONFIG, "%s: only tool calls of type \"function\" are known", p->where);
    }
    TRY(JSON_ONLY_KEYS(function, p->where, function_keys, e));
    const json_t *name = json_object_get(function, "name");
    TRY(text_check(p, name, "\"name\" of a tool call", e));
    out->name = text_of(name, p->a);
    if (out->name.n == 0) FAIL(e, ERR_CONFIG, "%s: a tool call has no name", p->where);
    return arguments_read(p, json_object_get(function, "arguments"), &out->arguments, e);
}

static int calls_read(const struct place *p, const json_t *list, struct provider_message *m,
                      struct err *e) {
    if (!str_equal_c(m->role, "assistant"))
        FAIL(e, ERR_CONFIG, "%s: only the assistant can have tool_calls", p->where);
    if (!json_is_array(list) || json_array_size(list) == 0)
        FAIL(e, ERR_CONFIG, "%s: tool_calls are not a list, or an empty one", p->where);
    m->call_count = json_array_size(list);
    struct provider_call *calls = arena_array(p->a, m->call_count, sizeof *calls);
    for (size_t i = 0; i < m->call_count; i++)
        TRY(call_read(p, json_array_get(list, i), &calls[i], e));
    m->calls = calls;
    return 0;
}

static int role_read(const struct place *p, const json_t *value, struct str *out, struct err *e) {
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    if (value == NULL) FAIL(e, ERR_CONFIG, "%s: \"role\" is missing", p->where);
    TRY(text_check(p, value, "\"role\"", e));
    for (size_t i = 0; i < 4; i++)
        if (strcmp(json_string_value(value), roles[i]) == 0) {
            *out = str_from(roles[i]);
            return 0;
        }
    const char *near = str_nearest(json_string_value(value), roles, 4);
    FAIL(e, ERR_CONFIG, "%s: the role '%.40s' is not one of system, user, assistant, tool%s%s%s",
         p->where, json_string_value(value), near == NULL ? "" : "; did you mean '",
         near == NULL ? "" : near, near == NULL ? "" : "'?");
}

static int turn_read(const struct place *p, const json_t *o, struct provider_message *out,
                     struct err *e) {
    static const char *const keys[] = {"role", "content", "tool_calls", "tool_call_id", "name"};
    *out = (struct provider_message){.text = STR("")};
    if (!json_is_object(o))
        FAIL(e, ERR_CONFIG, "%s: not an object such as {\"role\": \"user\", \"content\": \"...\"}",
             p->where);
    TRY(JSON_ONLY_KEYS(o, p->where, keys, e));
    TRY(role_read(p, json_object_get(o, "role"), &out->role, e));
    const json_t *calls = json_object_get(o, "tool_calls"),
                 *content = json_object_get(o, "content");
    if (calls != NULL && !json_is_null(calls)) TRY(calls_read(p, calls, out, e));
    if (content == NULL && out->call_count == 0)
        FAIL(e, ERR_CONFIG, "%s: \"content\" is missing", p->where);
    if (content != NULL && !(out->call_count > 0 && json_is_null(content))) {
        TRY(text_check(p, content, "\"content\"", e));
        out->text = text_of(content, p->a);
    }
    if (out->call_count == 0 && str_trim(out->text).n == 0)
        FAIL(e, ERR_CONFIG, "%s: \"content\" is empty", p->where);
    return 0;
}

// ---- lines ----

struct reader {
    const char *path;
    struct arena *a;
    struct str text;
    size_t at;
    int line;
    struct place place; // of that line
};

static int line_at(struct str text, size_t at) {
    return 1 + (int)str_count(str_slice(text, 0, at), STR("\n"));
}

static int reader_open(const char *path, struct arena *a, struct reader *out, struct err *e) {
    *out = (struct reader){.path = path, .a = a};
    TRY(file_read(path, FILE_BYTES_MOST, a, &out->text, e));
    if (str_starts(out->text, STR("\xEF\xBB\xBF"))) out->at = 3;
    size_t bad = utf8_first_bad(out->text);
    if (bad < out->text.n)
        FAIL(e, ERR_CONFIG, "%s:%d: byte 0x%02X is not UTF-8; save the file as UTF-8", path,
             line_at(out->text, bad), (unsigned)(uint8_t)out->text.p[bad]);
    return 0;
}

// The next line as JSON; *out is NULL at the end. Empty lines may end the file.
static int reader_next(struct reader *r, json_t **out, struct err *e) {
    *out = NULL;
    if (str_trim(str_slice(r->text, r->at, r->text.n)).n == 0) return 0;
    size_t end = str_find(r->text, STR("\n"), r->at);
    if (end == STR_NONE) end = r->text.n;
    struct str line = str_slice(r->text, r->at, end);
    r->at = end < r->text.n ? end + 1 : end;
    r->line++;
    r->place = (struct place){arena_printf(r->a, "%s:%d", r->path, r->line), r->a};
    if (str_trim(line).n == 0) FAIL(e, ERR_CONFIG, "%s: an empty line", r->place.where);
    if (json_parse(line, r->place.where, out, e) == 0) return 0;
    if (e != NULL) e->code = ERR_CONFIG;
    return -1;
}

int turns_load(const char *path, struct arena *a, struct turn **out, size_t *count, struct err *e) {
    struct reader r;
    json_t *o;
    *out = NULL;
    *count = 0;
    TRY(reader_open(path, a, &r, e));
    for (;;) {
        TRY(reader_next(&r, &o, e));
        if (o == NULL) break;
        struct turn t = {.line = r.line};
        int result = turn_read(&r.place, o, &t.m, e);
        json_decref(o);
        if (result != 0) return -1;
        *out = arena_more(a, *out, *count, sizeof **out);
        (*out)[(*count)++] = t;
    }
    if (*count == 0) FAIL(e, ERR_CONFIG, "%s: there is no turn in it", path);
    return 0;
}

// ---- exchanges ----

static int exchange_check(const struct exchange *x, struct err *e) {
    const char *before = "";
    for (size_t i = 0; i < x->count; i++) {
        const struct turn *t = &x->turns[i];
        const struct str role = t->m.role;
        if (str_equal_c(role, "system"))
            FAIL(e, ERR_CONFIG,
                 "%s:%d: a system turn inside a conversation; many chat templates drop or refuse "
                 "it, so put it into prompt.messages",
                 x->path, t->line);
        bool called = i > 0 && (x->turns[i - 1].m.call_count > 0 || strcmp(before, "tool") == 0);
        const char *expected = strcmp(before, "user") == 0   ? "assistant"
                               : strcmp(before, "tool") == 0 ? "assistant"
                               : called                      ? "tool"
                                                             : "user";
        bool good = str_equal_c(role, expected) || (called && str_equal_c(role, "tool"));
        if (!good)
            FAIL(e, ERR_CONFIG,
                 "%s:%d: role " STR_FMT " where %s must stand; user and assistant take turns, and "
                 "tool results stand between an assistant's tool_calls and its answer",
                 x->path, t->line, STR_ARG(role), expected);
        before = str_equal_c(role, "user") ? "user" : str_equal_c(role, "tool") ? "tool" : "";
    }
    const struct turn *last = &x->turns[x->count - 1];
    if (!str_equal_c(last->m.role, "assistant") || last->m.call_count > 0)
        FAIL(e, ERR_CONFIG, "%s:%d: the exchange does not end with the assistant's answer", x->path,
             last->line);
    return 0;
}

struct exchange_list {
    struct exchange *list;
    size_t count;
};

static int exchange_add(struct exchange_list *l, struct exchange x, struct arena *a,
                        struct err *e) {
    TRY(exchange_check(&x, e));
    l->list = arena_more(a, l->list, l->count, sizeof *l->list);
    l->list[l->count++] = x;
    return 0;
}

static int messages_read(const struct reader *r, const json_t *o, struct exchange_list *l,
                         struct err *e) {
    static const char *const keys[] = {"messages"};
    const struct place *p = &r->place;
    const json_t *list = json_object_get(o, "messages");
    const size_t count = json_array_size(list);
    TRY(JSON_ONLY_KEYS(o, p->where, keys, e));
    if (count == 0)
        FAIL(e, ERR_CONFIG, "%s: \"messages\" are not a list, or an empty one", p->where);
    struct turn *turns = arena_array(r->a, count, sizeof *turns);
    for (size_t i = 0; i < count; i++) {
        turns[i].line = r->line;
        TRY(turn_read(p, json_array_get(list, i), &turns[i].m, e));
    }
    return exchange_add(l, (struct exchange){turns, count, r->path}, r->a, e);
}

// A file of single turns: cut before each user's turn.
static int turns_group(const struct reader *r, const struct turn *turns, size_t count,
                       struct exchange_list *l, struct err *e) {
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && !str_equal_c(turns[to].m.role, "user");) to++;
        TRY(exchange_add(l, (struct exchange){turns + from, to - from, r->path}, r->a, e));
    }
    return 0;
}

static int file_read_exchanges(struct reader *r, struct exchange_list *l, struct err *e) {
    struct turn *turns = NULL;
    size_t count = 0, before = l->count;
    json_t *o;
    for (;;) {
        TRY(reader_next(r, &o, e));
        if (o == NULL) break;
        int result;
        if (json_object_get(o, "messages") != NULL) {
            result = count == 0 ? messages_read(r, o, l, e)
                                : ERR_SET(e, ERR_CONFIG, "%s: \"messages\" after single turns",
                                          r->place.where);
        } else {
            struct turn t = {.line = r->line};
            result = l->count == before
                         ? turn_read(&r->place, o, &t.m, e)
                         : ERR_SET(e, ERR_CONFIG, "%s: a single turn after \"messages\"",
                                   r->place.where);
            turns = arena_more(r->a, turns, count, sizeof *turns);
            turns[count++] = t;
        }
        json_decref(o);
        if (result != 0) return -1;
    }
    TRY(turns_group(r, turns, count, l, e));
    if (l->count == before) FAIL(e, ERR_CONFIG, "%s: there is no exchange in it", r->path);
    return 0;
}

int exchanges_load(const char *const *paths, size_t path_count, struct arena *a,
                   struct exchange **out, size_t *count, struct err *e) {
    struct exchange_list l = {0};
    for (size_t i = 0; i < path_count; i++) {
        struct reader r;
        TRY(reader_open(paths[i], a, &r, e));
        TRY(file_read_exchanges(&r, &l, e));
    }
    *out = l.list;
    *count = l.count;
    return 0;
}

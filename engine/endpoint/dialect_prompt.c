// A conversation as pieces, and back: ChatML, whose marks are control pieces, with a turn "tools"
// for definitions before the first message and a mark for each call of a tool in a turn.
#include "engine/endpoint/dialect.h"

#include <stdio.h>
#include <string.h>

static const struct str BEGIN = {"<|im_start|>", 12}, END = {"<|im_end|>\n", 11},
                        CALL = {"<|call|>", 8}, NEXT = {"\n", 1};

// ---- pieces ------------------------------------------------------------------------------------

struct writing {
    struct provider_piece *pieces;
    size_t count;
    struct arena *a;
};

static void add(struct writing *w, struct str text, bool control) {
    w->pieces = arena_more(w->a, w->pieces, w->count, sizeof *w->pieces);
    w->pieces[w->count++] = (struct provider_piece){text, control};
}

static void begin_turn(struct writing *w, struct str role) {
    add(w, str_from(arena_printf(w->a, STR_FMT STR_FMT "\n", STR_ARG(BEGIN), STR_ARG(role))), true);
}

static void add_tools(struct writing *w, const struct provider_message *first) {
    if (first->tool_count == 0) return;
    begin_turn(w, STR("tools"));
    for (size_t i = 0; i < first->tool_count; i++) {
        if (i > 0) add(w, NEXT, true);
        add(w, first->tools[i], false);
    }
    add(w, END, true);
}

int dialect_render(const struct provider_message *messages, size_t count, struct arena *a,
                   struct provider_piece **pieces, size_t *piece_count, struct err *e) {
    struct writing w = {.a = a};
    for (size_t i = 0; i < count; i++) {
        const struct provider_message *m = &messages[i];
        if (str_equal_c(m->role, "tools") || str_find(m->role, NEXT, 0) != STR_NONE)
            FAIL(e, ERR_CONFIG, "message %zu has a role that no server knows", i + 1);
        if (i == 0) add_tools(&w, m);
        begin_turn(&w, m->role);
        add(&w, m->text, false);
        for (size_t k = 0; k < m->call_count; k++) {
            add(&w, CALL, true);
            add(&w, m->calls[k].name, false);
            add(&w, NEXT, true);
            add(&w, m->calls[k].arguments, false);
        }
        add(&w, END, true);
    }
    begin_turn(&w, STR("assistant"));
    *pieces = w.pieces;
    *piece_count = w.count;
    return 0;
}

// ---- and back ----------------------------------------------------------------------------------

struct conversation {
    struct provider_message *list;
    size_t count;
    struct str *tools;
    size_t tool_count;
    struct provider_call *calls; // of the last message
    size_t call_count;
    struct str *to; // what a text belongs to; NULL: no turn is open
    struct arena *a;
};

static void add_text(struct conversation *c, struct str text) {
    if (c->to->n == 0) {
        *c->to = text;
        return;
    }
    char *p = arena_alloc(c->a, c->to->n + text.n + 1);
    memcpy(p, c->to->p, c->to->n);
    memcpy(p + c->to->n, text.p, text.n);
    *c->to = (struct str){p, c->to->n + text.n};
}

static void next_tool(struct conversation *c) {
    c->tools = arena_more(c->a, c->tools, c->tool_count, sizeof *c->tools);
    c->to = &c->tools[c->tool_count++];
    *c->to = STR("");
}

static void next_message(struct conversation *c, struct str role) {
    c->list = arena_more(c->a, c->list, c->count, sizeof *c->list);
    struct provider_message *m = &c->list[c->count++];
    *m = (struct provider_message){.role = role, .text = STR("")};
    c->to = &m->text;
    c->calls = NULL;
    c->call_count = 0;
}

static void next_call(struct conversation *c) {
    c->calls = arena_more(c->a, c->calls, c->call_count, sizeof *c->calls);
    struct provider_call *call = &c->calls[c->call_count++];
    *call = (struct provider_call){STR(""), STR("")};
    c->to = &call->name;
    c->list[c->count - 1].calls = c->calls;
    c->list[c->count - 1].call_count = c->call_count;
}

// Behind the name of a call come its arguments, behind a definition the next one.
static bool next_part(struct conversation *c) {
    struct provider_call *call = c->call_count > 0 ? &c->calls[c->call_count - 1] : NULL;
    if (c->tool_count > 0 && c->to == &c->tools[c->tool_count - 1])
        next_tool(c);
    else if (call != NULL && c->to == &call->name)
        c->to = &call->arguments;
    else
        return false;
    return true;
}

// One mark from `at` on.
static int read_mark(struct conversation *c, struct str text, size_t *at, struct err *e) {
    struct str rest = str_slice(text, *at, text.n);
    size_t line = str_find(rest, NEXT, 0);
    if (c->to != NULL && str_starts(rest, END)) {
        c->to = NULL;
        *at += END.n;
        return 0;
    }
    if (c->to != NULL && c->count > 0 && str_starts(rest, CALL)) {
        next_call(c);
        *at += CALL.n;
        return 0;
    }
    if (c->to != NULL && line == 0 && next_part(c)) {
        *at += NEXT.n;
        return 0;
    }
    if (c->to != NULL || !str_starts(rest, BEGIN) || line == STR_NONE)
        FAIL(e, ERR_PROVIDER, "the prompt is no conversation of roles and texts");
    struct str role = str_slice(rest, BEGIN.n, line);
    if (c->count == 0 && str_equal_c(role, "tools"))
        next_tool(c);
    else
        next_message(c, role);
    *at += line + 1;
    return 0;
}

int dialect_messages(const struct provider_piece *pieces, size_t count, struct arena *a,
                     struct provider_message **out, size_t *message_count, struct err *e) {
    struct conversation c = {.a = a};
    for (size_t i = 0; i < count; i++) {
        struct str text = pieces[i].text;
        for (size_t at = 0; pieces[i].control && at < text.n;) TRY(read_mark(&c, text, &at, e));
        if (pieces[i].control || text.n == 0) continue;
        if (c.to == NULL) FAIL(e, ERR_PROVIDER, "the prompt has text outside of its messages");
        add_text(&c, text);
    }
    // The last turn is the one that the reply fills.
    const struct provider_message *last = c.count > 0 ? &c.list[c.count - 1] : NULL;
    if (last == NULL || c.to != &last->text || last->text.n > 0 ||
        !str_equal_c(last->role, "assistant"))
        FAIL(e, ERR_PROVIDER, "the prompt does not end where a reply begins");
    c.list[0].tools = c.tools;
    c.list[0].tool_count = c.tool_count;
    *out = c.list;
    *message_count = c.count - 1;
    return 0;
}

// ---- JSON --------------------------------------------------------------------------------------

int dialect_put_text(json_t *o, const char *key, struct str text, struct err *e) {
    if (!utf8_valid(text))
        FAIL(e, ERR_PROVIDER, "byte %zu of a prompt's text is not UTF-8, which JSON cannot carry",
             utf8_first_bad(text));
    json_put(o, key, json_text(text));
    return 0;
}

// Calls and the results behind them are paired in order. Nine letters and digits: what Mistral's
// servers ask of an id, and what others take.
static json_t *call_id(size_t number) {
    char id[24];
    snprintf(id, sizeof id, "call%05zu", number % 100000);
    return json_text_c(id);
}

static int put_calls(json_t *message, const struct provider_message *m, size_t *number,
                     struct err *e) {
    json_t *list = json_array();
    json_put(message, "tool_calls", list);
    for (size_t i = 0; i < m->call_count; i++) {
        json_t *call = json_object(), *function = json_object();
        json_array_append_new(list, call);
        json_put(call, "id", call_id(++*number));
        json_put(call, "type", json_text_c("function"));
        json_put(call, "function", function);
        TRY(dialect_put_text(function, "name", m->calls[i].name, e));
        TRY(dialect_put_text(function, "arguments", m->calls[i].arguments, e));
    }
    return 0;
}

static int put_tools(json_t *o, const struct provider_message *first, struct err *e) {
    json_t *list = json_array();
    json_put(o, "tools", list);
    for (size_t i = 0; i < first->tool_count; i++) {
        json_t *tool;
        TRY(json_parse(first->tools[i], "the definition of a tool", &tool, e));
        json_array_append_new(list, tool);
    }
    return 0;
}

int dialect_put_messages(json_t *o, const struct provider_message *messages, size_t count,
                         struct err *e) {
    json_t *list = json_array();
    size_t calls = 0, results = 0;
    json_put(o, "messages", list);
    for (size_t i = 0; i < count; i++) {
        const struct provider_message *m = &messages[i];
        json_t *message = json_object();
        json_array_append_new(list, message);
        TRY(dialect_put_text(message, "role", m->role, e));
        if (str_equal_c(m->role, "tool") && results < calls)
            json_put(message, "tool_call_id", call_id(++results));
        if (m->call_count > 0 && m->text.n == 0)
            json_put(message, "content", json_null());
        else
            TRY(dialect_put_text(message, "content", m->text, e));
        if (m->call_count > 0) TRY(put_calls(message, m, &calls, e));
    }
    return count > 0 && messages[0].tool_count > 0 ? put_tools(o, &messages[0], e) : 0;
}

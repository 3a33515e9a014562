// A streamed reply, put together. Events are those of server-sent events (WHATWG HTML, section
// 9.2.6, "Interpreting an event stream"): lines end with LF, CRLF or CR, a comment begins with a
// colon, a blank line ends an event. What they hold is the `chat.completion.chunk` and the streamed
// `text_completion` of OpenAI's API reference.
#include "engine/endpoint/dialect.h"
#include "engine/endpoint/dialect_message.h"

#include <string.h>

// ---- events ------------------------------------------------------------------------------------

// The line that begins at *at, which moves behind its end.
static struct str next_line(struct str body, size_t *at) {
    size_t end = *at;
    while (end < body.n && body.p[end] != '\n' && body.p[end] != '\r') end++;
    struct str line = str_slice(body, *at, end);
    if (end + 1 < body.n && body.p[end] == '\r' && body.p[end + 1] == '\n') end++;
    *at = end + 1;
    return line;
}

// The value of a line's field "data"; false: it is of another one, or a comment.
static bool data_of(struct str line, struct str *value) {
    static const struct str name = {"data", 4};
    if (!str_starts(line, name) || (line.n > name.n && line.p[name.n] != ':')) return false;
    *value = str_slice(line, line.n > name.n ? name.n + 1 : name.n, line.n);
    if (str_starts(*value, STR(" "))) *value = str_slice(*value, 1, value->n);
    return true;
}

// The data of the next event that has any, without its last line break; false: there is none.
static bool next_event(struct str body, size_t *at, struct buf *data) {
    bool any = false;
    buf_clear(data);
    while (*at < body.n) {
        struct str value, line = next_line(body, at);
        if (line.n == 0 && any) return true;
        if (!data_of(line, &value)) continue;
        if (any) buf_add_char(data, '\n');
        buf_add_str(data, value);
        any = true;
    }
    return any; // the last one may lack its blank line: whether it is whole, its JSON shows
}

// ---- putting together --------------------------------------------------------------------------

struct joining {
    enum dialect_api api;
    struct dialect_parts parts; // of a chat
    struct buf text;            // of the other routes
    bool any_choice;
    json_t *whole, *choice;
};

// The last one that says something stays: names and counts of the whole reply.
static void keep(json_t *to, const json_t *from, const char *const *keys) {
    for (; *keys != NULL; keys++) {
        json_t *value = json_object_get(from, *keys);
        if (value != NULL && !json_is_null(value)) json_object_set(to, *keys, value);
    }
}

// -1: it has another shape.
static int add_choice(struct joining *j, const json_t *choice) {
    static const char *const ends[] = {"finish_reason", "stop_reason", "matched_stop", NULL};
    const json_t *text = json_object_get(choice, "text");
    j->any_choice = true;
    keep(j->choice, choice, ends);
    if (j->api == DIALECT_CHAT)
        return dialect_parts_add(&j->parts, json_object_get(choice, "delta"));
    if (json_is_string(text)) buf_add(&j->text, json_string_value(text), json_string_length(text));
    return 0;
}

static int add_event(struct joining *j, const json_t *event) {
    static const char *const facts[] = {"model", "system_fingerprint", "usage", NULL};
    const json_t *choice = json_array_get(json_object_get(event, "choices"), 0);
    keep(j->whole, event, facts);
    return choice != NULL ? add_choice(j, choice) : 0;
}

// What is no part of a reply of one choice stands for the whole: an error, garbage.
static bool is_part(const json_t *event) {
    const json_t *choices = json_object_get(event, "choices");
    const json_t *index = json_object_get(json_array_get(choices, 0), "index");
    return json_is_object(event) && dialect_error(event) == NULL && json_array_size(choices) <= 1 &&
           json_integer_value(index) == 0;
}

static struct str finish(struct joining *j, struct arena *a) {
    struct buf out = {0};
    json_t *choices = json_array();
    if (j->any_choice) json_array_append(choices, j->choice);
    if (j->api == DIALECT_CHAT)
        json_put(j->choice, "message", dialect_parts_message(&j->parts));
    else
        json_put(j->choice, "text", json_text(buf_str(&j->text)));
    json_put(j->whole, "choices", choices);
    json_compact(j->whole, &out);
    return buf_take(&out, a);
}

// Reads events up to the end; true: the reply is whole, or *instead stands for it.
static bool join(struct joining *j, struct str body, struct arena *a, struct str *instead) {
    struct buf data = {0};
    bool ended = false;
    for (size_t at = 0; !ended && instead->p == NULL && next_event(body, &at, &data);) {
        json_t *event = NULL;
        ended = str_equal_c(buf_str(&data), "[DONE]");
        if (ended) break;
        const bool parsed = json_parse(buf_str(&data), "event", &event, NULL) == 0;
        const bool added = parsed && is_part(event) && add_event(j, event) == 0;
        if (!added && (parsed || at < body.n)) // what is cut within its last event is cut
            *instead = str_copy(a, buf_str(&data));
        json_decref(event);
    }
    buf_free(&data);
    return ended || instead->p != NULL || json_object_get(j->choice, "finish_reason") != NULL;
}

bool dialect_stream_join(enum dialect_api api, struct str body, struct arena *a, struct str *out) {
    if (str_starts(body, STR("\xEF\xBB\xBF"))) body = str_slice(body, 3, body.n);
    const struct str text = str_trim(body);
    *out = body;
    // Who does not stream answers as ever: one document, or a page of a gateway.
    if (text.n > 0 && (text.p[0] == '{' || text.p[0] == '[' || text.p[0] == '<')) return true;
    struct joining j = {.api = api, .whole = json_object(), .choice = json_object()};
    struct str instead = {0};
    const bool whole = join(&j, body, a, &instead);
    if (whole) *out = instead.p != NULL ? instead : finish(&j, a);
    dialect_parts_free(&j.parts);
    buf_free(&j.text);
    json_decref(j.choice);
    json_decref(j.whole);
    return whole;
}

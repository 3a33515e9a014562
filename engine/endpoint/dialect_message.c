// The parts of a message: what was said, what was thought, what was refused, which tools are
// called. A whole message has them once, a streamed one in pieces.
#include "engine/endpoint/dialect_message.h"

#include <string.h>

static void add_string(struct buf *to, const json_t *string) {
    buf_add(to, json_string_value(string), json_string_length(string));
}

static bool is_type(const json_t *part, const char *type) {
    const char *word = json_string_value(json_object_get(part, "type"));
    return word != NULL && strcmp(word, type) == 0;
}

static int add_thinking(struct dialect_parts *p, const json_t *thinking) {
    size_t i;
    json_t *part;
    p->has_reasoning = true;
    if (json_is_string(thinking)) add_string(&p->reasoning, thinking);
    json_array_foreach((json_t *)(uintptr_t)thinking, i, part) {
        const json_t *text = json_object_get(part, "text");
        if (!json_is_string(text)) return -1;
        add_string(&p->reasoning, text);
    }
    return 0;
}

// A text, or a list of parts as OpenAI's reference and Mistral's (with parts of thinking) have it.
static int add_content(struct dialect_parts *p, const json_t *content) {
    size_t i;
    json_t *part;
    if (content == NULL || json_is_null(content)) return 0;
    if (json_is_string(content)) add_string(&p->text, content);
    if (!json_is_string(content) && !json_is_array(content)) return -1;
    json_array_foreach((json_t *)(uintptr_t)content, i, part) {
        const json_t *text = json_object_get(part, "text"),
                     *refusal = json_object_get(part, "refusal");
        if (is_type(part, "thinking") && add_thinking(p, json_object_get(part, "thinking")) == 0)
            continue;
        if (is_type(part, "text") && json_is_string(text))
            add_string(&p->text, text);
        else if (is_type(part, "refusal") && json_is_string(refusal))
            add_string(&p->refusal, refusal);
        else
            return -1;
    }
    return 0;
}

// vLLM has called it either name, gateways give it under both.
static void add_reasoning(struct dialect_parts *p, const json_t *message) {
    static const char *const names[] = {"reasoning_content", "reasoning"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *reasoning = json_object_get(message, names[i]);
        if (!json_is_string(reasoning)) continue;
        add_string(&p->reasoning, reasoning);
        p->has_reasoning = true;
        return;
    }
}

// ---- calls -------------------------------------------------------------------------------------

static void lengthen(json_t *call, const char *key, const json_t *piece) {
    const json_t *before = json_object_get(call, key);
    struct buf text = {0};
    if (before != NULL) add_string(&text, before);
    add_string(&text, piece);
    json_put(call, key, json_text(buf_str(&text)));
    buf_free(&text);
}

// A piece of the call with this number; its arguments are the text of a JSON object, or the object.
static int add_call(struct dialect_parts *p, size_t number, const json_t *function) {
    const json_t *name = json_object_get(function, "name"),
                 *arguments = json_object_get(function, "arguments");
    if (p->calls == NULL) p->calls = json_array();
    if (number > json_array_size(p->calls) || number >= DIALECT_CALLS_MOST) return -1;
    if (number == json_array_size(p->calls)) json_array_append_new(p->calls, json_object());
    json_t *call = json_array_get(p->calls, number);
    if (json_is_string(name)) lengthen(call, "name", name);
    if (json_is_string(arguments)) lengthen(call, "arguments", arguments);
    if (json_is_object(arguments))
        json_object_set(call, "arguments", (json_t *)(uintptr_t)arguments);
    return 0;
}

static int add_calls(struct dialect_parts *p, const json_t *message) {
    const json_t *calls = json_object_get(message, "tool_calls"),
                 *old = json_object_get(message, "function_call");
    size_t i;
    json_t *call;
    if (json_is_object(old) && add_call(p, 0, old) != 0) return -1;
    json_array_foreach((json_t *)(uintptr_t)calls, i, call) {
        const json_t *index = json_object_get(call, "index");
        const size_t number = json_is_integer(index) ? (size_t)json_integer_value(index) : i;
        if (add_call(p, number, json_object_get(call, "function")) != 0) return -1;
    }
    return 0;
}

// As Qwen2.5 and others write a call, which is what the check `tool_call` reads.
static void say_calls(const struct dialect_parts *p, struct buf *out) {
    size_t i;
    json_t *call;
    json_array_foreach(p->calls, i, call) {
        const json_t *text = json_object_get(call, "arguments");
        json_t *arguments = NULL;
        struct str spelled = {json_string_value(text), json_string_length(text)};
        if (json_is_string(text) && json_parse(spelled, "arguments", &arguments, NULL) == 0)
            json_put(call, "arguments", arguments);
        if (out->n > 0) buf_add_char(out, '\n');
        buf_add_c(out, "<tool_call>\n");
        json_python(call, 0, out);
        buf_add_c(out, "\n</tool_call>");
    }
}

// ---- the whole ---------------------------------------------------------------------------------

int dialect_parts_add(struct dialect_parts *p, const json_t *message) {
    const json_t *refusal = json_object_get(message, "refusal");
    add_reasoning(p, message);
    if (add_content(p, json_object_get(message, "content")) != 0) return -1;
    if (json_is_string(refusal)) add_string(&p->refusal, refusal);
    return add_calls(p, message);
}

struct str dialect_parts_text(const struct dialect_parts *p, struct arena *a) {
    struct buf text = {0};
    buf_add_str(&text, buf_str(p->text.n > 0 ? &p->text : &p->refusal));
    say_calls(p, &text);
    return buf_take(&text, a);
}

json_t *dialect_parts_message(const struct dialect_parts *p) {
    json_t *message = json_object();
    json_put(message, "content", json_text(buf_str(&p->text)));
    if (p->has_reasoning) json_put(message, "reasoning_content", json_text(buf_str(&p->reasoning)));
    if (p->refusal.n > 0) json_put(message, "refusal", json_text(buf_str(&p->refusal)));
    if (p->calls == NULL) return message;
    json_t *calls = json_array(), *call;
    size_t i;
    json_array_foreach(p->calls, i, call)
        json_array_append_new(calls, json_pack("{s:O}", "function", call));
    json_put(message, "tool_calls", calls);
    return message;
}

void dialect_parts_free(struct dialect_parts *p) {
    buf_free(&p->text);
    buf_free(&p->reasoning);
    buf_free(&p->refusal);
    json_decref(p->calls);
}

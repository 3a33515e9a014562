// What a reply means.
#include "engine/endpoint/dialect.h"
#include "engine/endpoint/dialect_message.h"

#include <string.h>

#define EXCERPT_BYTES 160
#define NAME_BYTES_MOST 200

// The beginning of what a server sent, on one line, for a message.
static const char *excerpt(struct str text, struct arena *a) {
    struct buf b = {0};
    struct str head = str_slice(text, 0, text.n < EXCERPT_BYTES ? text.n : EXCERPT_BYTES);
    for (size_t at = 0, n; at < head.n; at += n) {
        uint32_t c;
        n = utf8_decode(head, at, &c);
        if (c == 0xFFFD)
            buf_add_char(&b, '?');
        else if (c < ' ' || c == 0x7F)
            buf_add_char(&b, ' ');
        else
            buf_add(&b, head.p + at, n);
    }
    if (head.n < text.n) buf_add_c(&b, "...");
    return text.n == 0 ? "nothing" : buf_take(&b, a).p;
}

// A name stands in every line of a record, so it is cut where no name is that long.
static const char *name_of(struct arena *a, const json_t *string) {
    if (!json_is_string(string) || json_string_length(string) == 0) return NULL;
    return str_to_c(a, str_head(str_from(json_string_value(string)), NAME_BYTES_MOST));
}

const json_t *dialect_error(const json_t *o) {
    const json_t *error = json_object_get(o, "error");
    if (error != NULL && !json_is_null(error) && !json_is_false(error)) return error;
    const char *object = json_string_value(json_object_get(o, "object"));
    return object != NULL && strcmp(object, "error") == 0 ? o : NULL;
}

static const char *error_text(const json_t *error, struct str body, struct arena *a) {
    static const char *const keys[] = {"message", "detail", "error"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *text = json_object_get(error, keys[i]);
        if (json_is_string(text))
            return excerpt((struct str){json_string_value(text), json_string_length(text)}, a);
    }
    if (json_is_string(error))
        return excerpt((struct str){json_string_value(error), json_string_length(error)}, a);
    return excerpt(body, a);
}

const char *dialect_refusal(struct str body, struct arena *a) {
    json_t *o;
    if (json_parse(body, "reply", &o, NULL) != 0) return excerpt(body, a);
    const json_t *error = dialect_error(o);
    const char *text = error_text(error != NULL ? error : o, body, a);
    json_decref(o);
    return text;
}

// ---- the parts of a reply ----------------------------------------------------------------------

struct reading {
    struct dialect_reply *out;
    struct arena *a;
    struct str body;
};

static int stop_reading(struct reading *r, const char *code, const char *why) {
    r->out->code = code;
    r->out->why = why;
    return -1;
}

static int mismatch(struct reading *r, const char *what) {
    return stop_reading(r, "endpoint_schema",
                        arena_printf(r->a, "%s, in: %s", what, excerpt(r->body, r->a)));
}

// Absent and null stay unknown; anything but a count is a mismatch.
static int read_count(struct reading *r, const json_t *o, const char *key, int64_t *out) {
    const json_t *value = json_object_get(o, key);
    *out = DIALECT_UNKNOWN;
    if (value == NULL || json_is_null(value)) return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > INT32_MAX)
        return mismatch(r, arena_printf(r->a, "usage.%s is not a count", key));
    *out = json_integer_value(value);
    return 0;
}

static int read_usage(struct reading *r, const json_t *o) {
    const json_t *usage = json_object_get(o, "usage");
    if (usage != NULL && !json_is_null(usage) && !json_is_object(usage))
        return mismatch(r, "usage is no object");
    TRY(read_count(r, usage, "prompt_tokens", &r->out->prompt_tokens));
    TRY(read_count(r, usage, "completion_tokens", &r->out->tokens));
    return read_count(r, json_object_get(usage, "completion_tokens_details"), "reasoning_tokens",
                      &r->out->reasoning_tokens);
}

static struct str text_of(struct reading *r, const json_t *string) {
    return str_copy(r->a, (struct str){json_string_value(string), json_string_length(string)});
}

static int read_chat(struct reading *r, const json_t *choice) {
    const json_t *message = json_object_get(choice, "message");
    struct dialect_parts parts = {0};
    if (!json_is_object(message))
        return stop_reading(r, "empty_choice", "the choice has no message");
    const bool known = dialect_parts_add(&parts, message) == 0;
    if (known) {
        r->out->text = dialect_parts_text(&parts, r->a);
        r->out->has_reasoning = parts.has_reasoning;
        r->out->reasoning = str_copy(r->a, buf_str(&parts.reasoning));
    }
    dialect_parts_free(&parts);
    return known ? 0 : mismatch(r, "message.content or message.tool_calls is of another shape");
}

static int read_text(struct reading *r, const json_t *choice) {
    const json_t *text = json_object_get(choice, "text");
    if (text == NULL) return stop_reading(r, "empty_choice", "the choice has no text");
    if (!json_is_string(text)) return mismatch(r, "text is no text");
    r->out->text = text_of(r, text);
    return 0;
}

// vLLM and SGLang name the stop string that ended a reply; others say "stop" for it too.
static bool stop_string_named(const json_t *choice) {
    return json_is_string(json_object_get(choice, "stop_reason")) ||
           json_is_string(json_object_get(choice, "matched_stop"));
}

static int read_finish(struct reading *r, const json_t *choice) {
    static const struct {
        const char *word;
        enum provider_finish finish;
    } known[] = {
        {"stop", FINISH_STOP},
        {"eos", FINISH_STOP},
        {"stop_sequence", FINISH_STOP_STRING},
        {"eos_token", FINISH_STOP},
        {"end_turn", FINISH_STOP},
        {"tool_calls", FINISH_STOP},
        {"function_call", FINISH_STOP},
        {"length", FINISH_LENGTH},
        {"max_tokens", FINISH_LENGTH},
        {"model_length", FINISH_LENGTH},
        {"content_filter", FINISH_FILTER},
    };
    const char *word = json_string_value(json_object_get(choice, "finish_reason"));
    if (word == NULL) return mismatch(r, "finish_reason is missing");
    if (strcmp(word, "error") == 0 || strcmp(word, "abort") == 0)
        return stop_reading(r, "server_error",
                            arena_printf(r->a, "the server ended the reply with \"%s\"", word));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(word, known[i].word) != 0) continue;
        r->out->finish = known[i].finish;
        if (r->out->finish == FINISH_STOP && stop_string_named(choice))
            r->out->finish = FINISH_STOP_STRING;
        return 0;
    }
    return mismatch(r, arena_printf(r->a, "finish_reason \"%.40s\" is not known", word));
}

// Gateways answer 200 and put the status that they met into the error.
static int error_status(const json_t *error) {
    const json_t *code = json_object_get(error, "code");
    const json_int_t status = json_is_integer(code) ? json_integer_value(code) : 0;
    return status >= 400 && status <= 599 ? (int)status : 0;
}

static int read_error(struct reading *r, const json_t *error) {
    r->out->status = error_status(error);
    return stop_reading(r, "server_error", error_text(error, r->body, r->a));
}

static int read_choice(struct reading *r, enum dialect_api api, const json_t *o) {
    const json_t *choices = json_object_get(o, "choices");
    if (choices == NULL || json_is_null(choices) ||
        (json_is_array(choices) && json_array_size(choices) == 0))
        return stop_reading(
            r, "no_choice",
            arena_printf(r->a, "the reply has no choice: %s", excerpt(r->body, r->a)));
    if (!json_is_array(choices)) return mismatch(r, "choices is no list");
    if (json_array_size(choices) > 1)
        return mismatch(
            r, arena_printf(r->a, "%zu choices where one was asked for", json_array_size(choices)));
    const json_t *choice = json_array_get(choices, 0);
    if (!json_is_object(choice)) return mismatch(r, "the choice is no object");
    if (json_is_object(json_object_get(choice, "error")))
        return read_error(r, json_object_get(choice, "error"));
    TRY((api == DIALECT_CHAT ? read_chat : read_text)(r, choice));
    return read_finish(r, choice);
}

void dialect_reply_read(enum dialect_api api, struct str body, struct arena *a,
                        struct dialect_reply *out) {
    struct reading r = {out, a, body};
    json_t *o;
    *out = (struct dialect_reply){.prompt_tokens = DIALECT_UNKNOWN,
                                  .tokens = DIALECT_UNKNOWN,
                                  .reasoning_tokens = DIALECT_UNKNOWN};
    if (json_parse(body, "reply", &o, NULL) != 0) {
        mismatch(&r, "the reply is no JSON");
        return;
    }
    const json_t *error = dialect_error(o);
    out->model = name_of(a, json_object_get(o, "model"));
    out->fingerprint = name_of(a, json_object_get(o, "system_fingerprint"));
    if (!json_is_object(o))
        mismatch(&r, "the reply is no object");
    else if (error != NULL)
        read_error(&r, error);
    else if (read_choice(&r, api, o) == 0)
        read_usage(&r, o);
    json_decref(o);
}

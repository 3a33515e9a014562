#include "tests/support/served_model.h"

#include "engine/base/json.h"
#include "tests/support/support.h"

#include <string.h>

#define STATED "The order number is "

static size_t content_bytes(const json_t *request) {
    size_t i, n = 0;
    json_t *message;
    json_array_foreach(json_object_get(request, "messages"), i, message) n +=
        16 + json_string_length(json_object_get(message, "content"));
    return n;
}

static size_t words_in(const json_t *string) {
    size_t n = 0;
    bool inside = false;
    for (const char *p = json_string_value(string); p != NULL && *p != '\0'; p++) {
        n += *p > ' ' && !inside;
        inside = *p > ' ';
    }
    return n;
}

static size_t chat_words(const json_t *request) {
    size_t i, n = 3;
    json_t *message;
    json_array_foreach(json_object_get(request, "messages"), i, message) n +=
        3 + words_in(json_object_get(message, "content"));
    return n;
}

static size_t prompt_tokens(const struct served_model *m, const json_t *request) {
    return m->counts == SERVED_COUNTS_NOTHING ? content_bytes(request) / 4 : chat_words(request);
}

// As vLLM's route does with messages and texts, and SGLang's with texts alone.
static void count(const struct served_model *m, const json_t *request,
                  struct http_server_answer *a) {
    const json_t *text = json_object_get(request, "prompt");
    if (m->counts == SERVED_COUNTS_NOTHING) {
        a->status = 404;
    } else if (text == NULL && m->counts == SERVED_COUNTS_TEXTS) {
        a->status = 400;
        buf_add_c(&a->body, "{\"object\":\"error\",\"message\":\"prompt: Field required\"}");
    } else {
        buf_printf(&a->body, "{\"count\":%zu,\"max_model_len\":4096}",
                   text != NULL ? words_in(text) : chat_words(request));
    }
}

static void add_reply(const struct served_model *m, const json_t *request, struct str body,
                      struct buf *out) {
    size_t at = str_find(body, STR(STATED), 0);
    struct str number = at == STR_NONE
                            ? STR("not given")
                            : str_slice(body, at + strlen(STATED), at + strlen(STATED) + 5);
    buf_printf(out,
               "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"model\":\"%s\","
               "\"system_fingerprint\":\"%s\",\"choices\":[{\"index\":0,\"message\":{\"role\":"
               "\"assistant\",\"content\":\"It is " STR_FMT ".%s\"},\"finish_reason\":\"stop\"}],"
               "\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":5}}",
               m->reported, m->fingerprint, STR_ARG(number), m->tail != NULL ? m->tail : "",
               prompt_tokens(m, request));
}

static void add_event(json_t *event, struct buf *out) {
    buf_add_c(out, "data: ");
    json_compact(event, out);
    buf_add_c(out, "\n\n");
    json_decref(event);
}

// The same reply in pieces of three characters, its usage and "[DONE]" behind them.
static void make_stream(struct buf *body) {
    struct err e = {0};
    json_t *whole;
    ASSERT_OK(json_parse(buf_str(body), "reply", &whole, &e), e);
    json_t *choice = json_array_get(json_object_get(whole, "choices"), 0);
    const char *text =
        json_string_value(json_object_get(json_object_get(choice, "message"), "content"));
    buf_clear(body);
    for (size_t at = 0, n = strlen(text); at < n; at += 3)
        add_event(json_pack("{s:O, s:O, s:[{s:i, s:{s:s%}, s:n}]}", "model",
                            json_object_get(whole, "model"), "system_fingerprint",
                            json_object_get(whole, "system_fingerprint"), "choices", "index", 0,
                            "delta", "content", text + at, at + 3 < n ? (size_t)3 : n - at,
                            "finish_reason"),
                  body);
    add_event(json_pack("{s:[{s:{}, s:O}]}", "choices", "delta", "finish_reason",
                        json_object_get(choice, "finish_reason")),
              body);
    add_event(json_pack("{s:[], s:O}", "choices", "usage", json_object_get(whole, "usage")), body);
    buf_add_c(body, "data: [DONE]\n\n");
    json_decref(whole);
}

static void script(void *context, const struct http_server_request *r,
                   struct http_server_answer *a) {
    struct served_model *m = context;
    struct err e = {0};
    json_t *request;
    if (m->wanted_key != NULL && str_find(r->head, str_from(m->wanted_key), 0) == STR_NONE) {
        a->status = 401;
        buf_add_c(&a->body, "{\"error\":{\"message\":\"no such key\"}}");
        return;
    }
    const bool counts = str_equal_c(r->path, "/tokenize");
    if (!counts && !str_equal_c(r->path, "/v1/chat/completions")) {
        a->status = 404;
        return;
    }
    ASSERT_OK(json_parse(r->body, "request", &request, &e), e);
    if (counts) {
        count(m, request, a);
        json_decref(request);
        return;
    }
    if (m->keeps_bodies) {
        buf_add_str(&m->bodies, r->body);
        buf_add_char(&m->bodies, '\n');
    }
    add_reply(m, request, r->body, &a->body);
    if (json_is_true(json_object_get(request, "stream"))) make_stream(&a->body);
    json_decref(request);
    if (m->program != NULL) buf_printf(&a->headers, "Server: %s\r\n", m->program);
    if (m->shuffled) a->delay_ms = (r->number * 7919) % 60;
    if (m->fault != NULL) m->fault(m->context, r->number, a);
}

void served_model_open(struct served_model *m) {
    if (m->reported == NULL) m->reported = "small-2026";
    if (m->fingerprint == NULL) m->fingerprint = "fp_1";
    m->server = http_server_open(script, m);
}

void served_model_close(struct served_model *m) {
    http_server_close(m->server);
    buf_free(&m->bodies);
}

const char *served_experiment(struct arena *a, const char *folder, const char *name,
                              const struct served_model *m, int repeats, const char *settings) {
    char *path = arena_printf(a, "%s/%s.yaml", folder, name);
    char *text = arena_printf(
        a,
        "lacuna: 1\n"
        "name: served\n"
        "models:\n"
        "  - {id: prod, endpoint: \"http://127.0.0.1:%d/v1\", name: small, context_tokens: 4096"
        "%s%s}\n"
        "generation: {max_tokens: 32}\n"
        "prompt:\n"
        "  messages:\n"
        "    - {role: system, text: \"Be careful.\"}\n"
        "    - {role: user, text: \"{{filler}}\\n\\nState the number.\"}\n"
        "  filler: {kind: prose}\n"
        "constraints:\n"
        "  - id: order\n"
        "    kind: state\n"
        "    text: \"" STATED "{{code}}.\"\n"
        "    vars: {code: {kind: digits, count: 5}}\n"
        "    value: \"{{code}}\"\n"
        "    examples: {met: [\"{{code}}\"], not: [\"\"]}\n"
        "placements: [{id: order-moves, move: [order], depths: [start, middle, end]}]\n"
        "lengths: {tokens: [300, 500]}\n"
        "repeats: %d\n"
        "arms: [placed, absent, short]\n",
        http_server_port(m->server), settings[0] != '\0' ? ", " : "", settings, repeats);
    test_write(path, str_from(text));
    return path;
}

// What a request says.
#include "engine/endpoint/dialect.h"

#include <string.h>

static const struct {
    const char *word, *route;
} apis[] = {
    [DIALECT_CHAT] = {"chat", "/chat/completions"},
    [DIALECT_TEXT] = {"text", "/completions"},
    [DIALECT_IDS] = {"ids", "/completions"},
};

bool dialect_api_named(const char *word, enum dialect_api *out) {
    for (size_t i = 0; i < sizeof apis / sizeof *apis; i++) {
        if (strcmp(word, apis[i].word) != 0) continue;
        *out = (enum dialect_api)i;
        return true;
    }
    return false;
}

const char *dialect_route(enum dialect_api api) {
    return apis[api].route;
}

// ---- the request -------------------------------------------------------------------------------

static int put_joined(json_t *o, const struct dialect_settings *s, const struct provider_request *r,
                      struct err *e) {
    struct buf text = {0};
    for (size_t i = 0; i < r->piece_count; i++) buf_add_str(&text, r->pieces[i].text);
    struct str prompt = buf_str(&text);
    if (str_starts(prompt, s->start)) prompt = str_slice(prompt, s->start.n, prompt.n);
    int result = dialect_put_text(o, "prompt", prompt, e);
    buf_free(&text);
    return result;
}

static int put_conversation(json_t *o, const struct provider_request *r, struct err *e) {
    struct arena *a = arena_create("request");
    struct provider_message *messages;
    size_t count;
    int result = dialect_messages(r->pieces, r->piece_count, a, &messages, &count, e);
    if (result == 0) result = dialect_put_messages(o, messages, count, e);
    arena_destroy(a);
    return result;
}

static int put_prompt(json_t *o, const struct dialect_settings *s, const struct provider_request *r,
                      struct err *e) {
    if (s->api == DIALECT_TEXT) return put_joined(o, s, r, e);
    if (s->api == DIALECT_CHAT) return put_conversation(o, r, e);
    json_t *list = json_array();
    json_put(o, "prompt", list);
    for (size_t i = 0; i < r->ids.count; i++)
        json_array_append_new(list, json_integer(r->ids.ids[i]));
    return 0;
}

static void put_generation(json_t *o, const struct dialect_settings *s,
                           const struct provider_generation *g, uint32_t seed) {
    json_put(o, s->max_tokens, json_integer(g->max_tokens));
    json_put(o, "temperature", json_real(g->temperature));
    if (g->top_p < 1) json_put(o, "top_p", json_real(g->top_p));
    if (g->temperature > 0) json_put(o, "seed", json_integer((json_int_t)(seed >> 1)));
    if (s->stream) {
        json_put(o, "stream", json_true());
        json_put(o, "stream_options", json_pack("{s:b}", "include_usage", 1));
    }
    if (g->stop_count == 0) return;
    json_t *stop = json_array();
    for (int i = 0; i < g->stop_count; i++) json_array_append_new(stop, json_text(g->stop[i]));
    json_put(o, "stop", stop);
}

static void put_extra(json_t *o, const json_t *extra) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)extra, key, value) {
        if (json_is_null(value))
            json_object_del(o, key);
        else
            json_put(o, key, json_incref(value));
    }
}

int dialect_request(const struct dialect_settings *s, const struct provider_request *r,
                    uint32_t seed, struct buf *out, struct err *e) {
    json_t *o = json_object();
    json_put(o, "model", json_text_c(s->name));
    int result = put_prompt(o, s, r, e);
    if (result == 0) {
        put_generation(o, s, r->generation, seed);
        put_extra(o, s->extra);
        json_python(o, 0, out); // decimals in their shortest spelling
    }
    json_decref(o);
    return result;
}

int dialect_check_extra(const json_t *extra, struct err *e) {
    static const struct {
        const char *key, *instead;
        bool may_go; // null takes it out of the request
    } own[] = {
        {"model", "models[].name", false},
        {"messages", "prompt.messages", false},
        {"prompt", "prompt.messages", false},
        {"max_tokens", "generation.max_tokens (under another key: models[].max_tokens_key)", false},
        {"max_completion_tokens", "generation.max_tokens with models[].max_tokens_key", false},
        {"temperature", "generation.temperature", true},
        {"top_p", "generation.top_p", true},
        {"stop", "generation.stop", true},
        {"seed", "the experiment's seed", true},
        {"n", "generation.samples", false},
        {"stream", "models[].stream", false},
        {"stream_options", "models[].stream", true},
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        const json_t *value = json_object_get(extra, own[i].key);
        if (value == NULL || (json_is_null(value) && own[i].may_go)) continue;
        FAIL(e, ERR_CONFIG, "\"%s\" is decided by %s%s", own[i].key, own[i].instead,
             own[i].may_go ? "; null leaves it out of the request" : "");
    }
    return 0;
}

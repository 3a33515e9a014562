#include "engine/endpoint/tokens.h"

#include "engine/base/clock.h"
#include "engine/base/json.h"
#include "engine/endpoint/dialect.h"

#include <stdlib.h>
#include <string.h>

struct tokens {
    struct arena *arena, *scratch; // scratch: of one count
    struct http_client *http;
    struct retry_policy retry;
    struct rng pauses;
    const char *name, *tokenize, *apply_template; // addresses; apply_template NULL: there is none
    const json_t *extra;
    bool takes_messages; // tokenize does
    uint32_t before;     // tokens that tokenize puts before each text
};

// ---- one question ------------------------------------------------------------------------------

// The whole reply, whatever its status, valid until the next question; NULL with an error.
static const struct http_reply *ask(struct tokens *t, const char *url, const json_t *question,
                                    struct err *e) {
    struct buf body = {0};
    json_compact(question, &body);
    const struct http_reply *r = NULL;
    for (int attempt = 1;; attempt++) {
        uint64_t pause_ms;
        if (http_start(t->http, url, buf_str(&body), t, e) != 0) break;
        while ((r = http_next(t->http, 1000)) == NULL) continue;
        const struct retry_attempt a = {.number = attempt,
                                        .status = r->status,
                                        .lost = http_may_pass(r->failure),
                                        .retry_after = r->retry_after};
        if (retry_choose(&t->retry, &a, clock_unix(), &t->pauses, &pause_ms) != RETRY_AGAIN) break;
        http_next(t->http, (uint32_t)pause_ms);
    }
    buf_free(&body);
    if (r != NULL && r->failure != HTTP_WHOLE) {
        ERR_SET(e, ERR_PROVIDER, "%s: %s", url, r->text);
        r = NULL;
    }
    return r;
}

// The JSON of a reply with status 200; the caller's.
static int ask_json(struct tokens *t, const char *url, const json_t *question, json_t **out,
                    struct err *e) {
    const struct http_reply *r = ask(t, url, question, e);
    if (r == NULL) return -1;
    if (r->status != 200)
        FAIL(e, ERR_PROVIDER, "%s answers %d: %s", url, r->status,
             dialect_refusal(r->body, t->scratch));
    return json_parse(r->body, url, out, e);
}

// {"count": N} of vLLM and SGLang, or as many as "tokens" lists.
static int read_count(const char *url, const json_t *o, uint32_t *count, struct err *e) {
    const json_t *number = json_object_get(o, "count"), *list = json_object_get(o, "tokens");
    json_int_t n = json_is_integer(number) ? json_integer_value(number)
                   : json_is_array(list)   ? (json_int_t)json_array_size(list)
                                           : -1;
    if (n < 0 || n > INT32_MAX)
        FAIL(e, ERR_PROVIDER, "%s: the reply has neither a count nor a list of tokens", url);
    *count = (uint32_t)n;
    return 0;
}

static int count_by(struct tokens *t, json_t *question, uint32_t *count, struct err *e) {
    json_t *o = NULL;
    int result = ask_json(t, t->tokenize, question, &o, e);
    json_decref(question);
    if (result == 0) result = read_count(t->tokenize, o, count, e);
    json_decref(o);
    return result;
}

// ---- texts and conversations -------------------------------------------------------------------

static int check_text(struct str text, struct err *e) {
    if (utf8_valid(text)) return 0;
    FAIL(e, ERR_CONFIG, "a text is not UTF-8 (byte %zu), which a server cannot be sent",
         utf8_first_bad(text));
}

// Each server takes its own keys and leaves the other's alone. `whole`: a rendered prompt, in which
// the template's control tokens are meant.
static json_t *question_of(const struct tokens *t, struct str text, bool whole) {
    static const char *const keys[] = {"content", "prompt", "input"};
    json_t *o = json_object();
    json_put(o, "model", json_text_c(t->name));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) json_put(o, keys[i], json_text(text));
    json_put(o, "add_special", json_boolean(whole));
    json_put(o, "parse_special", json_boolean(whole));
    json_put(o, "add_special_tokens", json_boolean(whole));
    return o;
}

int tokens_of_text(struct tokens *t, struct str text, uint32_t *count, struct err *e) {
    *count = 0;
    arena_reset(t->scratch);
    if (text.n == 0) return 0;
    TRY(check_text(text, e));
    TRY(count_by(t, question_of(t, text, false), count, e));
    if (*count < t->before)
        FAIL(e, ERR_PROVIDER, "%s counts %u tokens of a text and %u of none", t->tokenize, *count,
             t->before);
    *count -= t->before;
    return 0;
}

// The question about a conversation; the caller's.
static int conversation(const struct tokens *t, const struct provider_message *messages,
                        size_t count, json_t **out, struct err *e) {
    static const char *const of_template[] = {"chat_template", "chat_template_kwargs", "tools"};
    json_t *o = *out = json_object();
    json_put(o, "model", json_text_c(t->name));
    json_put(o, "add_generation_prompt", json_true());
    TRY(dialect_put_messages(o, messages, count, e));
    for (size_t i = 0; i < sizeof of_template / sizeof *of_template; i++) {
        json_t *value = json_object_get(t->extra, of_template[i]);
        if (value != NULL && !json_is_null(value)) json_object_set(o, of_template[i], value);
    }
    return 0;
}

static int render(struct tokens *t, const json_t *question, struct str *prompt, struct err *e) {
    json_t *o = NULL;
    TRY(ask_json(t, t->apply_template, question, &o, e));
    const json_t *text = json_object_get(o, "prompt");
    int result = 0;
    if (json_is_string(text))
        *prompt =
            str_copy(t->scratch, (struct str){json_string_value(text), json_string_length(text)});
    else
        result = ERR_SET(e, ERR_PROVIDER, "%s: the reply has no prompt", t->apply_template);
    json_decref(o);
    return result;
}

bool tokens_know_template(const struct tokens *t) {
    return t->takes_messages || t->apply_template != NULL;
}

static int count_texts(struct tokens *t, const struct provider_message *messages,
                       size_t message_count, uint32_t *count, struct err *e) {
    struct buf text = {0};
    for (size_t i = 0; i < messages[0].tool_count; i++) buf_add_str(&text, messages[0].tools[i]);
    uint32_t sum = t->before; // once, as in a prompt
    int result = tokens_of_text(t, buf_str(&text), count, e);
    for (size_t i = 0; i < message_count && result == 0; i++) {
        sum += *count;
        buf_clear(&text);
        buf_add_str(&text, messages[i].text);
        for (size_t k = 0; k < messages[i].call_count; k++) {
            buf_add_str(&text, messages[i].calls[k].name);
            buf_add_str(&text, messages[i].calls[k].arguments);
        }
        result = tokens_of_text(t, buf_str(&text), count, e);
    }
    *count += sum;
    buf_free(&text);
    return result;
}

int tokens_of_chat(struct tokens *t, const struct provider_message *messages, size_t message_count,
                   uint32_t *count, struct err *e) {
    struct str prompt;
    *count = 0;
    if (!tokens_know_template(t)) return count_texts(t, messages, message_count, count, e);
    arena_reset(t->scratch);
    json_t *question;
    int result = conversation(t, messages, message_count, &question, e);
    if (result == 0 && t->apply_template == NULL) return count_by(t, question, count, e);
    if (result == 0) result = render(t, question, &prompt, e);
    json_decref(question);
    return result == 0 ? count_by(t, question_of(t, prompt, true), count, e) : -1;
}

// ---- opening -----------------------------------------------------------------------------------

// Whether a server answers this with status 200 and a JSON object, which is the caller's then. An
// error when it cannot be asked at all or is broken.
static int probe(struct tokens *t, const char *url, json_t *question, json_t **out, struct err *e) {
    const struct http_reply *r = ask(t, url, question, e);
    json_decref(question);
    *out = NULL;
    if (r == NULL) return -1;
    if (r->status == 200 && json_parse(r->body, url, out, NULL) == 0) return 0;
    if (r->status >= 500 || r->status == 401 || r->status == 403)
        FAIL(e, ERR_PROVIDER, "%s answers %d: %s", url, r->status,
             dialect_refusal(r->body, t->scratch));
    return 0;
}

// What a server makes of a short conversation; NULL: it does not take one. The caller's.
static int probe_chat(struct tokens *t, const char *url, json_t **out, struct err *e) {
    const struct provider_message message = {.role = STR("user"), .text = STR("a")};
    json_t *question;
    *out = NULL;
    if (conversation(t, &message, 1, &question, e) == 0) return probe(t, url, question, out, e);
    json_decref(question);
    return -1;
}

static int find_template(struct tokens *t, const char *root, struct err *e) {
    const char *url = arena_printf(t->arena, "%s/apply-template", root);
    json_t *o;
    uint32_t count;
    TRY(probe_chat(t, url, &o, e));
    if (json_is_string(json_object_get(o, "prompt"))) t->apply_template = url;
    json_decref(o);
    if (t->apply_template != NULL) return 0;
    TRY(probe_chat(t, t->tokenize, &o, e));
    t->takes_messages = o != NULL && read_count(t->tokenize, o, &count, NULL) == 0;
    json_decref(o);
    return 0;
}

static int find_tokenizer(struct tokens *t, const char *root, struct err *e) {
    json_t *o;
    t->tokenize = arena_printf(t->arena, "%s/tokenize", root);
    TRY(probe(t, t->tokenize, question_of(t, STR("a"), false), &o, e));
    const bool there = o != NULL;
    json_decref(o);
    if (there) return find_template(t, root, e);
    t->tokenize = arena_printf(t->arena, "%s/extras/tokenize/count", root);
    TRY(probe(t, t->tokenize, question_of(t, STR(""), false), &o, e));
    if (o == NULL)
        FAIL(e, ERR_PROVIDER,
             "the server has neither /tokenize nor /extras/tokenize/count; count by a FILE or by "
             "usage instead");
    const int result = read_count(t->tokenize, o, &t->before, e);
    json_decref(o);
    return result;
}

static int find_routes(struct tokens *t, const char *url, struct err *e) {
    uint32_t count;
    struct str root = str_from(url);
    while (root.n > 0 && root.p[root.n - 1] == '/') root.n--;
    if (str_ends(root, STR("/v1"))) root.n -= 3;
    TRY(find_tokenizer(t, str_to_c(t->arena, root), e));
    return tokens_of_text(t, STR("a"), &count, e);
}

int tokens_open(const char *url, const char *name, const json_t *extra, const char *key,
                const char *ca_file, const struct http_limits *limits,
                const struct retry_policy *retry, struct tokens **out, struct err *e) {
    struct tokens *t = calloc(1, sizeof *t);
    if (t == NULL) mem_exhausted("the server's tokenizer", sizeof *t);
    t->arena = arena_create("model");
    t->scratch = arena_create("count");
    t->retry = *retry;
    t->name = name;
    t->extra = extra;
    t->pauses = rng_open(clock_ns(), url, "counts");
    if (http_open(limits, key, ca_file, &t->http, e) != 0 || find_routes(t, url, e) != 0) {
        tokens_close(t);
        return err_prefix(e, "count: tokenize");
    }
    *out = t;
    return 0;
}

void tokens_close(struct tokens *t) {
    if (t == NULL) return;
    http_close(t->http);
    arena_destroy(t->scratch);
    arena_destroy(t->arena);
    free(t);
}

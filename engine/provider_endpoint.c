#include "engine/provider_endpoint.h"

#include "engine/base/clock.h"
#include "engine/endpoint/dialect.h"
#include "engine/endpoint/http.h"
#include "engine/endpoint/retry.h"
#include "engine/endpoint/secret.h"
#include "engine/endpoint/tokens.h"
#include "engine/provider_local.h"
#include "engine/provider_words.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MS 15000
#define HEAD_BYTES_MOST ((size_t)256 << 10)
#define REPLY_BYTES_LEAST ((size_t)1 << 20) // and some for each token that was asked for
#define REPLY_BYTES_PER_TOKEN 256
#define EVENT_BYTES_PER_TOKEN 2048 // of a stream, where each has an event of its own
#define FIRST_PAUSE_MS 500
#define PAUSE_MS_MOST 30000
#define ASKED_MS_MOST 300000
#define BYTES_PER_TOKEN 4

// Counts of one prompt by two parties: equal when the ids were sent, nearly so when another copy of
// the tokenizer counted, and of one size when bytes were.
#define SHORTFALL_EXACT_PPM 0
#define SHORTFALL_COUNTED_PPM 20000
#define SHORTFALL_ESTIMATED_PPM 500000

struct flight {
    int64_t ticket;
    struct buf body;
    uint32_t prompt_tokens;
    int attempt;     // made or under way
    bool sent;       // in the HTTP client's hands
    uint64_t due_ns; // when not: sent from then on
    uint64_t began_ns;
};

struct endpoint {
    struct provider base;
    struct arena *arena;
    struct dialect_settings dialect;
    json_t *extra;
    const char *url; // of requests
    const char *key; // secret, borrowed
    struct retry_policy retry;
    int32_t shortfall_ppm;
    struct provider *counting; // of count_file; NULL: none
    struct tokens *tokens;     // the server's tokenizer, while planning; NULL: not asked
    struct http_client *http;  // NULL when only planning
    struct flight *flights;    // [in_flight], the first flight_count of them
    int flight_count;
    struct rng pauses;
    uint64_t hold_until_ns; // the server asked everybody to wait
    atomic_bool cancelled;
};

static struct endpoint *endpoint_of(struct provider *p) {
    return (struct endpoint *)p;
}

// ---- prompts -----------------------------------------------------------------------------------

static int endpoint_render(struct provider *p, const struct provider_message *messages,
                           size_t count, struct arena *a, struct provider_piece **pieces,
                           size_t *piece_count, struct err *e) {
    struct endpoint *n = endpoint_of(p);
    for (size_t i = 0; i < count; i++)
        if (!utf8_valid(messages[i].text))
            FAIL(e, ERR_CONFIG,
                 "message %zu is not UTF-8 (byte %zu), which a server cannot be sent", i + 1,
                 utf8_first_bad(messages[i].text));
    if (n->dialect.api != DIALECT_CHAT)
        return n->counting->ops->render(n->counting, messages, count, a, pieces, piece_count, e);
    return dialect_render(messages, count, a, pieces, piece_count, e);
}

// A whole conversation is counted with the file's template around it; parts of one, text by text.
static int count_chat(struct endpoint *n, const struct provider_piece *pieces, size_t count,
                      struct arena *a, struct provider_ids *out, struct err *e) {
    struct provider *c = n->counting;
    struct provider_message *messages;
    struct provider_piece *rendered;
    size_t message_count, rendered_count;
    if (dialect_messages(pieces, count, a, &messages, &message_count, NULL) == 0) {
        TRY(c->ops->render(c, messages, message_count, a, &rendered, &rendered_count, e));
        return c->ops->tokenize(c, rendered, rendered_count, a, out, e);
    }
    struct provider_piece *texts = arena_array(a, count + 1, sizeof *texts);
    for (size_t i = 0; i < count; i++) texts[i].text = pieces[i].text;
    return c->ops->tokenize(c, texts, count, a, out, e);
}

// The same by the server.
static int count_there(struct endpoint *n, const struct provider_piece *pieces, size_t count,
                       struct arena *a, struct provider_ids *out, struct err *e) {
    struct provider_message *messages;
    size_t message_count;
    uint32_t tokens;
    if (dialect_messages(pieces, count, a, &messages, &message_count, NULL) == 0) {
        TRY(tokens_of_chat(n->tokens, messages, message_count, &tokens, e));
    } else {
        struct buf text = {0};
        for (size_t i = 0; i < count; i++) buf_add_str(&text, pieces[i].text);
        int result = tokens_of_text(n->tokens, buf_str(&text), &tokens, e);
        buf_free(&text);
        TRY(result);
    }
    *out = (struct provider_ids){NULL, tokens};
    return 0;
}

static int endpoint_tokenize(struct provider *p, const struct provider_piece *pieces, size_t count,
                             struct arena *a, struct provider_ids *out, struct err *e) {
    struct endpoint *n = endpoint_of(p);
    if (p->can.exact_ids) return n->counting->ops->tokenize(n->counting, pieces, count, a, out, e);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += pieces[i].text.n;
    *out = (struct provider_ids){NULL, (bytes + BYTES_PER_TOKEN - 1) / BYTES_PER_TOKEN};
    if (n->tokens != NULL) return count_there(n, pieces, count, a, out, e);
    return n->counting != NULL ? count_chat(n, pieces, count, a, out, e) : 0;
}

static struct str endpoint_id_bytes(struct provider *p, int32_t id) {
    struct provider *counting = endpoint_of(p)->counting;
    return counting != NULL ? counting->ops->id_bytes(counting, id) : STR("");
}

// ---- asking ------------------------------------------------------------------------------------

static int endpoint_submit(struct provider *p, const struct provider_request *request,
                           bool *accepted, struct err *e) {
    struct endpoint *n = endpoint_of(p);
    *accepted = false;
    if (n->http == NULL)
        FAIL(e, ERR_PROVIDER, "the endpoint was opened for planning only, so it answers nothing");
    if (n->flight_count == p->can.in_flight || atomic_load(&n->cancelled)) return 0;
    struct rng sampling = request->sampling;
    struct buf body = {0};
    if (dialect_request(&n->dialect, request, rng_u32(&sampling), &body, e) != 0) {
        buf_free(&body);
        return -1;
    }
    n->flights[n->flight_count++] = (struct flight){.ticket = request->ticket,
                                                    .body = body,
                                                    .prompt_tokens = request->prompt_tokens,
                                                    .began_ns = clock_ns()};
    *accepted = true;
    return 0;
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

// Sends what is due; *wait_ms: until the next one is.
static int send_due(struct endpoint *n, uint32_t *wait_ms, struct err *e) {
    const uint64_t now = clock_ns();
    *wait_ms = 1000;
    for (int i = 0; i < n->flight_count && !atomic_load(&n->cancelled); i++) {
        struct flight *f = &n->flights[i];
        const uint64_t due = later(f->due_ns, n->hold_until_ns);
        if (f->sent) continue;
        if (due > now) {
            const uint64_t left = (due - now) / 1000000u + 1;
            if (left < *wait_ms) *wait_ms = (uint32_t)left;
            continue;
        }
        // Flights move as others end, so the owner is the ticket.
        TRY(http_start(n->http, n->url, buf_str(&f->body), (void *)(uintptr_t)f->ticket, e));
        f->sent = true;
        f->attempt++;
    }
    return 0;
}

static struct flight *flight_of(struct endpoint *n, const struct http_reply *r) {
    int i = 0;
    while (n->flights[i].ticket != (int64_t)(uintptr_t)r->owner || !n->flights[i].sent) i++;
    return &n->flights[i];
}

static void flight_end(struct endpoint *n, struct flight *f) {
    buf_free(&f->body);
    memmove(f, f + 1, (size_t)(n->flights + n->flight_count - f - 1) * sizeof *f);
    n->flight_count--;
}

// ---- what came back ----------------------------------------------------------------------------

struct outcome {
    const char *code, *why; // code NULL: a reply
    struct dialect_reply reply;
    const char *server; // the program behind the response; NULL: it does not say
};

static const char *failure_code(enum http_failure failure) {
    switch (failure) {
    case HTTP_WHOLE: break;
    case HTTP_UNREACHABLE: return "unreachable";
    case HTTP_DROPPED: return "dropped";
    case HTTP_SLOW: return "timeout";
    case HTTP_STALLED: return "stalled";
    case HTTP_TLS: return "tls";
    case HTTP_TOO_LARGE: return "too_large";
    case HTTP_NOT_HTTP: return "not_http";
    case HTTP_REDIRECTED: return "redirect";
    }
    return "dropped";
}

static void read_reply(struct endpoint *n, struct str body, struct arena *a, struct outcome *out,
                       struct retry_attempt *attempt) {
    if (n->dialect.stream && !dialect_stream_join(n->dialect.api, body, a, &body)) {
        out->code = "stream_cut";
        out->why = "the stream ended before its reply did";
        attempt->status = 0;
        attempt->lost = true;
        return;
    }
    // A key that came in pieces is one now.
    char *text = arena_memdup(a, body.p, body.n);
    secret_hide(n->key, text, body.n);
    dialect_reply_read(n->dialect.api, (struct str){text, body.n}, a, &out->reply);
    out->code = out->reply.code;
    out->why = out->reply.why;
    if (out->reply.status > 0) attempt->status = out->reply.status;
}

// Reads the response into an outcome; `attempt` is what the retry policy looks at.
static void read_response(struct endpoint *n, const struct http_reply *r, struct arena *a,
                          struct outcome *out, struct retry_attempt *attempt) {
    *out = (struct outcome){0};
    if (r->failure != HTTP_WHOLE) {
        out->code = failure_code(r->failure);
        out->why = arena_strdup(a, r->text);
        attempt->lost = http_may_pass(r->failure);
        return;
    }
    attempt->retry_after = r->retry_after;
    attempt->status = r->status;
    if (r->server.n > 0 && utf8_valid(r->server)) out->server = str_to_c(a, r->server);
    if (r->status == 200) {
        read_reply(n, r->body, a, out, attempt);
        return;
    }
    out->code = arena_printf(a, "http_%d", r->status);
    out->why = arena_printf(a, "the server answers %d: %s", r->status, dialect_refusal(r->body, a));
}

// True: it is sent again behind a pause.
static bool send_again(struct endpoint *n, struct flight *f, const struct retry_attempt *attempt,
                       struct arena *a, struct outcome *o) {
    uint64_t pause_ms;
    enum retry_choice choice =
        retry_choose(&n->retry, attempt, clock_unix(), &n->pauses, &pause_ms);
    switch (choice) {
    case RETRY_AGAIN: break;
    case RETRY_FINAL: return false;
    case RETRY_EXHAUSTED:
        o->why = arena_printf(a, "%s (after %d attempts)", o->why, attempt->number);
        return false;
    case RETRY_TOO_LONG:
        o->why = arena_printf(a, "%s (it asks to be left alone for %llu s, more than %d)", o->why,
                              (unsigned long long)(pause_ms / 1000), ASKED_MS_MOST / 1000);
        return false;
    }
    f->sent = false;
    f->due_ns = clock_ns() + pause_ms * 1000000u;
    if (attempt->retry_after.n > 0) n->hold_until_ns = later(n->hold_until_ns, f->due_ns);
    return true;
}

// A reply to less than the prompt is none.
static void check_reply(struct endpoint *n, const struct flight *f, struct arena *a,
                        struct outcome *o, struct provider_completion *out) {
    const struct dialect_reply *r = &o->reply;
    const int64_t ours = f->prompt_tokens;
    if (r->prompt_tokens < 0 || (ours - r->prompt_tokens) * 1000000 <= ours * n->shortfall_ppm)
        return;
    out->undelivered = true;
    o->code = "prompt_truncated";
    o->why = arena_printf(a,
                          "the server counts %lld prompt tokens where %lld were sent; a context "
                          "that it was started with may be shorter than the prompt",
                          (long long)r->prompt_tokens, (long long)ours);
}

static void complete(struct endpoint *n, const struct flight *f, struct outcome *o, struct arena *a,
                     struct provider_completion *out) {
    *out = (struct provider_completion){.ticket = f->ticket, .stop_id = -1};
    struct provider_served *served = arena_alloc(a, sizeof *served);
    *served = (struct provider_served){.prompt_tokens = DIALECT_UNKNOWN, .attempts = f->attempt};
    out->served = served;
    out->wall_ms = CLOCK_MS(clock_ns() - f->began_ns);
    if (o->code == NULL) check_reply(n, f, a, o, out);
    if (o->code != NULL) {
        words_refuse(out, o->code, o->why);
        return;
    }
    out->ok = true;
    out->text = o->reply.text;
    if (o->reply.has_reasoning) out->reasoning = o->reply.reasoning;
    out->finish = o->reply.finish;
    out->tokens = (int)o->reply.tokens;
    out->reasoning_counted = o->reply.reasoning_tokens != DIALECT_UNKNOWN;
    if (out->reasoning_counted) out->reasoning_tokens = (int)o->reply.reasoning_tokens;
    served->prompt_tokens = o->reply.prompt_tokens;
    served->model = o->reply.model;
    served->fingerprint = o->reply.fingerprint;
    served->server = o->server;
}

// False: nothing to give yet.
static bool take_reply(struct endpoint *n, const struct http_reply *r, struct arena *a,
                       struct provider_completion *out) {
    struct flight *f = flight_of(n, r);
    struct retry_attempt attempt = {.number = f->attempt};
    struct outcome o;
    read_response(n, r, a, &o, &attempt);
    if (o.code != NULL && send_again(n, f, &attempt, a, &o)) return false;
    complete(n, f, &o, a, out);
    flight_end(n, f);
    return true;
}

// Cancelled: what is in flight may have been paid for, so it is waited for; nothing is sent again.
static int endpoint_next(struct provider *p, struct arena *a, struct provider_completion *out,
                         bool *any, struct err *e) {
    struct endpoint *n = endpoint_of(p);
    *any = false;
    while (n->flight_count > 0) {
        uint32_t wait_ms;
        TRY(send_due(n, &wait_ms, e));
        if (atomic_load(&n->cancelled) && http_in_flight(n->http) == 0) return 0;
        const struct http_reply *r = http_next(n->http, wait_ms);
        if (r == NULL || !take_reply(n, r, a, out)) continue;
        *any = true;
        return 0;
    }
    return 0;
}

static void endpoint_cancel(struct provider *p) {
    struct endpoint *n = endpoint_of(p);
    atomic_store(&n->cancelled, true);
    if (n->http != NULL) http_wake(n->http);
}

static void endpoint_close(struct provider *p) {
    struct endpoint *n = endpoint_of(p);
    http_close(n->http);
    tokens_close(n->tokens);
    for (int i = 0; i < n->flight_count; i++) buf_free(&n->flights[i].body);
    free(n->flights);
    if (n->counting != NULL) n->counting->ops->close(n->counting);
    json_decref(n->extra);
    json_decref(p->what.identity);
    json_decref(p->what.manifest);
    arena_destroy(n->arena);
    free(n);
}

// ---- opening -----------------------------------------------------------------------------------

static const struct provider_ops ENDPOINT_OPS = {
    .kind = "served",
    .render = endpoint_render,
    .tokenize = endpoint_tokenize,
    .id_bytes = endpoint_id_bytes,
    .submit = endpoint_submit,
    .next = endpoint_next,
    .cancel = endpoint_cancel,
    .close = endpoint_close,
};

static int read_settings(struct endpoint *n, const struct provider_endpoint *o, struct err *e) {
    bool clear;
    if (o->name == NULL) FAIL(e, ERR_CONFIG, "the endpoint has no name of a model");
    n->dialect = (struct dialect_settings){.name = o->name,
                                           .stream = o->stream,
                                           .max_tokens = o->max_tokens_key ? o->max_tokens_key
                                                                           : "max_tokens"};
    if (!dialect_api_named(o->api ? o->api : "chat", &n->dialect.api))
        FAIL(e, ERR_CONFIG, "api '%s' is none of chat, text and ids", o->api);
    if (n->dialect.api != DIALECT_CHAT && o->count_file == NULL)
        FAIL(e, ERR_CONFIG,
             "api: %s needs count: FILE, the model file that prompts are rendered and tokenized by",
             o->api);
    TRY(http_check_url(o->url, &clear, e));
    if (clear && o->key_variable != NULL)
        FAIL(e, ERR_CONFIG,
             "a key would travel to %s unencrypted; use https, or leave api_key_env out", o->url);
    struct str base = str_from(o->url);
    while (base.n > 0 && base.p[base.n - 1] == '/') base.n--;
    n->url = arena_printf(n->arena, STR_FMT "%s", STR_ARG(base), dialect_route(n->dialect.api));
    if (o->body == NULL) return 0;
    TRY(json_parse(str_from(o->body), "body", &n->extra, e));
    n->dialect.extra = n->extra;
    if (dialect_check_extra(n->extra, e) != 0) return err_prefix(e, "body");
    return 0;
}

static int open_counting(struct endpoint *n, const struct provider_options *o, struct err *e) {
    if (o->endpoint->count_file == NULL) return 0;
    const struct provider_options counting = {.id = o->id,
                                              .path = o->endpoint->count_file,
                                              .backend = "cpu",
                                              .numerics = "bf16-1",
                                              .weights = "stored",
                                              .chat_template = o->chat_template,
                                              .pre_tokenizer = o->pre_tokenizer,
                                              .context_tokens = o->context_tokens,
                                              .beyond_trained = true,
                                              .plan_only = true};
    if (provider_local_open(&counting, &n->counting, e) != 0) return err_prefix(e, "count");
    n->dialect.start = n->counting->can.start_text;
    return 0;
}

// Planning asks a server for counts only, and nothing else of it.
static int open_client(struct endpoint *n, const struct provider_options *o, struct err *e) {
    const struct provider_endpoint *p = o->endpoint;
    if (o->plan_only && !p->count_there) return 0;
    if (p->key_variable != NULL && p->key == NULL)
        FAIL(e, ERR_USAGE, "the variable %s, which api_key_env names, is not set", p->key_variable);
    if (p->key != NULL) TRY(secret_check(p->key, p->key_variable, e));
    n->key = p->key;
    const uint32_t reply_ms = (uint32_t)p->reply_seconds * 1000u;
    const struct http_limits limits = {
        .connect_ms = CONNECT_MS < reply_ms ? CONNECT_MS : reply_ms,
        .reply_ms = reply_ms,
        .silence_ms = (uint32_t)p->stall_seconds * 1000u,
        .body_bytes_most =
            REPLY_BYTES_LEAST +
            (size_t)o->context_tokens * (p->stream ? EVENT_BYTES_PER_TOKEN : REPLY_BYTES_PER_TOKEN),
        .head_bytes_most = HEAD_BYTES_MOST};
    if (o->plan_only)
        return tokens_open(p->url, p->name, n->extra, p->key, p->ca_file, &limits, &n->retry,
                           &n->tokens, e);
    return http_open(&limits, p->key, p->ca_file, &n->http, e);
}

static bool is_counted(const struct endpoint *n, const struct provider_endpoint *p) {
    return n->counting != NULL || p->count_there;
}

static const char *count_word(const struct endpoint *n, const struct provider_endpoint *p) {
    if (n->base.can.exact_ids) return "exact";
    const bool whole = n->tokens == NULL || tokens_know_template(n->tokens);
    return is_counted(n, p) && whole ? "counted" : "estimated";
}

// Nothing of the model itself is known, so its identity is where it stands and what it is asked.
static void describe(struct endpoint *n, const struct provider_options *o) {
    const struct provider_endpoint *p = o->endpoint;
    json_t *identity = json_object(), *manifest = json_object();
    json_put(identity, "id", json_text_c(o->id));
    json_put(identity, "name", json_text_c(p->name));
    json_put(identity, "endpoint", json_text_c(p->url));
    json_put(identity, "api", json_text_c(p->api ? p->api : "chat"));
    json_put(identity, "max_tokens_key", json_text_c(n->dialect.max_tokens));
    if (p->body != NULL) json_put(identity, "body", json_text_c(p->body));
    json_put(identity, "length", json_text_c(count_word(n, p)));
    json_put(identity, "shortfall_ppm", json_integer(n->shortfall_ppm));
    if (n->counting != NULL)
        for (const char *const *key =
                 (const char *const[]){"tokenizer_sha256", "template_sha256", NULL};
             *key != NULL; key++)
            json_object_set(identity, *key, json_object_get(n->counting->what.identity, *key));
    json_put(manifest, "id", json_text_c(o->id));
    json_put(manifest, "endpoint", json_text_c(p->url));
    n->base.what = (struct provider_identity){identity, manifest, "none", "served"};
}

static int open_parts(struct endpoint *n, const struct provider_options *o, struct err *e) {
    const struct provider_endpoint *p = o->endpoint;
    TRY(read_settings(n, p, e));
    TRY(open_counting(n, o, e));
    const bool chat = n->dialect.api == DIALECT_CHAT;
    n->base.can = (struct provider_capabilities){.exact_ids = !chat,
                                                 .likely_ids = chat && n->counting != NULL,
                                                 .in_flight = p->in_flight,
                                                 .context_tokens = o->context_tokens};
    n->shortfall_ppm = p->shortfall_ppm >= 0   ? p->shortfall_ppm
                       : n->base.can.exact_ids ? SHORTFALL_EXACT_PPM
                       : is_counted(n, p)      ? SHORTFALL_COUNTED_PPM
                                               : SHORTFALL_ESTIMATED_PPM;
    n->retry = (struct retry_policy){.attempts_most = p->attempts,
                                     .first_ms = FIRST_PAUSE_MS,
                                     .pause_ms_most = PAUSE_MS_MOST,
                                     .asked_ms_most = ASKED_MS_MOST};
    return open_client(n, o, e);
}

int provider_endpoint_open(const struct provider_options *options, struct provider **out,
                           struct err *e) {
    struct endpoint *n = calloc(1, sizeof *n);
    if (n == NULL) mem_exhausted("the endpoint", sizeof *n);
    n->base.ops = &ENDPOINT_OPS;
    n->arena = arena_create("model");
    // Pauses are of the clock's world: no two processes should draw the same ones.
    n->pauses = rng_open(clock_ns(), options->endpoint->url, "pauses");
    if (open_parts(n, options, e) != 0) {
        endpoint_close(&n->base);
        return -1;
    }
    n->flights = calloc((size_t)n->base.can.in_flight, sizeof *n->flights);
    if (n->flights == NULL) mem_exhausted("the requests in flight", sizeof *n->flights);
    describe(n, options);
    *out = &n->base;
    return 0;
}

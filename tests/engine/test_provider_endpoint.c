// A served model behind the provider seam: each way in which a server fails has its own reason,
// what may pass is asked again, what was paid for is not lost.
#include "tests/support/gguf_writer.h"
#include "tests/support/http_server.h"
#include "tests/support/support.h"

#include "engine/base/clock.h"
#include "engine/base/json.h"
#include "engine/provider.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROMPT_TOKENS 100

static struct http_server *server;
static char url[64];

// ---- a server that does what the prompt says ----

enum { ACTS_MOST = 64 };
static struct {
    char name[32];
    int asked;
} acts[ACTS_MOST];
static struct buf last_body;

// How often this was asked for, this time included.
static int times_asked(struct str name) {
    int i = 0;
    while (acts[i].asked > 0 && !str_equal_c(name, acts[i].name)) i++;
    snprintf(acts[i].name, sizeof acts[i].name, STR_FMT, STR_ARG(name));
    return ++acts[i].asked;
}

static int asked(const char *name) {
    for (int i = 0; i < ACTS_MOST; i++)
        if (strcmp(acts[i].name, name) == 0) return acts[i].asked;
    return 0;
}

static void reply(struct http_server_answer *a, const char *model, const char *content,
                  const char *finish, int prompt_tokens) {
    buf_printf(&a->body,
               "{\"model\":\"%s\",\"choices\":[{\"message\":{\"content\":\"%s\"},"
               "\"finish_reason\":\"%s\"}],\"usage\":{\"prompt_tokens\":%d}}",
               model, content, finish, prompt_tokens);
}

static void refuse(struct http_server_answer *a, int status, const char *header) {
    a->status = status;
    buf_add_c(&a->headers, header);
    buf_add_c(&a->body, "{\"error\":{\"message\":\"not now\"}}");
}

static void act(struct str name, struct http_server_answer *a) {
    const int time = times_asked(name);
    const bool once = time == 1;
#define IS(text) str_equal_c(name, text)
    if (IS("429-seconds") && once) return refuse(a, 429, "Retry-After: 1\r\n");
    if (IS("503-date") && once)
        return refuse(a, 503, "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    if (IS("429-always")) return refuse(a, 429, "");
    if (IS("500-twice") && time <= 2) return refuse(a, 500, "");
    if (IS("503-long")) return refuse(a, 503, "Retry-After: 9999\r\n");
    if (IS("401")) return refuse(a, 401, "");
    if (IS("404")) return refuse(a, 404, "");
    if (IS("drop-once")) a->drop = once;
    if (IS("drop-always")) a->drop = true;
    if (IS("cut")) a->length = 100000;
    if (IS("slow")) a->delay_ms = 60000;
    if (IS("late")) a->delay_ms = 1000;
    if (IS("503-wait")) return refuse(a, 503, "Retry-After: 60\r\n");
    if (IS("headers")) a->header_lines = 100000;
    if (IS("endless")) a->endless = true, a->length = -2;
    if (IS("garbage")) buf_add_c(&a->raw, "SSH-2.0-OpenSSH_9.2\r\n");
    if (IS("html")) return buf_add_c(&a->body, "<html><body>Welcome</body></html>");
    if (IS("error-200")) return buf_add_c(&a->body, "{\"error\":{\"message\":\"no memory\"}}");
    if (IS("busy-200") && once) return buf_add_c(&a->body, "{\"error\":{\"code\":429}}");
    if (IS("no-choice")) return buf_add_c(&a->body, "{\"choices\":[]}");
    if (IS("empty-choice")) return buf_add_c(&a->body, "{\"choices\":[{}]}");
    if (IS("empty")) return reply(a, "m", "", "stop", PROMPT_TOKENS);
    if (IS("length")) return reply(a, "m", "half a", "length", PROMPT_TOKENS);
    if (IS("filter")) return reply(a, "m", "half", "content_filter", PROMPT_TOKENS);
    if (IS("trimmed")) return reply(a, "m", "made up", "stop", PROMPT_TOKENS / 2 - 1);
    if (IS("stream-cut") && once)
        return buf_add_c(&a->body, "data: {\"choices\":[{\"delta\":{}}]}\n\n");
    if (IS("stream-never")) return buf_add_c(&a->body, ": ping\n\n");
    if (IS("stream-stalls")) a->drip_ms = 60000;
    if (IS("renamed")) return reply(a, "m-2", "fine", "stop", PROMPT_TOKENS);
    reply(a, "m", "fine", "stop", PROMPT_TOKENS);
}

static void script(void *context, const struct http_server_request *r,
                   struct http_server_answer *a) {
    (void)context;
    buf_clear(&last_body);
    buf_add_str(&last_body, r->body);
    size_t from = str_find(r->body, STR("act: "), 0);
    if (from == STR_NONE) return reply(a, "m", "fine", "stop", PROMPT_TOKENS);
    size_t end = str_find(r->body, STR("\""), from);
    act(str_slice(r->body, from + 5, end), a);
}

// ---- asking ----

static struct provider_endpoint endpoint_of(void) {
    return (struct provider_endpoint){.url = url,
                                      .name = "m",
                                      .in_flight = 64,
                                      .attempts = 3,
                                      .reply_seconds = 120,
                                      .stall_seconds = 60,
                                      .shortfall_ppm = -1};
}

static int open_with(const struct provider_endpoint *endpoint, bool plan_only, struct provider **p,
                     struct err *e) {
    struct provider_options o = {
        .id = "served", .endpoint = endpoint, .context_tokens = 1000, .plan_only = plan_only};
    return provider_open(&o, p, e);
}

static struct provider *open_ok(const struct provider_endpoint *endpoint) {
    struct provider *p = NULL;
    struct err e = {0};
    ASSERT_OK(open_with(endpoint, false, &p, &e), e);
    return p;
}

static void submit(struct provider *p, int64_t ticket, const char *what) {
    static const struct provider_generation greedy = {.max_tokens = 20, .top_p = 1};
    struct provider_message message = {.role = STR("user"),
                                       .text = str_from(arena_printf(test_arena, "act: %s", what))};
    struct provider_request r = {
        .ticket = ticket, .key = what, .prompt_tokens = PROMPT_TOKENS, .generation = &greedy};
    struct provider_piece *pieces;
    bool accepted;
    struct err e = {0};
    ASSERT_OK(p->ops->render(p, &message, 1, test_arena, &pieces, &r.piece_count, &e), e);
    r.pieces = pieces;
    ASSERT_OK(p->ops->submit(p, &r, &accepted, &e), e);
    assert_true(accepted);
}

static bool next(struct provider *p, struct provider_completion *c) {
    bool any;
    struct err e = {0};
    ASSERT_OK(p->ops->next(p, test_arena, c, &any, &e), e);
    return any;
}

static const struct {
    const char *what, *code, *says; // code NULL: a reply, and what it says
    int asked;
    enum provider_finish finish;
} acts_expected[] = {
    {"fine", NULL, "fine", 1, FINISH_STOP},
    {"429-seconds", NULL, "fine", 2, FINISH_STOP},
    {"503-date", NULL, "fine", 2, FINISH_STOP},
    {"500-twice", NULL, "fine", 3, FINISH_STOP},
    {"drop-once", NULL, "fine", 2, FINISH_STOP},
    {"busy-200", NULL, "fine", 2, FINISH_STOP},
    {"empty", NULL, "", 1, FINISH_STOP},
    {"length", NULL, "half a", 1, FINISH_LENGTH},
    {"filter", NULL, "half", 1, FINISH_FILTER},
    {"429-always", "http_429", "the server answers 429: not now (after 3 attempts)", 3, 0},
    {"503-long", "http_503", "asks to be left alone for 9999 s, more than 300", 1, 0},
    {"401", "http_401", "the server answers 401: not now", 1, 0},
    {"404", "http_404", "the server answers 404", 1, 0},
    {"drop-always", "dropped", "(after 3 attempts)", 3, 0},
    {"cut", "dropped", "(after 3 attempts)", 3, 0},
    {"headers", "too_large", "bytes of headers", 1, 0},
    {"endless", "too_large", "bytes of reply", 1, 0},
    {"garbage", "not_http", "", 1, 0},
    {"html", "endpoint_schema", "no JSON, in: <html><body>Welcome", 1, 0},
    {"error-200", "server_error", "no memory", 1, 0},
    {"no-choice", "no_choice", "no choice", 1, 0},
    {"empty-choice", "empty_choice", "no message", 1, 0},
    {"trimmed", "prompt_truncated", "counts 49 prompt tokens where 100 were sent", 1, 0},
};
enum { ACTS = sizeof acts_expected / sizeof *acts_expected };

static void check_act(int i, const struct provider_completion *c) {
    const char *code = acts_expected[i].code, *what = acts_expected[i].what;
    if (c->ok != (code == NULL))
        fail_msg("%s: %s: %s", what, c->reason_code ? c->reason_code : "a reply",
                 c->reason_text ? c->reason_text : "");
    if (code == NULL) {
        assert_true(str_equal_c(c->text, acts_expected[i].says));
        assert_int_equal(c->finish, acts_expected[i].finish);
        assert_int_equal(c->tokens, -1); // usage does not tell
        assert_int_equal(c->served->prompt_tokens, PROMPT_TOKENS);
    } else if (strcmp(c->reason_code, code) != 0 ||
               strstr(c->reason_text, acts_expected[i].says) == NULL) {
        fail_msg("%s: %s: %s", what, c->reason_code, c->reason_text);
    }
    assert_int_equal(c->undelivered, code != NULL && strcmp(code, "prompt_truncated") == 0);
    assert_int_equal(c->served->attempts, acts_expected[i].asked);
    assert_int_equal(asked(what), acts_expected[i].asked);
}

static void each_failure_has_its_own_reason(void **state) {
    (void)state;
    struct provider_endpoint o = endpoint_of();
    struct provider *p = open_ok(&o);
    struct provider_completion c;
    bool seen[ACTS] = {0};
    for (int i = 0; i < ACTS; i++) submit(p, i, acts_expected[i].what);
    for (int i = 0; i < ACTS; i++) {
        assert_true(next(p, &c));
        assert_in_range(c.ticket, 0, ACTS - 1);
        assert_false(seen[c.ticket]);
        seen[c.ticket] = true;
        check_act((int)c.ticket, &c);
    }
    assert_false(next(p, &c));
    // What the server says of itself is told with each reply.
    submit(p, 100, "renamed");
    assert_true(next(p, &c) && c.ok);
    assert_string_equal(c.served->model, "m-2");
    p->ops->close(p);
    // One attempt, a short patience.
    o.attempts = 1;
    o.reply_seconds = 1;
    p = open_ok(&o);
    submit(p, 0, "slow");
    assert_true(next(p, &c) && !c.ok && strcmp(c.reason_code, "timeout") == 0);
    p->ops->close(p);
}

static void a_stream_that_stalls_or_ends_too_early_is_told(void **state) {
    (void)state;
    static const struct {
        const char *what, *code, *says;
        int asked;
    } cases[] = {
        {"stream-cut", NULL, "fine", 2}, // whole when asked again, though not as a stream
        {"stream-never", "stream_cut", "the stream ended before its reply did (after 2 attempts)",
         2},
        {"stream-stalls", "stalled", "then sent nothing for 1 s (after 2 attempts)", 2},
    };
    struct provider_endpoint o = endpoint_of();
    o.stream = true;
    o.attempts = 2;
    o.stall_seconds = 1;
    struct provider *p = open_ok(&o);
    struct provider_completion c;
    for (int i = 0; i < 3; i++) {
        submit(p, i, cases[i].what);
        assert_true(next(p, &c) && c.ticket == i);
        assert_int_equal(c.ok, cases[i].code == NULL);
        if (c.ok)
            assert_true(str_equal_c(c.text, cases[i].says));
        else if (strcmp(c.reason_code, cases[i].code) != 0 || !strstr(c.reason_text, cases[i].says))
            fail_msg("%s: %s: %s", cases[i].what, c.reason_code, c.reason_text);
        assert_int_equal(asked(cases[i].what), cases[i].asked);
    }
    p->ops->close(p);
}

static void nobody_there(void **state) {
    (void)state;
    struct http_server *gone = http_server_open(script, NULL);
    char dead[64];
    snprintf(dead, sizeof dead, "http://127.0.0.1:%d/v1/", http_server_port(gone));
    http_server_close(gone);
    struct provider_endpoint o = endpoint_of();
    struct provider_completion c;
    o.url = dead;
    o.attempts = 2;
    struct provider *p = open_ok(&o);
    submit(p, 7, "fine");
    assert_true(next(p, &c) && !c.ok && c.ticket == 7);
    assert_string_equal(c.reason_code, "unreachable");
    assert_non_null(strstr(c.reason_text, "(after 2 attempts)"));
    p->ops->close(p);
    snprintf(dead, sizeof dead, "https://127.0.0.1:%d/v1", http_server_port(server));
    p = open_ok(&o);
    submit(p, 8, "fine");
    assert_true(next(p, &c) && !c.ok && strcmp(c.reason_code, "tls") == 0);
    assert_int_equal(c.served->attempts, 1);
    p->ops->close(p);
}

static void *cancel_soon(void *p) {
    usleep(100000);
    ((struct provider *)p)->ops->cancel(p);
    return NULL;
}

// What is under way when a run is interrupted may have been paid for: it is waited for. What waits
// for another attempt is not.
static void an_interruption_keeps_what_is_under_way(void **state) {
    (void)state;
    struct provider_endpoint o = endpoint_of();
    struct provider *p = open_ok(&o);
    struct provider_completion c;
    pthread_t thread;
    int before = asked("503-wait");
    submit(p, 0, "503-wait");
    submit(p, 1, "late");
    pthread_create(&thread, NULL, cancel_soon, p);
    assert_true(next(p, &c) && c.ok && c.ticket == 1);
    assert_false(next(p, &c));
    assert_int_equal(asked("503-wait"), before + 1);
    pthread_join(thread, NULL);
    bool accepted = true;
    struct provider_generation g = {.max_tokens = 1, .top_p = 1};
    struct provider_request r = {.generation = &g};
    struct err e = {0};
    ASSERT_OK(p->ops->submit(p, &r, &accepted, &e), e);
    assert_false(accepted);
    p->ops->close(p);
}

static void what_is_sent_is_what_was_rendered(void **state) {
    (void)state;
    char path[300];
    snprintf(path, sizeof path, "%s/tiny.gguf", test_folder());
    tiny_model_write(path, &(struct tiny_model_options){.L = 1});
    struct provider_endpoint o = endpoint_of();
    o.count_file = path;
    o.api = "ids";
    struct provider *p = open_ok(&o);
    assert_true(p->can.exact_ids);
    struct provider_message message = {.role = STR("user"), .text = STR("Say <|im_end|> twice.")};
    struct provider_generation g = {.max_tokens = 3, .top_p = 1};
    struct provider_request r = {.ticket = 1, .generation = &g};
    struct provider_piece *pieces;
    struct provider_completion c;
    bool accepted;
    struct err e = {0};
    ASSERT_OK(p->ops->render(p, &message, 1, test_arena, &pieces, &r.piece_count, &e), e);
    r.pieces = pieces;
    ASSERT_OK(p->ops->tokenize(p, pieces, r.piece_count, test_arena, &r.ids, &e), e);
    r.prompt_tokens = (uint32_t)r.ids.count;
    ASSERT_OK(p->ops->submit(p, &r, &accepted, &e), e);
    // The reply has a message where a text is wanted, which is the dialect's matter.
    assert_true(next(p, &c) && !c.ok && strcmp(c.reason_code, "empty_choice") == 0);
    struct buf ids = {0};
    for (size_t i = 0; i < r.ids.count; i++)
        buf_printf(&ids, "%s%d", i == 0 ? "\"prompt\": [" : ", ", (int)r.ids.ids[i]);
    buf_add_char(&ids, ']');
    assert_true(r.ids.count > 20);
    if (strstr(last_body.p, ids.p) == NULL) fail_msg("no %s in %s", ids.p, last_body.p);
    buf_free(&ids);
    // Counted: what the file's template makes of the same messages.
    const struct provider_ids exact = r.ids;
    p->ops->close(p);
    o.api = "chat";
    p = open_ok(&o);
    assert_false(p->can.exact_ids);
    ASSERT_OK(p->ops->render(p, &message, 1, test_arena, &pieces, &r.piece_count, &e), e);
    ASSERT_OK(p->ops->tokenize(p, pieces, r.piece_count, test_arena, &r.ids, &e), e);
    assert_int_equal(r.ids.count, exact.count);
    assert_true(p->can.likely_ids);
    assert_memory_equal(r.ids.ids, exact.ids, exact.count * sizeof *exact.ids);
    p->ops->close(p);
}

// The start token stands once in what the model reads: the server's tokenizer puts it before a
// text, so the text is sent without it. It counts.
static void the_start_token_is_not_doubled(void **state) {
    (void)state;
    char path[300];
    size_t counts[2];
    for (int adds = 0; adds < 2; adds++) {
        snprintf(path, sizeof path, "%s/start-%d.gguf", test_folder(), adds);
        tiny_model_write(
            path, &(struct tiny_model_options){.L = 1, .adds_bos = adds == 1, .chat_template = ""});
        struct provider_endpoint o = endpoint_of();
        o.count_file = path;
        o.api = "text";
        struct provider *p = NULL;
        struct err e = {0};
        struct provider_options options = {
            .id = "served", .endpoint = &o, .context_tokens = 1000, .chat_template = "plain"};
        ASSERT_OK(provider_open(&options, &p, &e), e);
        struct provider_message message = {.role = STR("user"), .text = STR("Say it.")};
        struct provider_generation g = {.max_tokens = 3, .top_p = 1};
        struct provider_request r = {.ticket = 1, .generation = &g};
        struct provider_piece *pieces;
        struct provider_completion c;
        bool accepted;
        ASSERT_OK(p->ops->render(p, &message, 1, test_arena, &pieces, &r.piece_count, &e), e);
        r.pieces = pieces;
        ASSERT_OK(p->ops->tokenize(p, pieces, r.piece_count, test_arena, &r.ids, &e), e);
        counts[adds] = r.ids.count;
        ASSERT_OK(p->ops->submit(p, &r, &accepted, &e), e);
        assert_true(next(p, &c));
        if (strstr(last_body.p, "\"prompt\": \"Say it.\"") == NULL) fail_msg("%s", last_body.p);
        p->ops->close(p);
    }
    assert_int_equal(counts[1], counts[0] + 1);
}

static void settings_are_checked(void **state) {
    (void)state;
    struct provider *p;
    struct err e = {0};
    struct provider_endpoint o = endpoint_of();
    o.key_variable = "VARIABLE";
    ASSERT_OK(open_with(&o, true, &p, &e), e); // planning needs no key
    p->ops->close(p);
    ASSERT_FAILS(open_with(&o, false, &p, &e), e, ERR_USAGE, "the variable VARIABLE");
    static const char *const keys[] = {"", "k3y", "with space inside", "with-line-break\n"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        o.key = keys[i];
        ASSERT_FAILS(open_with(&o, false, &p, &e), e, ERR_USAGE, "VARIABLE");
        if (i > 0) assert_null(strstr(e.text, keys[i]));
    }
    o.key = "a-good-key";
    o.url = "http://gpu-7:8000/v1";
    ASSERT_FAILS(open_with(&o, false, &p, &e), e, ERR_CONFIG, "unencrypted");
    o = endpoint_of();
    o.body = "{\"temperature\": 1}";
    ASSERT_FAILS(open_with(&o, true, &p, &e), e, ERR_CONFIG, "body: \"temperature\"");
    o = endpoint_of();
    o.api = "ids";
    ASSERT_FAILS(open_with(&o, true, &p, &e), e, ERR_CONFIG, "needs count: FILE");
    o = endpoint_of();
    o.count_file = "/no/such.gguf";
    ASSERT_FAILS(open_with(&o, true, &p, &e), e, ERR_IO, "count: ");
}

// ---- counting there ----

static enum { VLLM, LLAMA_SERVER, SGLANG, LLAMA_CPP_PYTHON } counter;

static int words_in(struct str s) {
    int n = 0;
    for (size_t i = 0; i < s.n; i++) n += s.p[i] != ' ' && (i == 0 || s.p[i - 1] == ' ');
    return n;
}

static struct str string_of(const json_t *o, const char *key) {
    const char *text = json_string_value(json_object_get(o, key));
    return str_from(text != NULL ? text : "");
}

static void render_words(const json_t *messages, struct buf *out) {
    size_t i;
    json_t *message;
    buf_add_c(out, "{\"prompt\":\"");
    json_array_foreach((json_t *)(uintptr_t)messages, i, message)
        buf_printf(out, "[ role ] " STR_FMT " ", STR_ARG(string_of(message, "content")));
    buf_add_c(out, "[ reply ]\"}");
}

static int chat_words(const json_t *messages) {
    size_t i;
    json_t *message;
    int n = 3;
    json_array_foreach((json_t *)(uintptr_t)messages, i, message) n +=
        3 + words_in(string_of(message, "content"));
    return n;
}

// A word is a token; a message costs three, a rendered one by the words of its marks.
static void count_words(void *context, const struct http_server_request *r,
                        struct http_server_answer *a) {
    json_t *o = json_loadb(r->body.p, r->body.n, 0, NULL);
    const json_t *messages = json_object_get(o, "messages");
    const bool tokenizes =
        str_equal_c(r->path, counter == LLAMA_CPP_PYTHON ? "/extras/tokenize/count" : "/tokenize");
    (void)context;
    if (counter == LLAMA_SERVER && str_equal_c(r->path, "/apply-template")) {
        render_words(messages, &a->body);
    } else if (!tokenizes) {
        a->status = 404;
    } else if (counter == LLAMA_SERVER) {
        buf_add_c(&a->body, "{\"tokens\":[");
        for (int k = 0, n = words_in(string_of(o, "content")); k < n; k++)
            buf_printf(&a->body, "%s%d", k > 0 ? "," : "", k);
        buf_add_c(&a->body, "]}");
    } else if (counter == LLAMA_CPP_PYTHON) { // with the start token
        buf_printf(&a->body, "{\"count\":%d}", 1 + words_in(string_of(o, "input")));
    } else if (messages != NULL && counter == SGLANG) {
        a->status = 400;
        buf_add_c(&a->body, "{\"object\":\"error\",\"message\":\"prompt: Field required\"}");
    } else {
        const int n = messages != NULL ? chat_words(messages) : words_in(string_of(o, "prompt"));
        buf_printf(&a->body, "{\"count\":%d,\"max_model_len\":100,\"tokens\":[1]}", n);
    }
    json_decref(o);
}

static void the_server_counts(void **state) {
    (void)state;
    struct http_server *counting = http_server_open(count_words, NULL);
    char there[64];
    snprintf(there, sizeof there, "http://127.0.0.1:%d/v1", http_server_port(counting));
    struct provider_endpoint o = endpoint_of();
    o.count_there = true;
    o.url = there;
    static const struct {
        int count;
        const char *length;
    } expected[] = {{3 + 2 + 3 + 4 + 3, "counted"},
                    {3 + 2 + 3 + 4 + 3, "counted"},
                    {2 + 4, "estimated"},
                    {1 + 2 + 4, "estimated"}};
    for (int way = 0; way < 4; way++) {
        counter = way;
        struct provider *p;
        struct provider_piece *pieces, text = {STR("one two three"), false};
        struct provider_message messages[] = {
            {.role = STR("system"), .text = STR("be brief")},
            {.role = STR("user"), .text = STR("four words are here")}};
        struct provider_ids ids;
        size_t count;
        struct err e = {0};
        ASSERT_OK(open_with(&o, true, &p, &e), e);
        ASSERT_OK(p->ops->tokenize(p, &text, 1, test_arena, &ids, &e), e);
        assert_true(ids.count == 3 && ids.ids == NULL);
        ASSERT_OK(p->ops->render(p, messages, 2, test_arena, &pieces, &count, &e), e);
        ASSERT_OK(p->ops->tokenize(p, pieces, count, test_arena, &ids, &e), e);
        assert_int_equal(ids.count, expected[way].count);
        assert_string_equal(json_string_value(json_object_get(p->what.identity, "length")),
                            expected[way].length);
        p->ops->close(p);
    }
    http_server_close(counting);
    struct provider *p;
    struct err e = {0};
    o.url = url; // which has no such route
    ASSERT_FAILS(open_with(&o, true, &p, &e), e, ERR_PROVIDER, "neither a count nor a list");
}

static int open_server(void **state) {
    (void)state;
    server = http_server_open(script, NULL);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/v1", http_server_port(server));
    return 0;
}

static int close_server(void **state) {
    (void)state;
    http_server_close(server);
    buf_free(&last_body);
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(each_failure_has_its_own_reason),
        TEST(a_stream_that_stalls_or_ends_too_early_is_told),
        TEST(nobody_there),
        TEST(an_interruption_keeps_what_is_under_way),
        TEST(what_is_sent_is_what_was_rendered),
        TEST(the_start_token_is_not_doubled),
        TEST(settings_are_checked),
        TEST(the_server_counts),
    };
    return cmocka_run_group_tests_name("provider_endpoint", tests, open_server, close_server);
}

// Streamed replies: put together they are the reply that came whole, and what was cut is none.
#include "tests/support/support.h"

#include "engine/base/rng.h"
#include "engine/endpoint/dialect.h"

#include <string.h>

static struct str joined(enum dialect_api api, const char *body) {
    struct str out;
    assert_true(dialect_stream_join(api, str_from(body), test_arena, &out));
    return out;
}

static void expect_body(enum dialect_api api, const char *stream, const char *body) {
    struct str out = joined(api, stream);
    if (!str_equal_c(out, body))
        fail_msg("%s\ngives " STR_FMT "\nnot %s", stream, STR_ARG(out), body);
}

#define CHUNK "\"object\":\"chat.completion.chunk\",\"model\":\"m\","
#define DELTA(delta, finish)                                                                       \
    "data: {" CHUNK "\"choices\":[{\"index\":0,\"delta\":" delta ",\"finish_reason\":" finish      \
    "}]}\n\n"

static void streams_of_known_servers_are_put_together(void **state) {
    (void)state;
    // OpenAI (API reference, "The chat completion chunk object"): the role first, usage behind the
    // end where stream_options.include_usage asks for it.
    expect_body(DIALECT_CHAT,
                DELTA("{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}", "null") DELTA(
                    "{\"content\":\"Order \"}", "null") DELTA("{\"content\":\"19763.\"}", "null")
                    DELTA("{}", "\"stop\"") "data: {" CHUNK
                                            "\"choices\":[],\"usage\":{\"prompt_tokens\":9}}\n\n"
                                            "data: [DONE]\n\n",
                "{\"model\":\"m\",\"usage\":{\"prompt_tokens\":9},\"choices\":[{\"finish_reason\":"
                "\"stop\",\"message\":{\"content\":\"Order 19763.\"}}]}");
    // vLLM with a reasoning parser and a stop string (docs.vllm.ai, "Reasoning Outputs"); usage in
    // every chunk counts up (stream_options.continuous_usage_stats).
    expect_body(DIALECT_CHAT,
                "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"so\"}}],"
                "\"usage\":{\"completion_tokens\":1}}\n\n"
                "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":"
                "\"stop\",\"stop_reason\":\"END\"}],\"usage\":{\"completion_tokens\":2}}\n\n"
                "data: [DONE]\n\n",
                "{\"usage\":{\"completion_tokens\":2},\"choices\":[{\"finish_reason\":\"stop\","
                "\"stop_reason\":\"END\",\"message\":{\"content\":\"a\",\"reasoning_content\":"
                "\"so\"}}]}");
    // OpenRouter's comments while it waits (openrouter.ai/docs/api-reference/streaming), CRLF as
    // llama-cpp-python's sse-starlette writes it, reasoning under both names.
    expect_body(DIALECT_CHAT,
                ": PROCESSING\r\n\r\n:\r\n\r\nevent: message\r\nid: 7\r\nretry: 10\r\n"
                "data:{\"choices\":[{\"delta\":{\"content\":null,\"reasoning\":\"hm\","
                "\"reasoning_content\":\"hm\"},\"finish_reason\":null}]}\r\n\r\n: ping\r\n\r\n"
                "data: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"length\"}]}"
                "\r\n\r\ndata: [DONE]\r\n\r\n",
                "{\"choices\":[{\"finish_reason\":\"length\",\"message\":{\"content\":\"b\","
                "\"reasoning_content\":\"hm\"}}]}");
    // Pieces of calls by their index (OpenAI: "Function calling", streaming), Mistral's chunks.
    expect_body(
        DIALECT_CHAT,
        DELTA("{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\","
              "\"text\":\"hm\"}]}]}",
              "null")
            DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"find\","
                  "\"arguments\":\"\"}}]}",
                  "null") DELTA("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{"
                                "\\\"id\\\":\"}}]}",
                                "null")
                DELTA("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"7}\"}}]}",
                      "\"tool_calls\"") "data: [DONE]\n\n",
        "{\"model\":\"m\",\"choices\":[{\"finish_reason\":\"tool_calls\",\"message\":{"
        "\"content\":\"\",\"reasoning_content\":\"hm\",\"tool_calls\":[{\"function\":{"
        "\"name\":\"find\",\"arguments\":\"{\\\"id\\\":7}\"}}]}}]}");
    // Texts; an event over two lines; no [DONE], as some bridges leave it out; no last line end.
    expect_body(DIALECT_TEXT,
                "\xEF\xBB\xBF"
                "data: {\"choices\":[{\"text\":\"\xC3\xA9\",\n"
                "data: \"finish_reason\":null}]}\n\n"
                "data: {\"choices\":[{\"text\":\" x\",\"finish_reason\":\"stop\"}]}",
                "{\"choices\":[{\"finish_reason\":\"stop\",\"text\":\"\xC3\xA9 x\"}]}");
    // Who does not stream answers as ever.
    expect_body(DIALECT_CHAT, " {\"choices\":[]}\n", " {\"choices\":[]}\n");
    expect_body(DIALECT_CHAT, "<html>", "<html>");
}

static void expect_code(const char *stream, const char *code, int status, const char *says) {
    struct dialect_reply r;
    dialect_reply_read(DIALECT_CHAT, joined(DIALECT_CHAT, stream), test_arena, &r);
    if (r.code == NULL || strcmp(r.code, code) != 0 || strstr(r.why, says) == NULL)
        fail_msg("%s\n%s: %s", stream, r.code, r.why);
    assert_int_equal(r.status, status);
}

static void faults_in_the_middle_are_told(void **state) {
    (void)state;
#define BEGUN DELTA("{\"content\":\"Order \"}", "null")
    expect_code(BEGUN "data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n",
                "server_error", 500, "out of memory");
    // OpenRouter's: the error beside a choice that ends with "error".
    expect_code(BEGUN
                "data: {\"error\":{\"code\":502,\"message\":\"gone\"},\"choices\":[{\"index\":0,"
                "\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n",
                "server_error", 502, "gone");
    expect_code(BEGUN "event: error\ndata: {\"object\":\"error\",\"message\":\"no\"}\n\n",
                "server_error", 0, "no");
    expect_code(BEGUN DELTA("{}", "\"abort\"") "data: [DONE]\n\n", "server_error", 0, "abort");
    expect_code(BEGUN "data: Internal Server Error\n\n" BEGUN, "endpoint_schema", 0,
                "no JSON, in: Internal Server Error");
    expect_code("data: {\"choices\":[{\"index\":1,\"delta\":{}}]}\n\n", "empty_choice", 0, "");
    expect_code(BEGUN "data: [DONE]\n\n", "endpoint_schema", 0, "finish_reason is missing");
    expect_code("data: [DONE]\n\n", "no_choice", 0, "no choice");
}

// ---- against replies that came whole ----

static void add_line_end(struct rng *draw, struct buf *out) {
    static const char *const ends[] = {"\n", "\r\n"};
    buf_add_c(out, ends[rng_below(draw, 2)]);
}

static void add_event(struct rng *draw, const json_t *event, struct buf *out) {
    if (rng_below(draw, 3) == 0) buf_add_c(out, ": ping"), add_line_end(draw, out);
    if (rng_below(draw, 4) == 0) add_line_end(draw, out);
    buf_add_c(out, rng_below(draw, 2) == 0 ? "data: " : "data:");
    json_compact(event, out);
    add_line_end(draw, out);
    add_line_end(draw, out);
}

static json_t *delta_of(const char *key, struct str text) {
    json_t *choice = json_object(), *delta = json_object(), *event = json_object();
    json_put(delta, key, json_text(text));
    json_put(choice, "index", json_integer(0));
    json_put(choice, "delta", delta);
    json_put(choice, "finish_reason", json_null());
    json_put(event, "model", json_text_c("m"));
    json_put(event, "choices", json_pack("[o]", choice));
    json_put(event, "usage", json_null());
    return event;
}

// In pieces that end anywhere between characters.
static void add_pieces(struct rng *draw, const char *key, struct str text, struct buf *out) {
    for (size_t at = 0; at < text.n;) {
        struct str piece = str_head(str_slice(text, at, text.n), 1 + rng_below(draw, 9));
        if (piece.n == 0) piece = str_slice(text, at, text.n);
        json_t *event = delta_of(key, piece);
        add_event(draw, event, out);
        json_decref(event);
        at += piece.n;
    }
}

static void add_end(struct rng *draw, const char *finish, int prompt_tokens, struct buf *out) {
    json_t *end = json_pack("{s:s, s:[{s:i, s:{}, s:s}]}", "model", "m", "choices", "index", 0,
                            "delta", "finish_reason", finish);
    json_t *usage = json_pack("{s:n, s:{s:i, s:i}}", "choices", "usage", "prompt_tokens",
                              prompt_tokens, "completion_tokens", 7);
    add_event(draw, end, out);
    add_event(draw, usage, out);
    json_decref(end);
    json_decref(usage);
    buf_add_c(out, "data: [DONE]\n\n");
}

static struct str random_text(struct rng *draw, size_t most) {
    static const char *const units[] = {"a",      " ",        "\n",           "\"",
                                        "\\",     "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                                        "data: ", "\r\n\r\n", "[DONE]"};
    struct buf b = {0};
    for (size_t n = rng_below(draw, (uint32_t)most); n > 0; n--)
        buf_add_c(&b, units[rng_below(draw, sizeof units / sizeof *units)]);
    return buf_take(&b, test_arena);
}

static void a_stream_says_what_the_whole_reply_says(void **state) {
    (void)state;
    struct rng draw = rng_open(5, "test", "streams");
    for (int i = 0; i < 300; i++) {
        arena_reset(test_arena);
        const struct str thought = random_text(&draw, 20), text = random_text(&draw, 60);
        const char *finish = i % 3 == 0 ? "length" : "stop";
        struct buf stream = {0};
        struct dialect_reply r;
        add_pieces(&draw, "reasoning_content", thought, &stream);
        add_pieces(&draw, "content", text, &stream);
        add_end(&draw, finish, i, &stream);
        dialect_reply_read(DIALECT_CHAT, joined(DIALECT_CHAT, stream.p), test_arena, &r);
        buf_free(&stream);
        assert_null(r.code);
        assert_true(str_equal(r.text, text) && r.has_reasoning == (thought.n > 0));
        assert_true(!r.has_reasoning || str_equal(r.reasoning, thought));
        assert_int_equal(r.finish, i % 3 == 0 ? FINISH_LENGTH : FINISH_STOP);
        assert_int_equal(r.prompt_tokens, i);
        assert_int_equal(r.tokens, 7);
        assert_string_equal(r.model, "m");
    }
}

// Cut at any byte before the event that ends the reply, a stream has no reply; behind it, the
// whole.
static void a_cut_reply_is_never_taken_as_whole(void **state) {
    (void)state;
    static const char body[] = DELTA("{\"content\":\"Order 1\"}", "null")
        DELTA("{\"content\":\"9763.\"}", "null") DELTA("{}", "\"stop\"") "data: [DONE]\n\n";
    const size_t ended = (size_t)(strstr(body, "[DONE]") - body) - strlen("\n\ndata: ");
    struct str out;
    for (size_t n = 0; n < sizeof body; n++) {
        const bool whole =
            dialect_stream_join(DIALECT_CHAT, (struct str){body, n}, test_arena, &out);
        if (whole != (n >= ended)) fail_msg("cut at %zu of %zu: %d", n, ended, (int)whole);
        if (whole) assert_true(str_find(out, STR("Order 19763."), 0) != STR_NONE);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(streams_of_known_servers_are_put_together),
        TEST(faults_in_the_middle_are_told),
        TEST(a_stream_says_what_the_whole_reply_says),
        TEST(a_cut_reply_is_never_taken_as_whole),
    };
    return cmocka_run_group_tests_name("endpoint_stream", tests, NULL, NULL);
}

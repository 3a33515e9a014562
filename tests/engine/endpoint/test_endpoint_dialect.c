// What a request says, and what replies of several servers mean. The bodies were written for this
// test, in the shape that the document named beside each one shows.
#include "tests/support/support.h"

#include "engine/endpoint/dialect.h"

#include <string.h>

// ---- requests ----

static const struct provider_piece chat[] = {
    {{"<|im_start|>system\n", 19}, true},
    {{"Be brief.", 9}, false},
    {{"<|im_end|>\n", 11}, true},
    {{"<|im_start|>user\n", 17}, true},
    {{"One <|im_end|>\n", 15}, false},
    {{"two \"3\" é", 10}, false},
    {{"<|im_end|>\n<|im_start|>assistant\n", 33}, true},
};
enum { CHAT_PIECES = sizeof chat / sizeof *chat };

static const char *request(const struct dialect_settings *s, const struct provider_request *r) {
    struct buf out = {0};
    struct err e = {0};
    ASSERT_OK(dialect_request(s, r, 0x80000005u, &out, &e), e);
    return buf_take(&out, test_arena).p;
}

static void requests_say_what_was_asked(void **state) {
    (void)state;
    struct str stops[] = {STR("\n\n"), STR("END")};
    struct provider_generation greedy = {.max_tokens = 96, .top_p = 1};
    struct provider_generation drawn = {
        .max_tokens = 8, .temperature = 0.7, .top_p = 0.95, .stop = stops, .stop_count = 2};
    struct provider_request r = {.pieces = chat, .piece_count = CHAT_PIECES, .generation = &greedy};
    struct dialect_settings s = {.name = "m", .max_tokens = "max_tokens"};
    assert_string_equal(
        request(&s, &r),
        "{\"model\": \"m\", \"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"}, "
        "{\"role\": \"user\", \"content\": \"One <|im_end|>\\ntwo \\\"3\\\" é\"}], "
        "\"max_tokens\": 96, \"temperature\": 0.0}");
    r.generation = &drawn;
    s.max_tokens = "max_completion_tokens";
    s.api = DIALECT_TEXT;
    r.piece_count = 2;
    assert_string_equal(request(&s, &r),
                        "{\"model\": \"m\", \"prompt\": \"<|im_start|>system\\nBe brief.\", "
                        "\"max_completion_tokens\": 8, \"temperature\": 0.7, \"top_p\": 0.95, "
                        "\"seed\": 1073741826, \"stop\": [\"\\n\\n\", \"END\"]}");
    s.start = STR("<|im_start|>"); // which the server's tokenizer writes itself
    assert_string_equal(request(&s, &r),
                        "{\"model\": \"m\", \"prompt\": \"system\\nBe brief.\", "
                        "\"max_completion_tokens\": 8, \"temperature\": 0.7, \"top_p\": 0.95, "
                        "\"seed\": 1073741826, \"stop\": [\"\\n\\n\", \"END\"]}");
    int32_t ids[] = {1, 49151, 7};
    r.ids = (struct provider_ids){ids, 3};
    r.generation = &greedy;
    s.api = DIALECT_IDS;
    s.extra = json_pack("{s:n, s:f, s:{s:b}}", "temperature", "min_p", 0.05, "options", "x", 1);
    assert_string_equal(request(&s, &r),
                        "{\"model\": \"m\", \"prompt\": [1, 49151, 7], \"max_completion_tokens\": "
                        "96, \"min_p\": 0.05, \"options\": {\"x\": true}}");
    json_decref((json_t *)(uintptr_t)s.extra);
}

static void messages_come_back_from_pieces(void **state) {
    (void)state;
    struct provider_message *messages;
    size_t count;
    struct err e = {0};
    ASSERT_OK(dialect_messages(chat, CHAT_PIECES, test_arena, &messages, &count, &e), e);
    assert_int_equal(count, 2);
    assert_true(str_equal_c(messages[1].text, "One <|im_end|>\ntwo \"3\" é"));
    // Any part of a conversation is none.
    for (int n = 0; n < CHAT_PIECES; n++)
        assert_int_equal(dialect_messages(chat, (size_t)n, test_arena, &messages, &count, &e), -1);
    for (int n = 1; n < CHAT_PIECES; n++)
        assert_int_equal(dialect_messages(chat + n, CHAT_PIECES - (size_t)n, test_arena, &messages,
                                          &count, &e) == 0,
                         n == 3);
}

// A conversation with tools, their calls and results: through the pieces, into a request.
static void tools_and_calls_are_sent(void **state) {
    (void)state;
    const struct str tools[] = {STR("{\"type\": \"function\", \"function\": {\"name\": \"find\"}}"),
                                STR("{\"type\": \"function\", \"function\": {\"name\": \"end\"}}")};
    const struct provider_call calls[] = {{STR("find"), STR("{\"id\": \"<|call|>\\n7\"}")},
                                          {STR("end"), STR("{}")}};
    const struct provider_message messages[] = {
        {.role = STR("user"), .text = STR("Find it."), .tools = tools, .tool_count = 2},
        {.role = STR("assistant"), .text = STR(""), .calls = calls, .call_count = 2},
        {.role = STR("tool"), .text = STR("found")},
        {.role = STR("tool"), .text = STR("ended")},
        {.role = STR("assistant"), .text = STR("Once more."), .calls = &calls[1], .call_count = 1},
        {.role = STR("tool"), .text = STR("")},
        {.role = STR("user"), .text = STR("Thanks.")}};
    struct provider_piece *pieces;
    struct err e = {0};
    struct provider_generation greedy = {.max_tokens = 9, .top_p = 1};
    struct provider_request r = {.generation = &greedy};
    const struct dialect_settings s = {.name = "m", .max_tokens = "max_tokens"};
    ASSERT_OK(dialect_render(messages, 7, test_arena, &pieces, &r.piece_count, &e), e);
    r.pieces = pieces;
    assert_string_equal(
        request(&s, &r),
        "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"Find it.\"}, "
        "{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"call00001\", "
        "\"type\": \"function\", \"function\": {\"name\": \"find\", \"arguments\": "
        "\"{\\\"id\\\": \\\"<|call|>\\\\n7\\\"}\"}}, {\"id\": \"call00002\", \"type\": "
        "\"function\", \"function\": {\"name\": \"end\", \"arguments\": \"{}\"}}]}, "
        "{\"role\": \"tool\", \"tool_call_id\": \"call00001\", \"content\": \"found\"}, "
        "{\"role\": \"tool\", \"tool_call_id\": \"call00002\", \"content\": \"ended\"}, "
        "{\"role\": \"assistant\", \"content\": \"Once more.\", \"tool_calls\": [{\"id\": "
        "\"call00003\", \"type\": \"function\", \"function\": {\"name\": \"end\", \"arguments\": "
        "\"{}\"}}]}, {\"role\": \"tool\", \"tool_call_id\": \"call00003\", \"content\": \"\"}, "
        "{\"role\": \"user\", \"content\": \"Thanks.\"}], "
        "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"find\"}}, "
        "{\"type\": \"function\", \"function\": {\"name\": \"end\"}}], "
        "\"max_tokens\": 9, \"temperature\": 0.0}");
    const struct provider_message odd = {.role = STR("tools"), .text = STR("")};
    ASSERT_FAILS(dialect_render(&odd, 1, test_arena, &pieces, &r.piece_count, &e), e, ERR_CONFIG,
                 "message 1 has a role that no server knows");
}

static void what_lacuna_decides_is_not_overridden(void **state) {
    (void)state;
    static const struct {
        const char *body, *complaint; // NULL: it may stand
    } cases[] = {
        {"{\"top_k\": 1, \"chat_template_kwargs\": {\"enable_thinking\": false}}", NULL},
        {"{\"temperature\": null, \"seed\": null}", NULL},
        {"{\"temperature\": 1}", "\"temperature\" is decided by generation.temperature; null"},
        {"{\"stream\": true}", "\"stream\" is decided by"},
        {"{\"max_tokens\": null}", "\"max_tokens\" is decided by generation.max_tokens"},
        {"{\"messages\": []}", "\"messages\" is decided by"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *extra;
        struct err e = {0};
        ASSERT_OK(json_parse(str_from(cases[i].body), "body", &extra, &e), e);
        int result = dialect_check_extra(extra, &e);
        json_decref(extra);
        if (cases[i].complaint == NULL)
            assert_int_equal(result, 0);
        else
            ASSERT_FAILS(result, e, ERR_CONFIG, cases[i].complaint);
    }
    struct provider_piece bad[] = {chat[3], {{"a\xff", 2}, false}, chat[6]};
    struct provider_generation g = {.max_tokens = 1, .top_p = 1};
    struct provider_request r = {.pieces = bad, .piece_count = 3, .generation = &g};
    struct dialect_settings s = {.name = "m", .max_tokens = "max_tokens"};
    struct buf out = {0};
    struct err e = {0};
    ASSERT_FAILS(dialect_request(&s, &r, 0, &out, &e), e, ERR_PROVIDER, "not UTF-8");
    buf_free(&out);
}

// ---- replies ----

struct reading {
    const char *body, *code, *text, *reasoning;
    enum provider_finish finish;
    int64_t prompt_tokens, tokens;
    const char *model;
};

static void expect(enum dialect_api api, const struct reading *x) {
    struct dialect_reply r;
    dialect_reply_read(api, str_from(x->body), test_arena, &r);
    if ((r.code == NULL) != (x->code == NULL) || (r.code && strcmp(r.code, x->code) != 0))
        fail_msg("%s\ncode %s, expected %s (%s)", x->body, r.code, x->code, r.why);
    if (x->code != NULL) {
        if (strstr(r.why, x->text) == NULL) fail_msg("%s\nsays: %s", x->body, r.why);
        assert_true(strlen(r.why) < 300 && strpbrk(r.why, "\n\r\t\x1b") == NULL);
        return;
    }
    if (!str_equal_c(r.text, x->text)) fail_msg("%s", x->body);
    assert_int_equal(r.has_reasoning, x->reasoning != NULL);
    if (x->reasoning != NULL) assert_true(str_equal_c(r.reasoning, x->reasoning));
    assert_int_equal(r.finish, x->finish);
    assert_int_equal(r.prompt_tokens, x->prompt_tokens);
    assert_int_equal(r.tokens, x->tokens);
    if (x->model != NULL) assert_string_equal(r.model, x->model);
}

static const struct reading chats[] = {
    // OpenAI: API reference, "The chat completion object"
    // (platform.openai.com/docs/api-reference/chat/object)
    {"{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1764590000,\"model\":"
     "\"gpt-x-2026-01-05\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
     "\"content\":\"Order 19763.\",\"refusal\":null,\"annotations\":[]},\"logprobs\":null,"
     "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1024,\"completion_tokens\":6,"
     "\"total_tokens\":1030,\"completion_tokens_details\":{\"reasoning_tokens\":0}},"
     "\"service_tier\":\"default\",\"system_fingerprint\":\"fp_1\"}",
     NULL, "Order 19763.", NULL, FINISH_STOP, 1024, 6, "gpt-x-2026-01-05"},
    // vLLM to 0.11.1, with a reasoning parser; a stop string ended the reply
    // (docs.vllm.ai/en/v0.8.3/features/reasoning_outputs.html; stop_reason:
    // ChatCompletionResponseChoice in vllm/entrypoints/openai/protocol.py)
    {"{\"id\":\"chatcmpl-2\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"q\","
     "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"a\","
     "\"refusal\":null,\"annotations\":null,\"audio\":null,\"function_call\":null,"
     "\"tool_calls\":[],\"reasoning_content\":\"so, a\"},\"logprobs\":null,\"finish_reason\":"
     "\"stop\",\"stop_reason\":\"END\",\"token_ids\":null}],\"service_tier\":null,"
     "\"system_fingerprint\":null,\"usage\":{\"prompt_tokens\":5,\"total_tokens\":7,"
     "\"completion_tokens\":2,\"prompt_tokens_details\":null},\"prompt_logprobs\":null}",
     NULL, "a", "so, a", FINISH_STOP_STRING, 5, 2, "q"},
    // vLLM, where a token that ends the turn is named by its id
    {"{\"model\":\"q\",\"choices\":[{\"message\":{\"content\":\"a\",\"reasoning_content\":null}"
     ","
     "\"finish_reason\":\"stop\",\"stop_reason\":128009}]}",
     NULL, "a", NULL, FINISH_STOP, -1, -1, "q"},
    // vLLM from 0.11.2, which calls it reasoning (docs.vllm.ai/en/v0.26.0/features/
    // reasoning_outputs)
    {"{\"model\":\"q\",\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"a\","
     "\"reasoning\":\"so, a\",\"tool_calls\":[]},\"finish_reason\":\"stop\",\"stop_reason\":"
     "null}]}",
     NULL, "a", "so, a", FINISH_STOP, -1, -1, "q"},
    // SGLang (ChatCompletionResponseChoice in python/sglang/srt/entrypoints/openai/protocol.py:
    // finish reasons and matched_stop, a string or a token id)
    {"{\"id\":\"3\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"s\",\"choices\":[{"
     "\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"b\",\"reasoning_content\":"
     "null,\"tool_calls\":null},\"logprobs\":null,\"finish_reason\":\"length\",\"matched_"
     "stop\":"
     "null}],\"usage\":{\"prompt_tokens\":9,\"total_tokens\":11,\"completion_tokens\":2,"
     "\"prompt_tokens_details\":null,\"reasoning_tokens\":0},\"metadata\":{}}",
     NULL, "b", NULL, FINISH_LENGTH, 9, 2, "s"},
    // llama-server (README of llama.cpp's tools/server, "POST /v1/chat/completions")
    {"{\"choices\":[{\"finish_reason\":\"stop\",\"index\":0,\"message\":{\"role\":"
     "\"assistant\","
     "\"reasoning_content\":\"hm\",\"content\":\"c\"}}],\"created\":1,\"model\":\"gpt-3.5-turbo"
     "\",\"system_fingerprint\":\"b6000-abcdef\",\"object\":\"chat.completion\",\"usage\":{"
     "\"completion_tokens\":3,\"prompt_tokens\":12,\"total_tokens\":15},\"id\":\"chatcmpl-4\","
     "\"timings\":{\"prompt_n\":12,\"prompt_ms\":1.5}}",
     NULL, "c", "hm", FINISH_STOP, 12, 3, "gpt-3.5-turbo"},
    // Ollama (docs/openai.md; docs.ollama.com/api/openai-compatibility)
    {"{\"id\":\"chatcmpl-5\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m:1b\","
     "\"system_fingerprint\":\"fp_ollama\",\"choices\":[{\"index\":0,\"message\":{\"role\":"
     "\"assistant\",\"content\":\"d\",\"reasoning\":\"well\"},\"finish_reason\":\"stop\"}],"
     "\"usage\":{\"prompt_tokens\":26,\"completion_tokens\":4,\"total_tokens\":30}}",
     NULL, "d", "well", FINISH_STOP, 26, 4, "m:1b"},
    // Mistral: content as a list of thinking and text chunks, finish reason model_length
    // (docs.mistral.ai/api, ChatCompletionChoice and ContentChunk)
    {"{\"model\":\"magistral\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
     "\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"one, \"},"
     "{\"type\":\"text\",\"text\":\"two\"}]},{\"type\":\"text\",\"text\":\"thr\"},{\"type\":"
     "\"text\",\"text\":\"ee\"}],\"tool_calls\":null,\"prefix\":false},\"finish_reason\":"
     "\"model_length\"}],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":9}}",
     NULL, "three", "one, two", FINISH_LENGTH, 4, 9, "magistral"},
    // text-generation-inference: eos_token and stop_sequence (FinishReason in its OpenAPI
    // description, docs/openapi.json)
    {"{\"object\":\"chat.completion\",\"model\":\"t\",\"system_fingerprint\":\"3.0.0-sha\","
     "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"e\"},"
     "\"logprobs\":null,\"finish_reason\":\"eos_token\"}]}",
     NULL, "e", NULL, FINISH_STOP, -1, -1, "t"},
    {"{\"choices\":[{\"message\":{\"content\":\"e\"},\"finish_reason\":\"stop_sequence\"}]}", NULL,
     "e", NULL, FINISH_STOP_STRING, -1, -1, NULL},
    // OpenRouter: the provider's own word beside the normalized one, reasoning with details
    // (openrouter.ai/docs/api/reference/overview)
    {"{\"id\":\"gen-1\",\"provider\":\"P\",\"model\":\"v/m\",\"choices\":[{\"logprobs\":null,"
     "\"finish_reason\":\"stop\",\"native_finish_reason\":\"end_turn\",\"index\":0,\"message\":"
     "{"
     "\"role\":\"assistant\",\"content\":\"f\",\"refusal\":null,\"reasoning\":\"hm\","
     "\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"hm\"}]}}],\"usage\":{"
     "\"prompt_tokens\":8,\"completion_tokens\":2,\"cost\":0.0001}}",
     NULL, "f", "hm", FINISH_STOP, 8, 2, "v/m"},
    // A refusal in its own field is what the model said (OpenAI: "Structured outputs",
    // refusals).
    {"{\"choices\":[{\"message\":{\"content\":null,\"refusal\":\"I cannot.\"},"
     "\"finish_reason\":\"stop\"}]}",
     NULL, "I cannot.", NULL, FINISH_STOP, -1, -1, NULL},
    // Calls of tools are said as the check reads them (OpenAI: "Function calling"; the older
    // function_call; arguments as an object, as llama-cpp-python's handlers may give them).
    {"{\"choices\":[{\"message\":{\"content\":null,\"tool_calls\":[{\"id\":\"call_1\",\"type\":"
     "\"function\",\"function\":{\"name\":\"find\",\"arguments\":\"{\\\"id\\\":\\\"7\\\"}\"}},"
     "{\"function\":{\"name\":\"end\",\"arguments\":{}}}]},\"finish_reason\":\"tool_calls\"}]}",
     NULL,
     "<tool_call>\n{\"name\": \"find\", \"arguments\": {\"id\": \"7\"}}\n</tool_call>\n"
     "<tool_call>\n{\"name\": \"end\", \"arguments\": {}}\n</tool_call>",
     NULL, FINISH_STOP, -1, -1, NULL},
    {"{\"choices\":[{\"message\":{\"content\":\"Well.\",\"function_call\":{\"name\":\"f\","
     "\"arguments\":\"{cut\"}},\"finish_reason\":\"function_call\"}]}",
     NULL, "Well.\n<tool_call>\n{\"name\": \"f\", \"arguments\": \"{cut\"}\n</tool_call>", NULL,
     FINISH_STOP, -1, -1, NULL},
    // what a filter cut, and what said nothing
    {"{\"choices\":[{\"message\":{\"content\":\"The "
     "or\"},\"finish_reason\":\"content_filter\"}]"
     ",\"usage\":null}",
     NULL, "The or", NULL, FINISH_FILTER, -1, -1, NULL},
    {"{\"choices\":[{\"message\":{\"content\":null},\"finish_reason\":\"tool_calls\"}],"
     "\"usage\":{\"prompt_tokens\":null}}",
     NULL, "", NULL, FINISH_STOP, -1, -1, NULL},
};

static void replies_of_known_servers_are_read(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof chats / sizeof *chats; i++) expect(DIALECT_CHAT, &chats[i]);
    static const struct reading texts[] = {
        {"{\"id\":\"cmpl-1\",\"object\":\"text_completion\",\"created\":1,\"model\":\"q\","
         "\"choices\":[{\"index\":0,\"text\":\" x\\u00e9\",\"logprobs\":null,\"finish_reason\":"
         "\"length\",\"stop_reason\":null,\"prompt_logprobs\":null}],\"usage\":{\"prompt_tokens\":"
         "3,"
         "\"total_tokens\":5,\"completion_tokens\":2}}",
         NULL, " xé", NULL, FINISH_LENGTH, 3, 2, "q"},
        {"{\"choices\":[{\"finish_reason\":\"stop\"}]}", "empty_choice", "has no text", NULL, 0, 0,
         0, NULL},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) expect(DIALECT_TEXT, &texts[i]);
}

static void each_fault_has_its_own_code(void **state) {
    (void)state;
#define CHOICE "{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}"
    static const struct reading faults[] = {
        {.body = "", .code = "endpoint_schema", .text = "no JSON, in: nothing"},
        {.body = "<html>\n<b>\x1b[31m\xff</html>",
         .code = "endpoint_schema",
         .text = "<html> <b> [3"},
        {.body = "{\"choices\":[" CHOICE, .code = "endpoint_schema", .text = "no JSON"},
        {.body = "[]", .code = "endpoint_schema", .text = "no object"},
        {.body = "{\"error\":{\"message\":\"over\\nloaded\",\"type\":\"x\"}}",
         .code = "server_error",
         .text = "over loaded"},
        {.body = "{\"error\":\"model is loading\"}", .code = "server_error", .text = "is loading"},
        {.body = "{\"object\":\"error\",\"message\":\"too long\",\"code\":400}",
         .code = "server_error",
         .text = "too long"},
        {.body = "{\"error\":{\"message\":\"x\"},\"choices\":[" CHOICE "]}",
         .code = "server_error",
         .text = "x"},
        {.body = "{}", .code = "no_choice", .text = "no choice: {}"},
        {.body = "{\"choices\":[]}", .code = "no_choice", .text = "no choice"},
        {.body = "{\"choices\":null}", .code = "no_choice", .text = "no choice"},
        {.body = "{\"choices\":[{}]}", .code = "empty_choice", .text = "no message"},
        {.body = "{\"choices\":[" CHOICE "," CHOICE "]}",
         .code = "endpoint_schema",
         .text = "2 choices"},
        {.body = "{\"choices\":[{\"message\":{\"content\":7},\"finish_reason\":\"stop\"}]}",
         .code = "endpoint_schema",
         .text = "message.content or message.tool_calls is of another shape"},
        {.body = "{\"choices\":[{\"message\":{\"content\":[{\"type\":\"image_url\"}]},"
                 "\"finish_reason\":\"stop\"}]}",
         .code = "endpoint_schema",
         .text = "is of another shape"},
        // OpenRouter: a provider's error inside the choice (openrouter.ai/docs/api/reference/
        // errors-and-debugging)
        {.body = "{\"choices\":[{\"error\":{\"code\":502,\"message\":\"provider is "
                 "down\"},\"finish_reason\":\"error\",\"message\":{\"content\":\"Ord\"}}]}",
         .code = "server_error",
         .text = "provider is down"},
        {.body = "{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":null}]}",
         .code = "endpoint_schema",
         .text = "finish_reason is missing"},
        {.body = "{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"tired\"}]}",
         .code = "endpoint_schema",
         .text = "\"tired\" is not known"},
        {.body = "{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"abort\"}]}",
         .code = "server_error",
         .text = "abort"},
        {.body = "{\"choices\":[" CHOICE "],\"usage\":{\"prompt_tokens\":\"12\"}}",
         .code = "endpoint_schema",
         .text = "usage.prompt_tokens is not a count"},
        {.body = "{\"choices\":[" CHOICE "],\"usage\":{\"completion_tokens\":-1}}",
         .code = "endpoint_schema",
         .text = "usage.completion_tokens is not a count"},
        {.body = "{\"choices\":[" CHOICE "],\"usage\":7}",
         .code = "endpoint_schema",
         .text = "usage is no object"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) expect(DIALECT_CHAT, &faults[i]);
    struct dialect_reply r;
    dialect_reply_read(DIALECT_CHAT, STR("{\"error\":{\"message\":\"busy\",\"code\":429}}"),
                       test_arena, &r);
    assert_int_equal(r.status, 429);
}

// A cut at any byte, and any byte changed, gives a code or a reply; nothing else.
static void damaged_replies_are_survived(void **state) {
    (void)state;
    static const char body[] =
        "{\"model\":\"m\",\"choices\":[{\"message\":{\"content\":\"\\ud83d\\ude00 a\"},"
        "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}";
    struct dialect_reply r;
    for (size_t n = 0; n < sizeof body - 1; n++) {
        dialect_reply_read(DIALECT_CHAT, (struct str){body, n}, test_arena, &r);
        assert_string_equal(r.code, "endpoint_schema");
    }
    struct rng draw = rng_open(3, "test", "damage");
    for (int i = 0; i < 20000; i++) {
        char damaged[sizeof body];
        memcpy(damaged, body, sizeof body);
        for (int k = 0; k < 1 + i % 3; k++)
            damaged[rng_below(&draw, sizeof body - 1)] = (char)rng_below(&draw, 256);
        arena_reset(test_arena);
        dialect_reply_read(DIALECT_CHAT, (struct str){damaged, sizeof body - 1}, test_arena, &r);
        assert_true(r.code == NULL ? r.text.p != NULL : utf8_valid(str_from(r.why)));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(requests_say_what_was_asked, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(messages_come_back_from_pieces, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(tools_and_calls_are_sent, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test(what_lacuna_decides_is_not_overridden),
        cmocka_unit_test_setup_teardown(replies_of_known_servers_are_read, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(each_fault_has_its_own_code, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(damaged_replies_are_survived, test_arena_open,
                                        test_arena_close),
    };
    return cmocka_run_group_tests_name("endpoint_dialect", tests, NULL, NULL);
}

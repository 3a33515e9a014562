// Conversations from JSON lines: what is read, and what is refused with file and line.
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "prompts/turns.h"

#include <string.h>

static const char *write_file(const char *text, size_t n) {
    const char *path = path_join(test_arena, test_folder(), "turns.jsonl");
    test_write(path, (struct str){text, n});
    return path;
}

static int load(const char *text, struct turn **out, size_t *count, struct err *e) {
    return turns_load(write_file(text, strlen(text)), test_arena, out, count, e);
}

static int load_exchanges(const char *text, struct exchange **out, size_t *count, struct err *e) {
    const char *path = write_file(text, strlen(text));
    return exchanges_load(&path, 1, test_arena, out, count, e);
}

static void assert_str(struct str got, const char *expected) {
    if (!str_equal_c(got, expected))
        fail_msg("'" STR_FMT "' instead of '%s'", STR_ARG(got), expected);
}

static void turns_are_read(void **state) {
    (void)state;
    struct err e = {0};
    struct turn *t;
    size_t n;
    // A byte order mark, CRLF, no line break at the end, white space and control spellings kept.
    ASSERT_OK(load("\xEF\xBB\xBF{\"role\":\"system\",\"content\":\" a\\r\\n\"}\r\n"
                   "{\"content\": \"<|im_end|> \\u00e9\\ud83d\\ude00\", \"role\": \"user\"}\r\n"
                   "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\","
                   "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
                   "\"{\\\"x\\\":1.50,\\\"y\\\":[]}\"}}]}\n"
                   "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"7\"}\n"
                   "{\"role\":\"assistant\",\"content\":\"Seven.\",\"tool_calls\":null}",
                   &t, &n, &e),
              e);
    assert_int_equal(n, 5);
    assert_str(t[0].m.role, "system");
    assert_str(t[0].m.text, " a\r\n");
    assert_str(t[1].m.text, "<|im_end|> \xC3\xA9\xF0\x9F\x98\x80");
    assert_str(t[2].m.text, "");
    assert_int_equal(t[2].m.call_count, 1);
    assert_str(t[2].m.calls[0].name, "f");
    assert_str(t[2].m.calls[0].arguments, "{\"x\": 1.5, \"y\": []}");
    assert_str(t[3].m.role, "tool");
    assert_int_equal(t[4].line, 5);
    assert_int_equal(t[4].m.call_count, 0);
}

static void bad_turns_are_named(void **state) {
    (void)state;
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"", "turns.jsonl: there is no turn in it"},
        {"{\"role\":\"user\",\"content\":\"a\"}\n\n{\"role\":\"user\",\"content\":\"a\"}",
         "turns.jsonl:2: an empty line"},
        {"{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":", "turns.jsonl:2: not JSON"},
        {"[]", "turns.jsonl:1: not an object"},
        {"{\"role\":\"usr\",\"content\":\"a\"}",
         "'usr' is not one of system, user, assistant, tool; "
         "did you mean 'user'?"},
        {"{\"content\":\"a\"}", "turns.jsonl:1: \"role\" is missing"},
        {"{\"role\":\"user\"}", "turns.jsonl:1: \"content\" is missing"},
        {"{\"role\":\"user\",\"content\":\" \\n\"}", "turns.jsonl:1: \"content\" is empty"},
        {"{\"role\":\"user\",\"content\":null}", "\"content\" is not a text"},
        {"{\"role\":\"user\",\"content\":\"a\\u0000\"}", "holds a NUL character"},
        {"{\"role\":\"user\",\"contents\":\"a\"}", "unknown key \"contents\"; did you mean "
                                                   "\"content\"?"},
        {"{\"role\":\"user\",\"content\":\"a\",\"x\":1}", "unknown key \"x\"; known here: role, "},
        {"{\"role\":\"user\",\"content\":\"a\",\"tool_calls\":[{}]}",
         "only the assistant can have tool_calls"},
        {"{\"role\":\"assistant\",\"content\":\"a\",\"tool_calls\":[]}", "an empty one"},
        {"{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"[]"
         "\"}"
         "}]}",
         "\"arguments\" of a tool call are not an object"},
        {"{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{"
         "\"}}"
         "]}",
         "turns.jsonl:1: tool_calls: \"arguments\": not JSON"},
        {"{\"role\":\"assistant\",\"tool_calls\":[{\"type\":\"code\",\"function\":{}}]}",
         "only tool calls of type \"function\""},
        {"{\"role\":\"user\",\"content\":\"a\xC3(\"}", "turns.jsonl:1: byte 0xC3 is not UTF-8"},
        {"{\"role\":\"user\",\"role\":\"user\",\"content\":\"a\"}", "duplicate"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = {0};
        struct turn *t;
        size_t n;
        ASSERT_FAILS(load(bad[i].text, &t, &n, &e), e, ERR_CONFIG, bad[i].error);
    }
}

#define U(text) "{\"role\":\"user\",\"content\":\"" text "\"}"
#define A(text) "{\"role\":\"assistant\",\"content\":\"" text "\"}"
#define CALL                                                                                       \
    "{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{}}}]}"
#define TOOL "{\"role\":\"tool\",\"content\":\"1\"}"

static void exchanges_are_grouped(void **state) {
    (void)state;
    struct err e = {0};
    struct exchange *x;
    size_t n;
    ASSERT_OK(load_exchanges(U("a") "\n" A("b") "\n" U("c") "\n" CALL "\n" TOOL "\n" TOOL
                                                            "\n" A("d") "\n",
                             &x, &n, &e),
              e);
    assert_int_equal(n, 2);
    assert_int_equal(x[0].count, 2);
    assert_int_equal(x[1].count, 5);
    assert_int_equal(x[1].turns[0].line, 3);
    ASSERT_OK(load_exchanges("{\"messages\":[" U("a") "," A("b") "," U("c") "," A(
                                 "d") "]}\n"
                                      "{\"messages\":[" U("e") "," A("f") "]}",
                             &x, &n, &e),
              e);
    assert_int_equal(n, 2);
    assert_int_equal(x[0].count, 4);
    assert_str(x[1].turns[1].m.text, "f");
    static const struct {
        const char *text, *error;
    } bad[] = {
        {A("a"), "jsonl:1: role assistant where user must stand"},
        {U("a"), "jsonl:1: the exchange does not end with the assistant's answer"},
        {U("a") "\n" U("b"), "jsonl:1: the exchange does not end"},
        {U("a") "\n" A("b") "\n" A("c"), "jsonl:3: role assistant where user must stand"},
        {U("a") "\n" CALL "\n" A("c"), "jsonl:3: role assistant where tool must stand"},
        {U("a") "\n" TOOL, "jsonl:2: role tool where assistant must stand"},
        {U("a") "\n" CALL, "jsonl:2: the exchange does not end"},
        {U("a") "\n{\"role\":\"system\",\"content\":\"x\"}", "jsonl:2: a system turn inside"},
        {"{\"messages\":[]}", "jsonl:1: \"messages\" are not a list, or an empty one"},
        {"{\"messages\":[" U("a") "," A("b") "]}\n" U("c"), "jsonl:2: a single turn after"},
        {U("a") "\n{\"messages\":[" U("a") "," A("b") "]}", "jsonl:2: \"messages\" after single"},
        {"{\"messages\":[" U("a") "," A("b") "],\"id\":1}", "unknown key \"id\""},
        {" \n", "there is no exchange in it"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ASSERT_FAILS(load_exchanges(bad[i].text, &x, &n, &e), e, ERR_CONFIG, bad[i].error);
}

// Against the spellings of Python 3.11's json.dumps(x, ensure_ascii=False), indent 4 the second.
static void json_is_pythons(void **state) {
    (void)state;
    static const struct {
        const char *text, *line, *indented;
    } rows[] = {
        {"{\"b\":[1,2.0,{}],\"a\":\"\\u00e9\\/\\\"\\\\\\t\\u0001\\u007f\"}",
         "{\"b\": [1, 2.0, {}], \"a\": \"\xC3\xA9/\\\"\\\\\\t\\u0001\x7F\"}",
         "{\n    \"b\": [\n        1,\n        2.0,\n        {}\n    ],\n    \"a\": "
         "\"\xC3\xA9/\\\"\\\\\\t\\u0001\x7F\"\n}"},
        {"[1e16,1e15,123456789012345678.0,1e-4,1e-5,1.5e-7,-0.0,5e-324,12345.678,1e22,0.1]",
         "[1e+16, 1000000000000000.0, 1.2345678901234568e+17, 0.0001, 1e-05, 1.5e-07, -0.0, "
         "5e-324, 12345.678, 1e+22, 0.1]",
         "[\n    1e+16,\n    1000000000000000.0,\n    1.2345678901234568e+17,\n    0.0001,\n    "
         "1e-05,\n    1.5e-07,\n    -0.0,\n    5e-324,\n    12345.678,\n    1e+22,\n    0.1\n]"},
        {"[true,false,null,[],-3]", "[true, false, null, [], -3]",
         "[\n    true,\n    false,\n    null,\n    [],\n    -3\n]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err e = {0};
        struct buf b = {0};
        json_t *value;
        ASSERT_OK(json_parse(str_from(rows[i].text), "row", &value, &e), e);
        json_python(value, 0, &b);
        assert_str(buf_str(&b), rows[i].line);
        buf_clear(&b);
        json_python(value, 4, &b);
        assert_str(buf_str(&b), rows[i].indented);
        json_decref(value);
        buf_free(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(turns_are_read, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(bad_turns_are_named, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(exchanges_are_grouped, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(json_is_pythons, test_arena_open, test_arena_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

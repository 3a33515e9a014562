// JSON and tool calls in replies.
#include "tests/support/check_yaml.h"
#include "tests/support/support.h"

#include "evals/explain.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct example {
    const char *check, *reply, *expected;
};

static const char *verdict(const char *check, const char *reply) {
    struct err e = {0};
    struct record_verdict v;
    const char *fields = arena_printf(test_arena, "    kind: state\n    check: %s", check);
    const struct check *c = check_from_yaml(fields, test_arena, &e);
    if (c == NULL) fail_msg("%s\n%s", check, e.text);
    return check_verdict(c, reply, "stop", test_arena, &v);
}

static void expect_all(const struct example *x, size_t count) {
    int wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const char *got = verdict(x[i].check, x[i].reply);
        if (strcmp(got, x[i].expected) == 0) continue;
        print_error("%s on %s: %s, expected %s\n", x[i].check, x[i].reply, got, x[i].expected);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}
#define EXPECT(list) expect_all(list, sizeof(list) / sizeof *(list))

static const struct example texts[] = {
    {"{json: {}}", "{\"a\": 1}", "met"},
    {"{json: {}}", " \n[1, 2]\n", "met"},
    {"{json: {}}", "7", "met"},
    {"{json: {}}", "```json\n{\"a\": 1}\n```", "met"},
    {"{json: {}}", "```\n{\"a\": 1}\n```\n", "met"},
    {"{json: {}}", "Here: {\"a\": 1}", "omitted"},
    {"{json: {}}", "```json\n{\"a\": 1}\n```\nDone.", "omitted"},
    {"{json: {where: block}}", "Here:\n```json\n{\"a\": 1}\n```\nDone.", "met"},
    {"{json: {where: block}}", "{\"a\": 1}", "omitted"},
    {"{json: {where: block, pointer: /a}}", "```c\nint x;\n```\n```\n{\"a\":1}\n```", "met"},
    {"{json: {where: block, pointer: /b}}", "```\n{\"a\":1}\n```\n```\n{\"b\":1}\n```", "omitted"},
    // What is no JSON.
    {"{json: {}}", "{'a': 1}", "omitted"},
    {"{json: {}}", "{\"a\": NaN}", "omitted"},
    {"{json: {}}", "[Infinity]", "omitted"},
    {"{json: {}}", "{\"a\": 1,}", "omitted"},
    {"{json: {}}", "{\"a\": 1} // done", "omitted"},
    {"{json: {}}", "{\"a\": 1}{\"b\": 2}", "omitted"},
    {"{json: {}}", "{\"a\": 1, \"a\": 2}", "omitted"}, // twice the same key
    {"{json: {}}", "{\"a\": \"x\ny\"}", "omitted"},
    {"{json: {}}", "[01]", "omitted"},
    // What cannot be decided.
    {"{json: {}}", "[123456789012345678901234567890]", "unscored:check:json_number"},
    {"{json: {}}", "[1e999]", "unscored:check:json_number"},
};

static void only_json_is_json(void **state) {
    (void)state;
    EXPECT(texts);
    struct buf deep = {0};
    for (int i = 0; i < 100000; i++) buf_add_char(&deep, '[');
    assert_string_equal(verdict("{json: {}}", deep.p), "unscored:check:json_depth");
    buf_clear(&deep);
    for (int i = 0; i < 1000; i++) buf_add_char(&deep, '[');
    for (int i = 0; i < 1000; i++) buf_add_char(&deep, ']');
    assert_string_equal(verdict("{json: {}}", deep.p), "met");
    buf_free(&deep);
}

#define DOCUMENT                                                                                   \
    "{\"a\": {\"b\": [10, \"x\", null, true, 2.5]}, \"m/n\": \"s\", \"t~u\": 3, \"\": 0, "         \
    "\"order\": \"19763\", \"list\": []}"
static const struct example pointers[] = {
    {"{json: {pointer: /a/b/0, equals: '10'}}", DOCUMENT, "met"},
    {"{json: {pointer: /a/b/0, equals: '10.0'}}", DOCUMENT, "met"},
    {"{json: {pointer: /a/b/0, equals: '11'}}", DOCUMENT, "omitted"},
    {"{json: {pointer: /a/b/1, equals: x}}", DOCUMENT, "met"},
    {"{json: {pointer: /a/b/1, equals: '\"x\"'}}", DOCUMENT, "omitted"},
    {"{json: {pointer: /a/b/2, equals: 'null'}}", DOCUMENT, "met"},
    {"{json: {pointer: /a/b/3, equals: 'true'}}", DOCUMENT, "met"},
    {"{json: {pointer: /a/b/4, equals: '2.50'}}", DOCUMENT, "met"},
    {"{json: {pointer: /list, equals: '[ ]'}}", DOCUMENT, "met"},
    {"{json: {pointer: /a/b/5}}", DOCUMENT, "omitted"},
    {"{json: {pointer: /a/b/00}}", DOCUMENT, "omitted"},
    {"{json: {pointer: /a/b/-}}", DOCUMENT, "omitted"},
    {"{json: {pointer: /m~1n, equals: s}}", DOCUMENT, "met"},
    {"{json: {pointer: /t~0u, equals: '3'}}", DOCUMENT, "met"},
    {"{json: {pointer: /, equals: '0'}}", DOCUMENT, "met"}, // the empty name
    {"{json: {pointer: /order, equals: '{{code}}'}}", DOCUMENT, "met"},
    {"{json: {pointer: /order, equals: '{{code}}', type: integer}}", DOCUMENT, "omitted"},
    {"{json: {pointer: /order, pattern: '\\A\\d{5}\\z', type: string}}", DOCUMENT, "met"},
    {"{json: {pointer: /order, pattern: '\\A\\d{4}\\z'}}", DOCUMENT, "omitted"},
    {"{json: {pointer: /a/b/0, type: number}}", DOCUMENT, "met"},
    {"{json: {pointer: /a/b/4, type: integer}}", DOCUMENT, "omitted"},
    {"{json: {pointer: /a, type: object}}", DOCUMENT, "met"},
    {"{json: {pointer: /list, type: array}}", DOCUMENT, "met"},
    {"{json: {pointer: /x, exists: false}}", DOCUMENT, "met"},
    {"{json: {pointer: /a, exists: false}}", DOCUMENT, "omitted"},
    {"{json: {pointer: /x, exists: false}}", "no JSON", "omitted"},
    {"{json: {pointer: /a/b, exists: true}}", DOCUMENT, "met"},
    {"{json: {type: array}}", "[]", "met"},
    {"{json: {pointer: /order, pattern: '(1+)+$', type: string}}",
     "{\"order\": \"1111111111111111111111111111111111111111x\"}", "unscored:check:match_limit"},
};

static void pointers_find_values(void **state) {
    (void)state;
    EXPECT(pointers);
}

#define CALL(text) "<tool_call>\n" text "\n</tool_call>"
static const struct example calls[] = {
    {"{tool_call: {name: find}}", CALL("{\"name\": \"find\", \"arguments\": {}}"), "met"},
    {"{tool_call: {name: find}}", "Let me look.\n" CALL("{\"name\":\"find\",\"arguments\":{}}"),
     "met"},
    {"{tool_call: {name: find}}", CALL("{\"name\": \"Find\", \"arguments\": {}}"), "omitted"},
    {"{tool_call: {name: find}}", CALL("{\"name\": \"find\"}"), "omitted"},
    {"{tool_call: {name: find}}", CALL("{\"name\": \"find\", \"arguments\": }"), "omitted"},
    {"{tool_call: {name: find}}", "I would call find({})", "omitted"},
    {"{tool_call: {name: find}}", "{\"name\": \"find\", \"parameters\": {\"a\": 1}}", "met"},
    {"{tool_call: {name: find}}",
     "[{\"name\":\"x\",\"arguments\":{}},"
     "{\"name\":\"find\",\"arguments\":{}}]",
     "met"},
    {"{tool_call: {name: find}}", "```json\n{\"name\":\"find\",\"arguments\":{}}\n```", "met"},
    // A tag, once there, is where calls stand.
    {"{tool_call: {name: find}}", "<tool_call>", "omitted"},
    {"{tool_call: {name: find}}", "<tool_call>{\"name\":\"find\",\"arguments\":{}}", "met"},
    {"{tool_call: {name: find, arguments: [{pointer: /order, equals: '{{code}}'}]}}",
     CALL("{\"name\":\"find\",\"arguments\":{\"order\":19763}}"), "met"},
    {"{tool_call: {name: find, arguments: [{pointer: /order, equals: '{{code}}'}]}}",
     CALL("{\"name\":\"find\",\"arguments\":{\"order\":19764}}"), "omitted"},
    // As a string that is JSON.
    {"{tool_call: {name: find, arguments: [{pointer: /order, equals: '{{code}}'}]}}",
     CALL("{\"name\":\"find\",\"arguments\":\"{\\\"order\\\": \\\"19763\\\"}\"}"), "met"},
    // One call must have them all.
    {"{tool_call: {name: f, arguments: [{pointer: /a}, {pointer: /b}]}}",
     CALL("{\"name\":\"f\",\"arguments\":{\"a\":1}}")
         CALL("{\"name\":\"f\",\"arguments\":{\"b\":1}}"),
     "omitted"},
    {"{tool_call: {name: f, arguments: [{pointer: /a}, {pointer: /b, exists: false}]}}",
     CALL("{\"name\":\"f\",\"arguments\":{\"b\":1}}")
         CALL("{\"name\":\"f\",\"arguments\":{\"a\":1}}"),
     "met"},
};

static void calls_are_found_as_models_write_them(void **state) {
    (void)state;
    EXPECT(calls);
}

// Each of them read on its own up to the end of the text would take minutes and gigabytes.
static void calls_begun_again_and_again_take_no_time(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    static const char *const begins[] = {"<tool_call>", "<tool_call>{\"a"};
    for (size_t k = 0; k < 2; k++) {
        struct buf reply = {0};
        for (int i = 0; i < COUNT; i++) buf_add_c(&reply, begins[k]);
        buf_add_c(&reply, "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>");
        clock_t start = clock();
        assert_string_equal(verdict("{tool_call: {name: f}}", reply.p), "met");
        reply.p[reply.n - 3] = 'x'; // the end tag is none
        assert_string_equal(verdict("{tool_call: {name: f}}", reply.p), "omitted");
        assert_true(clock() - start < 5 * CLOCKS_PER_SEC);
        buf_free(&reply);
    }
}

static void what_cannot_be_read_is_explained(void **state) {
    (void)state;
    struct err e = {0};
    struct record_verdict v;
    const struct check *c =
        check_from_yaml("    kind: state\n    check: {json: {}}", test_arena, &e);
    if (c == NULL) fail_msg("%s", e.text);
    const char *text = "[1e999]";
    check_verdict(c, text, "stop", test_arena, &v);
    const struct experiment_constraint x = {.kind = CONSTRAINT_STATE};
    const struct reply r = {.text = str_from(text), .answer = {0, strlen(text)}, .finish = "stop"};
    assert_non_null(strstr(explain_verdict(&x, &v, &r, test_arena), "the JSON in the reply"));
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)
    const struct CMUnitTest tests[] = {
        TEST(only_json_is_json),
        TEST(pointers_find_values),
        TEST(calls_are_found_as_models_write_them),
        TEST(calls_begun_again_and_again_take_no_time),
        TEST(what_cannot_be_read_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, check_yaml_teardown);
}

// The thinking part is set aside: the inputs of bug report B35 and what models make of the tags.
#include "tests/support/support.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "evals/thinking.h"
#include "tests/support/check_yaml.h"

#include <stdio.h>
#include <string.h>

// A sanitizer looks at every byte that a search may look at.
#ifdef __SANITIZE_ADDRESS__
#define ANSWER_MS_MOST 10000.0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ANSWER_MS_MOST 10000.0
#endif
#endif
#ifndef ANSWER_MS_MOST
#define ANSWER_MS_MOST 500.0
#endif

static struct str answer_of(struct str reply) {
    size_t answer[2];
    thinking_answer(reply, STR("<think>"), STR("</think>"), answer);
    assert_true(answer[0] <= answer[1] && answer[1] <= reply.n);
    return str_slice(reply, answer[0], answer[1]);
}

static const struct {
    const char *reply, *answer;
} cases[] = {
    {"<think>maybe 9999</think>7413", "7413"},
    {"maybe 9999</think>\n7413", "\n7413"}, // nothing is trimmed
    {"<think>it is 7413", ""},
    {"<think></think>", ""},
    {"<think></think> \n", ""},
    {"<think>a</think>\n<think>9999</think>7413", "7413"},
    {"<think>a</think>first<think>9999</think>7413", "7413"},
    {"<think>a</think>7413\n<think>was that right? 9999</think>\n", "7413\n"},
    {"<think>a</think>7413 (what follows `</think>` counts)",
     "7413 (what follows `</think>` counts)"},
    {"7413, and `</think>` is a tag", "7413, and `</think>` is a tag"},
    {"7413:\n```\n<think>\n```\n", "7413:\n```\n<think>\n```\n"},
    {"7413, `<think>` and `</think>`", "7413, `<think>` and `</think>`"},
    {"plain 7413", "plain 7413"},
    {"", ""},
    // Never closed, wherever it began.
    {"7413 <think>or 9999", ""},
    {"<think>a</think>7413<think>hm", ""},
    // Marks in the thinking that never pair do not hide its end.
    {"<think>a ` and\n```c\nint x;</think>7413", "7413"},
    {"it's `x\n```c\nint x;</think>7413", "7413"},
    {"<think>one <think> two</think>7413", "7413"},
    {"</think>7413", "7413"},
    {"<thinking>7413", "<thinking>7413"},
};

static void answers_are_what_stands_outside(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str got = answer_of(str_from(cases[i].reply));
        if (!str_equal_c(got, cases[i].answer))
            fail_msg("%s: \"" STR_FMT "\", expected \"%s\"", cases[i].reply, STR_ARG(got),
                     cases[i].answer);
    }
    size_t answer[2];
    struct str reply = STR("<think>a</think>7413");
    thinking_answer(reply, (struct str){0}, (struct str){0}, answer);
    assert_int_equal(answer[0], 0); // no tags are configured
    assert_int_equal(answer[1], reply.n);
}

// What was only thought neither meets nor violates.
static void verdicts_look_at_the_answer(void **state) {
    (void)state;
    struct err e = {0};
    const struct check *c = check_from_yaml(
        "    kind: state\n    value: \"{{code}}\"\n    violated: '(?<!\\d)\\d{5}(?!\\d)'",
        test_arena, &e);
    if (c == NULL) fail_msg("%s", e.text);
    static const struct {
        const char *reply, *finish;
        enum verdict verdict;
        const char *reason;
    } replies[] = {
        {"<think>maybe 48213</think>19763", "stop", VERDICT_MET, NULL},
        {"maybe 48213</think>\n19763", "stop", VERDICT_MET, NULL},
        {"<think>19763</think>48213", "stop", VERDICT_VIOLATED, NULL},
        {"<think>19763</think>it is ready", "stop", VERDICT_OMITTED, NULL},
        {"<think>it is 19763", "stop", VERDICT_UNSCORED, "no_answer"},
        {"<think>it is 19763", "length", VERDICT_UNSCORED, "cut"},
        {"<think></think>", "stop", VERDICT_UNSCORED, "no_answer"},
        {"", "stop", VERDICT_UNSCORED, "empty"},
        {"<think>a</think>19763 (`</think>` 1)", "stop", VERDICT_MET, NULL},
    };
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        struct reply r = {.text = str_from(replies[i].reply), .finish = replies[i].finish};
        struct record_verdict v;
        thinking_answer(r.text, STR("<think>"), STR("</think>"), r.answer);
        check_judge(c, &r, test_arena, &v);
        if (v.verdict != replies[i].verdict) fail_msg("%s: %d", replies[i].reply, v.verdict);
        if (replies[i].reason != NULL) assert_string_equal(v.reason, replies[i].reason);
        // Offsets count from the start of the reply, thinking included.
        if (v.has_match && v.verdict == VERDICT_MET)
            assert_memory_equal(replies[i].reply + v.match[0], "19763", 5);
    }
}

static void long_replies_take_no_longer(void **state) {
    (void)state;
    static const char *const units[] = {"<think>",    "</think>", "`<think>", "```\n<think>",
                                        "`</think>`", "\n```",    "`"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct buf b = {0};
        while (b.n < 1000000) buf_add_c(&b, units[i]);
        uint64_t begin = clock_cpu_ns();
        answer_of(buf_str(&b));
        double ms = CLOCK_MS(clock_cpu_ns() - begin);
        if (ms > ANSWER_MS_MOST) fail_msg("%s: %.0f ms", units[i], ms);
        buf_free(&b);
    }
}

static void tags_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *tags, *text;
    } wrong[] = {
        {"{open: \"<think>\"}", "models[0].thinking.close: is missing"},
        {"{open: \"\", close: \"x\"}", "models[0].thinking.open: an empty tag"},
        {"{open: \"<t\", close: \"<t>\"}",
         "models[0].thinking.close: one tag stands inside the other"},
        {"{open: \"(t) x\", close: \"t\"}",
         "models[0].thinking.close: one tag stands inside the other"},
        {"{open: \"`\", close: \"x\"}", "models[0].thinking.open: a tag in backticks"},
        {"{open: \"x\", close: \"```\"}", "models[0].thinking.close: a tag in backticks"},
        {"{open: \"x\", close: \"x\"}", "models[0].thinking.close: must differ"},
        {"yes", "models[0].thinking: expected a mapping"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct err e = {0};
        const char *path = path_join(test_arena, test_folder(), "x.yaml");
        test_write(path, str_from(arena_printf(
                             test_arena,
                             "lacuna: 1\nname: t\n"
                             "models: [{id: m, path: m.gguf, context_tokens: 2048, thinking: %s}]\n"
                             "prompt: {messages: [{role: user, text: \"{{filler}}\"}]}\n"
                             "constraints: [{id: c, kind: state, text: \"x\", value: \"x1\"}]\n"
                             "placements: [{id: p, move: [c], depths: [middle]}]\n"
                             "lengths: {tokens: [256]}\nrepeats: 1\n",
                             wrong[i].tags)));
        struct experiment *x;
        ASSERT_FAILS(experiment_load(path, NULL, test_arena, &x, &e), e, ERR_CONFIG, wrong[i].text);
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)
    const struct CMUnitTest tests[] = {
        TEST(answers_are_what_stands_outside),
        TEST(verdicts_look_at_the_answer),
        TEST(long_replies_take_no_longer),
        TEST(tags_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, check_yaml_teardown);
}

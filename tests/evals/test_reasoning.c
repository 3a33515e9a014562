// The thinking part is set aside: the inputs of bug report B35 and what models make of the tags.
#include "tests/support/support.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "engine/base/rng.h"
#include "evals/answer.h"
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

#define OPEN "<think>"
#define CLOSE "</think>"
static const struct reasoning_tags tags = {.open = {OPEN, 7}, .close = {CLOSE, 8}};
static const struct reasoning_tags opened = {
    .open = {OPEN, 7}, .close = {CLOSE, 8}, .opened = true};

static struct str answer_of(const struct reasoning_tags *t, struct str reply) {
    size_t answer[2];
    answer_find(t, reply, answer);
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
    {"it's `x` <think>a</think>7413", "7413"},
    {"it's `x <think>a</think>7413", "7413"},           // the span is never closed
    {"7413:\n```\n<think>\n", "7413:\n```\n<think>\n"}, // a fence that is not goes to the end
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
        struct str got = answer_of(&tags, str_from(cases[i].reply));
        if (!str_equal_c(got, cases[i].answer))
            fail_msg("%s: \"" STR_FMT "\", expected \"%s\"", cases[i].reply, STR_ARG(got),
                     cases[i].answer);
    }
    size_t answer[2];
    struct str reply = STR("<think>a</think>7413");
    answer_find(&(struct reasoning_tags){0}, reply, answer);
    assert_int_equal(answer[0], 0); // no tags are configured
    assert_int_equal(answer[1], reply.n);
}

// The prompt has opened the block: without a closing tag there is nothing but reasoning.
static void a_reply_may_begin_inside(void **state) {
    (void)state;
    static const struct {
        const char *reply, *answer;
    } replies[] = {
        {"it is 7413", ""},
        {"", ""},
        {"so</think>7413", "7413"},
        {"``` and ` <think> again</think>7413", "7413"},
        {"a</think>7413<think>b", ""},
        {"a</think>7413 `<think>`", "7413 `<think>`"},
        {"a</think>\n", ""},
    };
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        struct str got = answer_of(&opened, str_from(replies[i].reply));
        if (!str_equal_c(got, replies[i].answer))
            fail_msg("%s: \"" STR_FMT "\", expected \"%s\"", replies[i].reply, STR_ARG(got),
                     replies[i].answer);
    }
    assert_true(reasoning_opened_by(&tags, STR("<|im_start|>assistant\n<think>\n")));
    assert_true(reasoning_opened_by(&(struct reasoning_tags){STR("<think>\n"), STR("</think>"), 0},
                                    STR("assistant\n<think>")));
    assert_false(reasoning_opened_by(&tags, STR("<think>\n\n</think>\n\n")));
    assert_false(reasoning_opened_by(&tags, STR("<|im_start|>assistant\n")));
    assert_false(reasoning_opened_by(&(struct reasoning_tags){0}, STR("")));
}

// Fed in pieces of any size, the meter says at the end of each line what the whole text says: code
// on a line that has ended, and fences, are the same for both.
static void a_growing_reply_is_followed(void **state) {
    (void)state;
    static const char *const pieces[] = {"<think>", "</think>", "<thi", "nk>", "</",
                                         "think>",  "`",        "```",  "\n",  "\n```",
                                         "word",    " ",        "<"};
    struct rng r = rng_open(20, "reasoning", "growing");
    for (int round = 0; round < 20000; round++) {
        struct buf text = {0};
        const struct reasoning_tags *t = rng_below(&r, 2) ? &tags : &opened;
        for (uint64_t n = rng_below(&r, 14) + 1; n > 0; n--)
            buf_add_c(&text, pieces[rng_below(&r, sizeof pieces / sizeof *pieces)]);
        buf_add_char(&text, '\n');
        struct str whole = buf_str(&text);
        struct reasoning_block block = {.closed = !t->opened};
        struct reasoning_meter m;
        size_t at = 0;
        while (reasoning_next(t, whole, &at, &block)) {
            assert_true(block.begin < block.end && block.end <= whole.n && at == block.end);
            if (block.closed) continue;
            assert_int_equal(block.end, whole.n);
        }
        reasoning_start(&m, t);
        for (size_t old = 0, end; old < whole.n; old = end) {
            end = old + 1 + (size_t)rng_below(&r, 9);
            if (end > whole.n) end = whole.n;
            while (reasoning_follow(&m, str_slice(whole, 0, end))) continue;
        }
        // A closing tag without an opening one is known only behind it.
        struct reasoning_block first;
        at = 0;
        bool known = !reasoning_next(t, whole, &at, &first) || t->opened ||
                     str_starts(str_slice(whole, first.begin, whole.n), STR(OPEN));
        if (known && m.inside == block.closed) fail_msg("%s", text.p);
        buf_free(&text);
    }
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
        {"<think>it is 19763", "reasoning_length", VERDICT_UNSCORED, "cut"},
        {"<think>it is 19763</think>It is", "length", VERDICT_UNSCORED, "cut"},
        {"<think></think>", "stop", VERDICT_UNSCORED, "no_answer"},
        {"", "stop", VERDICT_UNSCORED, "empty"},
        {"<think>a</think>19763 (`</think>` 1)", "stop", VERDICT_MET, NULL},
    };
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        struct reply r = {.text = str_from(replies[i].reply), .finish = replies[i].finish};
        struct record_verdict v;
        answer_find(&tags, r.text, r.answer);
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
        answer_of(&tags, buf_str(&b));
        double ms = CLOCK_MS(clock_cpu_ns() - begin);
        if (ms > ANSWER_MS_MOST) fail_msg("%s: %.0f ms", units[i], ms);
        buf_free(&b);
    }
}

static void tags_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *reasoning, *text;
    } wrong[] = {
        {"{open: \"<think>\"}", "models[0].reasoning.close: is missing"},
        {"{open: \"\", close: \"x\"}", "models[0].reasoning.open: an empty tag"},
        {"{open: \"<t\", close: \"<t>\"}",
         "models[0].reasoning.close: one tag stands inside the other"},
        {"{open: \"(t) x\", close: \"t\"}",
         "models[0].reasoning.close: one tag stands inside the other"},
        {"{open: \"`\", close: \"x\"}", "models[0].reasoning.open: a tag in backticks"},
        {"{open: \"x\", close: \"```\"}", "models[0].reasoning.close: a tag in backticks"},
        {"{open: \"x\", close: \"x\"}", "models[0].reasoning.close: must differ"},
        {"{max_tokens: 9}", "models[0].reasoning.open: is missing"},
        {"{open: \"<t>\", close: \"</t>\", max_tokens: 1700}",
         "max_tokens of reasoning and answer 1796 = 2052, more than context_tokens 2048"},
        {"yes", "models[0].reasoning: expected a mapping"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct err e = {0};
        const char *path = path_join(test_arena, test_folder(), "x.yaml");
        test_write(path,
                   str_from(arena_printf(
                       test_arena,
                       "lacuna: 1\nname: t\n"
                       "models: [{id: m, path: m.gguf, context_tokens: 2048, reasoning: %s}]\n"
                       "prompt: {messages: [{role: user, text: \"{{filler}}\"}]}\n"
                       "constraints: [{id: c, kind: state, text: \"x\", value: \"x1\"}]\n"
                       "placements: [{id: p, move: [c], depths: [middle]}]\n"
                       "lengths: {tokens: [256]}\nrepeats: 1\n",
                       wrong[i].reasoning)));
        struct experiment *x;
        ASSERT_FAILS(experiment_load(path, NULL, test_arena, &x, &e), e, ERR_CONFIG, wrong[i].text);
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)
    const struct CMUnitTest tests[] = {
        TEST(answers_are_what_stands_outside), TEST(a_reply_may_begin_inside),
        TEST(a_growing_reply_is_followed),     TEST(verdicts_look_at_the_answer),
        TEST(long_replies_take_no_longer),     TEST(tags_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, check_yaml_teardown);
}

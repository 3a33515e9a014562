// Composite checks: what each verb means, replies that were cut, errors, ranges, fillers, proofs.
#include "tests/support/check_yaml.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct example {
    const char *check; // flow YAML under `check`, kind state unless it says `kind`
    const char *reply, *finish, *expected;
};

static const char *fields_of(const char *check) {
    if (strncmp(check, "kind", 4) == 0) return arena_printf(test_arena, "    %s", check);
    return arena_printf(test_arena, "    kind: state\n    check: %s", check);
}

static const struct check *load(const char *check) {
    struct err e = {0};
    const struct check *c = check_from_yaml(fields_of(check), test_arena, &e);
    if (c == NULL) fail_msg("%s\n%s", check, e.text);
    return c;
}

static void expect_all(const struct example *x, size_t count) {
    int wrong = 0;
    for (size_t i = 0; i < count; i++) {
        struct record_verdict v;
        const char *got = check_verdict(load(x[i].check), x[i].reply, x[i].finish, test_arena, &v);
        if (strcmp(got, x[i].expected) == 0) continue;
        print_error("%s on \"%s\" (%s): %s, expected %s\n", x[i].check, x[i].reply, x[i].finish,
                    got, x[i].expected);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}
#define EXPECT(list) expect_all(list, sizeof(list) / sizeof *(list))

static const struct example logic[] = {
    {"{all: [{value: '{{code}}'}, {pattern: ready}]}", "19763 is ready", "stop", "met"},
    {"{all: [{value: '{{code}}'}, {pattern: ready}]}", "19763 is late", "stop", "omitted"},
    {"{any: [{value: '{{code}}'}, {pattern: ready}]}", "it is ready", "stop", "met"},
    {"{any: [{value: '{{code}}'}, {pattern: ready}]}", "it is late", "stop", "omitted"},
    {"{all: [{pattern: a}, {not: {pattern: '\\$'}}]}", "a dog", "stop", "met"},
    {"{all: [{pattern: a}, {not: {pattern: '\\$'}}]}", "a dog for $5", "stop", "omitted"},
    {"{not: {any: [{pattern: x}, {pattern: w}]}}", "a", "stop", "met"},
    {"{not: {any: [{pattern: x}, {pattern: w}]}}", "aw", "stop", "omitted"},
    {"{order: [{pattern: one}, {pattern: two}]}", "two one two", "stop", "met"},
    {"{order: [{pattern: one}, {pattern: two}]}", "two one", "stop", "omitted"},
    {"{order: [{pattern: a}, {pattern: a}]}", "a", "stop", "omitted"}, // not twice the same
    {"{order: [{pattern: a}, {pattern: a}]}", "aa", "stop", "met"},
    // Context in front counts: 19763 is not in 119763, wherever the search begins.
    {"{order: [{pattern: 'x1'}, {value: '{{code}}'}]}", "x119763", "stop", "omitted"},
    {"{order: [{any: [{pattern: z}, {pattern: b}]}, {pattern: c}]}", "a b c z", "stop", "met"},
    {"{pattern: READY, ignore_case: true}", "ready", "stop", "met"},
    {"{all: [{pattern: READY}, {pattern: '^b$', multiline: true}], ignore_case: true}", "ready\nB",
     "stop", "met"},
    {"{pattern: 'a.b'}", "a\nb", "stop", "omitted"},
    {"{pattern: 'a.b', dotall: true}", "a\nb", "stop", "met"},
};

static void logic_is_what_it_says(void **state) {
    (void)state;
    EXPECT(logic);
}

static const struct example counts[] = {
    {"{count: {pattern: 'a', exactly: 2}}", "banana", "stop", "omitted"},
    {"{count: {pattern: 'a', exactly: 3}}", "banana", "stop", "met"},
    {"{count: {pattern: 'ana', at_least: 2}}", "banana", "stop", "omitted"}, // none inside another
    {"{count: {value: '{{code}}', at_least: 2}}", "19,763 or 19763", "stop", "met"},
    {"{count: {value: '{{code}}', at_most: 1}}", "19,763 or 19763", "stop", "omitted"},
    {"{count: {of: [{pattern: a}, {pattern: b}, {pattern: c}], at_least: 2}}", "xc a", "stop",
     "met"},
    {"{count: {of: [{pattern: a}, {pattern: b}, {pattern: c}], exactly: 2}}", "abc", "stop",
     "omitted"},
    {"{words: {exactly: 5}}", "Don't stop: well-known 1,234.5 facts.", "stop", "met"},
    {"{words: {exactly: 4}}", "\u4F60\u597D\u4E16\u754C", "stop", "met"},
    {"{words: {exactly: 2}}", "\u0645\u0631\u062D\u0628\u0627 \u0628\u0643", "stop", "met"},
    {"{words: {exactly: 1}}", "cafe\u0301", "stop", "met"},
    {"{words: {at_least: 1}}", " -- ... !", "stop", "omitted"},
    {"{letters: {exactly: 5}}", "a1 b2 \u00E9\u00E8\u4E2D!", "stop", "met"},
    {"{sentences: {exactly: 3}}", "One. \"Two!\" Three?", "stop", "met"},
    {"{sentences: {exactly: 2}}", "It is 3.5 km. Go", "stop", "met"},
    {"{sentences: {exactly: 3}}", "Title\n\n1. First item\n2. Second item.", "stop", "met"},
    {"{sentences: {exactly: 2}}", "\u4F60\u597D\u3002\u518D\u89C1\u3002", "stop", "met"},
    {"{sentences: {exactly: 1}}", "Wait... what", "stop", "omitted"},
    {"{lines: {exactly: 2}}", "\n a \n\n \nb\n", "stop", "met"},
    {"{lines: {exactly: 2}}", "a\r\nb\r\n", "stop", "met"},
    {"{paragraphs: {exactly: 2}}", "a\nb\n\n \nc\n\n", "stop", "met"},
    {"{paragraphs: {exactly: 3, separator: '\\*{3}'}}", "a *** b *** c", "stop", "met"},
    {"{paragraphs: {exactly: 3, separator: '\\*{3}'}}", "a *** *** c", "stop", "omitted"},
    {"{line: {number: 1, pattern: '\\AHi'}}", "\nHi you\nBye", "stop", "met"},
    {"{line: {number: -1, pattern: '\\ABye\\z'}}", "Hi\r\nBye\r\n", "stop", "met"},
    {"{line: {number: 3, pattern: '.'}}", "Hi\nBye", "stop", "omitted"},
    {"{line: {number: -2, check: {all: [{pattern: H}, {words: {exactly: 1}}]}}}", "Hi\nBye", "stop",
     "met"},
    {"{paragraph: {number: 2, pattern: '\\Atulip\\b'}}", "a tulip\n\ntulip b", "stop", "met"},
    {"{paragraph: {number: 2, pattern: '\\Atulip\\b', separator: '---'}}", "a---\n tulip", "stop",
     "met"},
};

static void counts_and_pieces(void **state) {
    (void)state;
    EXPECT(counts);
}

// Bug report B39: the right number in another dress, and what is none of it.
static const struct example numbers[] = {
    {"{number: {equals: '1234'}}", "**1,234**", "stop", "met"},
    {"{number: {equals: '1234'}}", "\\boxed{1234}", "stop", "met"},
    {"{number: {equals: '1234'}}", "1\u00A0234", "stop", "met"},
    {"{number: {equals: '1234'}}", "\uFF11\uFF12\uFF13\uFF14", "stop", "met"},
    {"{number: {equals: '1234'}}", "1234.", "stop", "met"},
    {"{number: {equals: '1234'}}", "1234.0", "stop", "met"},
    {"{number: {equals: '1234'}}", "1.234,00", "stop", "met"},
    {"{number: {equals: '1234'}}", "The code was 1234, not 4321", "stop", "met"},
    {"{number: {equals: '1234'}}", "item-1234", "stop", "met"}, // a hyphen
    {"{number: {equals: '1234'}}", "-1234", "stop", "omitted"},
    {"{number: {equals: '1234'}}", "11,234", "stop", "omitted"},
    {"{number: {equals: '1234'}}", "12345", "stop", "omitted"},
    {"{number: {equals: '1234'}}", "C is not my answer", "stop", "omitted"},
    {"{number: {equals: '1234'}}", "1234-5", "stop", "omitted"},
    {"{number: {equals: '1234'}}", "", "stop", "unscored:empty"},
    {"{number: {equals: '-5.5', within: 0.25}}", "about \u22125.3 degrees", "stop", "met"},
    {"{number: {equals: '-5.5', within: 0.25}}", "about -5.2 degrees", "stop", "omitted"},
    {"{number: {equals: '-5.5', within: 0.25}}", "about 5.5 degrees", "stop", "omitted"},
    {"{number: {equals: '1.5'}}", "1,50", "stop", "met"},
    {"{number: {equals: '1.234'}}", "1.234", "stop", "met"}, // read both ways
    {"{number: {equals: '1234'}}", "1.234", "stop", "met"},
    {"{number: {equals: '12'}}", "on 12/05/2024 at 12:30, version 12.1.3", "stop", "omitted"},
    {"{number: {equals: '12'}}", "in 12 345 cases", "stop", "omitted"},
    {"{number: {equals: '12'}}", "12 34", "stop", "met"},
    {"{number: {equals: '1234567'}}", "1,234,567.00", "stop", "met"},
    {"{number: {equals: '{{code}}', within: 1}}", "19,762", "stop", "met"},
    {"{number: {equals: '7', within: 1}}", "9999999999999999999999", "stop", "omitted"},
    {"{number: {equals: '1234'}}", "It is 1234", "length", "unscored:cut"}, // or 12345
    {"{number: {equals: '1234'}}", "It is 1234, I believe", "length", "met"},
    {"{not: {number: {equals: '5'}}}", "4 6", "stop", "met"},
};

static void numbers_in_any_dress(void **state) {
    (void)state;
    EXPECT(numbers);
    struct err e = {0};
    assert_null(check_from_yaml(fields_of("{number: {equals: 12a}}"), test_arena, &e));
    assert_non_null(strstr(e.text, "check: \"12a\" is no number"));
}

static const struct example cuts[] = {
    // What is there stays there.
    {"{all: [{value: '{{code}}'}, {pattern: is}]}", "19763 is re", "length", "met"},
    {"{any: [{value: '{{code}}'}, {not: {pattern: x}}]}", "19763 is re", "length", "met"},
    {"{words: {at_least: 2}}", "one two three", "length", "met"},
    {"{words: {at_least: 3}}", "one two thr", "length", "unscored:cut"}, // may be "thr-ee" alone
    {"{sentences: {at_least: 2}}", "One.\nTwo\n1", "length", "met"},
    {"{sentences: {at_least: 2}}", "One.\nTwo\n1. ", "length", "met"}, // its 1 is no sentence now
    {"{sentences: {at_least: 2}}", "One.\nTwo", "length", "unscored:cut"},
    {"{paragraphs: {at_least: 2}}", "One.\n\nTwo\n", "length", "unscored:cut"},
    {"{line: {number: 1, pattern: 'a$'}}", "a\nb", "length", "met"},
    {"{json: {where: block}}", "```\n{}\n```\nand", "length", "met"},
    {"{tool_call: {name: f}}", "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call> no",
     "length", "met"},
    // What could still come, or go, is not decided.
    {"{all: [{value: '{{code}}'}, {not: {pattern: x}}]}", "19763 is re", "length", "unscored:cut"},
    {"{words: {at_most: 9}}", "one two", "length", "unscored:cut"},
    {"{words: {at_most: 1}}", "one two three", "length", "unscored:cut"},
    {"{pattern: 'end\\z'}", "the end", "length", "unscored:cut"},
    {"{line: {number: 1, pattern: 'a$'}}", "a", "length", "unscored:cut"},
    {"{line: {number: -1, pattern: 'b'}}", "a\nb", "length", "unscored:cut"},
    {"{json: {}}", "{}", "length", "unscored:cut"},
    {"{order: [{pattern: a}, {pattern: 'b\\z'}]}", "a b", "length", "unscored:cut"},
    // A wrong reply that more text could not make right is violated, cut or not.
    {"kind: state\n    value: x\n    violated_check: {not: {pattern: w}}", "z", "stop", "violated"},
    {"kind: state\n    value: x\n    violated_check: {not: {pattern: w}}", "z", "length",
     "unscored:cut"},
    {"kind: state\n    value: x\n    violated_check: {words: {at_least: 2}}", "a b c", "length",
     "violated"},
    {"kind: forbid\n    answered: '\\w'\n    violated_check: {count: {pattern: a, at_least: 2}}",
     "a a", "stop", "violated"},
    {"kind: forbid\n    answered: '\\w'\n    violated_check: {count: {pattern: a, at_least: 2}}",
     "a b", "stop", "met"},
    {"kind: forbid\n    answered: '\\w'\n    violated_check: {count: {pattern: a, at_least: 2}}",
     "a b", "length", "unscored:cut"},
};

static void cut_replies_decide_only_what_stays(void **state) {
    (void)state;
    EXPECT(cuts);
}

#define BOOM "{pattern: '(a+)+$'}"
static const struct example errors[] = {
    {BOOM, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "stop", "unscored:check:match_limit"},
    {"{not: " BOOM "}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "stop",
     "unscored:check:match_limit"},
    {"{all: [" BOOM ", {pattern: a}]}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "stop",
     "unscored:check:match_limit"},
    // The outcome does not depend on it.
    {"{all: [" BOOM ", {pattern: b}]}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "stop",
     "omitted"},
    {"{any: [" BOOM ", {pattern: a}]}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "stop", "met"},
    {"{any: [" BOOM ", {pattern: b}]}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "stop",
     "unscored:check:match_limit"},
    {"{count: {of: [" BOOM ", {pattern: a}, {pattern: '!'}], at_least: 2}}",
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "stop", "met"},
    {"{count: {of: [" BOOM ", {pattern: a}, {pattern: '!'}], at_least: 3}}",
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "stop", "unscored:check:match_limit"},
    {"{count: {pattern: '(a+)+$', at_most: 3}}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
     "stop", "unscored:check:match_limit"},
};

static void an_error_counts_only_where_it_matters(void **state) {
    (void)state;
    EXPECT(errors);
}

static const struct example rewritings[] = {
    {"{pattern: '\\Ahello world\\z', normalize: [strip_markdown, fold_case, fold_space]}",
     "## **Hello**\n  `WORLD`  ", "stop", "met"},
    {"{pattern: 'snake_case', normalize: [strip_markdown]}", "_snake_case_", "stop", "met"},
    {"{pattern: '\\Asee docs\\.\\z', normalize: [strip_markdown]}", "> see [docs](http://x/y).",
     "stop", "met"},
    {"{pattern: '\\Aa \\[b c \\[d\\]\\(e f\\) g\\z', normalize: [strip_markdown]}",
     "a [b c [d](e f) [g](h)", "stop", "met"},
    {"{pattern: '\\A\\[a\\s\\]\\(b\\) c d\\z', normalize: [strip_markdown]}",
     "[a\n](b) [c](x) [d](y)", "stop", "met"},
    {"{pattern: 'fi 12', normalize: [nfkc]}", "\uFB01 \uFF11\uFF12", "stop", "met"},
    {"{pattern: 'fi 12'}", "\uFB01 \uFF11\uFF12", "stop", "omitted"},
    {"{pattern: 'strasse', normalize: [fold_case]}", "STRA\u00DFE", "stop", "met"},
    {"{value: 'Anna', normalize: [fold_case]}", "ANNA", "stop", "met"},
    {"{value: 'Anna'}", "ANNA", "stop", "omitted"},
    {"{all: [{pattern: '\\*'}, {pattern: '\\Ab\\z', normalize: [strip_markdown]}]}", "**b**",
     "stop", "met"},
    {"{line: {number: 2, check: {pattern: '\\Ab c\\z', normalize: [fold_space]}}}", "a\n b   c",
     "stop", "met"},
};

static void texts_are_rewritten_only_where_asked(void **state) {
    (void)state;
    EXPECT(rewritings);
}

// A search for the end of each of them alone would take minutes.
static void openings_of_links_take_no_time(void **state) {
    (void)state;
    enum { COUNT = 1000000 };
    char *reply = arena_alloc(test_arena, COUNT + 7);
    memset(reply, '[', COUNT);
    memcpy(reply + COUNT, "](a b)", 7);
    const struct example x = {"{pattern: '\\[\\]\\(a b\\)\\z', normalize: [strip_markdown]}", reply,
                              "stop", "met"};
    clock_t start = clock();
    expect_all(&x, 1);
    assert_true(clock() - start < 5 * CLOCKS_PER_SEC);
}

// Ranges lead back to the reply, through rewritings and pieces.
static void ranges_are_bytes_of_the_reply(void **state) {
    (void)state;
    static const struct {
        const char *check, *reply, *matched;
    } cases[] = {
        {"{all: [{pattern: b}, {value: '{{code}}'}]}", "a 19763 b c", "19763 b"},
        {"{any: [{pattern: c}, {pattern: b}]}", "a b c", "b"},
        {"{order: [{pattern: b}, {pattern: d}]}", "a b c d e", "b c d"},
        {"{count: {pattern: a, at_least: 2}}", "xax bab", "ax ba"},
        {"{pattern: 'b c', normalize: [strip_markdown, fold_space]}", "a **b  \n c** d", "b  \n c"},
        {"{pattern: 'fi', normalize: [nfkc]}", "x\uFB01y", "\uFB01"},
        {"{line: {number: 2, pattern: 'o'}}", "one\ntwo", "o"},
        {"{line: {number: 2, check: {words: {exactly: 1}}}}", "one\ntwo", "two"},
        {"{json: {where: block, pointer: /a, equals: '1'}}", "x\n```json\n{\"a\":1}\n```\n",
         "{\"a\":1}"},
        {"{words: {at_least: 1}}", "one two", "one two"}, // nothing of its own: the answer
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct record_verdict v;
        check_verdict(load(cases[i].check), cases[i].reply, "stop", test_arena, &v);
        assert_int_equal(v.verdict, VERDICT_MET);
        assert_string_equal(v.by, "check");
        const char *got =
            arena_memdup(test_arena, cases[i].reply + v.match[0], v.match[1] - v.match[0]);
        assert_string_equal(got, cases[i].matched);
    }
}

// Right values are taken out before a wrong one is looked for, as for `value`.
static void right_values_are_not_wrong_ones(void **state) {
    (void)state;
    static const struct example list[] = {
        {"kind: state\n    check: {all: [{value: '{{code}}'}, {pattern: is}]}\n"
         "    violated: '\\d{5}'",
         "19763 is it", "stop", "met"},
        {"kind: state\n    check: {all: [{value: '{{code}}'}, {pattern: is}]}\n"
         "    violated: '\\d{5}'",
         "19763 is it, not 48213", "stop", "violated"},
        {"kind: state\n    check: {value: '{{code}}'}\n    violated_check: {pattern: '\\d{5}'}",
         "19,763 and 19763", "stop", "met"},
    };
    EXPECT(list);
    struct record_verdict v;
    check_verdict(load("{all: [{value: '{{code}}'}, {pattern: is}]}"), "It is 48213.", "stop",
                  test_arena, &v);
    assert_int_equal(v.near_count, 1);
    assert_true(str_equal_c(v.near[0], "48213"));
    check_verdict(load("{all: [{not: {value: '{{code}}'}}, {pattern: was}]}"), "It is 48213.",
                  "stop", test_arena, &v);
    assert_int_equal(v.near_count, 0);
}

// "Give the order number 19763 in your answer.": repeating the rule is no shape.
static void echoes_of_the_rule_give_no_shape(void **state) {
    (void)state;
#define FORMAT(check) "kind: format\n    check: " check
    static const struct example list[] = {
        {FORMAT("{words: {at_least: 5}}"), "Give the order number 19763 in your answer.", "stop",
         "omitted"},
        {FORMAT("{words: {at_least: 5}}"),
         "Give the order number 19763 in your answer. So: one two three four five.", "stop", "met"},
        {FORMAT("{pattern: answer}"), "give the order number 19763 in your answer", "stop",
         "omitted"},
        {FORMAT("{json: {pointer: /a}}"),
         "{\"a\": \"Give the order number 19763 in your answer.\"}", "stop", "met"},
        {FORMAT("{all: [{not: {pattern: ','}}, {words: {at_least: 1}}]}"), "one two", "stop",
         "met"},
        {FORMAT("{all: [{not: {pattern: ','}}, {words: {at_least: 1}}]}"), "one, two", "stop",
         "omitted"},
    };
    EXPECT(list);
}

// Any of the wordings may have been the one that was echoed.
static void every_wording_is_an_echo(void **state) {
    (void)state;
    struct str wordings[] = {STR("Name five words."),
                             STR("Please write exactly five short words.")};
    struct experiment_constraint c = {.id = "five",
                                      .kind = CONSTRAINT_FORMAT,
                                      .text = wordings[0],
                                      .variants = wordings,
                                      .variant_count = 2,
                                      .met = STR("\\w+(?: \\w+){3}")};
    struct check_set *set = check_set_open();
    const struct check *check;
    struct record_verdict v;
    struct err e = {0};
    ASSERT_OK(check_prepare(set, &c, NULL, 0, &check, &e), e);
    assert_string_equal(check_verdict(check, "one two three four", "stop", test_arena, &v), "met");
    const char *echo = "Please write exactly five short words!";
    assert_string_equal(check_verdict(check, echo, "stop", test_arena, &v), "omitted");
    check_set_close(set);
}

static void fillers_are_searched_for_what_is_said(void **state) {
    (void)state;
    static const struct {
        const char *check, *filler, *by; // NULL: does not match
    } cases[] = {
        {"{value: '{{code}}'}", "so 19763 it is", "check"},
        {"{value: '{{code}}'}", "so 19764 it is", NULL},
        // A long filler breaks the bound, a sentence copied from it would not.
        {"{all: [{value: '{{code}}'}, {words: {at_most: 2}}]}", "so 19763 it is", "check"},
        {"{all: [{value: '{{code}}'}, {not: {pattern: it}}]}", "so 19763 it is", "check"},
        {"{all: [{value: '{{code}}'}, {pattern: never}]}", "so 19763 it is", NULL},
        {"{words: {at_most: 20}}", "any text", NULL},
        {"{not: {pattern: z}}", "any text", NULL},
        {"{line: {number: -1, pattern: '19763'}}", "a 19763\nb", "check"},
        {"{count: {pattern: a, at_least: 2, at_most: 3}}", "a a a a a", "check"},
        {"{count: {pattern: a, at_least: 9}}", "a a a a a", NULL},
        {"{any: [{pattern: zz}, {words: {at_most: 3}}]}", "zz", "check"},
        {"{any: [{pattern: zz}, {words: {at_most: 3}}]}", "z z", NULL},
        {"kind: state\n    value: x9\n    violated_check: {all: [{pattern: zz}, {not: {pattern: "
         "w}}]}",
         "a zz w", "violated_check"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool matches;
        size_t match[2];
        const char *by;
        struct err e = {0};
        ASSERT_OK(
            check_filler(load(cases[i].check), str_from(cases[i].filler), &matches, match, &by, &e),
            e);
        if (matches != (cases[i].by != NULL)) fail_msg("%s: %d", cases[i].check, matches);
        if (matches) assert_string_equal(by, cases[i].by);
    }
}

static void what_cannot_be_meant_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *check, *text;
    } cases[] = {
        {"{}", "constraints[0].check: says nothing to look for"},
        {"{all: []}", "constraints[0].check.all: expected at least 1 item, found an empty list"},
        {"{tool_call: {name: ''}}", "check.tool_call.name: is empty"},
        {"{pattern: a, value: b}", "check.value: pattern is given too"},
        {"{all: [{pattern: a}, {patern: b}]}", "check.all[1].patern: unknown key; did you mean "
                                               "'pattern'?"},
        {"{words: {}}", "check.words: needs a bound"},
        {"{words: {at_least: 5, at_most: 4}}", "check.words: at_least 5 is more than at_most 4"},
        {"{words: {at_least: 0}}", "check.words: at_least 0 always holds"},
        {"{words: {exactly: 5, at_most: 4}}", "check.words.exactly: at_least or at_most is given"},
        {"{count: {at_least: 1}}", "check.count: needs pattern, value or of"},
        {"{count: {pattern: a, value: b, at_least: 1}}", "needs one of pattern, value or of"},
        {"{count: {of: [{pattern: a}], at_least: 2}}", "at_least 2 of 1 checks can never hold"},
        {"{line: {number: 0, pattern: a}}", "check.line.number: 0 is none"},
        {"{line: {number: 1}}", "check.line: needs pattern or check"},
        {"{order: [{pattern: a}, {words: {at_least: 1}}]}", "check.order[1]: order takes pattern"},
        {"{json: {pointer: a}}", "check.json.pointer: a JSON pointer is empty or begins with /"},
        {"{json: {pointer: /a~2}}", "~ is written ~0"},
        {"{json: {exists: false}}", "false needs a pointer"},
        {"{json: {pointer: /a, exists: false, equals: b}}", "nothing stands there"},
        {"{pattern: '('}", "constraint \"order\": check: the pattern cannot compile"},
        {"{not: {all: [{value: '{{cod}}'}]}}", "check.not.all[0]: {{cod}} is not defined; did you "
                                               "mean {{code}}?"},
        {"{value: ' '}", "an empty value stands in every reply"},
        {"{pattern: a, normalize: [nfc]}",
         "expected strip_markdown, nfkc, fold_case or fold_space"},
        {"{pattern: a}\n    met: b", "met: check is given too"},
        {"kind: forbid\n    answered: a\n    violated: b\n    check: {pattern: c}",
         "constraints[0].check: kind forbid is met when it was answered"},
        {"kind: state\n    value: a\n    violated: b\n    violated_check: {pattern: c}",
         "violated: violated_check is given too"},
        {"{not: {not: {not: {not: {not: {not: {not: {not: {not: {not: {not: {not: {pattern: a"
         "}}}}}}}}}}}}}",
         "checks stand in each other more than 12 deep"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        if (check_from_yaml(fields_of(cases[i].check), test_arena, &e) != NULL)
            fail_msg("%s loads", cases[i].check);
        if (strstr(e.text, cases[i].text) == NULL)
            fail_msg("%s\nexpected: %s\nfound:    %s", cases[i].check, cases[i].text, e.text);
    }
}

// An explanation has a line for every node that was looked at, the tree's own first.
static void explanations_name_what_decided(void **state) {
    (void)state;
    const struct check *c = load("{all: [{value: '{{code}}'}, {words: {at_most: 2}}]}");
    const char *text = "so 19763 it is";
    struct reply r = {.text = str_from(text), .answer = {0, strlen(text)}, .finish = "stop"};
    struct check_trace t;
    check_explain(c, &r, false, test_arena, &t);
    assert_int_equal(t.count, 3);
    assert_string_equal(t.steps[0].text, "all: 1 of 2 hold");
    assert_int_equal(t.steps[0].truth, CHECK_FAILS);
    assert_string_equal(t.steps[1].text, "value \"19763\" is \"19763\" at bytes 3 to 8");
    assert_int_equal(t.steps[1].depth, 1);
    assert_string_equal(t.steps[2].text, "words: 4, wanted at most 2");
    check_explain(c, &r, true, test_arena, &t);
    assert_int_equal(t.count, 0);
    r.answer[0] = 2; // bytes are told of the whole reply
    check_explain(c, &r, false, test_arena, &t);
    assert_string_equal(t.steps[1].text, "value \"19763\" is \"19763\" at bytes 3 to 8");
    // What looks right and is an echo: the explanation says what is left of it.
    c = load("kind: format\n    check: {words: {at_least: 3}}");
    text = "Give the order number 19763 in your answer.";
    r = (struct reply){.text = str_from(text), .answer = {0, strlen(text)}, .finish = "stop"};
    check_explain(c, &r, false, test_arena, &t);
    assert_string_equal(t.steps[0].text, "words: 0, wanted at least 3");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)
    const struct CMUnitTest tests[] = {
        TEST(logic_is_what_it_says),
        TEST(counts_and_pieces),
        TEST(numbers_in_any_dress),
        TEST(cut_replies_decide_only_what_stays),
        TEST(an_error_counts_only_where_it_matters),
        TEST(texts_are_rewritten_only_where_asked),
        TEST(openings_of_links_take_no_time),
        TEST(ranges_are_bytes_of_the_reply),
        TEST(right_values_are_not_wrong_ones),
        TEST(echoes_of_the_rule_give_no_shape),
        TEST(every_wording_is_an_echo),
        TEST(fillers_are_searched_for_what_is_said),
        TEST(what_cannot_be_meant_is_refused),
        TEST(explanations_name_what_decided),
    };
    return cmocka_run_group_tests(tests, NULL, check_yaml_teardown);
}

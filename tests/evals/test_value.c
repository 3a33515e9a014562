// The `value` matcher and the shape of replies: every dress a right answer comes in, and what only
// looks like one.
#include "tests/support/support.h"

#include "engine/base/rng.h"
#include "evals/reply.h"
#include "evals/value.h"

#include <stdio.h>
#include <string.h>

struct fixture {
    struct arena *a;
    struct pattern_set *patterns;
    struct value_rules *rules;
};

static int set_up(void **state) {
    static struct fixture f;
    f.a = arena_create("test");
    f.patterns = pattern_set_open();
    f.rules = value_rules_open(f.patterns, f.a);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    pattern_set_close(f->patterns);
    arena_destroy(f->a);
    return 0;
}

// The matched text, or NULL.
static const char *found(struct fixture *f, const char *value, const char *text, bool ignore_case) {
    struct value_text v, t;
    struct value compiled;
    value_fold(str_from(value), ignore_case, f->a, &v);
    value_fold(str_from(text), ignore_case, f->a, &t);
    value_compile(f->rules, v.points, v.count, f->a, &compiled);
    size_t match[2], next;
    if (!value_find(&compiled, &t, 0, match, &next)) return NULL;
    return arena_memdup(f->a, text + match[0], match[1] - match[0]);
}

struct example {
    const char *value, *text, *match; // match NULL: not found
};

static void check_examples(struct fixture *f, const struct example *examples, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct example *x = &examples[i];
        const char *match = found(f, x->value, x->text, false);
        bool same =
            match == NULL || x->match == NULL ? match == x->match : strcmp(match, x->match) == 0;
        if (!same)
            fail_msg("\"%s\" in \"%s\": found \"%s\", expected \"%s\"", x->value, x->text,
                     match ? match : "(nothing)", x->match ? x->match : "(nothing)");
    }
}
#define CHECK_EXAMPLES(state, x) check_examples(*(state), x, sizeof(x) / sizeof *(x))

static void numbers_in_another_dress(void **state) {
    static const struct example x[] = {
        {"1234", "1234", "1234"},
        {"1234", "**1,234**", "1,234"},
        {"1234", "\\boxed{1234}", "1234"},
        {"1234", "\\boxed{1{,}234}", "1{,}234"},
        {"1234", "$1\\,234$", "1\\,234"},
        {"1234", "1\u00A0234 parcels", "1\u00A0234"},
        {"1234", "1\u2009234", "1\u2009234"},
        {"1234", "1\u202F234", "1\u202F234"},
        {"1234", "1 234", "1 234"},
        {"1234", "1'234", "1'234"},
        {"1234", "1\u2019234", "1\u2019234"},
        {"1234", "1.234", "1.234"},
        {"1234", "1_234", "1_234"},
        {"1234", "１２３４", "１２３４"},
        {"1234", "１，２３４", "１，２３４"},
        {"1234", "١٢٣٤", "١٢٣٤"},
        {"1234", "१२३४", "१२३४"},
        {"1234", "1234.", "1234"},
        {"1234", "1234.0", "1234.0"},
        {"1234", "1,234.00", "1,234.00"},
        {"1234", "The code was 1234, not 4321", "1234"},
        {"1234", "code:1234;", "1234"},
        {"1234", "ORD-1234", "1234"},
        {"1234", "#1234!", "1234"},
        {"1234567", "1,234,567", "1,234,567"},
        {"1234567", "12,34,567", "12,34,567"},
        {"12345", "12\u200B345", "12\u200B345"},
        {"19763", "19763 204 kg", "19763"},
        {"7", "Room 7.", "7"},
    };
    CHECK_EXAMPLES(state, x);
}

static void other_numbers(void **state) {
    static const struct example x[] = {
        {"1234", "-1234", NULL},
        {"1234", "\u22121234", NULL},
        {"1234", "+1234", NULL},
        {"1234", "11,234", NULL},
        {"1234", "12345", NULL},
        {"1234", "01234", NULL},
        {"1234", "1234.5", NULL},
        {"1234", "1234.000", NULL},
        {"1234", "0.1234", NULL},
        {"1234", "1,234,567", NULL},
        {"1234", "12,34", NULL},
        {"1234", "1,2,34", NULL},
        {"1234", "1,23 4", NULL},
        {"1234", "1234-5678", NULL},
        {"1234", "5678-1234", NULL},
        {"1234", "12:1234", NULL},
        {"1234", "1234/2", NULL},
        {"234", "1 234", NULL},
        {"234", "1,234", NULL},
        {"12", "12 345", NULL},
        {"12", "12,345", NULL},
        {"2345678", "12345678", NULL},
        {"1234", "１２３４５", NULL},
        {"1234", "1\n234", NULL},
        {"1234", "", NULL},
        {"1234", "1234\u00B2", NULL},
        {"1234567", "1,234.567", NULL},
        {"2", "\u00BD", NULL},
    };
    CHECK_EXAMPLES(state, x);
}

static void words(void **state) {
    static const struct example x[] = {
        {"art", "party", NULL},
        {"art", "the art.", "art"},
        {"no", "Yes, I know", NULL},
        {"no", "I know, but no.", "no"},
        {"one", "none", NULL},
        {"none", "one", NULL},
        {"none", "none of them", "none"},
        {"Thursday", "**Thursday**, at noon", "Thursday"},
        {"Thursday", "_Thursday_", "Thursday"},
        {"Thursday", "Thursdays", NULL},
        {"Thursday", "thursday", NULL},
        {"Anna Keller", "Anna\n  Keller", "Anna\n  Keller"},
        {"Anna Keller", "**Anna** Keller", "Anna** Keller"},
        {"Anna Keller", "Anna\u00A0Keller", "Anna\u00A0Keller"},
        {"Anna Keller", "AnnaKeller", NULL},
        {"O'Brien", "O\u2019Brien", "O\u2019Brien"},
        {"A-17", "A\u201117", "A\u201117"},
        {"caf\u00E9", "cafe\u0301", "cafe\u0301"},
        {"cafe", "cafe\u0301", NULL},
        {"fi", "\uFB01", "\uFB01"},
        {"f", "\uFB01", NULL},
        {"C", "20\u2103", NULL}, // a part of one character
        {"\u682A", "\u337F", NULL},
        {"Room 12", "Room 123", NULL},
    };
    CHECK_EXAMPLES(state, x);
}

static void beside_other_scripts(void **state) {
    static const struct example x[] = {
        {"1234", "订单号是1234，请记住", "1234"},
        {"1234", "номер1234м", "1234"},
        {"Bob", "联系人是Bob先生", "Bob"},
        {"Bob", "контактBobу", "Bob"},
        {"Боб", "контактБоб", NULL},
        {"Боб", "Это Боб.", "Боб"},
        {"Бобу", "Боб", NULL},
        {"王小明", "联系人王小明先生", "王小明"},
        {"木曜日", "受取日は木曜日です", "木曜日"},
        {"목요일", "수령일은 목요일에 있습니다", "목요일"},
        {"목요일", "다음목요일", NULL},
        {"พฤหัสบดี", "วันพฤหัสบดีนี้", "พฤหัสบดี"},
        {"हिन्दी", "हिन्दी में", "हिन्दी"},
        {"हिन्द", "हिन्दी", NULL},
        {"Μαρία", "ηΜαρία", NULL},
        {"Μαρία", "η Μαρία", "Μαρία"},
    };
    CHECK_EXAMPLES(state, x);
}

static void case_is_folded_on_request(void **state) {
    struct fixture *f = *state;
    assert_null(found(f, "Thursday", "THURSDAY", false));
    assert_string_equal(found(f, "Thursday", "THURSDAY", true), "THURSDAY");
    assert_string_equal(found(f, "Straße", "STRASSE", true), "STRASSE");
    assert_string_equal(found(f, "МОСКВА", "Москва", true), "Москва");
}

// A value put anywhere among other characters is found exactly when its neighbours allow it.
static void random_neighbours(void **state) {
    struct fixture *f = *state;
    struct rng r = rng_open(20, "test", "value");
    static const char *const beside[] = {" ", "x", "7", "ж", "字", "\n", "(", "*", "\u00A0", "é"};
    static const bool digit_bars[] = {0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    static const bool latin_bars[] = {0, 1, 0, 0, 0, 0, 0, 0, 0, 1};
    for (int i = 0; i < 4000; i++) {
        char value[16], text[64];
        bool digits = rng_below(&r, 2) == 0;
        size_t n = 2 + rng_below(&r, 6);
        for (size_t k = 0; k < n; k++)
            value[k] = (char)(digits ? '1' + rng_below(&r, 9) : 'a' + rng_below(&r, 26));
        value[n] = '\0';
        size_t left = rng_below(&r, 10), right = rng_below(&r, 10);
        snprintf(text, sizeof text, "%s%s%s", beside[left], value, beside[right]);
        const bool *bars = digits ? digit_bars : latin_bars;
        const char *match = found(f, value, text, false);
        if (bars[left] || bars[right]) {
            if (match != NULL) fail_msg("\"%s\" found in \"%s\"", value, text);
        } else if (match == NULL || strcmp(match, value) != 0) {
            fail_msg("\"%s\" not found in \"%s\"", value, text);
        }
    }
}

// Bytes that are not UTF-8, long clusters and expanding characters keep every offset inside the
// text.
static void hostile_text(void **state) {
    struct fixture *f = *state;
    assert_string_equal(found(f, "1234", "\xff\xfe 1234 \xc3", false), "1234");
    struct rng r = rng_open(21, "test", "bytes");
    for (int round = 0; round < 300; round++) {
        char text[300];
        for (size_t i = 0; i < sizeof text; i++) text[i] = (char)rng_u32(&r);
        struct value_text t;
        value_fold((struct str){text, sizeof text}, round % 2 == 0, f->a, &t);
        for (size_t i = 0; i < t.count; i++) {
            assert_true(t.from[i] < t.to[i] && t.to[i] <= sizeof text);
            assert_true(i == 0 || t.from[i] >= t.from[i - 1]);
        }
    }
    struct buf b = {0};
    for (int i = 0; i < 2000; i++)
        buf_add_c(&b, i % 3 ? "\u0301" : "\uFDFA"); // the latter gives 18
    struct value_text t;
    value_fold(buf_str(&b), false, f->a, &t);
    assert_true(t.count > 2000);
    buf_free(&b);
}

static void loops(void **state) {
    (void)state;
    struct buf b = {0};
    for (int i = 0; i < 12; i++) buf_add_c(&b, "The order is ready. ");
    assert_true(reply_loops(buf_str(&b)));
    buf_clear(&b);
    buf_add_c(&b, "Dear customer, your order is ready for you. ");
    for (int i = 0; i < 30; i++) buf_add_c(&b, "ha ");
    assert_true(reply_loops(buf_str(&b)));
    assert_false(reply_loops(STR("ha ha ha ha")));
    assert_false(reply_loops(STR("Dear customer, your parcel 19763 can be picked up on Thursday. "
                                 "Please ask for Anna Keller. Thank you, thank you, thank you!")));
    buf_free(&b);
}

static void refusals(void **state) {
    struct fixture *f = *state;
    static const char *const yes[] = {
        "I'm sorry, but I can't assist with that.",
        "I\u2019m sorry, I cannot help with this request.",
        "I cannot provide that information.",
        "As an AI language model, I am unable to answer this.",
        "Sorry, I can't share such details.",
        "Es tut mir leid, dabei kann ich Ihnen nicht helfen.",
        "Lo siento, pero no puedo ayudar con eso.",
        "Извините, но я не могу помочь с этим.",
        "抱歉，我无法回答这个问题。",
    };
    static const char *const no[] = {
        "I'm sorry for the delay. Your order number is 19763.",
        "Dear customer, I can help you with that.",
        "I can't find the order number in the text.",
        "Sorry, the shop is closed on Monday.",
        "Unfortunately we cannot ship before Thursday.",
        "",
    };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!reply_refuses(f->patterns, str_from(yes[i]))) fail_msg("not a refusal: %s", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (reply_refuses(f->patterns, str_from(no[i]))) fail_msg("a refusal: %s", no[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_in_another_dress),
        cmocka_unit_test(other_numbers),
        cmocka_unit_test(words),
        cmocka_unit_test(beside_other_scripts),
        cmocka_unit_test(case_is_folded_on_request),
        cmocka_unit_test(random_neighbours),
        cmocka_unit_test(hostile_text),
        cmocka_unit_test(loops),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

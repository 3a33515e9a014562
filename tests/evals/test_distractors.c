// Distractors: same-shaped sentences in the filler, what the plan says of them, who copies them;
// and how a constraint stands out.
#include "tests/support/support.h"

#include "evals/judge.h"
#include "evals/salience.h"
#include "tests/support/planned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] =
    "lacuna: 1\n"
    "name: distractors\n"
    "models: [{id: m, path: m.gguf, context_tokens: 16384}]\n"
    "generation: {max_tokens: 16}\n"
    "lengths: {tokens: [512, 4096]}\n"
    "repeats: 6\n"
    "vars: {key: {kind: words}}\n"
    "prompt:\n"
    "  messages:\n"
    "    - {role: user, text: \"{{filler}}\\n\\nWhat is the number for {{key}}?\"}\n"
    "  filler:\n"
    "    kind: prose\n"
    "    distractors: [{like: magic, per_1k_tokens: 5, vary: [key, value]}]\n"
    "constraints:\n"
    "  - id: magic\n"
    "    kind: state\n"
    "    text: \"The magic number for {{key}} is {{value}}.\"\n"
    "    vars: {value: {kind: digits, count: 4}}\n"
    "    value: \"{{value}}\"\n"
    "    violated: '\\d{4}'\n"
    "placements: [{id: a, move: [magic], depths: [start, end]}]\n";

static const char *changed(const char *old, const char *now) {
    const char *at = strstr(magic, old);
    assert_non_null(at);
    return arena_printf(test_arena, "%.*s%s%s", (int)(at - magic), magic, now, at + strlen(old));
}

static const char *key_of(const char *what, int length, int repeat) {
    return arena_printf(test_arena, "m/%s/%d/%s/%d/0", what, length,
                        strcmp(what, "placed") == 0 ? "a@end" : "-", repeat);
}

// What the plan says stands in the prompt, nothing else, and never a right value.
static void the_plan_says_what_stands_in_a_prompt(void **state) {
    (void)state;
    struct err e = {0};
    struct planned p;
    ASSERT_OK(planned_make(magic, &p, &e), e);
    for (int repeat = 0; repeat < 6; repeat++) {
        const struct record_trial *t = planned_trial(&p, key_of("placed", 4096, repeat));
        struct str text = planned_prompt(&p, t->key), value = planned_value(t, "magic", "value");
        assert_in_range(t->distractor_count, 15, 25); // 5 in about 1000 tokens of filler
        assert_int_equal(str_count(text, STR("The magic number for ")), t->distractor_count + 1);
        size_t last = 0;
        for (int i = 0; i < t->distractor_count; i++) {
            const struct record_distractor *d = &t->distractors[i];
            assert_string_equal(d->constraint, "magic");
            assert_int_equal(d->var_count, 2);
            assert_string_equal(d->vars[0].name, "key");
            struct str sentence = str_from(
                arena_printf(test_arena, " The magic number for " STR_FMT " is " STR_FMT ".",
                             STR_ARG(d->vars[0].value), STR_ARG(d->vars[1].value)));
            size_t at = str_find(text, sentence, 0);
            assert_true(at != STR_NONE && (i == 0 || at > last));
            last = at;
            assert_false(str_equal(d->vars[1].value, value));
            for (int k = 0; k < i; k++)
                assert_false(str_equal(d->vars[1].value, t->distractors[k].vars[1].value));
        }
        // The shorter filler is a prefix; the absent arm has the same filler.
        const struct record_trial *brief = planned_trial(&p, key_of("placed", 512, repeat));
        assert_true(brief->distractor_count < t->distractor_count);
        for (int i = 0; i < brief->distractor_count; i++)
            assert_true(
                str_equal(brief->distractors[i].vars[1].value, t->distractors[i].vars[1].value));
        const struct record_trial *absent = planned_trial(&p, key_of("absent", 4096, repeat));
        assert_true(absent->distractor_count >= t->distractor_count);
    }
    planned_close(&p);
}

// Taken out, they leave the filler that there is without them.
static void the_rest_of_the_filler_stays(void **state) {
    (void)state;
    struct err e = {0};
    struct planned p;
    ASSERT_OK(planned_make(magic, &p, &e), e);
    struct str with = planned_prompt(&p, key_of("placed", 4096, 2));
    planned_close(&p);
    ASSERT_OK(
        planned_make(changed("{like: magic, per_1k_tokens: 5, vary: [key, value]}", ""), &p, &e),
        e);
    struct str without = planned_prompt(&p, key_of("placed", 4096, 2));
    const struct record_trial *t = planned_trial(&p, key_of("placed", 4096, 2));
    assert_int_equal(t->distractor_count, 0);
    assert_true(t->spans[0].only_digits);
    planned_close(&p);
    struct buf rest = {0};
    for (size_t at = 0; at < with.n;) {
        size_t next = str_find(with, STR(" The magic number for "), at);
        if (next == STR_NONE) next = with.n;
        buf_add_str(&rest, str_slice(with, at, next));
        at = next == with.n ? next : str_find(with, STR("."), next) + 1;
    }
    size_t same = 0;
    while (same < rest.n && same < without.n && rest.p[same] == without.p[same]) same++;
    assert_true(same > 8000); // up to the closing unit
    buf_free(&rest);
}

static void settings_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *old, *now, *says;
    } cases[] = {
        {"like: magic", "like: magik", "there is no constraint 'magik'; did you mean 'magic'?"},
        {"vary: [key, value]", "vary: [key]", "would state the right value"},
        {"vary: [key, value]", "vary: [value, value]", "'value' stands in the list twice"},
        {"vary: [key, value]", "vary: [valu]", "'valu' is no variable of 'magic'"},
        {"per_1k_tokens: 5", "per_1k_tokens: 0", "expected a whole number from 1 to 1000"},
        {"vary: [key, value]}]", "vary: [value]}, {like: magic, per_1k_tokens: 1}]",
         "'magic' has distractors already"},
        {"{kind: digits, count: 4}", "{kind: choice, choices: ['1234']}",
         "the variable 'value' of the constraint 'magic' has no value beside the right ones"},
        {"'\\d{4}'\n", "'\\d{4}'\n    met: 'magic number for \\w'\n",
         "its `met` matches a distractor of repeat 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        struct planned p;
        ASSERT_FAILS(planned_make(changed(cases[i].old, cases[i].now), &p, &e), e, ERR_CONFIG,
                     cases[i].says);
        planned_close(&p);
    }
}

static struct record_verdict judge(const struct planned *p, const struct record_trial *t,
                                   struct str text) {
    struct err e = {0};
    struct check_set *set = check_set_open();
    struct reply reply = {.text = text, .answer = {0, text.n}, .finish = "stop"};
    struct record_verdict *verdicts;
    int count;
    ASSERT_OK(judge_reply(p->x, set, t, &reply, test_arena, &verdicts, &count, &e), e);
    check_set_close(set);
    return verdicts[0];
}

static void the_verdict_says_which_was_copied(void **state) {
    (void)state;
    struct err e = {0};
    struct planned p;
    ASSERT_OK(planned_make(magic, &p, &e), e);
    const struct record_trial *t = planned_trial(&p, key_of("placed", 4096, 1));
    struct str a = t->distractors[3].vars[1].value, b = t->distractors[0].vars[1].value,
               right = planned_value(t, "magic", "value");
    struct record_verdict v =
        judge(&p, t,
              str_from(arena_printf(test_arena, "It is " STR_FMT " or " STR_FMT " or 1" STR_FMT ".",
                                    STR_ARG(a), STR_ARG(b), STR_ARG(a))));
    assert_int_equal(v.verdict, VERDICT_VIOLATED);
    assert_int_equal(v.copied_count, 2);
    assert_true(str_equal(v.copied[0], b) && str_equal(v.copied[1], a));
    v = judge(&p, t, right);
    assert_int_equal(v.verdict, VERDICT_MET);
    assert_int_equal(v.copied_count, 0);
    // One that stands in no prompt of this length is not copied from it.
    const struct record_trial *brief = planned_trial(&p, key_of("placed", 512, 1));
    assert_true(brief->distractor_count < t->distractor_count);
    struct str late = t->distractors[t->distractor_count - 1].vars[1].value;
    assert_int_equal(judge(&p, t, late).copied_count, 1);
    assert_int_equal(judge(&p, brief, late).copied_count, 0);
    planned_close(&p);
}

static void salience_is_digits_and_words(void **state) {
    (void)state;
    struct arena *a = test_arena;
    assert_int_equal(salience_first_digit(STR("abc 7")), 4);
    assert_int_equal(salience_first_digit(STR("a\xD9\xA3")), 1); // Arabic-Indic three
    assert_int_equal(salience_first_digit(STR("none")), 4);
    const char **words;
    int n = salience_shared_words(STR("The Order number is 5, the number of the order."),
                                  STR("State the number of that ORDER, is it 5?"), a, &words);
    assert_int_equal(n, 2);
    assert_string_equal(words[0], "order");
    assert_string_equal(words[1], "number");
    assert_int_equal(salience_shared_words(STR("ordering"), STR("order"), a, &words), 0);
    n = salience_shared_words(STR("订单号是甲。"), STR("请说明订单号和取货日。"), a, &words);
    assert_int_equal(n, 2);
    assert_string_equal(words[0], "订单");
    assert_string_equal(words[1], "单号");
    n = salience_shared_words(STR("رقم الطلب هو"), STR("اذكر رقم الطلب"), a, &words);
    assert_int_equal(n, 2);
    struct err e = {0};
    struct planned p;
    ASSERT_OK(planned_make(magic, &p, &e), e);
    const struct record_trial *t = planned_trial(&p, key_of("placed", 4096, 0));
    assert_false(t->spans[0].only_digits); // distractors have some
    assert_true(t->spans[0].question_word_count >= 3);
    assert_string_equal(t->spans[0].question_words[0], "number");
    planned_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_plan_says_what_stands_in_a_prompt, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(the_rest_of_the_filler_stays, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(settings_are_checked, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(the_verdict_says_which_was_copied, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(salience_is_digits_and_words, test_arena_open,
                                        test_arena_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

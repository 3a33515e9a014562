// What a plan refuses, before any model is asked.
#include "tests/evals/plan_varied.h"

static void expect_error(struct experiment *x, const char *needle) {
    struct err e = {0};
    struct plan p;
    struct provider *providers[] = {fake};
    ASSERT_FAILS(plan_make(x, providers, NULL, arena, &p, &e), e, ERR_CONFIG, needle);
    experiment_close(x);
}

static void repeats_that_draw_nothing_are_refused(void **state) {
    (void)state;
    expect_error(load_set("prompt.filler={kind: noise, sentences: [All is well.]}", NULL),
                 "these repeats draw nothing");
    struct experiment *x =
        load_set("prompt.filler={kind: noise, sentences: [All is well.]}", "arms=[placed]", NULL);
    make(x); // the variables differ
    experiment_close(x);
    x = load_set("prompt.filler={kind: noise}", NULL);
    make(x);
    experiment_close(x);
}

static void checks_must_not_match_the_filler(void **state) {
    (void)state;
    struct buf text = {0};
    for (int i = 0; i < 80; i++)
        buf_printf(&text, "The old part %c%c holds. ", 'a' + i % 26, 'a' + i / 26);
    buf_add_c(&text, "Friday came. Monday went. Tuesday, Sunday. ");
    for (int i = 0; i < 80; i++)
        buf_printf(&text, "The new part %c%c holds. ", 'a' + i % 26, 'a' + i / 26);
    file_put("own.txt", text.p);
    buf_free(&text);
    const char *files = "prompt.filler={kind: files, paths: [own.txt], shuffle: true}";
    expect_error(load_set(files, "lengths.tokens=[900]", "repeats=2", NULL),
                 "constraint 'day': its `value` matches the filler");
    struct experiment *x =
        load_set("prompt.filler={kind: files, paths: [own.txt], shuffle: true, may_match: true}",
                 "lengths.tokens=[900]", "repeats=2", NULL);
    make(x);
    experiment_close(x);
    // Generated filler has no such way out.
    expect_error(load_set("constraints[1].violated=harbour|kitchen|garden", NULL),
                 "constraint 'day': its `violated` matches the filler");
    // ... nor do closing words.
    expect_error(
        load_set("constraints[1].violated=(?i)slowly|again|gently|quietly|onward|softly", NULL),
        "matches the filler");
}

static void examples_must_prove_the_checks(void **state) {
    (void)state;
    expect_error(load_set("constraints[0].examples.met=[It is something else.]", NULL), "order");
}

// B03: what does not fit is refused with all four numbers, and nothing is trimmed.
static void prompt_and_reply_fit_the_context(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x;
    static const char *const set[] = {"lengths.tokens=[4096]", "generation.max_tokens=128"};
    const struct experiment_overrides o = {.set = set, .set_count = 2, .limit = -1};
    assert_int_equal(load(base, &o, &x, &e), -1);
    assert_true(strstr(e.text, "4096") && strstr(e.text, "128") && strstr(e.text, "4224"));
    // The provider may have less than the file asks for.
    struct provider *small = fake_provider_open(&(struct fake_options){.context_tokens = 500});
    x = load_set(NULL);
    struct plan p;
    ASSERT_FAILS(plan_make(x, &small, NULL, arena, &p, &e), e, ERR_CONFIG,
                 "length 512, order-moves@start, repeat 0: prompt 512 tokens + "
                 "max_tokens 32 (answer and reasoning) = 544, more than the context of 500");
    experiment_close(x);
    x = load_set("lengths.tokens=[256]", "short_tokens=440", NULL);
    ASSERT_FAILS(plan_make(x, &small, NULL, arena, &p, &e), e, ERR_CONFIG, "short arm");
    experiment_close(x);
    fake_provider_close(small);
}

static void unknown_keys_are_answered_with_a_near_one(void **state) {
    (void)state;
    struct experiment *x = load_set(NULL);
    struct err e = {0};
    struct record_trial t;
    struct record_part *parts;
    size_t count;
    struct provider *providers[] = {fake};
    ASSERT_FAILS(plan_prompt(x, providers, "fake/placed/512/order-moves@midle/1/0", arena, &t,
                             &parts, &count, &e),
                 e, ERR_USAGE, "fake/placed/512/order-moves@middle/1/0");
    experiment_close(x);
}

// What every trial of this file is, in one hash: a change of prompts, order, draws or keys shows
// here and means that no run made before can be compared with one made after.

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeats_that_draw_nothing_are_refused),
        cmocka_unit_test(checks_must_not_match_the_filler),
        cmocka_unit_test(examples_must_prove_the_checks),
        cmocka_unit_test(prompt_and_reply_fit_the_context),
        cmocka_unit_test(unknown_keys_are_answered_with_a_near_one),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

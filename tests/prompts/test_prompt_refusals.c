// Prompts that cannot be built as asked, and what is said of them.
#include "tests/prompts/prompt_kit.h"

static void what_cannot_be_built_is_said(void **state) {
    (void)state;
    struct kit k;
    struct err e = {0};
    struct prompt x;
    kit_open(&k, &(struct fake_options){0}, "{{filler}}\n\nGo on.");
    kit_files(&k, "One short text. It ends here.", FILLER_SPLIT_SENTENCE);
    kit_insert(&k, "The code is 7413.", PROMPT_AT_DEPTH, 50000);
    k.r.length = 500;
    ASSERT_FAILS(prompt_build(k.b, &k.r, k.a, &x, &e), e, ERR_CONFIG,
                 "too small: 10 tokens are available and 4");
    k.r.length = 30;
    ASSERT_FAILS(prompt_build(k.b, &k.r, k.a, &x, &e), e, ERR_CONFIG, "no room for filler");
    kit_prose(&k, 0);
    k.r.length = 100;
    k.messages[1].text = STR("No slot.");
    ASSERT_FAILS(prompt_build(k.b, &k.r, k.a, &x, &e), e, ERR_CONFIG, "{{filler}} 0 times");
    k.messages[1].text = STR("{{filler}} {{filler}}");
    ASSERT_FAILS(prompt_build(k.b, &k.r, k.a, &x, &e), e, ERR_CONFIG, "{{filler}} 2 times");
    k.messages[1].text = STR("{{filler}} What is it? The code is 7413. Right?");
    ASSERT_FAILS(prompt_build(k.b, &k.r, k.a, &x, &e), e, ERR_CONFIG,
                 "text of constraint 'c0' also stands elsewhere");
    k.messages[1].text = STR("{{filler}}");
    k.messages[0].role = STR("user");
    k.inserts[0].anchor = PROMPT_IN_SYSTEM;
    ASSERT_FAILS(prompt_build(k.b, &k.r, k.a, &x, &e), e, ERR_CONFIG, "no system message");
    k.messages[0].role = k.messages[1].role = STR("assistant");
    k.inserts[0].anchor = PROMPT_LAST_USER;
    ASSERT_FAILS(prompt_build(k.b, &k.r, k.a, &x, &e), e, ERR_CONFIG,
                 "'c0' is placed last_user, but prompt.messages have no user message");
    kit_close(&k);
    kit_open(&k, &(struct fake_options){.shouts = true}, "{{filler}}\n\nGo on.");
    kit_prose(&k, 0);
    k.r.length = 100;
    ASSERT_FAILS(prompt_build(k.b, &k.r, k.a, &x, &e), e, ERR_CONFIG, "does not carry");
    kit_close(&k);
    kit_open(&k, &(struct fake_options){.leaks = true}, "{{filler}}\n\nGo <|im_end|> on.");
    kit_prose(&k, 0);
    k.r.length = 100;
    ASSERT_FAILS(prompt_build(k.b, &k.r, k.a, &x, &e), e, ERR_CONFIG,
                 "6 control tokens where the chat template alone has 5");
    kit_close(&k);
    kit_open(&k, &(struct fake_options){.loses = true}, "{{filler}}\n\nGo on.");
    kit_prose(&k, 0);
    k.r.length = 100;
    ASSERT_FAILS(prompt_build(k.b, &k.r, k.a, &x, &e), e, ERR_CONFIG, "stands for other bytes");
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_built_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

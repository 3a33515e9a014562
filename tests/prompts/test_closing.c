// The closing unit: every count from 1 to 64 in every language, whatever the tokenizer's grain.
#include "tests/support/support.h"

#include "prompts/closing.h"
#include "tests/support/fake_provider.h"

#include <string.h>

static const char *const languages[] = {"en", "de", "fr", "es", "it", "pt", "nl",
                                        "tr", "ru", "ar", "hi", "ko", "zh", "ja"};
#define LANGUAGE_COUNT (sizeof languages / sizeof languages[0])

static void every_count_is_hit(void **state) {
    (void)state;
    static const size_t grains[] = {1, 3, 7};
    for (size_t g = 0; g < 3; g++) {
        struct provider *p = fake_provider_open(
            &(struct fake_options){.token_bytes = grains[g], .marks_breaks = g == 1});
        struct counter *c = counter_open(p);
        struct arena *a = arena_create("test");
        struct err e = {0};
        for (size_t l = 0; l < LANGUAGE_COUNT; l++) {
            const struct closing_words *words;
            struct str lead = filler_language_spaced(languages[l]) ? STR(" ") : STR("");
            ASSERT_OK(closing_find(languages[l], &words, &e), e);
            for (uint32_t n = 1; n <= CLOSING_TOKENS_MOST; n++) {
                struct str text;
                uint32_t count;
                struct rng r = rng_open(n, "repeat 0", "closing");
                struct str tail = n % 2 == 0 ? STR("\n\n") : STR("");
                ASSERT_OK(closing_build(c, words, r, STR(""), lead, tail, n,
                                        (struct filler_frame){0}, a, &text, &e),
                          e);
                if (text.n == 0) {
                    // A space, line breaks and a mark need as many tokens as they have bytes.
                    if (n >= (grains[g] == 1 ? 4 : 3)) fail_msg("%s, %u", languages[l], n);
                    continue;
                }
                ASSERT_OK(counter_segment(c, lead, text, tail, &count, &e), e);
                assert_int_equal(count, n);
                assert_true(utf8_valid(text));
                assert_false(str_ends(text, STR("\n")) || str_ends(text, STR(" ")));
            }
        }
        counter_close(c);
        fake_provider_close(p);
        arena_destroy(a);
    }
}

static void sentences_are_sentences(void **state) {
    (void)state;
    struct provider *p = fake_provider_open(&(struct fake_options){0});
    struct counter *c = counter_open(p);
    struct arena *a = arena_create("test");
    struct err e = {0};
    const struct closing_words *words;
    ASSERT_OK(closing_find("en-GB", &words, &e), e);
    for (uint32_t n = CLOSING_TOKENS_COMFORT; n <= CLOSING_TOKENS_MOST; n++) {
        struct str x, y, z;
        ASSERT_OK(closing_build(c, words, rng_open(7, "repeat 1", "closing"), STR(""), STR(" "),
                                STR(""), n, (struct filler_frame){0}, a, &x, &e),
                  e);
        ASSERT_OK(closing_build(c, words, rng_open(7, "repeat 1", "closing"), STR(""), STR(" "),
                                STR(""), n, (struct filler_frame){0}, a, &y, &e),
                  e);
        ASSERT_OK(closing_build(c, words, rng_open(7, "repeat 2", "closing"), STR(""), STR(" "),
                                STR(""), n, (struct filler_frame){0}, a, &z, &e),
                  e);
        assert_true(str_equal(x, y));
        if (n > 8) assert_false(str_equal(x, z));
        assert_true(x.p[0] >= 'A' && x.p[0] <= 'Z' && x.p[x.n - 1] == '.');
        assert_int_equal(str_count(x, STR(".")), 1);
    }
    counter_close(c);
    fake_provider_close(p);
    arena_destroy(a);
}

static void unknown_languages_are_named(void **state) {
    (void)state;
    struct err e = {0};
    const struct closing_words *words;
    ASSERT_FAILS(closing_find("tlh", &words, &e), e, ERR_CONFIG, "'tlh'; known languages: en, de");
    ASSERT_OK(closing_find("zh-Hans", &words, &e), e);
    assert_false(filler_language_spaced("zh-Hans"));
    assert_true(filler_language_spaced("de"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_count_is_hit),
        cmocka_unit_test(sentences_are_sentences),
        cmocka_unit_test(unknown_languages_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

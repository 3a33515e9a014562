// What ends a reply: stop tokens, stop strings across tokens, the limit (cases B09, B61).
#include "engine/continuation.h"
#include "tests/support/support.h"

#include <string.h>

static const char *const TOKENS[] = {"I",  " do", " not", " know", "<|A|>", "<|B|>", "<|C|>",
                                     "\n", "us",  "er:",  " so",   "",      "STO",   "P."};
enum { I, DO, NOT, KNOW, END_A, END_B, END_C, LINE, US, ER, SO, EMPTY, STO, P };
#define TOKEN_COUNT ((int32_t)(sizeof TOKENS / sizeof *TOKENS))

static struct str token_bytes(const void *context, int32_t id) {
    (void)context;
    assert_in_range(id, 0, TOKEN_COUNT - 1);
    return str_from(TOKENS[id]);
}

static const int32_t STOPS[] = {END_A, END_B, END_C}; // the union of what two places declare
static const struct continuation_vocabulary VOCABULARY = {
    .bytes = token_bytes, .size = 14, .longest_bytes = 5, .stops = STOPS, .stop_count = 3};

static struct continuation run(struct arena *a, const struct str *stop, int stop_count,
                               int max_tokens, const int32_t *ids, int count) {
    struct continuation r;
    continuation_start(&r, &VOCABULARY, stop, stop_count, max_tokens, a);
    for (int i = 0; i < count && !r.ended; i++) continuation_add(&r, ids[i]);
    return r;
}

#define ASSERT_TEXT(r, expected)                                                                   \
    do {                                                                                           \
        assert_int_equal((r).bytes, strlen(expected));                                             \
        assert_memory_equal((r).text, (expected), strlen(expected));                               \
    } while (0)

static void test_any_declared_stop_token_ends(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    for (int i = 0; i < 3; i++) {
        int32_t ids[] = {I, DO, NOT, KNOW, STOPS[i], LINE, US, ER, SO};
        struct continuation r = run(a, NULL, 0, 20, ids, 9);
        assert_true(r.ended);
        assert_int_equal(r.finish, FINISH_STOP);
        assert_int_equal(r.stop_id, STOPS[i]);
        assert_int_equal(r.count, 4);
        ASSERT_TEXT(r, "I do not know");
    }
    int32_t at_once[] = {END_B};
    struct continuation r = run(a, NULL, 0, 1, at_once, 1);
    assert_int_equal(r.finish, FINISH_STOP);
    assert_int_equal(r.count, 0);
    ASSERT_TEXT(r, "");
    arena_destroy(a);
}

static void test_limit(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    int32_t ids[] = {I, EMPTY, DO, NOT, END_A};
    struct continuation r = run(a, NULL, 0, 3, ids, 5);
    assert_int_equal(r.finish, FINISH_LENGTH);
    assert_int_equal(r.stop_id, -1);
    assert_int_equal(r.count, 3);
    ASSERT_TEXT(r, "I do");
    arena_destroy(a);
}

static void test_stop_strings(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    // Inside one token, over two, over three; the earliest of several; with the last allowed token.
    static const struct {
        const char *stop[2];
        int max_tokens;
        const char *text;
        size_t ids;
    } cases[] = {
        {{"no", NULL}, 20, "I do ", 2}, // inside a token that began before it: dropped whole
        {{"\nuser:", NULL}, 20, "I do not know", 4},
        {{"w\nus", NULL}, 20, "I do not kno", 4}, // its token begins before the cut and stays
        {{"user:", "\nu"}, 20, "I do not know", 4},
        {{"er:", "user"}, 7, "I do not know\n", 5},
        {{" know", " do not know"}, 20, "I", 1},
        {{"I", NULL}, 20, "", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str stop[2] = {str_from(cases[i].stop[0]), str_from(cases[i].stop[1])};
        int32_t ids[] = {I, DO, NOT, KNOW, LINE, US, ER, SO, END_A};
        struct continuation r =
            run(a, stop, cases[i].stop[1] != NULL ? 2 : 1, cases[i].max_tokens, ids, 9);
        assert_true(r.ended);
        assert_int_equal(r.finish, FINISH_STOP_STRING);
        ASSERT_TEXT(r, cases[i].text);
        if (i > 0) assert_int_equal(r.count, cases[i].ids);
    }
    struct str never[] = {STR("STOP!"), STR("TOP.x")};
    int32_t ids[] = {STO, P, STO, P, END_A};
    struct continuation r = run(a, never, 2, 20, ids, 5);
    assert_int_equal(r.finish, FINISH_STOP);
    ASSERT_TEXT(r, "STOP.STOP.");
    arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_declared_stop_token_ends),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_stop_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

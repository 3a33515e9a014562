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
    struct provider_generation *g = arena_alloc(a, sizeof *g);
    *g = (struct provider_generation){
        .max_tokens = max_tokens, .stop = stop, .stop_count = stop_count};
    continuation_start(&r, &VOCABULARY, g, a);
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

// Budgets apart: what each of them ends, and which tokens count where.
enum { T_OPEN, T_CLOSE, T_LESS, T_THINK, T_MORE, T_A, T_TICK, T_NEWLINE, T_END, T_BOTH, T_COUNT };
static struct str thinking_bytes(const void *context, int32_t id) {
    static const char *const tokens[] = {"<think>", "</think>", "<",  "think",   ">",
                                         " a",      "`",        "\n", "<|end|>", "</think> b"};
    (void)context;
    return str_from(tokens[id]);
}
static const int32_t THINKING_STOPS[] = {T_END};
static const struct continuation_vocabulary THINKING = {.bytes = thinking_bytes,
                                                        .size = T_COUNT,
                                                        .longest_bytes = 10,
                                                        .stops = THINKING_STOPS,
                                                        .stop_count = 1};

static void test_budgets_apart(void **state) {
    (void)state;
    static const struct {
        int answer, reasoning;
        bool opened;
        int32_t ids[16];
        int count;
        enum provider_finish finish;
        size_t kept, thought;
    } cases[] = {
        // The reasoning's ends inside of the block, the answer's outside.
        {2, 4, false, {T_OPEN, T_A, T_A, T_A, T_A}, 5, FINISH_REASONING, 4, 4},
        {2, 4, false, {T_OPEN, T_A, T_A, T_CLOSE, T_A, T_A, T_A}, 7, FINISH_LENGTH, 6, 4},
        {2, 4, false, {T_OPEN, T_CLOSE, T_A, T_END}, 4, FINISH_STOP, 3, 2},
        {2, 4, false, {T_A, T_A, T_A}, 3, FINISH_LENGTH, 2, 0},
        // Spelled in text tokens, the opening tag is reasoning once it stands there.
        {4, 5, false, {T_LESS, T_THINK, T_MORE, T_A, T_A, T_A}, 6, FINISH_REASONING, 5, 5},
        // A token belongs where its first byte lies.
        {1, 3, false, {T_OPEN, T_BOTH, T_A, T_A}, 4, FINISH_LENGTH, 3, 2},
        // The prompt opened it.
        {2, 3, true, {T_A, T_A, T_A, T_A}, 4, FINISH_REASONING, 3, 3},
        {2, 3, true, {T_A, T_CLOSE, T_A, T_A, T_A}, 5, FINISH_LENGTH, 4, 2},
        // An opening tag inside is text; a second block counts with the first.
        {3, 4, false, {T_OPEN, T_OPEN, T_CLOSE, T_A, T_OPEN, T_A}, 6, FINISH_REASONING, 5, 4},
        // In code it is text, on a line that has not ended too.
        {6, 1, false, {T_A, T_TICK, T_OPEN, T_TICK, T_A, T_A, T_A}, 7, FINISH_LENGTH, 6, 0},
        {6, 3, false, {T_TICK, T_OPEN, T_NEWLINE, T_A, T_A}, 5, FINISH_REASONING, 4, 3},
    };
    struct arena *a = arena_create("test");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reasoning_tags tags = {STR("<think>"), STR("</think>"), cases[i].opened};
        struct provider_generation g = {.max_tokens = cases[i].answer + cases[i].reasoning,
                                        .reasoning_tokens = cases[i].reasoning,
                                        .reasoning = &tags};
        struct continuation r;
        continuation_start(&r, &THINKING, &g, a);
        for (int k = 0; k < cases[i].count && !r.ended; k++) continuation_add(&r, cases[i].ids[k]);
        if (!r.ended || r.finish != cases[i].finish || r.count != cases[i].kept ||
            continuation_reasoning_tokens(&r) != cases[i].thought)
            fail_msg("case %zu: %s behind %zu tokens, %zu of reasoning", i,
                     r.ended ? provider_finish_name(r.finish) : "not ended", r.count,
                     continuation_reasoning_tokens(&r));
    }
    arena_destroy(a);
}

// Whatever comes, neither part gets more than its own budget, nor the reply more than their sum.
static void test_budgets_hold(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct rng draw = rng_open(7, "budgets", "tokens");
    size_t finished[FINISH_REASONING + 1] = {0};
    for (int round = 0; round < 20000; round++) {
        struct reasoning_tags tags = {STR("<think>"), STR("</think>"), rng_below(&draw, 2) == 0};
        const int answer = 1 + (int)rng_below(&draw, 9), reasoning = 1 + (int)rng_below(&draw, 9);
        struct provider_generation g = {
            .max_tokens = answer + reasoning, .reasoning_tokens = reasoning, .reasoning = &tags};
        struct continuation r;
        arena_reset(a);
        continuation_start(&r, &THINKING, &g, a);
        while (!r.ended) continuation_add(&r, (int32_t)rng_below(&draw, T_COUNT));
        finished[r.finish]++;
        assert_in_range(r.count, 0, answer + reasoning);
        if (r.finish == FINISH_REASONING)
            assert_true(continuation_reasoning_tokens(&r) >= (size_t)reasoning);
    }
    assert_true(finished[FINISH_REASONING] > 1000 && finished[FINISH_LENGTH] > 1000 &&
                finished[FINISH_STOP] > 1000);
    arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_declared_stop_token_ends),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_stop_strings),
        cmocka_unit_test(test_budgets_apart),
        cmocka_unit_test(test_budgets_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

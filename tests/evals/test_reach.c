// How far back a reply can depend on its prompt, against a walk through the layers token by token;
// and what a report says about it.
#include "tests/support/support.h"

#include "engine/base/rng.h"
#include "evals/reach.h"
#include "evals/summarize.h"
#include "tests/support/simulated_run.h"

#include <stdio.h>
#include <string.h>

enum { TOKENS_MOST = 200 };

// Which of n tokens the last one depends on, by following every edge of every layer.
static void follow(const struct reach *r, uint32_t n, bool depends[TOKENS_MOST]) {
    memset(depends, 0, TOKENS_MOST);
    depends[n - 1] = true;
    for (int64_t layer = 0; layer < r->layers; layer++) {
        bool next[TOKENS_MOST] = {false};
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++)
                if (depends[i] && (r->window == 0 || j > i - r->window)) next[j] = true;
        memcpy(depends, next, sizeof next);
    }
}

static void test_places(void **state) {
    (void)state;
    struct rng random = rng_open(3, "places", "test");
    int seen[REACH_NONE + 1] = {0};
    for (int round = 0; round < 3000; round++) {
        struct reach r = {.layers = 1 + (int64_t)rng_below(&random, 4),
                          .window = (int64_t)rng_below(&random, 40)};
        uint32_t n = 2 + (uint32_t)rng_below(&random, TOKENS_MOST - 1);
        struct record_span span = {.first_token = (uint32_t)rng_below(&random, n)};
        span.tokens = 1 + (uint32_t)rng_below(&random, n - span.first_token);
        struct record_trial t = {.prompt_tokens = n, .spans = &span, .span_count = 1};
        bool depends[TOKENS_MOST], any = false;
        follow(&r, n, depends);
        for (uint32_t i = 0; i < span.tokens; i++) any |= depends[span.first_token + i];
        struct reach once = {.layers = 1, .window = r.window};
        follow(&once, n, depends);
        enum reach_place expected = depends[span.first_token] ? REACH_DIRECT
                                    : any                     ? REACH_RELAYED
                                                              : REACH_NONE;
        enum reach_place found = reach_place(&r, &t, &span);
        if (found != expected)
            fail_msg("%d instead of %d: %u tokens, span %u + %u, %d layers, window %d", found,
                     expected, n, span.first_token, span.tokens, (int)r.layers, (int)r.window);
        seen[found]++;
    }
    for (int i = REACH_DIRECT; i <= REACH_NONE; i++) assert_true(seen[i] > 100);
}

static void test_identity(void **state) {
    (void)state;
    struct err e = {0};
    json_t *identity;
    ASSERT_OK(json_parse(STR("{\"layers\": 3, \"window\": 11}"), "identity", &identity, &e), e);
    struct reach r = reach_of(identity);
    assert_int_equal(reach_tokens(&r), 30);
    json_decref(identity);
    r = reach_of(NULL);
    assert_int_equal(r.window, 0);
}

static double half(const struct record_trial *t) {
    (void)t;
    return 0.5;
}

// 2 layers of window 200 reach 398 tokens back. Of 512 tokens: start is beyond that, the middle is
// relayed in even repeats and out of reach in odd ones, the end is seen directly.
static void test_words(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    struct err e = {0};
    simulated_open(&s, half);
    s.x.length_count = 1;
    simulated_plan(&s);
    simulated_answer(&s, 1);
    for (int64_t i = 0; i < s.r.trial_count; i++) {
        struct record_trial *t = &s.r.trials[i];
        t->prompt_tokens = 512;
        if (t->span_count == 0) continue;
        bool odd = t->repeat % 2 == 1;
        t->spans[0].tokens = 10;
        t->spans[0].first_token = strcmp(t->depth, "0.000") == 0    ? 0
                                  : strcmp(t->depth, "50.000") == 0 ? (odd ? 103 : 104)
                                                                    : 312;
    }
    json_decref(s.r.identity);
    ASSERT_OK(json_parse(STR("{\"models\": [{\"id\": \"toy\", \"layers\": 2, \"window\": 200}]}"),
                         "identity", &s.r.identity, &e),
              e);
    ASSERT_OK(summarize(&s.r, &s.x, s.arena, &out, &e), e);
    const struct summary_table *table = &out.tables[0];
    assert_int_equal(table->cell_count, 3);
    assert_string_equal(table->cells[0].in_window, "out of reach");
    assert_string_equal(table->cells[1].in_window, "10 relayed, 10 out of reach");
    assert_string_equal(table->cells[2].in_window, "directly");
    const char *remark = table->remarks[table->remark_count - 1];
    static const char *const words[] = {
        "reach: order at start, middle (10 of 20 trials) of 512 tokens.", "the last 399 tokens",
        "between: order at middle (10 of 20 trials) of 512 tokens."};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(remark, words[i]) == NULL) fail_msg("no '%s' in: %s", words[i], remark);
    // Without a window nothing is said.
    json_object_clear(json_array_get(json_object_get(s.r.identity, "models"), 0));
    ASSERT_OK(summarize(&s.r, &s.x, s.arena, &out, &e), e);
    assert_null(out.tables[0].cells[0].in_window);
    for (int i = 0; i < out.tables[0].remark_count; i++)
        assert_null(strstr(out.tables[0].remarks[i], "reach"));
    simulated_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_identity),
                                       cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

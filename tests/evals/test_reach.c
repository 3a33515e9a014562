// How far back a reply can depend on its prompt, against a walk through the layers token by token.
#include "tests/support/support.h"

#include "engine/base/rng.h"
#include "evals/reach.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_identity)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

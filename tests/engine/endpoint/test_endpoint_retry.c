// When a request is sent again, without a network and without waiting.
#include "tests/support/support.h"

#include "engine/endpoint/retry.h"

#include <string.h>

#define NOW 784111770 // Sun, 06 Nov 1994 08:49:30 GMT

static const struct retry_policy policy = {
    .attempts_most = 4, .first_ms = 500, .pause_ms_most = 3000, .asked_ms_most = 60000};

static enum retry_choice choose(int number, int status, bool lost, const char *after,
                                uint64_t *pause_ms) {
    struct retry_attempt a = {number, status, lost, str_from(after)};
    struct rng draw = rng_open((uint64_t)number, "test", after);
    return retry_choose(&policy, &a, NOW, &draw, pause_ms);
}

static void what_may_pass_is_sent_again(void **state) {
    (void)state;
    static const struct {
        int status;
        bool lost;
        enum retry_choice choice;
    } cases[] = {{429, false, RETRY_AGAIN}, {500, false, RETRY_AGAIN}, {503, false, RETRY_AGAIN},
                 {529, false, RETRY_AGAIN}, {408, false, RETRY_AGAIN}, {0, true, RETRY_AGAIN},
                 {0, false, RETRY_FINAL},   {400, false, RETRY_FINAL}, {401, false, RETRY_FINAL},
                 {404, false, RETRY_FINAL}, {501, false, RETRY_FINAL}, {200, true, RETRY_FINAL}};
    uint64_t ms;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(choose(1, cases[i].status, cases[i].lost, "", &ms), cases[i].choice);
        assert_int_equal(choose(3, cases[i].status, cases[i].lost, "", &ms), cases[i].choice);
        if (cases[i].choice == RETRY_AGAIN)
            assert_int_equal(choose(4, cases[i].status, cases[i].lost, "", &ms), RETRY_EXHAUSTED);
    }
}

// Doubling from the first pause up to the longest, drawn from the upper half.
static void pauses_double(void **state) {
    (void)state;
    static const uint64_t most[] = {500, 1000, 2000, 3000, 3000, 3000};
    struct retry_policy patient = policy;
    patient.attempts_most = 100;
    for (int number = 1; number <= 6; number++) {
        uint64_t least_seen = UINT64_MAX, most_seen = 0, ms;
        struct rng draw = rng_open(7, "test", "pauses");
        for (int i = 0; i < 500; i++) {
            struct retry_attempt a = {.number = number, .status = 500};
            assert_int_equal(retry_choose(&patient, &a, NOW, &draw, &ms), RETRY_AGAIN);
            if (ms < least_seen) least_seen = ms;
            if (ms > most_seen) most_seen = ms;
        }
        assert_in_range(least_seen, most[number - 1] / 2, most[number - 1] / 2 + 20);
        assert_in_range(most_seen, most[number - 1] - 20, most[number - 1]);
    }
}

static void the_server_may_ask_for_more(void **state) {
    (void)state;
    uint64_t ms;
    assert_int_equal(choose(1, 429, false, "2", &ms), RETRY_AGAIN);
    assert_int_equal(ms, 2000);
    assert_int_equal(choose(1, 429, false, "0", &ms), RETRY_AGAIN);
    assert_in_range(ms, 250, 500);
    assert_int_equal(choose(1, 503, false, "Sun, 06 Nov 1994 08:49:37 GMT", &ms), RETRY_AGAIN);
    assert_int_equal(ms, 7000);
    assert_int_equal(choose(1, 503, false, "Sun, 06 Nov 1994 08:48:37 GMT", &ms), RETRY_AGAIN);
    assert_in_range(ms, 250, 500);
    assert_int_equal(choose(1, 429, false, "60", &ms), RETRY_AGAIN);
    assert_int_equal(choose(1, 429, false, "61", &ms), RETRY_TOO_LONG);
    assert_int_equal(ms, 61000);
    assert_int_equal(choose(1, 401, false, "1", &ms), RETRY_FINAL);
}

static void dates_and_numbers_are_read(void **state) {
    (void)state;
    int64_t s;
    assert_true(retry_after_seconds(STR(" 17 "), NOW, &s) && s == 17);
    assert_true(retry_after_seconds(STR("Sun, 06 Nov 1994 08:49:37 GMT"), NOW, &s) && s == 7);
    assert_true(retry_after_seconds(STR("Tue, 01 Mar 2044 00:00:00 GMT"), 2340316800, &s) &&
                s == 86400);
    static const char *const wrong[] = {"",
                                        "soon",
                                        "-1",
                                        "1.5",
                                        "9999999999999",
                                        "Sunday, 06-Nov-94 08:49:37 GMT",
                                        "Sun, 06 Nov 1994 08:49:37 EST",
                                        "Sun, 06 ovD 1994 08:49:37 GMT"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(retry_after_seconds(str_from(wrong[i]), NOW, &s));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_pass_is_sent_again),
        cmocka_unit_test(pauses_double),
        cmocka_unit_test(the_server_may_ask_for_more),
        cmocka_unit_test(dates_and_numbers_are_read),
    };
    return cmocka_run_group_tests_name("endpoint_retry", tests, NULL, NULL);
}

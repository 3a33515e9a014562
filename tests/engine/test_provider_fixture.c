// The scripted fixture: words and ids, rules, order, hanging and cancelling.
#include "tests/support/support.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "engine/provider_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int open_text(const char *rules, bool plan_only, struct provider **p, struct err *e) {
    static char path[256];
    snprintf(path, sizeof path, "%s/rules.json", test_folder());
    struct err write_error = {0};
    ASSERT_OK(file_write_atomic(path, str_from(rules), &write_error), write_error);
    struct provider_options o = {.id = "script", .fixture = path, .plan_only = plan_only};
    return provider_fixture_open(&o, p, e);
}

static struct provider *open_ok(const char *rules) {
    struct provider *p = NULL;
    struct err e = {0};
    ASSERT_OK(open_text(rules, false, &p, &e), e);
    return p;
}

static struct provider_ids ids_of(struct provider *p, struct arena *a, const char *text,
                                  bool control) {
    struct provider_piece piece = {str_from(text), control};
    struct provider_ids ids;
    struct err e = {0};
    ASSERT_OK(p->ops->tokenize(p, &piece, 1, a, &ids, &e), e);
    return ids;
}

static const char plain[] = "{\"lacuna_fixture\": 1, \"rules\": []}";

// Ids give the bytes back, are the same in every provider, and joins at spaces change nothing.
static void test_words(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct provider *p = open_ok(plain), *q = open_ok(plain);
    const char *text = "The order number is 19763.  Zürich, 日本語\n\ttab <|im_start|> \xff end";
    struct provider_ids one = ids_of(p, a, text, false), two = ids_of(q, a, text, false);
    assert_int_equal(one.count, two.count);
    assert_memory_equal(one.ids, two.ids, one.count * sizeof *one.ids);
    struct buf back = {0};
    for (size_t i = 0; i < one.count; i++) {
        assert_true(one.ids[i] > 2); // no control token in prose that spells one
        buf_add_str(&back, p->ops->id_bytes(p, one.ids[i]));
    }
    assert_string_equal(back.p, text);
    buf_free(&back);
    struct provider_ids head = ids_of(p, a, "The order", false);
    struct provider_ids tail = ids_of(p, a, " number is", false);
    assert_memory_equal(one.ids, head.ids, head.count * sizeof *head.ids);
    assert_memory_equal(one.ids + head.count, tail.ids, tail.count * sizeof *tail.ids);
    struct provider_ids control = ids_of(p, a, "<|im_start|>user\n", true);
    assert_int_equal(control.count, 3);
    assert_int_equal(control.ids[0], 1);
    p->ops->close(p);
    q->ops->close(q);
    arena_destroy(a);
}

static void submit(struct provider *p, int64_t ticket, const char *key, const char *prompt,
                   int max_tokens, bool expected) {
    struct provider_piece piece = {str_from(prompt), false};
    static const struct str stop[] = {{"STOP", 4}};
    struct provider_generation g = {
        .max_tokens = max_tokens, .top_p = 1, .stop = stop, .stop_count = 1};
    struct provider_request request = {.ticket = ticket,
                                       .key = key,
                                       .pieces = &piece,
                                       .piece_count = 1,
                                       .generation = &g,
                                       .sampling = rng_open((uint64_t)ticket, "test", "sampling")};
    bool accepted;
    struct err e = {0};
    ASSERT_OK(p->ops->submit(p, &request, &accepted, &e), e);
    assert_int_equal(accepted, expected);
}

static bool next(struct provider *p, struct arena *a, struct provider_completion *c) {
    bool any;
    struct err e = {0};
    ASSERT_OK(p->ops->next(p, a, c, &any, &e), e);
    return any;
}

static void test_rules(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct provider *p = open_ok("{\"lacuna_fixture\": 1, \"in_flight\": 2, \"rules\": ["
                                 "{\"key\": \"@end/\", \"error\": \"down\"},"
                                 "{\"key\": \"@odd/\", \"reply_base64\": \"/wA=\"},"
                                 "{\"key\": \"@nul/\", \"reply\": \"a\\u0000b\"},"
                                 "{\"key\": \"@stop/\", \"reply\": \"one STOP two\"},"
                                 "{\"prompt\": \"code is\", \"reply\": \"It is {{0}} and {{1}}!\","
                                 " \"copy_after\": [\"code is \", \"nowhere \"]}]}");
    struct provider_completion c;
    submit(p, 4, "m/x@start/", "The code is 197-63.", 40, true);
    submit(p, 5, "m/x@end/", "The code is 1.", 40, true);
    submit(p, 6, "m/x@end/", "The code is 1.", 40, false); // full
    assert_true(next(p, a, &c));
    assert_int_equal(c.ticket, 4);
    assert_true(c.ok && c.finish == FINISH_STOP && str_equal_c(c.text, "It is 197-63 and !"));
    assert_int_equal(c.tokens, c.ids.count);
    assert_true(next(p, a, &c));
    assert_true(!c.ok && c.ticket == 5 && strcmp(c.reason_text, "down") == 0);
    assert_false(next(p, a, &c));
    submit(p, 7, "m/x@start/", "The code is 7.", 2, true);
    submit(p, 8, "m/x@stop/", "", 40, true);
    assert_true(next(p, a, &c));
    assert_true(c.finish == FINISH_LENGTH && str_equal_c(c.text, "It is") && c.tokens == 2);
    assert_true(next(p, a, &c));
    assert_true(c.finish == FINISH_STOP_STRING && str_equal_c(c.text, "one "));
    submit(p, 9, "m/x@odd/", "", 40, true);
    submit(p, 10, "m/x@nul/", "", 40, true);
    assert_true(next(p, a, &c));
    assert_true(c.text.n == 2 && memcmp(c.text.p, "\xff", 2) == 0);
    assert_true(next(p, a, &c));
    assert_true(str_equal(c.text, STR("a\0b")));
    submit(p, 11, "m/x@start/", "no rule", 40, true);
    assert_true(next(p, a, &c));
    assert_true(c.ok && c.text.n == 0 && c.ids.ids != NULL && c.tokens == 0);
    p->ops->close(p);
    arena_destroy(a);
}

// Completions out of order, and replies that follow the request's own stream whatever the order.
static void test_order_and_samples(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    static const char rules[] = "{\"lacuna_fixture\": 1, \"in_flight\": 50, \"order\": \"%s\","
                                "\"rules\": [{\"reply\": [\"a {{sample}}\", \"b {{sample}}\"]}]}";
    struct str replies[2][50];
    int disorder = 0, letters[2] = {0};
    for (int k = 0; k < 2; k++) {
        struct provider *p = open_ok(arena_printf(a, rules, k == 0 ? "first" : "shuffled"));
        for (int i = 0; i < 50; i++) submit(p, i, "k", "x", 9, true);
        struct provider_completion c;
        for (int i = 0; i < 50; i++) {
            assert_true(next(p, a, &c));
            if (k == 0) assert_int_equal(c.ticket, i);
            if (k == 1) disorder += c.ticket != i;
            replies[k][c.ticket] = c.text;
        }
        p->ops->close(p);
    }
    for (int i = 0; i < 50; i++) {
        assert_true(str_equal(replies[0][i], replies[1][i]));
        letters[replies[0][i].p[0] == 'b']++;
    }
    assert_true(disorder > 25 && letters[0] > 5 && letters[1] > 5);
    arena_destroy(a);
}

static void *cancel_soon(void *provider) {
    struct provider *p = provider;
    usleep(50000);
    p->ops->cancel(p);
    return NULL;
}

static void test_hanging(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct provider *p =
        open_ok("{\"lacuna_fixture\": 1, \"in_flight\": 3, \"rules\": ["
                "{\"key\": \"short\", \"hang_ms\": 20}, {\"key\": \"long\", \"hang_ms\": 600000},"
                "{\"reply\": \"quick\"}]}");
    submit(p, 0, "short", "", 9, true);
    submit(p, 1, "quick", "", 9, true);
    submit(p, 2, "long", "", 9, true);
    struct provider_completion c;
    assert_true(next(p, a, &c));
    assert_int_equal(c.ticket, 1);
    assert_true(next(p, a, &c));
    assert_true(c.ticket == 0 && !c.ok && strcmp(c.reason_code, "hang") == 0);
    pthread_t thread;
    uint64_t began = clock_ns();
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, p), 0);
    assert_false(next(p, a, &c));
    assert_true(clock_ns() - began < 5000000000u);
    pthread_join(thread, NULL);
    p->ops->close(p);
    arena_destroy(a);
}

static void test_bad_rules(void **state) {
    (void)state;
    struct provider *p;
    struct err e = {0};
    ASSERT_FAILS(open_text("{", false, &p, &e), e, ERR_INPUT, "rules.json");
    ASSERT_FAILS(open_text("{\"lacuna_fixture\": 2, \"rules\": []}", false, &p, &e), e, ERR_CONFIG,
                 "\"lacuna_fixture\" is 2");
    ASSERT_FAILS(
        open_text("{\"lacuna_fixture\": 1, \"rules\": [{\"replay\": \"x\"}]}", false, &p, &e), e,
        ERR_CONFIG, "did you mean \"reply\"?");
    ASSERT_FAILS(open_text("{\"lacuna_fixture\": 1, \"rules\": [{\"reply\": 4}]}", false, &p, &e),
                 e, ERR_CONFIG, "rules[0]: \"reply\"");
    ASSERT_FAILS(
        open_text("{\"lacuna_fixture\": 1, \"in_flight\": 0, \"rules\": []}", false, &p, &e), e,
        ERR_CONFIG, "in_flight");
    ASSERT_OK(
        open_text("{\"lacuna_fixture\": 1, \"exact_ids\": false, \"rules\": []}", true, &p, &e), e);
    struct arena *a = arena_create("test");
    struct provider_ids ids = ids_of(p, a, "123456789", false);
    assert_true(ids.ids == NULL && ids.count == 3 && !p->can.exact_ids);
    struct provider_request request = {0};
    bool accepted;
    ASSERT_FAILS(p->ops->submit(p, &request, &accepted, &e), e, ERR_PROVIDER, "planning only");
    p->ops->close(p);
    arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_order_and_samples),
        cmocka_unit_test(test_hanging),
        cmocka_unit_test(test_bad_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// What a served model is: what answers is recorded, and a change of it is told, within a run, over
// a resume and when a trial is repeated.
#include "tests/support/fast_folder.h"
#include "tests/support/program.h"
#include "tests/support/served_model.h"
#include "tests/support/support.h"

#include <string.h>

static int times(struct str text, const char *what) {
    return (int)str_count(text, str_from(what));
}

static void what_answers_is_recorded(void **state) {
    (void)state;
    struct served_model m = {.program = "tiny/1.2 \x1b[31m"};
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "x", &m, 4, "body: {top_k: 1}");
    expect_exit(0, "run x.yaml -o plain");
    assert_holds(program_said, "prod is answered by model small-2026, fingerprint fp_1, server "
                               "tiny/1.2 ?[31m");
    struct str ledger = file_of("plain", "trials.jsonl"), report = file_of("plain", "report.md");
    assert_int_equal(times(ledger, "\"server\":{\"model\":\"small-2026\",\"fingerprint\":\"fp_1\","
                                   "\"program\":\"tiny/1.2 \\u001B[31m\"}"),
                     36);
    assert_holds(report, "What answered: prod");
    assert_holds(report, "fp\\_1");
    assert_holds(report, "Sent by api chat with ");
    assert_holds(report, "top\\_k");
    assert_int_equal(times(report, "not answered by one thing"), 0);
    assert_int_equal(times(file_of("plain", "sessions.jsonl"), "\"event\":\"served\""), 1);
    assert_int_equal(times(file_of("plain", "sessions.jsonl"), "served change"), 0);
    expect_exit(0, "verify plain");
    m.fingerprint = "fp_2";
    expect_exit(0, "repeat plain prod/placed/500/order-moves@middle/1/0");
    assert_holds(program_said, "fingerprint fp_1, server tiny/1.2 ?[31m answered then, model "
                               "small-2026, fingerprint fp_2,");
    served_model_close(&m);
}

// The second half of the requests is answered by something else.
static const char *other_model, *other_fingerprint;
static void change(void *context, int number, struct http_server_answer *a) {
    const struct served_model *m = context;
    if (number < 18) return;
    struct buf body = {0};
    const char *rest = strstr(a->body.p, ",\"choices\"");
    buf_printf(&body, "{\"model\":\"%s\",\"system_fingerprint\":\"%s\"%s",
               other_model ? other_model : m->reported,
               other_fingerprint ? other_fingerprint : m->fingerprint, rest);
    buf_free(&a->body);
    a->body = body;
}

static void another_fingerprint_is_told(void **state) {
    (void)state;
    struct served_model m = {.fault = change, .context = &m};
    other_model = NULL;
    other_fingerprint = "fp_9";
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "f", &m, 4, "in_flight: 1");
    expect_exit(0, "run f.yaml -o swapped");
    assert_int_equal(times(program_said, "is answered by model small-2026, fingerprint fp_9"), 1);
    assert_int_equal(times(file_of("swapped", "sessions.jsonl"), "\"event\":\"served change\""), 1);
    struct str report = file_of("swapped", "report.md");
    assert_holds(report, "prod was not answered by one thing throughout: model small-2026, "
                         "fingerprint fp\\_1, server script/1 \\(18 replies\\); model small-2026, "
                         "fingerprint fp\\_9, server script/1 \\(18 replies\\)");
    assert_holds(file_of("swapped", "report.html"), "was not answered by one thing");
    assert_holds(program_out, "was not answered by one thing");
    expect_exit(0, "verify swapped");
    served_model_close(&m);
}

static void another_model_is_an_error(void **state) {
    (void)state;
    struct served_model m = {.fault = change, .context = &m};
    other_model = "large-2027";
    other_fingerprint = NULL;
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "m", &m, 4, "in_flight: 1");
    expect_exit(1, "run m.yaml -o renamed");
    assert_int_equal(times(program_said, "is answered by model large-2027"), 1);
    struct str ledger = file_of("renamed", "trials.jsonl");
    assert_int_equal(times(ledger, "\"code\":\"model_changed\",\"text\":\"model large-2027 "
                                   "answered, and small-2026 before\""),
                     18);
    assert_holds(file_of("renamed", "report.md"), "18 ok, 0 invalid, 18 error");
    // A start of its own knows what the record holds.
    expect_exit(1, "run m.yaml -o renamed --retry-errors");
    assert_int_equal(times(file_of("renamed", "trials.jsonl"), "\"code\":\"model_changed\""), 36);
    other_model = "small-2026";
    expect_exit(0, "run m.yaml -o renamed --retry-errors");
    assert_holds(file_of("renamed", "report.md"), "36 ok, 0 invalid, 0 error");
    expect_exit(0, "verify renamed");
    served_model_close(&m);
}

// Stopped half way by its costs; another server stands there when it goes on.
static void a_resumed_run_knows_what_answered_before(void **state) {
    (void)state;
    struct served_model m = {0};
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "r", &m, 4,
                      "in_flight: 1, price: {input_per_mtok: 1000, output_per_mtok: 10000}");
    expect_exit(1, "run r.yaml -o resumed --max-cost 6");
    const int done = http_server_requests(m.server);
    assert_in_range(done, 6, 30);
    m.fingerprint = "fp_2";
    expect_exit(1, "run r.yaml -o resumed --max-cost 8");
    assert_holds(program_said,
                 "is answered by model small-2026, fingerprint fp_2, server script/1 from prod/");
    assert_holds(program_said, "and before by model small-2026, fingerprint fp_1");
    const int more = http_server_requests(m.server);
    assert_in_range(more, done + 1, 35);
    m.reported = "large-2027";
    expect_exit(1, "run r.yaml -o resumed");
    assert_int_equal(http_server_requests(m.server), 36);
    assert_holds(program_said, "replies of another model are no part of this run");
    assert_int_equal(times(file_of("resumed", "trials.jsonl"), "\"code\":\"model_changed\""),
                     36 - more);
    assert_int_equal(times(file_of("resumed", "sessions.jsonl"), "\"event\":\"served change\""), 2);
    expect_exit(0, "verify resumed");
    served_model_close(&m);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_answers_is_recorded),
        TEST(another_fingerprint_is_told),
        TEST(another_model_is_an_error),
        TEST(a_resumed_run_knows_what_answered_before),
    };
    return cmocka_run_group_tests_name("cli_served", tests, NULL, NULL);
}

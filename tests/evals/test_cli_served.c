// What a served model is: what answers is recorded, and a change of it is told, within a run, over
// a resume and when a trial is repeated.
#include "tests/support/fast_folder.h"
#include "tests/support/program.h"
#include "tests/support/served_model.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "reports/record.h"

#include <stdlib.h>
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

// ---- noise ----

// The trials of again.jsonl, in the order of its lines.
static int asked_twice(const char *run, int64_t *trials, int most) {
    struct str text = file_of(run, "again.jsonl");
    int count = 0;
    for (size_t at = 0; at < text.n && count < most; count++) {
        size_t end = str_find(text, STR("\n"), at);
        struct err e = {0};
        json_t *line;
        ASSERT_OK(json_parse(str_slice(text, at, end), "again.jsonl", &line, &e), e);
        trials[count] = json_integer_value(json_object_get(line, "trial"));
        json_decref(line);
        at = end + 1;
    }
    return count;
}

static int by_number(const void *left, const void *right) {
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static void some_requests_are_sent_twice(void **state) {
    (void)state;
    struct served_model m = {.shuffled = true};
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "t", &m, 4,
                      "repeat_check: 6, price: {input_per_mtok: 1000, output_per_mtok: 10000}");
    expect_exit(0, "plan t.yaml");
    assert_holds(program_out, "6 of the requests are sent a second time");
    assert_holds(program_out, " of prompts, 13.4400 of replies)"); // 42 of 32 tokens
    expect_exit(0, "plan t.yaml --json");
    assert_holds(program_out, "\"requests\": 6");
    expect_exit(0, "run t.yaml -o twice");
    assert_int_equal(http_server_requests(m.server), 42);
    int64_t trials[7], others[7];
    assert_int_equal(asked_twice("twice", trials, 7), 6);
    qsort(trials, 6, sizeof *trials, by_number);
    for (int i = 0; i < 6; i++) assert_in_range(trials[i], 6 * i, 6 * i + 5); // spread over it
    assert_int_equal(times(file_of("twice", "trials.jsonl"), "\n"), 36);
    assert_holds(program_out,
                 "of 6 requests that were sent twice 6 got the same text (95 % interval "
                 "61 to 100 %) and 6 the same verdicts");
    assert_holds(file_of("twice", "report.md"), "Noise of the server: prod");
    assert_holds(file_of("twice", "report.html"), "Noise of the server: prod");
    expect_exit(0, "verify twice");
    expect_exit(0, "run t.yaml -o twice");
    assert_int_equal(http_server_requests(m.server), 42);
    assert_holds(program_said, "is complete");
    // Another run asks for the same ones.
    expect_exit(0, "run t.yaml -o other");
    assert_int_equal(asked_twice("other", others, 7), 6);
    qsort(others, 6, sizeof *others, by_number);
    assert_memory_equal(trials, others, 6 * sizeof *trials);
    // A changed second reply is found.
    const char *path = arena_printf(test_arena, "%s/twice/again.jsonl", fast_folder());
    char *text = str_to_c(test_arena, file_of("twice", "again.jsonl"));
    char *reply = strstr(text, "It is");
    memcpy(reply, "So is", 5);
    test_write(path, str_from(text));
    expect_exit(1, "verify twice");
    assert_holds(program_out, "again.jsonl:2: the chain is broken");
    expect_exit(0, "verify other");
    // More than there are: all of them.
    expect_exit(0, "plan t.yaml --set 'models[0].repeat_check=1000'");
    assert_holds(program_out, "36 of the requests are sent a second time");
    served_model_close(&m);
}

// Of the second replies two have other words, and two no number that the first had.
static int64_t first_again;
static void be_noisy(void *context, int number, struct http_server_answer *a) {
    (void)context;
    char *reply = strstr(a->body.p, "It is ");
    if (number == first_again || number == first_again + 3) memcpy(reply, "So is ", 6);
    if (number == first_again + 1 || number == first_again + 4) memset(reply + 6, '*', 5);
}

// How many of the two lost a number that their first replies had.
static int lost_numbers(const char *run) {
    struct err e = {0};
    struct record *r;
    int64_t trials[7];
    const char *path = path_join(test_arena, fast_folder(), run);
    ASSERT_OK(record_open(path, test_arena, &r, &e), e);
    assert_int_equal(asked_twice(run, trials, 7), 6);
    int lost = 0;
    for (int i = 1; i < 6; i += 3)
        lost += r->outcomes[trials[i]]->verdicts[0].verdict == VERDICT_MET;
    record_close(r);
    return lost;
}

static void a_seed_may_be_ignored(void **state) {
    (void)state;
    struct served_model m = {.fault = be_noisy};
    served_model_open(&m);
    first_again = INT64_MAX - 4;
    served_experiment(test_arena, fast_folder(), "s", &m, 4, "in_flight: 1, repeat_check: 6");
    expect_exit(0, "run s.yaml -o yes --set generation.temperature=0.8");
    assert_holds(file_of("yes", "report.md"),
                 "Seed honoured: yes, in all of 6 requests that were sent twice.");
    first_again = http_server_requests(m.server) + 36;
    expect_exit(0, "run s.yaml -o no --set generation.temperature=0.8");
    assert_holds(file_of("no", "report.md"),
                 "Seed honoured: no, 4 of 6 requests that were sent twice got another text.");
    expect_exit(0, "run s.yaml -o unknown --set generation.temperature=0.8 "
                   "--set 'models[0].repeat_check=0'");
    assert_holds(file_of("unknown", "report.md"), "Seed honoured: unknown");
    expect_exit(0, "run s.yaml -o greedy"); // is sent none
    assert_int_equal(times(file_of("greedy", "report.md"), "Seed honoured"), 0);
    served_model_close(&m);
}

static void noise_is_told(void **state) {
    (void)state;
    struct served_model m = {.fault = be_noisy};
    served_model_open(&m);
    first_again = 36;
    served_experiment(test_arena, fast_folder(), "y", &m, 4, "in_flight: 1, repeat_check: 6");
    expect_exit(0, "run y.yaml -o noisy");
    const int lost = lost_numbers("noisy");
    assert_in_range(lost, 1, 2);
    assert_holds(program_out, "of 6 requests that were sent twice 2 got the same text (95 % "
                              "interval 10 to 70 %)");
    assert_holds(program_out, arena_printf(test_arena, "and %d the same verdicts", 6 - lost));
    assert_holds(file_of("noisy", "report.md"), "no equality of bytes is claimed");
    expect_exit(0, "verify noisy");
    // A comparison says so, whether the other side is a folder or a file.
    first_again = 1000;
    expect_exit(0, "run y.yaml -o quiet");
    expect_exit(0, "baseline noisy -o noisy.jsonl");
    assert_holds(test_read(test_arena, path_join(test_arena, fast_folder(), "noisy.jsonl")),
                 "\"noise\":[{\"model\":\"prod\",\"requests\":6,\"same_text\":2,");
    const char *said = arena_printf(test_arena,
                                    "prod of the baseline is served: of 6 requests that were sent "
                                    "twice 4 got another text and %d other verdicts",
                                    lost);
    expect_exit(0, "plan y.yaml --set 'gates=[{metric: changed_replies, at_most: 0, baseline: "
                   "noisy.jsonl}]'");
    assert_holds(program_out, "the gate changed_replies asks for equal replies of prod, which is "
                              "served");
    program_run("compare noisy quiet");
    assert_holds(program_out, said);
    assert_holds(program_out,
                 "prod of the run is served: of 6 requests that were sent twice 0 got");
    program_run("compare noisy.jsonl quiet");
    assert_holds(program_out, said);
    served_model_close(&m);
}

// ---- interruptions ----

// Second requests 3 and 4 of this start fail.
static bool failing;
static void fail_some(void *context, int number, struct http_server_answer *a) {
    (void)context;
    if (failing && (number == 38 || number == 39)) a->status = 400;
}

static void second_requests_that_failed_are_sent_again(void **state) {
    (void)state;
    struct served_model m = {.fault = fail_some};
    int64_t trials[7];
    failing = true;
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "a", &m, 4, "in_flight: 1, repeat_check: 6");
    expect_exit(0, "run a.yaml -o failed");
    assert_holds(program_said, "2 of the requests that are sent twice got no second reply (the "
                               "first of them: http_400)");
    assert_holds(program_out, "of 4 requests that were sent twice");
    assert_int_equal(asked_twice("failed", trials, 7), 4);
    failing = false;
    expect_exit(0, "run a.yaml -o failed");
    assert_int_equal(http_server_requests(m.server), 44);
    assert_int_equal(asked_twice("failed", trials, 7), 6);
    expect_exit(0, "verify failed");
    served_model_close(&m);
}

// 36 trials cost at most 24.706, and one of the second requests at most 0.82.
static void second_requests_cost_too(void **state) {
    (void)state;
    struct served_model m = {0};
    int64_t trials[13];
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "p", &m, 4,
                      "in_flight: 1, repeat_check: 12, price: {input_per_mtok: 1000, "
                      "output_per_mtok: 10000}");
    expect_exit(1, "run p.yaml -o priced --max-cost 17");
    assert_holds(program_said, "stopped at 36 of 36 trials");
    const int before = http_server_requests(m.server), done = asked_twice("priced", trials, 13);
    assert_in_range(done, 1, 11);
    assert_int_equal(before, 36 + done);
    expect_exit(1, "run p.yaml -o priced --max-cost 17"); // what was spent before counts
    assert_int_equal(http_server_requests(m.server), before);
    expect_exit(0, "run p.yaml -o priced");
    assert_int_equal(http_server_requests(m.server), 48);
    assert_int_equal(asked_twice("priced", trials, 13), 12);
    expect_exit(0, "verify priced");
    served_model_close(&m);
}

// Killed at any moment, the last line perhaps half written: each is asked for until it is there.
static void kills_lose_no_second_reply(void **state) {
    (void)state;
    enum { KILLS = 12, IN_FLIGHT = 4 };
    struct served_model m = {.shuffled = true};
    int64_t trials[21];
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "k", &m, 4, "in_flight: 4, repeat_check: 20");
    for (int i = 0; i < KILLS; i++) {
        const char *command = arena_printf(test_arena,
                                           "cd %s && timeout -s KILL 0.%d %s/lacuna run k.yaml -o "
                                           "killed > out 2> said",
                                           fast_folder(), 25 + 3 * i, LACUNA_BINARY_DIR);
        assert_int_not_equal(system(command), -1);
        const char *path = arena_printf(test_arena, "%s/killed/again.jsonl", fast_folder());
        if (i % 3 != 0 || !file_exists(path)) continue;
        struct str text = test_read(test_arena, path); // a write that the kill cut
        if (text.n > 100) test_write(path, str_slice(text, 0, text.n - 50));
    }
    expect_exit(0, "run k.yaml -o killed");
    assert_int_equal(asked_twice("killed", trials, 21), 20);
    qsort(trials, 20, sizeof *trials, by_number);
    for (int i = 1; i < 20; i++) assert_true(trials[i] > trials[i - 1]);
    assert_true(http_server_requests(m.server) <= 56 + KILLS * (IN_FLIGHT + 1));
    expect_exit(0, "verify killed");
    served_model_close(&m);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_answers_is_recorded),
        TEST(another_fingerprint_is_told),
        TEST(another_model_is_an_error),
        TEST(a_resumed_run_knows_what_answered_before),
        TEST(some_requests_are_sent_twice),
        TEST(a_seed_may_be_ignored),
        TEST(noise_is_told),
        TEST(second_requests_that_failed_are_sent_again),
        TEST(second_requests_cost_too),
        TEST(kills_lose_no_second_reply),
    };
    return cmocka_run_group_tests_name("cli_served", tests, NULL, NULL);
}

// Served models from end to end: an experiment against a server on the loopback interface.
#include "tests/support/fast_folder.h"
#include "tests/support/program.h"
#include "tests/support/sample_run.h"
#include "tests/support/served_model.h"
#include "tests/support/support.h"
#include "tests/support/tls_front.h"

#include "engine/base/file.h"
#include "engine/base/json.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "sk-test-4f1b9d"

// No byte of any file below the folder is of the key.
static void assert_no_key(void) {
    const char *command = arena_printf(test_arena, "! grep -raqF %s %s", KEY, fast_folder());
    assert_int_equal(system(command), 0);
}

static void an_experiment_runs_on_a_server(void **state) {
    (void)state;
    struct served_model m = {.wanted_key = KEY, .shuffled = true, .keeps_bodies = true};
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "x", &m, 4,
                      "api_key_env: LACUNA_TEST_KEY, body: {top_k: 1, min_p: 0.05}");
    expect_exit(0, "plan x.yaml");
    assert_int_equal(http_server_requests(m.server), 0);
    expect_exit(0, "run x.yaml -o whole");
    assert_int_equal(http_server_requests(m.server), 36);
    assert_holds(buf_str(&m.bodies), "\"max_tokens\": 32, \"temperature\": 0.0, \"top_k\": 1, "
                                     "\"min_p\": 0.05}");
    expect_exit(0, "verify whole");
    expect_exit(0, "report whole");
    expect_exit(0, "score whole");
    expect_exit(0, "repeat whole prod/placed/500/order-moves@middle/1/0");
    assert_holds(program_out, "the replies are the same");
    assert_holds(file_of("whole", "identity.json"), "\"backend\": \"served\"");
    assert_holds(file_of("whole", "identity.json"), "\"length\": \"estimated\"");
    assert_holds(file_of("whole", "report.md"), "Its bits are not under our control");
    assert_holds(file_of("whole", "trials.jsonl"), "\"verdict\":\"met\"");
    assert_holds(file_of("whole", "trials.jsonl"), "\"verdict\":\"omitted\"");
    // Replies came in another order, the record is the same.
    expect_exit(0, "run x.yaml -o again");
    char *left = arena_printf(test_arena, "%s/whole", fast_folder());
    char *right = arena_printf(test_arena, "%s/again", fast_folder());
    assert_equal_runs(left, right);
    assert_int_equal(http_server_requests(m.server), 73);
    assert_no_key();
    served_model_close(&m);
}

static void a_key_is_needed_and_never_shown(void **state) {
    (void)state;
    struct served_model m = {.wanted_key = "Bearer sk-another-key"};
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "k", &m, 1, "api_key_env: LACUNA_TEST_KEY");
    expect_exit(1, "run k.yaml -o wrong-key");
    assert_holds(file_of("wrong-key", "trials.jsonl"), "\"code\":\"http_401\"");
    assert_holds(file_of("wrong-key", "trials.jsonl"), "the server answers 401: no such key");
    assert_int_equal(http_server_requests(m.server), 9); // none of them twice
    served_experiment(test_arena, fast_folder(), "n", &m, 1, "api_key_env: NO_SUCH_KEY");
    expect_exit(2, "run n.yaml -o no-key");
    assert_holds(program_said, "the variable NO_SUCH_KEY, which api_key_env names, is not set");
    assert_no_key();
    served_model_close(&m);
}

static void assert_no_key_in(const char *path) {
    char bytes[65536];
    FILE *f = fopen(path, "r");
    if (f == NULL) return; // the process has ended
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    assert_null(memmem(bytes, n, KEY, strlen(KEY)));
}

// While a request is under way: in no command line of any process.
static void look_at_processes(void) {
    DIR *d = opendir("/proc");
    assert_non_null(d);
    for (const struct dirent *entry; (entry = readdir(d)) != NULL;)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            assert_no_key_in(arena_printf(test_arena, "/proc/%s/cmdline", entry->d_name));
    closedir(d);
}

// A server that says the key wherever it can say something.
static void tell_the_key(void *context, int number, struct http_server_answer *a) {
    (void)context;
    buf_add_c(&a->headers, "X-Key: " KEY "\r\nServer: " KEY "\r\n");
    if (number % 12 == 0) look_at_processes();
    if (number % 6 == 1) a->status = 400;
    if (number % 6 == 2) a->status = 302, buf_add_c(&a->headers, "Location: http://" KEY "/\r\n");
    if (number % 6 == 3) buf_clear(&a->body), buf_add_c(&a->body, KEY);
    if (number % 6 == 4) buf_add_c(&a->raw, KEY " " KEY "\r\n\r\n");
    if (a->status == 400) {
        buf_clear(&a->body);
        buf_add_c(&a->body, "{\"error\":{\"message\":\"sk\\u002dtest-4f1b9d or " KEY "\"}}");
    }
}

static void no_verb_writes_the_key(void **state) {
    (void)state;
    static const char *const verbs[] = {
        "run t.yaml -o told",
        "run t.yaml -o told --retry-errors",
        "verify told",
        "score told",
        "report told",
        "prompt told prod/placed/500/order-moves@middle/1/0",
        "baseline told -o told.baseline.jsonl",
        "review told -o sample.csv",
        "repeat told prod/placed/500/order-moves@middle/1/0",
        "plan t.yaml --set 'models[0].count=tokenize'",
        "run t.yaml -o told-in-pieces --set models[0].stream=true",
    };
    struct served_model m = {.fault = tell_the_key,
                             .reported = "small " KEY,
                             .fingerprint = KEY,
                             .tail = " The key is " KEY ", is it not?"};
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "t", &m, 4,
                      "api_key_env: LACUNA_TEST_KEY, in_flight: 1, attempts: 1");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        program_run(verbs[i]);
        assert_true(program_out.n + program_said.n > 0);
        assert_no_key();
    }
    assert_holds(file_of("told", "trials.jsonl"), "The key is **************, is it not?");
    assert_holds(file_of("told-in-pieces", "trials.jsonl"), "The key is **************, is it");
    assert_holds(file_of("told", "trials.jsonl"), "************** or **************");
    served_model_close(&m);
}

static void certificates_are_judged(void **state) {
    (void)state;
    struct served_model m = {0};
    served_model_open(&m);
    struct tls_front *front = tls_front_open(TLS_GOOD, http_server_port(m.server));
    const char *ca = path_join(test_arena, fast_folder(), "ca.pem");
    const char *run = arena_printf(
        test_arena, "run s.yaml --set models[0].endpoint=https://127.0.0.1:%d/v1 -o", //
        tls_front_port(front));
    served_experiment(test_arena, fast_folder(), "s", &m, 1, "in_flight: 1");
    tls_front_authority(ca);
    expect_exit(1, arena_printf(test_arena, "%s tls-unknown", run));
    assert_holds(file_of("tls-unknown", "trials.jsonl"),
                 "{\"code\":\"tls\",\"text\":\"SSL certificate");
    assert_int_equal(http_server_requests(m.server), 0);
    expect_exit(0, arena_printf(test_arena, "%s tls-named --set models[0].ca_file=ca.pem", run));
    setenv("SSL_CERT_FILE", ca, 1);
    expect_exit(0, arena_printf(test_arena, "%s tls-environment", run));
    unsetenv("SSL_CERT_FILE");
    assert_int_equal(http_server_requests(m.server), 18);
    tls_front_close(front);
    served_model_close(&m);
}

// The lengths that the server's tokenizer counts are those that its usage tells.
static void lengths_are_counted_by_the_server(void **state) {
    (void)state;
    for (int way = SERVED_COUNTS_TEXTS; way <= SERVED_COUNTS_CHATS; way++) {
        struct served_model m = {.counts = way};
        served_model_open(&m);
        const char *run = arena_printf(test_arena, "counted-%d", way);
        const bool whole = way == SERVED_COUNTS_CHATS;
        served_experiment(test_arena, fast_folder(), "z", &m, 1, "count: tokenize");
        expect_exit(0, "plan z.yaml");
        assert_holds(program_out, whole ? "counted" : "estimated");
        expect_exit(0, arena_printf(test_arena, "run z.yaml -o %s", run));
        assert_holds(file_of(run, "identity.json"),
                     whole ? "\"length\": \"counted\"" : "\"length\": \"estimated\"");
        // Two messages and the reply's beginning are nine tokens beyond the texts.
        const struct str ledger = file_of(run, "trials.jsonl");
        assert_int_equal(
            str_count(ledger, whole ? STR("\"prompt_tokens\":300") : STR("\"prompt_tokens\":309")),
            4);
        assert_int_equal(
            str_count(ledger, whole ? STR("\"prompt_tokens\":500") : STR("\"prompt_tokens\":509")),
            4);
        served_model_close(&m);
    }
}

// A model with tools, offered and called in the messages, and calling one in its reply.
static void call_a_tool(void *context, int number, struct http_server_answer *a) {
    (void)context;
    (void)number;
    char *content = strstr(a->body.p, "\"content\":\"It is "), *end = strchr(content, '}');
    char *whole = arena_printf(
        test_arena,
        "%.*s\"content\":null,\"tool_calls\":[{\"function\":{\"name\":\"find\",\"arguments\":"
        "\"{\\\"id\\\":\\\"%.5s\\\"}\"}}]%s",
        (int)(content - a->body.p), a->body.p, content + strlen("\"content\":\"It is "), end);
    buf_clear(&a->body);
    buf_add_c(&a->body, whole);
}

static void tools_are_offered_and_called(void **state) {
    (void)state;
    struct served_model m = {.fault = call_a_tool, .keeps_bodies = true};
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "u", &m, 1, "in_flight: 1");
    test_write(path_join(test_arena, fast_folder(), "tools.json"),
               STR("[{\"type\": \"function\", \"function\": {\"name\": \"find\", \"parameters\": "
                   "{\"type\": \"object\"}}}]"));
    expect_exit(0, "run u.yaml -o tools --set prompt.tools_file=tools.json");
    assert_holds(buf_str(&m.bodies),
                 "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"find\", "
                 "\"parameters\": {\"type\": \"object\"}}}], \"max_tokens\"");
    assert_holds(
        file_of("tools", "trials.jsonl"),
        "{\"text\":\"<tool_call>\\n{\\\"name\\\": \\\"find\\\", \\\"arguments\\\": {\\\"id\\\"");
    assert_holds(file_of("tools", "trials.jsonl"), "\"verdict\":\"met\"");
    expect_exit(0, "verify tools");
    served_model_close(&m);
}

// A stream ends before its reply does, at any request but each tenth.
static void cut_stream(void *context, int number, struct http_server_answer *a) {
    (void)context;
    if (number % 10 != 3) return;
    *(strstr(a->body.p, "\"finish_reason\":\"stop\"")) = '\0';
    a->body.n = strlen(a->body.p);
}

static void a_streamed_run_is_recorded_like_another(void **state) {
    (void)state;
    struct served_model m = {.shuffled = true, .keeps_bodies = true};
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "w", &m, 4, "stall_seconds: 30");
    expect_exit(0, "run w.yaml -o whole-replies");
    assert_null(strstr(m.bodies.p, "\"stream\""));
    buf_clear(&m.bodies);
    m.fault = cut_stream;
    expect_exit(0, "run w.yaml -o streamed --set models[0].stream=true");
    assert_holds(buf_str(&m.bodies),
                 "\"stream\": true, \"stream_options\": {\"include_usage\": true}}");
    assert_int_equal(http_server_requests(m.server), 36 + 40); // four were cut and asked again
    static const char *const files[] = {"identity.json", "plan.jsonl", "trials.jsonl", "report.md",
                                        "results.csv"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!str_equal(file_of("whole-replies", files[i]), file_of("streamed", files[i])))
            fail_msg("%s differs", files[i]);
    // The same run goes on, however its replies come.
    expect_exit(0, "run w.yaml -o streamed");
    expect_exit(0, "verify streamed");
    served_model_close(&m);
}

// Every second reply says the number while thinking only.
static void think(void *context, int number, struct http_server_answer *a) {
    (void)context;
    if (number % 2 == 0) return;
    const char *content = strstr(a->body.p, "\"content\":"), *end = strchr(content, '}');
    char *whole = arena_printf(
        test_arena, "%.*s\"reasoning_content\":%.*s,\"content\":\"Thanks.\"%s",
        (int)(content - a->body.p), a->body.p, (int)(end - content - 10), content + 10, end);
    buf_clear(&a->body);
    buf_add_c(&a->body, whole);
}

static void what_was_thought_is_kept_apart(void **state) {
    (void)state;
    struct served_model m = {.fault = think, .keeps_bodies = true};
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "t", &m, 4, "in_flight: 1");
    expect_exit(0, "run t.yaml -o answers");
    struct str ledger = file_of("answers", "trials.jsonl");
    assert_holds(ledger, "\"reply\":{\"text\":\"Thanks.\",\"reasoning\":\"It is ");
    assert_holds(ledger, "\"verdict\":\"omitted\",\"thought\":true}");
    assert_holds(file_of("answers", "report.md"), "Thought of and dropped: prod, order");
    assert_holds(file_of("answers", "report.html"), "Thought of and dropped: prod, order");
    assert_holds(file_of("answers", "report.md"), "Reasoning: prod");
    assert_holds(file_of("answers", "report.md"), "| not told |");
    expect_exit(0, "verify answers");
    expect_exit(0, "run t.yaml -o both --set 'constraints[0].look_in=both'");
    ledger = file_of("both", "trials.jsonl");
    assert_int_equal(str_count(ledger, STR("\"verdict\":\"met\"")), 28);
    assert_holds(ledger, "\"verdict\":\"met\",\"by\":\"value\",\"in\":\"reasoning\"");
    expect_exit(0, "verify both");
    // A server has one budget: the sum.
    expect_exit(0, "run t.yaml -o sum --set 'models[0].reasoning.max_tokens=100'");
    assert_holds(buf_str(&m.bodies), "\"max_tokens\": 132, ");
    assert_holds(file_of("sum", "report.md"), "were sent as one limit of 132, which the server");
    served_model_close(&m);
}

// 36 prompts of about 100, 300 and 500 tokens at 1000 a million, replies of 32 at 10000: each costs
// 0.32 for its reply at the most and 0.05 in truth.
static void a_run_stops_before_it_costs_too_much(void **state) {
    (void)state;
    struct served_model m = {.shuffled = true};
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "c", &m, 4,
                      "price: {input_per_mtok: 1000, output_per_mtok: 10000}");
    expect_exit(0, "plan c.yaml");
    assert_holds(program_out,
                 "  cost      at most 24.7060 (13.1860 of prompts, 11.5200 of replies)");
    expect_exit(0, "run c.yaml -o whole-cost");
    assert_holds(program_said, "cost 1");
    expect_exit(2, "run c.yaml -o stopped --max-cost many");
    expect_exit(2, "run c.yaml -o stopped --max-cost 0");
    expect_exit(2, "run c.yaml -o stopped --max-cost 5 --set 'models[0].price=null'");
    int before = http_server_requests(m.server);
    expect_exit(1, "run c.yaml -o stopped --max-cost 5.5");
    assert_holds(program_said, "could cost more than --max-cost leaves");
    int asked = http_server_requests(m.server) - before;
    assert_in_range(asked, 6, 20);
    expect_exit(1, "run c.yaml -o stopped --max-cost 5.5"); // what was spent before counts
    assert_int_equal(http_server_requests(m.server) - before, asked);
    expect_exit(0, "run c.yaml -o stopped");
    assert_int_equal(http_server_requests(m.server) - before, 36);
    expect_exit(0, "verify stopped");
    char *whole = arena_printf(test_arena, "%s/whole-cost", fast_folder());
    assert_equal_runs(whole, arena_printf(test_arena, "%s/stopped", fast_folder()));
    served_model_close(&m);
}

// Trials that failed are errors or invalid, never verdicts, and only errors are tried again.
static bool repaired;
static void break_some(void *context, int number, struct http_server_answer *a) {
    (void)context;
    if (repaired) return;
    if (number % 9 == 4) a->status = 400;
    if (number % 9 != 7) return;
    char *usage =
        strstr(a->body.p, "\"prompt_tokens\":"); // a third of its digits and more are lost
    memset(usage + strlen("\"prompt_tokens\":"), ' ', 1);
}

static void failures_are_no_verdicts(void **state) {
    (void)state;
    struct served_model m = {.fault = break_some};
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "f", &m, 4, "in_flight: 1, shortfall: 20%");
    expect_exit(1, "run f.yaml -o failed");
    struct str ledger = file_of("failed", "trials.jsonl");
    assert_int_equal(
        str_count(ledger, STR("\"status\":\"error\",\"reason\":{\"code\":\"http_400\"")), 4);
    assert_int_equal(
        str_count(ledger, STR("\"status\":\"invalid\",\"reason\":{\"code\":\"prompt_truncated\"")),
        4);
    assert_holds(file_of("failed", "report.md"), "28 ok, 4 invalid, 4 error");
    expect_exit(0, "verify failed");
    int before = http_server_requests(m.server);
    repaired = true;
    expect_exit(1, "run f.yaml -o failed --retry-errors"); // invalid trials stay
    assert_int_equal(http_server_requests(m.server) - before, 4);
    assert_holds(file_of("failed", "report.md"), "32 ok, 4 invalid, 0 error");
    expect_exit(0, "verify failed");
    served_model_close(&m);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)

int main(void) {
    setenv("LACUNA_TEST_KEY", KEY, 1);
    const struct CMUnitTest tests[] = {
        TEST(an_experiment_runs_on_a_server),
        TEST(a_key_is_needed_and_never_shown),
        TEST(no_verb_writes_the_key),
        TEST(certificates_are_judged),
        TEST(a_streamed_run_is_recorded_like_another),
        TEST(lengths_are_counted_by_the_server),
        TEST(tools_are_offered_and_called),
        TEST(what_was_thought_is_kept_apart),
        TEST(a_run_stops_before_it_costs_too_much),
        TEST(failures_are_no_verdicts),
    };
    return cmocka_run_group_tests_name("cli_endpoint", tests, NULL, NULL);
}

// Served models from end to end: an experiment against a server on the loopback interface.
#include "tests/support/fast_folder.h"
#include "tests/support/sample_run.h"
#include "tests/support/served_model.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define KEY "sk-test-4f1b9d"

static struct str out, said; // of the last program

static int lacuna(const char *arguments) {
    const char *command =
        arena_printf(test_arena, "cd %s && LACUNA_TEST_KEY=%s %s/lacuna %s > out 2> said",
                     fast_folder(), KEY, LACUNA_BINARY_DIR, arguments);
    int status = system(command);
    assert_true(WIFEXITED(status));
    out = test_read(test_arena, path_join(test_arena, fast_folder(), "out"));
    said = test_read(test_arena, path_join(test_arena, fast_folder(), "said"));
    return WEXITSTATUS(status);
}

static void expect_exit(int code, const char *arguments) {
    int was = lacuna(arguments);
    if (was != code)
        fail_msg("%s: exit code %d\n" STR_FMT STR_FMT, arguments, was, STR_ARG(out), STR_ARG(said));
}

static void assert_holds(struct str text, const char *what) {
    if (str_find(text, str_from(what), 0) == STR_NONE)
        fail_msg("no '%s' in:\n" STR_FMT, what, STR_ARG(text));
}

static struct str file_of(const char *run, const char *name) {
    return test_read(test_arena, arena_printf(test_arena, "%s/%s/%s", fast_folder(), run, name));
}

// No byte of any file below the folder is of the key.
static void assert_no_key(void) {
    const char *command = arena_printf(test_arena, "! grep -raqF %s %s", KEY, fast_folder());
    assert_int_equal(system(command), 0);
}

static void an_experiment_runs_on_a_server(void **state) {
    (void)state;
    struct served_model m = {.wanted_key = KEY, .shuffled = true};
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
    assert_holds(out, "the replies are the same");
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
    assert_holds(said, "the variable NO_SUCH_KEY, which api_key_env names, is not set");
    assert_no_key();
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
    struct served_model m = {.fault = think};
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "t", &m, 4, "in_flight: 1");
    expect_exit(0, "run t.yaml -o answers");
    struct str ledger = file_of("answers", "trials.jsonl");
    assert_holds(ledger, "\"reply\":{\"text\":\"Thanks.\",\"reasoning\":\"It is ");
    assert_holds(ledger, "\"verdict\":\"omitted\",\"thought\":true}");
    assert_holds(file_of("answers", "report.md"), "Thought of and dropped: prod, order");
    assert_holds(file_of("answers", "report.html"), "Thought of and dropped: prod, order");
    expect_exit(0, "verify answers");
    expect_exit(0, "run t.yaml -o both --set 'constraints[0].look_in=both'");
    ledger = file_of("both", "trials.jsonl");
    assert_int_equal(str_count(ledger, STR("\"verdict\":\"met\"")), 28);
    assert_holds(ledger, "\"verdict\":\"met\",\"by\":\"value\",\"in\":\"reasoning\"");
    expect_exit(0, "verify both");
    served_model_close(&m);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_experiment_runs_on_a_server),
        TEST(a_key_is_needed_and_never_shown),
        TEST(what_was_thought_is_kept_apart),
    };
    return cmocka_run_group_tests_name("cli_endpoint", tests, NULL, NULL);
}

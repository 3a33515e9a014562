// Models that think aloud, from the experiment to the report: parts, budgets, verdicts.
#include "tests/support/fast_folder.h"
#include "tests/support/program.h"
#include "tests/support/sample_run.h"
#include "tests/support/support.h"

#include "engine/base/file.h"

#include <string.h>

// By place: said, thought of and dropped, thought about for too long; else neither.
#define RULES                                                                                      \
    "{\"key\": \"@start/\", \"copy_after\": [\"number is \", \"day is \"],"                        \
    " \"reply\": \"<think>It is {{0}}.</think>\\n\\nOrder {{0}}, {{1}}.\"},"                       \
    "{\"key\": \"@middle/\", \"copy_after\": [\"number is \", \"day is \"],"                       \
    " \"reply\": \"<think>It is {{0}}.</think>Come on {{1}}.\"},"                                  \
    "{\"key\": \"@end/\", \"copy_after\": [\"number is \"],"                                       \
    " \"reply\": \"<think>The number is {{0}}, as it says. Is it? Then it is.</think>{{0}}\"},"    \
    "{\"reply\": \"Thanks.\"}"

static void assert_count(struct str text, const char *what, size_t times) {
    size_t found = str_count(text, str_from(what));
    if (found != times)
        fail_msg("'%s' stands there %zu times, not %zu:\n" STR_FMT, what, found, times,
                 STR_ARG(text));
}

// Unscored replies are what these tests look at.
#define TAGS                                                                                       \
    " --set tolerate.unscored=100% --set 'models[0].reasoning.open=<think>'"                       \
    " --set 'models[0].reasoning.close=</think>' "
#define BUDGETS TAGS "--set models[0].reasoning.max_tokens=14 "

// 2 lengths, 4 repeats: 8 trials a place, 8 without the constraints, 4 short ones.
static void parts_and_budgets_are_kept_apart(void **state) {
    (void)state;
    sample_experiment(test_arena, fast_folder(), "t", 4,
                      "\"in_flight\": 4, \"order\": \"shuffled\"", RULES);
    expect_exit(0, "plan t.yaml" BUDGETS);
    assert_holds(program_out,
                 "  reasoning 14 tokens of each reply, beside 40 of the answer; counted apart");
    expect_exit(0, "run t.yaml -o run" BUDGETS);
    assert_holds(program_out,
                 "Thought of and dropped: m, order: of 24 placed replies 8 answer without what "
                 "had been thought of, and 8 thought of it and give no answer");
    struct str ledger = file_of("run", "trials.jsonl");
    assert_count(ledger, "\"finish\":\"reasoning_length\"", 8);
    assert_count(ledger, "\"reason\":\"cut\",\"thought\":true", 8);
    assert_count(ledger, "\"reason\":\"cut\"", 16);
    assert_count(ledger, "\"verdict\":\"omitted\",\"thought\":true", 8);
    assert_count(ledger, "\"reasoning_tokens\":14,", 8);
    assert_count(ledger, "\"reasoning_tokens\":0,", 12);
    assert_holds(file_of("run", "plan.jsonl"), "\"reply_tokens_max\":54,");
    assert_holds(file_of("run", "identity.json"), "\"max_tokens\": 14");
    struct str report = file_of("run", "report.md");
    assert_holds(report, "Reasoning: m");
    assert_holds(report,
                 "14 tokens for the reasoning and 40 for the answer, each counted by itself");
    assert_holds(report, "| 128 | 16 |");
    assert_holds(report, "| 4/16 |");
    assert_holds(report, "Thought of and dropped: m, order");
    assert_count(file_of("run", "results.csv"), ",reasoning_length,", 16);
    assert_count(file_of("run", "results.csv"), ",yes,", 16);
    assert_holds(file_of("run", "report.html"), "; thought of and dropped: order");
    expect_exit(0, "verify run");
    expect_exit(0, "score run");
    expect_exit(0, "repeat run m/placed/128/order-moves@end/1/0");
    // Other tags and checks cost no reply; another budget does.
    expect_exit(0, "run t.yaml -o again" BUDGETS "--reuse run --set 'constraints[0].look_in=both'");
    assert_holds(program_said, "36 replies are taken over");
    assert_count(file_of("again", "trials.jsonl"), "\"by\":\"value\",\"in\":\"reasoning\"", 16);
    expect_exit(0, "verify again");
    expect_exit(0,
                "run t.yaml -o other --reuse run" TAGS "--set models[0].reasoning.max_tokens=15");
    assert_holds(program_said, "reasoning: ");
    // The same budgets, as two runs are compared.
    expect_exit(3, "compare run other");
    assert_holds(program_out, "generation");
}

static void the_reasoning_can_be_judged(void **state) {
    (void)state;
    sample_experiment(test_arena, fast_folder(), "r", 4, "\"in_flight\": 4", RULES);
    expect_exit(0, "run r.yaml -o in" TAGS "--set 'constraints[0].look_in=reasoning'");
    struct str ledger = file_of("in", "trials.jsonl");
    assert_count(ledger, "\"verdict\":\"met\",\"by\":\"value\",\"in\":\"reasoning\"", 24);
    assert_count(ledger, "\"finish\":\"reasoning_length\"", 0); // one budget for both
    assert_holds(file_of("in", "report.md"), "One budget of 40 tokens for both.");
    expect_exit(0, "verify in");
    expect_exit(2, "try r.yaml order < /dev/null --set 'constraints[0].look_in=both'"
                   " --set 'models[0].reasoning.open=<think>'");
    assert_holds(program_said, "models[0].reasoning.close: is missing");
    test_write(path_join(test_arena, fast_folder(), "reply"), STR("<think>12345</think>No."));
    expect_exit(0, "try r.yaml order --var code=12345 --set 'constraints[0].look_in=reasoning'" TAGS
                   "< reply");
    assert_holds(program_out, "order: met");
}

// A model that is asked to go on behind an opening tag begins within its reasoning, and one of
// random weights never closes it.
static void the_prompt_may_open_the_block(void **state) {
    (void)state;
    sample_local_experiment(test_arena, fast_folder(), "l", 2);
    static const char *const options =
        BUDGETS "--set models[0].template=plain --set generation.max_tokens=9 "
                "--set 'prompt.messages[0].text=\"{{filler}} State the order number. <think>\"' ";
    expect_exit(0, arena_printf(test_arena, "run l.yaml -o open%s", options));
    struct str ledger = file_of("open", "trials.jsonl");
    size_t trials = str_count(ledger, STR("\n"));
    assert_count(file_of("open", "plan.jsonl"), "\"reply_tokens_max\":23,\"reasoning_opened\":true",
                 trials);
    assert_count(ledger, "\"tokens\":14,\"reasoning_tokens\":14,\"finish\":\"reasoning_length\"",
                 trials);
    assert_count(ledger, "\"reason\":\"cut\"", 2 * trials);
    expect_exit(0, "verify open");
    expect_exit(0, "run l.yaml -o shut" BUDGETS "--set generation.max_tokens=9");
    ledger = file_of("shut", "trials.jsonl");
    assert_count(ledger, "\"tokens\":9,\"reasoning_tokens\":0,\"finish\":\"length\"", trials);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)
    const struct CMUnitTest tests[] = {
        TEST(parts_and_budgets_are_kept_apart),
        TEST(the_reasoning_can_be_judged),
        TEST(the_prompt_may_open_the_block),
    };
    return cmocka_run_group_tests_name("cli_reasoning", tests, NULL, NULL);
}

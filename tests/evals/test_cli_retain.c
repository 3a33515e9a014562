// Records and reports without texts: nothing that was planted in a prompt or a reply stands in any
// byte that is written, and what works without texts still does.
#include "tests/support/fast_folder.h"
#include "tests/support/program.h"
#include "tests/support/served_model.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/provider_words.h"

#include <stdlib.h>
#include <string.h>

static const char experiment[] =
    "lacuna: 1\n"
    "name: retain\n"
    "seed: 5\n"
    "models: [{id: m, fixture: %s.json, context_tokens: 4096}]\n"
    "generation: {max_tokens: 40, temperature: 0, samples: 1}\n"
    "prompt:\n"
    "  messages:\n"
    "    - {role: system, text: \"You are zebrasystem. Never say zebrastanding.\"}\n"
    "    - {role: user, text: \"{{filler}}\\n\\nTell zebrauser of {{town}} the zebrashared "
    "value.\"}\n"
    "  filler: {kind: files, paths: [filler.txt], unit: sentence, shuffle: true, may_match: true,\n"
    "           distractors: [{like: order, per_1k_tokens: 20}]}\n"
    "cases: {file: cases.csv, id: number}\n"
    "constraints:\n"
    "  - {id: order, kind: state, text: \"The zebrashared zebrarule value is {{code}}.\",\n"
    "     vars: {code: {kind: choice, choices: [zebraone, zebratwo, zebrathree, zebrafour]}},\n"
    "     value: \"{{code}}\", violated: 'zebra(?:one|two|three|four)',\n"
    "     examples: {met: [\"zebraexample {{code}}\"], not: [\"zebraexample\"]}}\n"
    "  - {id: word, kind: forbid, in_prompt: \"Never say zebrastanding.\",\n"
    "     violated: zebrastanding, answered: '\\w', examples: {met: [x y], not: [zebrastanding]}}\n"
    "placements:\n"
    "  - {id: order-moves, move: [order], depths: [start, middle, end]}\n"
    "  - {id: rule-moves, move: [word], depths: [middle], anchors: [in_place], others: {order: "
    "end}}\n"
    "lengths: {tokens: [160, 256]}\n"
    "repeats: 4\n"
    "arms: [placed, absent, short]\n"
    "tolerate: {errors: 100%%}\n"
    "%s";

// Said right, said wrongly (a distractor's value, or one that is near), not said, no text, an
// error.
static const char rules[] =
    "{\"lacuna_fixture\": 1, \"exact_ids\": true, \"in_flight\": 4, \"order\": \"shuffled\", "
    "\"rules\": ["
    "{\"while_file\": \"broken\", \"key\": \"@end/\", \"error\": \"zebraerror of zebrasystem\"},"
    "{\"key\": \"@start/\", \"copy_after\": [\"zebrarule value is \"],"
    " \"reply\": \"<think>zebrathought</think>zebrareply {{0}}.\", \"delay_ms\": 12},"
    "{\"key\": \"@middle/\", \"reply\": \"zebrareply zebratwo zebrathree zebrastanding\"},"
    "{\"key\": \"/short/\", \"reply_base64\": \"emVicmFieXRlc/8=\"},"
    "{\"reply\": \"zebrareply is long enough\"}]}";

static const char *const planted[] = {
    "zebrasystem", "zebrastanding", "zebrauser",    "zebrashared", "zebratown",    "zebrarule",
    "zebraone",    "zebratwo",      "zebrathree",   "zebrafour",   "zebraexample", "zebrafill",
    "zebraerror",  "zebrareply",    "zebrathought", "zebrabytes",  "emVicmFieXRlc"};
enum { PLANTED = sizeof planted / sizeof *planted };

static const char *at(const char *name) {
    return path_join(test_arena, fast_folder(), name);
}

// FOLDER/NAME.yaml and what it names; `retain` is its line, or "".
static void write_experiment(const char *name, const char *retain) {
    struct buf filler = {0};
    for (int i = 0; i < 400; i++)
        buf_printf(&filler, "The zebrafill road number %d goes to the sea.\n", i);
    test_write(at("filler.txt"), buf_str(&filler));
    buf_free(&filler);
    test_write(at("cases.csv"), STR("number,town\n1,zebratown\n2,zebratown two\n3,zebratown three\n"
                                    "4,zebratown four\n"));
    test_write(at(arena_printf(test_arena, "%s.json", name)), str_from(rules));
    test_write(at(arena_printf(test_arena, "%s.yaml", name)),
               str_from(arena_printf(test_arena, experiment, name, retain)));
}

// ---- the search ----

// Every byte of every file below the folder, names of files in between.
static struct str all_bytes(const char *folder) {
    const char *list = at("bytes");
    const char *command =
        arena_printf(test_arena, "cd %s/%s && find . -type f -print -exec cat {} + > %s",
                     fast_folder(), folder, list);
    assert_int_equal(system(command), 0);
    return test_read(test_arena, list);
}

// How many of the words, and of their token ids in decimal or as the engine's four bytes, stand
// there.
static int found_in(struct str bytes, const char *const *words, int count, bool tell) {
    struct words *w = words_open();
    struct err e = {0};
    int found = 0;
    for (int i = 0; i < count; i++) {
        const char *spellings[] = {words[i], arena_printf(test_arena, " %s", words[i])};
        bool stands = str_find(bytes, str_from(words[i]), 0) != STR_NONE;
        for (int k = 0; k < 2; k++) {
            struct provider_piece piece = {str_from(spellings[k]), false};
            struct provider_ids ids;
            ASSERT_OK(words_tokenize(w, &piece, 1, test_arena, &ids, &e), e);
            assert_int_equal(ids.count, 1);
            const char *decimal = arena_printf(test_arena, "%d", ids.ids[0]);
            assert_true(strlen(decimal) >= 8);
            stands |= str_find(bytes, str_from(decimal), 0) != STR_NONE ||
                      str_find(bytes, (struct str){(const char *)ids.ids, 4}, 0) != STR_NONE;
        }
        if (stands && tell) print_error("%s stands there\n", words[i]);
        found += stands;
    }
    words_close(w);
    return found;
}

static void assert_nothing_planted(const char *folder) {
    assert_int_equal(found_in(all_bytes(folder), planted, PLANTED, true), 0);
}

// ---- tests ----

static void no_text_is_written(void **state) {
    (void)state;
    write_experiment("open", "");
    write_experiment("shut", "retain: {prompts: none, replies: none}\n");
    test_write(at("broken"), STR(""));
    // The search finds what is there.
    expect_exit(0, "run open.yaml -o open");
    assert_true(found_in(all_bytes("open"), planted, PLANTED, false) == PLANTED);
    expect_exit(0, "run shut.yaml -o shut");
    assert_holds(program_out, "16 error");
    assert_nothing_planted("shut");
    assert_false(file_exists(at("shut/inputs")));
    assert_false(file_exists(at("shut/experiment.yaml")));
    expect_exit(0, "verify shut");
    assert_holds(program_out, "verdicts not made again");
    // Prompts are made again for what is missing.
    struct err e = {0};
    ASSERT_OK(file_remove(at("broken"), &e), e);
    expect_exit(0, "run shut.yaml -o shut --retry-errors");
    assert_holds(program_out, "0 error");
    assert_nothing_planted("shut");
    expect_exit(0, "run open.yaml -o open --retry-errors");
    // The verdicts are those of the run that keeps everything.
    expect_exit(0, "baseline open -o open.baseline.jsonl");
    expect_exit(0, "compare open.baseline.jsonl shut");
    assert_holds(program_out, "replies are identical");
    expect_exit(0, "compare shut shut -o flips");
    expect_exit(0, "verify shut");
    // What needs texts says so.
    expect_exit(1, "score shut");
    assert_holds(program_said,
                 "the record keeps no texts (retain), so its replies cannot be judged again");
    expect_exit(1, "review shut -o sample.csv");
    expect_exit(1, "repeat shut m/placed/160/order-moves@start/2/0");
    assert_holds(program_said, "the record keeps no prompts");
    expect_exit(1, "prompt shut m/placed/160/order-moves@start/2/0");
    expect_exit(2, "run open.yaml -o other --reuse shut");
    assert_holds(program_said, "the record keeps no replies");
    expect_exit(1, "merge shut -o merged");
    assert_holds(program_said, "the record keeps no texts");
    // Another draw of the same is another request.
    expect_exit(1, "run shut.yaml -o shut --set seed=6");
    assert_nothing_planted("shut");
}

// Killed at any moment nothing is there either, and the record becomes that of a run that was not.
static void a_killed_run_goes_on(void **state) {
    (void)state;
    write_experiment("whole", "retain: {prompts: none, replies: none}\n");
    expect_exit(0, "run whole.yaml -o whole");
    for (int ms = 40; ms < 400; ms += 60) {
        const char *command = arena_printf(
            test_arena,
            "cd %s && timeout -s KILL 0.%03d %s/lacuna run whole.yaml -o killed 2> said",
            fast_folder(), ms, LACUNA_BINARY_DIR);
        int ended = system(command);
        (void)ended; // by the signal, or by itself
        if (file_is_directory(at("killed"))) assert_nothing_planted("killed");
    }
    expect_exit(0, "run whole.yaml -o killed");
    static const char *const names[] = {"identity.json", "plan.jsonl",  "trials.jsonl",
                                        "resolved.json", "report.html", "results.csv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(str_equal(file_of("killed", names[i]), file_of("whole", names[i])));
    expect_exit(0, "verify killed");
}

// Either kind of text may be kept by itself.
static void one_kind_is_kept(void **state) {
    (void)state;
    write_experiment("p", "retain: {prompts: none}\n");
    expect_exit(0, "run p.yaml -o p");
    // A reply is kept as it is, with what it quotes.
    assert_holds(file_of("p", "trials.jsonl"), "zebrareply");
    static const char *const of_prompts[] = {"zebrasystem", "zebrauser", "zebratown",
                                             "zebrarule",   "zebrafill", "zebraexample"};
    assert_int_equal(found_in(all_bytes("p"), of_prompts, 6, true), 0);
    expect_exit(0, "verify p");
    expect_exit(1, "score p");
    assert_holds(program_said, "keeps no prompts, variables and checks");
    write_experiment("r", "retain: {replies: none}\n");
    expect_exit(0, "run r.yaml -o r");
    static const char *const of_replies[] = {"zebrareply", "zebrathought", "zebrabytes"};
    assert_int_equal(found_in(all_bytes("r"), of_replies, 3, true), 0);
    expect_exit(0, "verify r");
    expect_exit(1, "score r");
    assert_holds(program_said, "keeps no replies (retain)");
    expect_exit(0, "repeat r m/placed/160/order-moves@start/2/0");
    assert_holds(program_out, "recorded: not kept, ");
    assert_holds(program_out, "the replies are the same");
    // What another run may take from it: prompts are compared by their hashes.
    expect_exit(0, "run p.yaml -o again --reuse p --set 'constraints[0].ignore_case=true'");
    assert_holds(program_said, "replies are taken over");
}

// In the first line of a ledger, in place of what stands from `begin` to `end`.
static void put_first(const char *run, const char *begin, const char *end, const char *text) {
    struct str ledger = file_of(run, "trials.jsonl");
    size_t from = str_find(ledger, str_from(begin), 0), to = str_find(ledger, str_from(end), from);
    struct buf b = {0};
    buf_add_str(&b, str_slice(ledger, 0, from));
    buf_add_c(&b, text);
    buf_add_str(&b, str_slice(ledger, to, ledger.n));
    test_write(path_join(test_arena, at(run), "trials.jsonl"), buf_str(&b));
    buf_free(&b);
}

// A line that keeps no text does not belong into a record that keeps them, nor the other way round.
static void lines_are_as_the_identity_says(void **state) {
    (void)state;
    write_experiment("a", "");
    write_experiment("b", "retain: {replies: none}\n");
    expect_exit(0, "run a.yaml -o a");
    expect_exit(0, "run b.yaml -o b");
    const char *hash = arena_printf(test_arena, "\"sha256\":\"%064d\",\"bytes\":300", 0);
    put_first("a", "\"text\":", ",\"ids\"", hash);
    put_first("b", "\"sha256\":", ",\"ids\"", arena_printf(test_arena, "\"text\":\"%0300d\"", 0));
    expect_exit(1, "report a");
    assert_holds(program_said,
                 "trials.jsonl:1: has no reply; identity.json says that replies are kept");
    expect_exit(1, "report b");
    assert_holds(program_said,
                 "trials.jsonl:1: has a reply; identity.json says that replies are not kept");
}

// A server that thinks apart, and quotes what it was asked when it refuses.
static void quote(void *context, int number, struct http_server_answer *a) {
    (void)context;
    if (number % 3 != 0) return;
    a->status = 400;
    buf_clear(&a->body);
    buf_add_c(&a->body, "{\"error\": {\"message\": \"zebraerror: zebrauser asks too much\"}}");
}

// Of a served model neither second replies nor refusals keep a text.
static void servers_are_not_quoted(void **state) {
    (void)state;
    struct served_model m = {.fault = quote};
    served_model_open(&m);
    served_experiment(test_arena, fast_folder(), "s", &m, 4, "in_flight: 1, repeat_check: 8");
    static const char *const options =
        "--set tolerate.errors=100% --set retain.prompts=none --set retain.replies=none";
    expect_exit(0, arena_printf(test_arena, "run s.yaml -o served %s", options));
    assert_holds(file_of("served", "trials.jsonl"), "\"code\":\"http_400\",\"text\":\"not kept\"");
    assert_holds(file_of("served", "again.jsonl"), "\"reply\":{\"sha256\":");
    static const char *const words[] = {"zebraerror", "zebrauser", "Be careful", "State the",
                                        "order number"};
    struct str bytes = all_bytes("served");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_true(str_find(bytes, str_from(words[i]), 0) == STR_NONE);
    expect_exit(0, "verify served");
    served_model_close(&m);
}

static void reports_can_leave_texts_out(void **state) {
    (void)state;
    write_experiment("full", "");
    expect_exit(0, "run full.yaml -o full");
    struct str report = file_of("full", "report.html");
    expect_exit(0, "report full --without-text -o bare");
    static const char *const names[] = {"report.html", "report.md", "results.csv", "junit.xml"};
    for (size_t i = 0; i < 4; i++)
        assert_true(file_exists(path_join(test_arena, at("bare"), names[i])));
    assert_nothing_planted("bare");
    // Rates and verdicts are the same, and the record's own reports were not touched.
    assert_true(str_equal(file_of("full", "report.html"), report));
    assert_true(str_equal(file_of("full", "junit.xml"), file_of("bare", "junit.xml")));
    assert_holds(file_of("bare", "report.html"), "Its text is not kept");
    assert_holds(file_of("bare", "report.html"), "(not kept)");
    size_t rows = str_count(file_of("full", "results.csv"), STR("\r\n"));
    assert_int_equal(str_count(file_of("bare", "results.csv"), STR("\r\n")), rows);
    // Again from a record that keeps none.
    write_experiment("none", "retain: {prompts: none, replies: none}\n");
    expect_exit(0, "run none.yaml -o none");
    expect_exit(0, "report none --without-text");
    assert_nothing_planted("none");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)
    const struct CMUnitTest tests[] = {
        TEST(no_text_is_written),     TEST(a_killed_run_goes_on),
        TEST(one_kind_is_kept),       TEST(lines_are_as_the_identity_says),
        TEST(servers_are_not_quoted), TEST(reports_can_leave_texts_out),
    };
    return cmocka_run_group_tests_name("cli_retain", tests, NULL, NULL);
}

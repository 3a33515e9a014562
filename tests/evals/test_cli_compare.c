// compare and baseline as a user types them: a run, its baseline, a worse run.
#include "tests/support/fast_folder.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/sample_run.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define ANSWER                                                                                     \
    "{\"reply\": \"The order number is {{0}}, the day {{1}}.\", \"copy_after\": "                  \
    "[\"The order number is \", \"The pickup day is \"]}"
#define LOST                                                                                       \
    "{\"key\": \"@middle/\", \"reply\": \"The day is {{0}}. <b>\", \"copy_after\": "               \
    "[\"The pickup day is \"]}, " ANSWER

static struct str out, said; // of the last program

static int lacuna(const char *arguments) {
    struct err e = {0};
    const char *command = arena_printf(test_arena, "cd %s && %s/lacuna %s > out 2> said",
                                       fast_folder(), LACUNA_BINARY_DIR, arguments);
    int status = system(command);
    assert_true(WIFEXITED(status));
    ASSERT_OK(file_read(path_join(test_arena, fast_folder(), "out"), 1 << 24, test_arena, &out, &e),
              e);
    ASSERT_OK(
        file_read(path_join(test_arena, fast_folder(), "said"), 1 << 24, test_arena, &said, &e), e);
    return WEXITSTATUS(status);
}

static void expect(int code, const char *arguments) {
    int got = lacuna(arguments);
    if (got != code)
        fail_msg("%s: exit code %d, not %d\n%s%s", arguments, got, code, out.p, said.p);
}

static void assert_holds(struct str text, const char *what) {
    if (str_find(text, str_from(what), 0) == STR_NONE) fail_msg("no '%s' in:\n%s", what, text.p);
}

// A file below the folder, read whole.
static struct str content(const char *name) {
    struct str text;
    struct err e = {0};
    const char *path = path_join(test_arena, fast_folder(), name);
    ASSERT_OK(file_read(path, 1 << 24, test_arena, &text, &e), e);
    return text;
}

// The same experiment with other rules: another "model" behind the same name.
static void runs(const char *folder, const char *rules) {
    sample_experiment(test_arena, fast_folder(), "x", 12, "\"in_flight\": 4", rules);
    expect(0, arena_printf(test_arena, "run x.yaml -o %s", folder));
}

static int setup(void **state) {
    test_arena_open(state);
    runs("worse", LOST);
    runs("good", ANSWER);
    expect(0, "baseline good -o base.jsonl");
    return 0;
}

static int teardown(void **state) {
    return test_arena_close(state);
}

static void an_equal_run(void **state) {
    (void)state;
    runs("again", ANSWER);
    static const char *const baselines[] = {"base.jsonl", "good"};
    for (int i = 0; i < 2; i++) {
        expect(0, arena_printf(test_arena, "compare %s again", baselines[i]));
        assert_holds(out, "identity: nothing differs");
        assert_holds(out, "replies: 108 of 108 identical");
        expect(0, arena_printf(test_arena, "compare %s again --json", baselines[i]));
        json_t *o;
        struct err e = {0};
        ASSERT_OK(json_parse(out, "output", &o, &e), e);
        assert_int_equal(json_integer_value(json_object_get(o, "changed_replies")), 0);
        assert_int_equal(json_integer_value(json_object_get(o, "replies_compared")), 108);
        json_decref(o);
    }
    expect(0, "baseline good -o base.jsonl"); // over an older one
    expect(2, "baseline again -o good/trials.jsonl");
    assert_holds(said, "good/trials.jsonl: is there already and is no baseline file");
    expect(0, "baseline again");
    struct str file;
    struct err e = {0};
    const char *path = path_join(test_arena, fast_folder(), "base.jsonl");
    ASSERT_OK(file_read(path, 1 << 24, test_arena, &file, &e), e);
    assert_true(str_equal(file, out)); // equal runs, equal bytes
}

static void a_worse_run(void **state) {
    (void)state;
    expect(3, "compare base.jsonl worse");
    assert_holds(out, "model (model m): sha256 ");
    assert_holds(out, "not compared: the two runs differ in model");
    assert_holds(out, "  lacuna compare base.jsonl worse --allow model\n");
    expect(100, "compare base.jsonl worse --allow model");
    assert_holds(out, "overall, m, all, all lengths: regressed:");
    assert_holds(out, "flips: 24 lost, 0 won");
    assert_holds(out, "a baseline file keeps hashes");
    expect(100, "compare good worse --allow model");
    assert_holds(out, "changed from token ");
    assert_holds(out, "      was: \"The order number is ");
    assert_holds(out, "      now: \"The day is ");
    expect(0, "compare worse good --allow=model");
    assert_holds(out, "improved");
    sample_experiment(test_arena, fast_folder(), "x", 12, "\"in_flight\": 4",
                      "{\"reply\": \"No.\"}");
    expect(0, "run x.yaml -o absent --only arm=absent");
    sample_experiment(test_arena, fast_folder(), "x", 12, "\"in_flight\": 4", ANSWER);
    expect(3, "compare worse absent --common --allow model");
    assert_holds(out, "nothing to compare: no placed trial has a reply in both");
}

static void another_plan(void **state) {
    (void)state;
    expect(0, "run x.yaml -o part --only length=128");
    expect(1, "baseline part");
    assert_holds(said, "is partial");
    expect(3, "compare good part");
    assert_holds(out, "the plans differ");
    assert_holds(out, "  lacuna compare good part --common\n");
    expect(0, "compare good part --common");
    assert_holds(out, "The run is partial");
}

static void another_prompt(void **state) {
    (void)state;
    struct str text;
    struct err e = {0};
    const char *path = path_join(test_arena, fast_folder(), "x.yaml");
    ASSERT_OK(file_read(path, 1 << 20, test_arena, &text, &e), e);
    size_t at = str_find(text, STR("State the order"), 0);
    assert_true(at != STR_NONE);
    test_write(path_join(test_arena, fast_folder(), "y.yaml"),
               str_from(arena_printf(test_arena, STR_FMT "Tell the order%s",
                                     STR_ARG(str_slice(text, 0, at)), text.p + at + 15)));
    expect(0, "run y.yaml -o reworded");
    expect(3, "compare good reworded");
    assert_holds(out, "prompts: other texts -> 108 of 108 trials");
    assert_holds(out, "  lacuna compare good reworded --allow prompts\n");
    assert_int_not_equal(lacuna("compare good reworded --allow prompts"), 1);
    assert_holds(out, "(108 prompts differ)");
}

static void add_gates(const char *rules, const char *gates) {
    sample_experiment(test_arena, fast_folder(), "x", 12, "\"in_flight\": 4", rules);
    struct str text = content("x.yaml");
    test_write(path_join(test_arena, fast_folder(), "x.yaml"),
               str_from(arena_printf(test_arena, STR_FMT "%s", STR_ARG(text), gates)));
}

#define GATES                                                                                      \
    "gates:\n"                                                                                     \
    "  - {id: drop, metric: regression, of: order, at_most: 25%, baseline: gate.jsonl,\n"          \
    "     allow: [model], pool: [length, depth]}\n"                                                \
    "  - {id: same, metric: changed_replies, at_most: 0, baseline: gate.jsonl, allow: [model]}\n"

// From no baseline at all to a failing gate, as a project meets them.
static void gates_with_a_baseline(void **state) {
    (void)state;
    add_gates(ANSWER, GATES);
    expect(0, "plan x.yaml");
    assert_holds(out, "cannot decide: there is no baseline gate.jsonl yet");
    expect(3, "run x.yaml -o first");
    assert_holds(out, "gate drop: cannot decide (there is no baseline gate.jsonl;");
    expect(0, "baseline first -o gate.jsonl");
    expect(0, "compare gate.jsonl first");
    assert_holds(out, "gate same: passed (0 of 72 replies changed)");
    expect(0, "plan x.yaml");
    assert_true(str_find(out, STR("cannot decide"), 0) == STR_NONE);
    expect(0, "plan x.yaml --set seed=12");
    assert_holds(out, "cannot decide: 108 of 108 prompts are not those of gate.jsonl");
    expect(0, "plan x.yaml --only arm=placed");
    assert_holds(out, "cannot decide: gate.jsonl has another plan: 72 trials in both, 36 only");
    expect(0, "run x.yaml -o second");
    assert_holds(out, "gate drop: passed (drop of 0.000 over 12 repeats");
    expect(0, "verify second");
    add_gates(LOST, GATES);
    expect(100, "run x.yaml -o third");
    assert_holds(out, "gate drop: cannot decide (drop of 0.333");
    assert_holds(out, "gate same: failed (24 of 72 replies changed)");
    struct str junit = content("third/junit.xml");
    assert_holds(junit, "tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"1\"");
    assert_holds(junit, "lost m/placed/128/order-moves@middle/");
    assert_holds(junit, "changed m/placed/128/order-moves@middle/");
    // the report reads the record's own copy
    struct err e = {0};
    ASSERT_OK(file_remove(path_join(test_arena, fast_folder(), "gate.jsonl"), &e), e);
    expect(100, "report third");
    assert_true(str_equal(content("third/junit.xml"), junit));
    expect(0, "verify third");
    expect(100, "compare good third --allow model");
    assert_holds(out, "gate same: failed");
}

static void a_baseline_that_is_none(void **state) {
    (void)state;
    add_gates(ANSWER, GATES);
    test_write(path_join(test_arena, fast_folder(), "gate.jsonl"), STR("{}\n"));
    static const char *const verbs[] = {"plan x.yaml", "run x.yaml -o fourth"};
    for (int i = 0; i < 2; i++) {
        expect(2, verbs[i]);
        assert_holds(said, "gate drop");
        assert_holds(said, "is no baseline file");
    }
    assert_false(file_exists(path_join(test_arena, fast_folder(), "fourth")));
}

static int count_of(struct str text, const char *what) {
    return (int)str_count(text, str_from(what));
}

// The files of -o: replies of both sides, escaped; the same bytes each time.
static void files_for_people_and_ci(void **state) {
    (void)state;
    expect(100, "compare good worse --allow model -o cmp");
    struct str html = content("cmp/compare.html"), md = content("cmp/compare.md");
    struct str junit = content("cmp/compare-junit.xml");
    assert_int_equal(count_of(html, "<details class=\"flip\""), 24);
    assert_holds(html, "The order number is "); // the baseline's replies, and the marked prompts
    assert_holds(html, ". &lt;b&gt;");
    assert_int_equal(count_of(html, ". <b>\n"), 0);
    assert_int_equal(count_of(html, "<script"), 0);
    assert_int_equal(count_of(html, "Prompt, "), 24); // one prompt is shown once
    assert_int_equal(count_of(html, "<details"), count_of(html, "</details>"));
    assert_int_equal(count_of(html, "<div"), count_of(html, "</div>"));
    assert_holds(md, "### Lost: 24");
    assert_holds(md, "| all | all lengths | 72/72 | 48/72 | -33.3 points (");
    assert_holds(junit, "tests=\"9\" failures=\"6\" errors=\"0\" skipped=\"0\"");
    assert_holds(junit, "name=\"m, order, all lengths\"");
    // two cases of all lengths, and each once more by its lengths
    assert_int_equal(count_of(junit, "lost m/placed/"), 4 * 24);
    expect(100, "compare good worse --allow model -o again");
    assert_true(str_equal(content("again/compare.html"), html));
    expect(100, "compare base.jsonl worse --allow model -o hashes");
    assert_holds(content("hashes/compare.html"), "A baseline file keeps hashes: reply <code>");
    expect(3, "compare good worse -o refused");
    assert_holds(content("refused/compare-junit.xml"), "skipped=\"1\"");
    assert_holds(content("refused/compare.md"), "not allowed");
}

// Whatever is another one than the baseline's is named, and nothing is compared unasked. The real
// engine, with a tiny model.
static void what_differs_is_named(void **state) {
    (void)state;
    static const struct {
        const char *set, *word; // word NULL: it changes nothing that a reply depends on
    } cases[] = {{"models[0].template=plain", "template,prompts"},
                 {"prompt.filler.kind=noise", "prompts"},
                 {"seed=12", "prompts"},
                 {"constraints[0].ignore_case=true", "checks"},
                 {"generation.max_tokens=11", "generation"},
                 {"models[0].numerics=f32", "numerics"},
                 {"models[0].context_tokens=2048", NULL}};
    const char *set = "--set tolerate.unscored=100%";
    sample_local_experiment(test_arena, fast_folder(), "l", 1);
    expect(0, arena_printf(test_arena, "run l.yaml %s -o local", set));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *folder = arena_printf(test_arena, "local%zu", i);
        expect(0, arena_printf(test_arena, "run l.yaml %s --set '%s' -o %s", set, cases[i].set,
                               folder));
        expect(cases[i].word == NULL ? 0 : 3, arena_printf(test_arena, "compare local %s", folder));
        if (cases[i].word == NULL)
            assert_holds(out, "identity: nothing differs\nreplies: 9 of 9 identical");
        else
            assert_holds(out, arena_printf(test_arena, "compare local %s --allow %s\n", folder,
                                           cases[i].word));
    }
    // the same name, other weights
    tiny_model_write(path_join(test_arena, fast_folder(), "l.gguf"),
                     &(struct tiny_model_options){.seed = 6});
    expect(0, arena_printf(test_arena, "run l.yaml %s -o other", set));
    expect(3, "compare local other");
    assert_holds(out, "compare local other --allow model\n");
}

static void check_script(int code, const char *folder) {
    const char *command = arena_printf(
        test_arena,
        "cd %s && PATH=%s:$PATH LACUNA_ALLOW=model %s/configs/ci/check.sh z.yaml z.jsonl %s "
        "> out 2> said",
        fast_folder(), LACUNA_BINARY_DIR, LACUNA_SOURCE_DIR, folder);
    int status = system(command);
    out = content("out");
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) != code)
        fail_msg("%d, not %d:\n%s%s", WEXITSTATUS(status), code, out.p, content("said").p);
}

// The script that the project ships: without a baseline, with one, and when it became worse.
static void the_ci_recipe(void **state) {
    (void)state;
    sample_experiment(test_arena, fast_folder(), "z", 12, "\"in_flight\": 4", ANSWER);
    check_script(3, "ci1");
    assert_holds(out, "there is no z.jsonl yet");
    struct str baseline = content("ci1/baseline.jsonl");
    test_write(path_join(test_arena, fast_folder(), "z.jsonl"), baseline);
    check_script(0, "ci2");
    assert_holds(out, "all 108 replies are identical");
    sample_experiment(test_arena, fast_folder(), "z", 12, "\"in_flight\": 4", LOST);
    check_script(100, "ci3");
    assert_holds(content("ci3/compare-junit.xml"), "failures=\"6\"");
    assert_holds(content("ci3/run/report.md"), "sample");
}

static void wrong_words(void **state) {
    (void)state;
    expect(3, "compare nothing.jsonl worse");
    assert_holds(said, "there is no such baseline");
    expect(2, "compare good worse --allow models");
    assert_holds(said, "did you mean 'model'?");
    expect(2, "compare good worse --margin 0");
    expect(2, "compare good");
    expect(1, "compare x.yaml worse");
    assert_holds(said, "x.yaml");
    expect(1, "compare good base.jsonl");
    expect(1, "baseline x.yaml");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_equal_run),
        cmocka_unit_test(a_worse_run),
        cmocka_unit_test(another_plan),
        cmocka_unit_test(another_prompt),
        cmocka_unit_test(files_for_people_and_ci),
        cmocka_unit_test(what_differs_is_named),
        cmocka_unit_test(the_ci_recipe),
        cmocka_unit_test(wrong_words),
        cmocka_unit_test(gates_with_a_baseline),
        cmocka_unit_test(a_baseline_that_is_none),
    };
    return cmocka_run_group_tests_name("cli_compare", tests, setup, teardown);
}

// run --reuse: an older record's replies give the record that a cold run gives, byte for byte; what
// cannot be taken is said, and what is not to be trusted is refused.
#include "tests/support/fast_folder.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/sample_run.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLED_AT_POINT 137

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STRIDE = 23 };
#else
enum { STRIDE = 5 };
#endif

#define ANSWER                                                                                     \
    "{\"reply\": \"The order number is {{0}}, {{sample}}.\", \"copy_after\": "                     \
    "[\"The order number is \"]}"

static struct str out, said; // of the last program

static const char *below(const char *name) {
    return path_join(test_arena, fast_folder(), name);
}

static void expect(int code, const char *command) {
    int status = system(arena_printf(test_arena, "cd %s && PATH=%s:$PATH && { %s; } > out 2> said",
                                     fast_folder(), LACUNA_BINARY_DIR, command));
    assert_true(WIFEXITED(status));
    out = test_read(test_arena, below("out"));
    said = test_read(test_arena, below("said"));
    if (WEXITSTATUS(status) != code)
        fail_msg("%s: exit code %d, not %d\n%s%s", command, WEXITSTATUS(status), code, out.p,
                 said.p);
}

static void assert_holds(struct str text, const char *what) {
    if (str_find(text, str_from(what), 0) == STR_NONE) fail_msg("no '%s' in:\n%s", what, text.p);
}

static size_t count_in(const char *file, const char *what) {
    return str_count(test_read(test_arena, below(file)), str_from(what));
}

// Runs `arguments` cold and with --reuse, and compares. Returns how many replies were taken.
static int64_t assert_same(const char *arguments, const char *reuse) {
    static int number;
    const char *cold = arena_printf(test_arena, "cold-%d", number);
    const char *warm = arena_printf(test_arena, "warm-%d", number++);
    expect(0, arena_printf(test_arena, "lacuna run %s -o %s", arguments, cold));
    expect(0, arena_printf(test_arena, "lacuna run %s -o %s %s", arguments, warm, reuse));
    assert_equal_runs(below(cold), below(warm));
    const char *timings = path_join(test_arena, warm, "timings.jsonl");
    int64_t taken = (int64_t)count_in(timings, "\"identity_sha256\":\"");
    struct str kept = said;
    expect(0, arena_printf(test_arena, "lacuna verify %s", warm));
    said = kept;
    return taken;
}

static int setup(void **state) {
    test_arena_open(state);
    sample_experiment(test_arena, fast_folder(), "x", 2, "\"in_flight\": 4", ANSWER);
    sample_local_experiment(test_arena, fast_folder(), "l", 2);
    expect(0, "lacuna run x.yaml -o x");
    expect(0, "lacuna run l.yaml -o l --set tolerate.unscored=100%");
    return 0;
}

#define LOCAL "l.yaml --set tolerate.unscored=100% "

// ---- what is taken -----------------------------------------------------------------------------

static void growing_experiments_cost_what_is_new(void **state) {
    (void)state;
    assert_int_equal(assert_same(LOCAL "--set repeats=3", "--reuse l"), 18);
    assert_holds(said, "l: 18 replies are taken over");
    assert_int_equal(assert_same(LOCAL "--set 'lengths.tokens=[400, 480]'", "--reuse l"), 10);
    assert_int_equal(assert_same(LOCAL "--only repeat=1", "--reuse l"), 9);
    assert_int_equal(assert_same(LOCAL "--limit 5", "--reuse l"), 5);
    assert_int_equal(assert_same("x.yaml --set repeats=3", "--reuse x"), 18);
    assert_int_equal(assert_same("x.yaml --set 'lengths.tokens=[160, 192]'", "--reuse x"), 10);
    // from several records, some of which have the same
    expect(0, "lacuna run " LOCAL "--only repeat=0 -o half");
    assert_int_equal(assert_same(LOCAL "--set repeats=3", "--reuse half --reuse l"), 18);
    assert_holds(said, "half: 9 replies are taken over");
    assert_holds(said, "l: 9 replies are taken over");
    assert_int_equal(assert_same(LOCAL "--set repeats=3", "--reuse l --reuse half"), 18);
    assert_holds(said, "warning: half: no reply can be taken over: the records named before it "
                       "have all that it has");
}

// No weights are read when nothing is left to compute: memory for them is not needed.
static void a_record_of_everything_needs_no_model(void **state) {
    (void)state;
    expect(0, "cp l.yaml checked.yaml && sed -i 's/value: \"{{day}}\"/met: \"zq\"/' checked.yaml");
    assert_int_equal(assert_same("checked.yaml --set tolerate.unscored=100%", "--reuse l"), 18);
    expect(1, "lacuna run " LOCAL "-o none --memory 1");
    expect(0, "lacuna run " LOCAL "-o all --memory 1 --reuse l");
    assert_equal_runs(below("l"), below("all"));
    assert_int_equal(count_in("all/timings.jsonl", "\"same_as\":\""), 18);
    assert_holds(said, "l: 18 replies are taken over");
    // the name of a model is no part of what it says
    expect(0, "sed 's/id: m,/id: renamed,/' l.yaml > renamed.yaml");
    assert_int_equal(assert_same("renamed.yaml --set tolerate.unscored=100%", "--reuse l"), 18);
}

static void records_in_any_state_serve(void **state) {
    (void)state;
    expect(0, "cp -r l bare && rm -r bare/inputs bare/resolved.json bare/manifest.json");
    assert_int_equal(assert_same(LOCAL "--set repeats=3", "--reuse bare"), 18);
    // one that is being written: half of it, and half a line behind
    expect(0, "cp -r l torn && head -n 7 l/trials.jsonl > torn/trials.jsonl && "
              "head -n 8 l/trials.jsonl | tail -n 1 | head -c 90 >> torn/trials.jsonl");
    assert_int_equal(assert_same(LOCAL "--set repeats=3", "--reuse torn"), 7);
    assert_holds(said, "7 replies are taken over; for the rest: 11 of its trials ended in error or "
                       "have not run");
}

// Of this experiment nothing but the sampling stream depends on the seed: its length leaves no room
// for a closing unit.
static const char fixed_text[] =
    "lacuna: 1\n"
    "name: fixed\n"
    "seed: 3\n"
    "models: [{id: m, path: l.gguf, backend: cpu, context_tokens: 4096}]\n"
    "generation: {max_tokens: 12}\n"
    "prompt:\n"
    "  messages: [{role: user, text: \"{{filler}}\\n\\nState the number.\"}]\n"
    "  filler: {kind: files, paths: [own.txt]}\n"
    "constraints:\n"
    "  - {id: order, kind: state, text: \"The order number is 52.\", value: \"52\"}\n"
    "placements: [{id: a, move: [order], depths: [middle]}]\n"
    "lengths: {tokens: [320]}\n"
    "repeats: 1\n"
    "arms: [placed]\n"
    "tolerate: {unscored: 100%}\n";

// Sampling follows streams of (seed, repeat, sample): more samples go on from the first ones.
static void sampled_replies_follow_their_streams(void **state) {
    (void)state;
    static const char sampled[] = LOCAL "--set generation.temperature=0.8 ";
    expect(0, arena_printf(test_arena, "lacuna run %s --set generation.samples=2 -o two", sampled));
    const char *three = arena_printf(test_arena, "%s --set generation.samples=3", sampled);
    assert_int_equal(assert_same(three, "--reuse two"), 36);
    struct buf filler = {0};
    for (int i = 0; i < 60; i++)
        buf_printf(&filler, "%s went by and came home.\n", i % 3 == 0 ? "Birds" : "A dog");
    test_write(below("own.txt"), buf_str(&filler));
    buf_free(&filler);
    test_write(below("fixed.yaml"), str_from(fixed_text));
    expect(0, "lacuna run fixed.yaml -o greedy");
    assert_int_equal(assert_same("fixed.yaml --set seed=5", "--reuse greedy"), 1);
    expect(0, "lacuna run fixed.yaml --set generation.temperature=1 -o warm");
    const char *other = "fixed.yaml --set generation.temperature=1 --set seed=5";
    assert_int_equal(assert_same(other, "--reuse warm"), 0);
    assert_holds(said, "warm: no reply can be taken over: its replies to these prompts were drawn "
                       "from other sampling streams");
}

// Two rows give one prompt at one place; the script tells them apart by their keys.
static void scripted_replies_go_by_key(void **state) {
    (void)state;
    sample_experiment(
        test_arena, fast_folder(), "g", 3, "\"in_flight\": 2",
        "{\"key\": \"/b@\", \"reply\": \"b {{sample}}\"}, {\"reply\": \"a {{sample}}\"}");
    sample_equal_experiment(test_arena, fast_folder(), "g");
    expect(0, "lacuna run equal.yaml -o equal");
    assert_int_equal(assert_same("equal.yaml --set repeats=4", "--reuse equal"), 18);
    assert_int_equal(assert_same("equal.yaml --only placement=b", "--reuse equal"), 0);
    expect(0, "lacuna run equal.yaml --only placement=b -o rows-b");
    assert_int_equal(assert_same("equal.yaml", "--reuse rows-b"), 0);
    assert_int_equal(assert_same("equal.yaml --set generation.samples=3", "--reuse equal"), 18);
}

// What was watched comes along; a full account gives a summary, and none at all is none.
static void evidence_comes_along(void **state) {
    (void)state;
    expect(0, "lacuna run " LOCAL "--set evidence=full -o full");
    expect(0, "lacuna run " LOCAL "--set evidence=off -o off");
    assert_true(file_exists(below("l/evidence.jsonl")) &&
                !file_exists(below("off/evidence.jsonl")));
    static const char *const words[] = {"off", "summary", "full"};
    static const char *const records[] = {"off", "l", "full"};
    for (int here = 0; here < 3; here++)
        for (int there = 0; there < 3; there++) {
            const char *run = arena_printf(
                test_arena, "%s --limit 6 --set evidence=%s --only length=400", LOCAL, words[here]);
            const char *reuse = arena_printf(test_arena, "--reuse %s", records[there]);
            assert_int_equal(assert_same(run, reuse), there >= here ? 6 : 0);
            if (there >= here) continue;
            assert_holds(said, arena_printf(test_arena, "evidence: %s there, %s here", words[there],
                                            words[here]));
        }
}

// Trials that ended in error are run again; of several attempts the last one counts.
static void errors_are_not_taken(void **state) {
    (void)state;
    sample_experiment(
        test_arena, fast_folder(), "e", 2, "\"in_flight\": 3",
        "{\"key\": \"@middle/\", \"while_file\": \"broken\", \"error\": \"no\"}, " ANSWER);
    test_write(below("broken"), STR(""));
    expect(1, "lacuna run e.yaml -o e");
    assert_int_equal(unlink(below("broken")), 0);
    assert_int_equal(assert_same("e.yaml --set repeats=3", "--reuse e"), 14);
    assert_holds(said, "14 replies are taken over; for the rest: 4 of its trials ended in error");
    expect(0, "cp -r e again && lacuna run e.yaml -o again --retry-errors");
    assert_int_equal(assert_same("e.yaml --set repeats=3", "--reuse again"), 18);
    // another attempt may be somebody else's reply
    expect(0, "lacuna run e.yaml -o e --retry-errors --reuse again");
    assert_int_equal(count_in("e/timings.jsonl", "\"identity_sha256\":\""), 4);
    expect(0, "lacuna verify e");
}

// ---- what is said ------------------------------------------------------------------------------

static void the_first_difference_is_named(void **state) {
    (void)state;
    static const struct {
        const char *arguments, *what;
    } cases[] = {
        {LOCAL "--set generation.max_tokens=11", "model m: max_tokens: 12 there, 11 here"},
        {LOCAL "--set generation.temperature=0.5", "model m: temperature: 0 there, 0.5 here"},
        {LOCAL "--set 'generation.stop=[\"x\"]'", "model m: stop: [] there, [\"x\"] here"},
        {LOCAL "--set numerics=f32", "model m: numerics: bf16-1 there, f32 here"},
        {LOCAL "--set seed=3", "seed: 11 there, 3 here"},
        {LOCAL "--set 'lengths.tokens=[401]' --only arm=placed",
         "none of its prompts is one of the plan's"},
        {"other.yaml --set tolerate.unscored=100%", "model m: model sha256: "},
        {"plain.yaml --set tolerate.unscored=100%", "model m: model template: "},
        {"x.yaml", "model m: model sha256: "},
    };
    expect(0, "sed 's/l.gguf/other.gguf/' l.yaml > other.yaml");
    tiny_model_write(below("other.gguf"), &(struct tiny_model_options){.seed = 6});
    expect(0, "sed 's/backend: cpu/backend: cpu, template: plain/' l.yaml > plain.yaml");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *arguments = cases[i].arguments;
        if (strstr(arguments, "numerics") != NULL) {
            expect(0, "sed 's/backend: cpu/backend: cpu, numerics: f32/' l.yaml > f32.yaml");
            arguments = "f32.yaml --set tolerate.unscored=100%";
        }
        expect(0, arena_printf(test_arena, "lacuna plan %s --reuse l", arguments));
        assert_holds(out, "reuse: l: no reply can be taken over: ");
        assert_holds(out, cases[i].what);
    }
    expect(0, "lacuna run l.yaml --set generation.max_tokens=11 --limit 1 -o one --reuse l --set "
              "tolerate.unscored=100%");
    assert_holds(said, "warning: l: no reply can be taken over: model m: max_tokens: 12 there, 11 "
                       "here");
    assert_int_equal(count_in("one/sessions.jsonl", "\"detail\":\"0 of 1 trials from l, identity "),
                     1);
    // the key of a scripted trial names its model
    expect(0, "sed 's/id: m,/id: renamed,/' x.yaml > y.yaml && lacuna plan y.yaml --reuse x");
    assert_holds(out, "model renamed: it has no such model");
}

static void the_plan_tells_what_is_saved(void **state) {
    (void)state;
    expect(0, "lacuna plan " LOCAL "--set repeats=3 --reuse l --measure");
    assert_holds(out, "  reuse     18 of the trials have replies, which saves ");
    assert_holds(out, " prompt tokens and at most 216 reply tokens\n");
    assert_holds(out, "what is left takes at most ");
    assert_holds(out, "reuse: l: 18 replies are taken over\n");
    expect(0, "lacuna plan " LOCAL "--reuse l --json");
    json_t *o;
    struct err e = {0};
    ASSERT_OK(json_parse(out, "output", &o, &e), e);
    const json_t *source = json_array_get(json_object_get(o, "reuse"), 0);
    const json_t *model = json_array_get(json_object_get(o, "models"), 0);
    const json_t *saved = json_object_get(model, "saved");
    json_int_t prompts = json_integer_value(json_object_get(o, "prompt_tokens"));
    json_int_t shared = json_integer_value(json_object_get(o, "shared_tokens"));
    assert_int_equal(json_integer_value(json_object_get(source, "trials")), 18);
    assert_int_equal(json_integer_value(json_object_get(saved, "trials")), 18);
    assert_int_equal(json_integer_value(json_object_get(saved, "prompt_tokens")), prompts - shared);
    json_decref(o);
    expect(0, "lacuna plan " LOCAL "--json");
    assert_holds(out, "\"saved\": null");
}

// ---- what is refused ---------------------------------------------------------------------------

static void untrusted_records_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *make, *what;
        int code;
    } cases[] = {
        {"mkdir old", "it has no identity.json", 1},
        {"touch old", "it has no identity.json", 1},
        {"cp -r l old && sed -i '3s/\"status\":\"ok\"/\"status\": \"ok\"/' old/trials.jsonl",
         "the chain is broken", 1},
        {"cp -r l old && sed -i '2d' old/trials.jsonl", "instead of", 1},
        {"cp -r l old && sed -i 's/\"format\": 1/\"format\": 9/' old/identity.json",
         "the record has format 9; this program reads format 1", 1},
        {"cp -r l old && echo >> old/plan.jsonl", "plan.jsonl: hashes to", 1},
        {"cp -r l old && echo x > old/identity.json", "identity.json", 1},
        {"lacuna baseline l -o old", "it has no identity.json", 1},
        {"ln -s new old && cp -r l new", "is the folder of this very run", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect(0, "rm -rf old new");
        expect(0, cases[i].make);
        expect(cases[i].code, "lacuna run " LOCAL "-o new --reuse old");
        assert_holds(said, cases[i].what);
        assert_true(cases[i].code == 2 || !file_exists(below("new")));
    }
    expect(2, "lacuna run x.yaml --reuse");
}

// Two records of one model with two replies to one prompt cannot both be true.
static void contradictions_are_refused(void **state) {
    (void)state;
    sample_experiment(test_arena, fast_folder(), "odd", 2, "\"in_flight\": 4",
                      "{\"while_file\": \"odd\", \"reply\": \"No.\"}, " ANSWER);
    expect(0, "lacuna run odd.yaml -o even");
    test_write(below("odd"), STR(""));
    expect(0, "lacuna run odd.yaml -o odd-run");
    expect(1, "lacuna run odd.yaml --set repeats=3 -o both --reuse even --reuse odd-run");
    assert_holds(said, "--reuse odd-run: the reply to m/");
    assert_holds(said, "is another one than that to m/");
    assert_holds(said, " in even, though");
}

// ---- kills -------------------------------------------------------------------------------------

static int run_reusing(const char *experiment, const char *folder, const char *old) {
    struct arena *a = arena_create("run");
    struct experiment *x;
    struct run_options options = {.folder = folder, .runs_folder = "runs", .threads = 1};
    struct run_result result;
    struct buf terminal = {0};
    struct err e = {0};
    int exit_code;
    options.reuse = &old;
    options.reuse_count = old != NULL;
    int failed = experiment_load(experiment, NULL, a, &x, &e);
    if (failed == 0) failed = run_experiment(x, &options, a, &result, &e);
    if (failed == 0) failed = run_report(folder, NULL, a, &exit_code, &terminal, &e);
    buf_free(&terminal);
    return failed;
}

// In a child that ends at point `at` (0: not). Its exit code; *points: how many it has passed.
static int run_child(const char *experiment, const char *folder, const char *old, int64_t at,
                     enum file_fault fault, int64_t *points) {
    const char *path = below("points");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(9);
        if (at > 0) file_fail_at(at, fault);
        int failed = run_reusing(experiment, folder, old);
        FILE *f = fopen(path, "w");
        if (f == NULL || fprintf(f, "%lld", (long long)file_fail_points_passed()) < 0) _exit(9);
        fclose(f);
        _exit(failed == 0 ? 0 : 1);
    }
    int status;
    long long n = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    FILE *f = at > 0 ? NULL : fopen(path, "r");
    if (f != NULL) assert_int_equal(fscanf(f, "%lld", &n), 1);
    if (f != NULL) fclose(f);
    *points = n;
    return WEXITSTATUS(status);
}

// Killed at points all over the run; it ends with the same bytes whether or not the source is named
// again, and whether or not it was named before.
static void killed_runs_go_on(void **state) {
    (void)state;
    const char *rules = "\"in_flight\": 3, \"order\": \"shuffled\"";
    const char *experiment = sample_experiment(test_arena, fast_folder(), "k", 1, rules, ANSWER);
    const char *old = below("k-old"), *whole = below("k-whole");
    int64_t points, none;
    expect(0, "lacuna run k.yaml -o k-old --only depth=middle");
    assert_int_equal(run_child(experiment, whole, old, 0, FILE_FAULT_EXIT, &points), 0);
    expect(0, "lacuna run k.yaml -o k-cold");
    assert_equal_runs(below("k-cold"), whole);
    assert_true(points > 30);
    for (int64_t at = 1, turn = 0; at <= points; at += STRIDE, turn++) {
        const char *folder = below(arena_printf(test_arena, "k-%lld", (long long)at));
        const char *first = turn % 3 == 2 ? NULL : old, *second = turn % 3 == 1 ? NULL : old;
        enum file_fault fault = turn % 2 == 0 ? FILE_FAULT_EXIT_HALF : FILE_FAULT_EXIT_BEHIND;
        int code = run_child(experiment, folder, first, at, fault, &none);
        assert_true(code == KILLED_AT_POINT || code == 0);
        assert_int_equal(run_child(experiment, folder, second, 0, FILE_FAULT_EXIT, &none), 0);
        assert_equal_runs(whole, folder);
        fast_folder_drop(folder);
    }
}

int main(void) {
    log_set_level(LOG_QUIET);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growing_experiments_cost_what_is_new),
        cmocka_unit_test(a_record_of_everything_needs_no_model),
        cmocka_unit_test(records_in_any_state_serve),
        cmocka_unit_test(sampled_replies_follow_their_streams),
        cmocka_unit_test(scripted_replies_go_by_key),
        cmocka_unit_test(evidence_comes_along),
        cmocka_unit_test(errors_are_not_taken),
        cmocka_unit_test(the_first_difference_is_named),
        cmocka_unit_test(the_plan_tells_what_is_saved),
        cmocka_unit_test(untrusted_records_are_refused),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(killed_runs_go_on),
    };
    return cmocka_run_group_tests_name("reuse", tests, setup, test_arena_close);
}

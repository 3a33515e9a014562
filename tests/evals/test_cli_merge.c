// merge: shards of a run make the record that one run would have made.
#include "tests/support/fast_folder.h"
#include "tests/support/sample_run.h"
#include "tests/support/support.h"

#include "engine/base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define ANSWER                                                                                     \
    "{\"reply\": \"The order number is {{0}}, {{sample}}.\", \"copy_after\": "                     \
    "[\"The order number is \"]}"

static struct str out, said; // of the last program

static void expect(int code, const char *arguments) {
    struct err e = {0};
    const char *command = arena_printf(test_arena, "cd %s && %s/lacuna %s > out 2> said",
                                       fast_folder(), LACUNA_BINARY_DIR, arguments);
    int status = system(command);
    assert_true(WIFEXITED(status));
    const char *folder = fast_folder();
    ASSERT_OK(file_read(path_join(test_arena, folder, "out"), 1 << 24, test_arena, &out, &e), e);
    ASSERT_OK(file_read(path_join(test_arena, folder, "said"), 1 << 24, test_arena, &said, &e), e);
    if (WEXITSTATUS(status) != code)
        fail_msg("%s: exit code %d, not %d\n%s%s", arguments, WEXITSTATUS(status), code, out.p,
                 said.p);
}

static void assert_holds(struct str text, const char *what) {
    if (str_find(text, str_from(what), 0) == STR_NONE) fail_msg("no '%s' in:\n%s", what, text.p);
}

static int setup(void **state) {
    test_arena_open(state);
    sample_experiment(test_arena, fast_folder(), "x", 3, "\"in_flight\": 4", ANSWER);
    expect(0, "run x.yaml -o whole");
    expect(0, "run x.yaml --only length=128 -o one");
    expect(0, "run x.yaml --only length=192 -o two");
    expect(0, "run x.yaml --only arm=short -o three");
    return 0;
}

static const char *below(const char *name) {
    return path_join(test_arena, fast_folder(), name);
}

// In any order, and with a trial that two shards have.
static void shards_make_the_whole(void **state) {
    (void)state;
    expect(0, "run x.yaml --only repeat=1 -o extra");
    expect(0, "merge three one extra two -o merged");
    assert_equal_runs(below("whole"), below("merged"));
    expect(0, "verify merged");
    expect(0, "baseline merged");
    expect(0, "run x.yaml -o merged"); // nothing is left to do
    assert_holds(said, "is complete; nothing was run again");
}

static void the_rest_is_run(void **state) {
    (void)state;
    expect(0, "merge one three -o part");
    assert_holds(said, "has 15 of 27 trials; `lacuna run EXPERIMENT -o part` computes the rest");
    expect(0, "merge two -o part"); // a shard that came later
    assert_equal_runs(below("whole"), below("part"));
    expect(0, "merge one -o rest");
    expect(0, "run x.yaml -o rest");
    assert_equal_runs(below("whole"), below("rest"));
}

static void foreign_runs_are_refused(void **state) {
    (void)state;
    expect(0, "run x.yaml --only length=192 --set seed=12 -o seed");
    expect(0, "run x.yaml --only length=192 --set generation.max_tokens=39 -o shorter");
    sample_experiment(test_arena, fast_folder(), "x", 3, "\"in_flight\": 5", ANSWER);
    expect(0, "run x.yaml --only length=192 -o model");
    sample_experiment(test_arena, fast_folder(), "x", 3, "\"in_flight\": 4", ANSWER);
    expect(2, "merge one seed -o bad1");
    assert_holds(said, "seed: is no shard of this run: its trial m/");
    expect(2, "merge one shorter -o bad2");
    assert_holds(said, "shorter: is no shard of this run: generation differs");
    expect(2, "merge one model -o bad3");
    assert_holds(said, "model: is no shard of this run: models differs");
    expect(1, "merge one x.yaml -o bad4");
    sample_experiment(test_arena, fast_folder(), "odd", 3, "\"in_flight\": 4",
                      "{\"while_file\": \"odd\", \"reply\": \"No.\"}, " ANSWER);
    expect(0, "run odd.yaml --only length=192 -o even");
    test_write(below("odd"), STR(""));
    expect(0, "run odd.yaml --only repeat=1 -o odd-run");
    expect(2, "merge even odd-run -o bad5"); // one identity, two replies to one prompt
    assert_holds(said, "odd-run: its trial m/");
    expect(2, "merge");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_make_the_whole),
        cmocka_unit_test(the_rest_is_run),
        cmocka_unit_test(foreign_runs_are_refused),
    };
    return cmocka_run_group_tests_name("cli_merge", tests, setup, test_arena_close);
}

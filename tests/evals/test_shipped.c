// The experiments of configs/: every one loads without a warning, and its checks prove themselves
// with the variables of several repeats.
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "evals/plan_internal.h"

#include <stdio.h>
#include <string.h>

enum { REPEATS = 3 };

static void prove_repeat(const struct experiment *x, const struct case_table *cases, int repeat,
                         struct check_set *checks) {
    struct err e = {0};
    struct repeat_draw d;
    ASSERT_OK(repeat_draw(x, cases, repeat, test_arena, test_arena, &d, &e), e);
    for (int i = 0; i < x->constraint_count; i++) {
        const struct experiment_constraint *c = &x->constraints[i];
        const struct check *check;
        ASSERT_OK(check_prepare(checks, c, d.known[i], d.known_count[i], &check, &e), e);
        ASSERT_OK(check_prove(check, c, d.known[i], d.known_count[i], &e), e);
        // An experiment to learn from shows what its checks take and what they do not.
        assert_true(c->example_met_count > 0 && c->example_not_count > 0);
    }
}

static void prove(const char *path) {
    struct err e = {0};
    struct experiment *x;
    struct case_table cases = {0};
    ASSERT_OK(experiment_load(path, NULL, test_arena, &x, &e), e);
    if (x->warning_count > 0) fail_msg("%s", x->warnings[0]);
    if (x->cases_path != NULL)
        ASSERT_OK(cases_load(x->cases_path, x->cases_id, test_arena, &cases, &e), e);
    struct check_set *checks = check_set_open();
    for (int i = 0; i < REPEATS && i < x->repeats; i++) prove_repeat(x, &cases, i, checks);
    check_set_close(checks);
    experiment_close(x);
}

static void shipped_checks_prove_themselves(void **state) {
    (void)state;
    struct err e = {0};
    const char *folder = LACUNA_SOURCE_DIR "/configs";
    char **names;
    size_t count;
    int proven = 0;
    ASSERT_OK(file_list(folder, test_arena, &names, &count, &e), e);
    for (size_t i = 0; i < count; i++) {
        if (!str_ends(str_from(names[i]), STR(".yaml"))) continue;
        print_message("%s\n", names[i]);
        prove(path_join(test_arena, folder, names[i]));
        proven++;
    }
    assert_true(proven >= 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shipped_checks_prove_themselves, test_arena_open,
                                        test_arena_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

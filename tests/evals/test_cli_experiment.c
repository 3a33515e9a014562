// `lacuna new` and `lacuna schema` as a program, and what a broken experiment file says there.
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "evals/experiment.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static int run(struct arena *a, const char *arguments, struct str *out, struct str *said) {
    struct err e = {0};
    const char *to = path_join(a, test_folder(), "out"), *log = path_join(a, test_folder(), "said");
    int status = system(arena_printf(a, "cd %s && %s/lacuna %s > out 2> said", test_folder(),
                                     LACUNA_BINARY_DIR, arguments));
    assert_true(WIFEXITED(status));
    ASSERT_OK(file_read(to, 1 << 20, a, out, &e), e);
    ASSERT_OK(file_read(log, 1 << 20, a, said, &e), e);
    return WEXITSTATUS(status);
}

static void new_writes_once(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct err e = {0};
    struct str out, said, first, second;
    struct experiment *x;
    const char *path = path_join(a, test_folder(), "mine.yaml");
    assert_int_equal(run(a, "new mine", &out, &said), 0);
    assert_int_equal(out.n, 0);
    assert_non_null(strstr(said.p, "wrote mine.yaml"));
    ASSERT_OK(experiment_load(path, NULL, a, &x, &e), e);
    assert_string_equal(x->name, "mine");
    experiment_close(x);
    ASSERT_OK(file_read(path, 1 << 20, a, &first, &e), e);
    // A second time it is refused, however the name is written, and the file stays as it is.
    assert_int_equal(run(a, "new mine", &out, &said), 2);
    assert_non_null(strstr(said.p, "mine.yaml exists"));
    assert_int_equal(run(a, "new mine.yaml", &out, &said), 2);
    ASSERT_OK(file_read(path, 1 << 20, a, &second, &e), e);
    assert_true(str_equal(first, second));
    assert_int_equal(run(a, "new 'no name'", &out, &said), 2);
    assert_int_equal(run(a, "new gone/mine", &out, &said), 1);
    assert_int_equal(run(a, "new a b", &out, &said), 2);
    // Without a name the same goes to stdout.
    assert_int_equal(run(a, "new", &out, &said), 0);
    assert_true(str_starts(out, STR("# An experiment for lacuna.")));
    assert_int_equal(said.n, 0);
    arena_destroy(a);
}

static void schema_is_json(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct err e = {0};
    struct str out, said;
    json_t *schema;
    assert_int_equal(run(a, "schema", &out, &said), 0);
    ASSERT_OK(json_parse(out, "schema", &schema, &e), e);
    json_t *properties = json_object_get(schema, "properties");
    assert_non_null(json_object_get(properties, "constraints"));
    assert_null(json_object_get(properties, "limit"));
    json_decref(schema);
    arena_destroy(a);
}

static void errors_of_a_file_are_usage_errors(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct err e = {0};
    struct str out, said;
    ASSERT_OK(file_write_atomic(path_join(a, test_folder(), "bad.yaml"),
                                STR("lacuna: 1\nname: bad\nmodles: []\nseed: 1e3\n"), &e),
              e);
    assert_int_equal(run(a, "plan bad.yaml", &out, &said), 2);
    assert_non_null(strstr(said.p, "bad.yaml:3:1: modles: unknown key; did you mean 'models'?"));
    assert_non_null(strstr(said.p, "bad.yaml:4:7: seed: expected a whole number"));
    assert_null(strstr(said.p, "models: is missing"));
    assert_int_equal(run(a, "plan gone.yaml", &out, &said), 2);
    assert_non_null(strstr(said.p, "gone.yaml"));
    arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_writes_once),
        cmocka_unit_test(schema_is_json),
        cmocka_unit_test(errors_of_a_file_are_usage_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

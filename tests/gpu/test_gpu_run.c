// The script that tests and measures a GPU, tried on the emulated one: tests/gpu/pack makes the
// parcel, tests/gpu/run runs it in small sizes. A part that fails is told and does not stop the
// others; what takes too long is stopped.
#include "tests/support/fast_folder.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/json.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NOTE "an error: a \"quote\", a \\ and a\ttab"

static int shell(const char *command) {
    int status = system(command);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

// The program of the parcel, behind a script that does something else for some calls.
static void stand_before(const char *script) {
    const char *path = arena_printf(test_arena, "%s/parcel/bin/gpu_tests", fast_folder());
    test_write(path, str_from(arena_printf(test_arena, "#!/bin/bash\n%s", script)));
    assert_int_equal(chmod(path, 0755), 0);
}

static json_t *run(const char *options, int expected_code) {
    struct err e = {0};
    json_t *result;
    const char *folder = fast_folder();
    int code = shell(arena_printf(test_arena, "%s/parcel/run %s %s/out > %s/table 2>&1", folder,
                                  options, folder, folder));
    struct str table = test_read(test_arena, path_join(test_arena, folder, "table"));
    ASSERT_OK(json_read_file(path_join(test_arena, folder, "out/gpu.json"), 1 << 20, &result, &e),
              e);
    if (code != expected_code) fail_msg("exit code %d:\n%.*s", code, (int)table.n, table.p);
    return result;
}

static const json_t *part(const json_t *result, const char *name) {
    const json_t *p;
    size_t i;
    json_array_foreach(json_object_get(result, "parts"), i, p) {
        if (strcmp(json_string_value(json_object_get(p, "name")), name) == 0) return p;
    }
    fail_msg("there is no part %s", name);
    return NULL;
}

static const char *word(const json_t *o, const char *key) {
    const char *text = json_string_value(json_object_get(o, key));
    assert_non_null(text);
    return text;
}

static const json_t *numbers(const json_t *result, const char *name) {
    const json_t *p = part(result, name);
    if (strcmp(word(p, "status"), "passed") != 0)
        fail_msg("%s %s: %s", name, word(p, "status"), word(p, "note"));
    return json_object_get(p, "numbers");
}

static int pack(void **state) {
    (void)state;
    const char *folder = fast_folder();
    test_arena = arena_create("test");
    assert_int_equal(
        shell(arena_printf(test_arena,
                           LACUNA_SOURCE_DIR "/tests/gpu/pack --emulated " LACUNA_BINARY_DIR
                                             " %s/parcel > %s/packed && "
                                             "mv %s/parcel/bin/gpu_tests %s/parcel/bin/real",
                           folder, folder, folder, folder)),
        0);
    arena_destroy(test_arena);
    test_arena = NULL;
    return 0;
}

// In place of compute-sanitizer: runs the program after `--tool TOOL --error-exitcode N`.
static void put_sanitizer(void) {
    const char *folder = path_join(test_arena, fast_folder(), "tools"),
               *path = path_join(test_arena, folder, "compute-sanitizer");
    struct err e = {0};
    ASSERT_OK(file_make_directory(folder, &e), e);
    test_write(path, STR("#!/bin/bash\necho \"$2 of ${*:6}\"\nexec \"${@:5}\"\n"));
    assert_int_equal(chmod(path, 0755), 0);
    const char *paths = arena_printf(test_arena, "%s:%s", folder, getenv("PATH"));
    assert_int_equal(setenv("PATH", paths, 1), 0);
}

// Only quick tests run really; they are all run by themselves elsewhere.
static void test_a_failing_part_stops_no_other(void **state) {
    (void)state;
    put_sanitizer();
    stand_before("real=$(dirname \"$0\")/real\n"
                 "case \"$*\" in\n"
                 "*test_cuda_rows | *test_cuda_kv) ;;\n"
                 "*test_cuda_stored) echo 'well'; echo '" NOTE "'; exit 3 ;;\n"
                 "test*) exit 0 ;;\n"
                 "esac\n"
                 "exec \"$real\" \"$@\"\n");
    json_t *result = run("--small --deadline 600 --limit 1200", 1);
    assert_int_equal(json_integer_value(json_object_get(result, "failed")), 1);
    const json_t *failed = part(result, "test_cuda_stored");
    assert_string_equal(word(failed, "status"), "failed");
    assert_int_equal(json_integer_value(json_object_get(failed, "exit_code")), 3);
    assert_string_equal(word(failed, "note"), NOTE);
    assert_true(json_is_null(json_object_get(failed, "numbers")));
    numbers(result, "test_cuda_rows");
    numbers(result, "test_cuda_kv");

    const json_t *device = json_object_get(result, "device");
    assert_true(json_equal(device, numbers(result, "smoke")));
    assert_string_equal(word(device, "kernels"), "emulated");
    assert_true(json_integer_value(json_object_get(numbers(result, "rates"), "copy_bytes_per_s")) >
                0);
    const json_t *products = json_object_get(numbers(result, "rates"), "products");
    assert_int_equal(json_array_size(products), 1);
    const json_t *choice = json_object_get(json_array_get(products, 0), "choice");
    assert_string_equal(word(choice, "by"), "cuBLASLt");
    struct str table = test_read(test_arena, path_join(test_arena, fast_folder(), "table"));
    assert_true(str_find(table, STR("1 of 3; refused: tiny 1, company 1"), 0) != STR_NONE);
    const json_t *draws = json_object_get(numbers(result, "rates"), "draws");
    assert_int_equal(json_array_size(draws), 3);
    assert_true(json_real_value(json_object_get(json_array_get(draws, 0), "drawn_ms")) > 0);
    assert_true(str_find(table, STR("16 of 700 logits"), 0) != STR_NONE);
    const json_t *bench = numbers(result, "bench");
    assert_string_equal(word(bench, "backend"), "cuda");
    assert_true(json_array_size(json_object_get(bench, "tests")) >= 2);
    assert_true(json_array_size(json_object_get(numbers(result, "no_graphs"), "tests")) >= 1);
    assert_int_equal(json_integer_value(json_object_get(numbers(result, "sweep"), "trials")), 2);
    static const char *const tools[] = {"memcheck", "racecheck", "synccheck"};
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        numbers(result, tools[i]);
        const char *name = arena_printf(test_arena, "%s/out/%s.log", fast_folder(), tools[i]);
        struct str log = test_read(test_arena, name);
        const char *attention = arena_printf(
            test_arena, "%s of test test_cuda_attention test_near_double_precision", tools[i]);
        assert_true(str_find(log, str_from(attention), 0) != STR_NONE);
    }
    json_decref(result);
}

static void test_deadlines(void **state) {
    (void)state;
    stand_before("[ \"$*\" = list ] && exec \"$(dirname \"$0\")/real\" list\nsleep 120\n");
    json_t *result = run("--small --deadline 1 --limit 3", 1);
    const json_t *p;
    size_t i, late = 0, not_run = 0;
    json_array_foreach(json_object_get(result, "parts"), i, p) {
        late += strcmp(word(p, "status"), "late") == 0;
        not_run += strcmp(word(p, "status"), "not run") == 0;
    }
    assert_true(late >= 1 && not_run >= 1);
    assert_int_equal(late + not_run, i);
    assert_int_equal(json_integer_value(json_object_get(result, "failed")), i);
    assert_true(json_is_null(json_object_get(result, "device")));
    assert_true(json_integer_value(json_object_get(result, "seconds")) < 100);
    json_decref(result);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_a_failing_part_stops_no_other),
                                       TEST(test_deadlines)};
    return cmocka_run_group_tests_name("gpu run", tests, pack, NULL);
}

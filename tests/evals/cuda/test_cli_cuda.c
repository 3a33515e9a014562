// A whole run with `backend: cuda` on the emulated GPU: the record names the device, an interrupted
// run equals an uninterrupted one, and a trial computed alone gives the recorded ids and shares.
#include "tests/support/fast_folder.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/sample_run.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/json.h"

#include <cublas_api.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define PLUGIN "--cuda-plugin " LACUNA_BINARY_DIR "/liblacuna-cuda-simt.so "
#define RUN "run l.yaml --limit 4 --set tolerate.unscored=100% -o "

static struct arena *arena;
static struct str out, said; // of the last program

static int lacuna(const char *arguments) {
    const char *command = arena_printf(arena, "cd %s && %s/lacuna %s > out 2> said", fast_folder(),
                                       LACUNA_BINARY_DIR, arguments);
    int status = system(command);
    assert_true(WIFEXITED(status));
    out = test_read(arena, path_join(arena, fast_folder(), "out"));
    said = test_read(arena, path_join(arena, fast_folder(), "said"));
    return WEXITSTATUS(status);
}

static void lacuna_ok(const char *arguments) {
    int code = lacuna(arguments);
    if (code != 0) fail_msg("%s: exit code %d\n%s%s", arguments, code, out.p, said.p);
}

static bool holds(struct str text, const char *what) {
    return str_find(text, str_from(what), 0) != STR_NONE;
}

static const char *in_folder(const char *name) {
    return path_join(arena, fast_folder(), name);
}

// The sample, on the GPU, with heads that there are kernels for.
static int setup(void **state) {
    (void)state;
    arena = arena_create("test");
    sample_local_experiment(arena, fast_folder(), "l", 2);
    tiny_model_write(in_folder("l.gguf"),
                     &(struct tiny_model_options){.D = 64, .H = 2, .G = 1, .F = 64, .seed = 5});
    struct str text = test_read(arena, in_folder("l.yaml"));
    size_t at = str_find(text, STR("backend: cpu"), 0);
    assert_true(at != STR_NONE);
    const char *yaml = arena_printf(arena, "%.*sbackend: cuda%s", (int)at, text.p,
                                    text.p + at + strlen("backend: cpu"));
    test_write(in_folder("l.yaml"), str_from(yaml));
    lacuna_ok(PLUGIN RUN "whole");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_destroy(arena);
    return 0;
}

static json_t *read_json(const char *name) {
    struct err e = {0};
    json_t *j;
    ASSERT_OK(json_read_file(in_folder(name), 1 << 20, &j, &e), e);
    return j;
}

static const char *word(const json_t *j, const char *key) {
    const char *text = json_string_value(json_object_get(j, key));
    if (text == NULL) fail_msg("no word under '%s'", key);
    return text;
}

static void test_record_names_the_device(void **state) {
    (void)state;
    json_t *identity = read_json("whole/identity.json"),
           *manifest = read_json("whole/manifest.json");
    assert_string_equal(word(identity, "backend"), "cuda");
    assert_string_equal(word(identity, "numerics"), "cuda-sm90-1");
    assert_string_equal(word(manifest, "device"), "emulated, capability 9.0");
    assert_string_equal(word(manifest, "op_table"), "emulated");
    const json_t *model = json_array_get(json_object_get(manifest, "models"), 0);
    assert_string_equal(word(model, "compute_capability"), "9.0");
    assert_string_equal(word(model, "driver_cuda"), "13.0");
    assert_string_equal(word(model, "runtime_cuda"), "13.0");
    assert_string_equal(word(model, "cublaslt"), arena_printf(arena, "%d.%d.%d", CUBLAS_VER_MAJOR,
                                                              CUBLAS_VER_MINOR, CUBLAS_VER_PATCH));
    assert_non_null(word(model, "driver"));
    assert_true(json_integer_value(json_object_get(model, "device_memory_bytes")) > 0);
    const json_t *libraries = json_object_get(manifest, "libraries");
    assert_true(strlen(word(libraries, "jansson")) > 0 && strlen(word(libraries, "libzstd")) > 0);
    struct str sessions = test_read(arena, in_folder("whole/sessions.jsonl"));
    assert_true(holds(sessions, "\"event\":\"products\""));
    json_decref(identity);
    json_decref(manifest);
    lacuna_ok("verify whole");
    assert_true(holds(out, "complete"));
}

// What was admitted is told, and kept in the user's cache folder.
static void test_products(void **state) {
    (void)state;
#define BENCH "bench l.gguf --backend cuda --prompt 8 --depth none --repeats 1 --chunk 256 --json "
    assert_int_equal(setenv("XDG_CACHE_HOME", in_folder("cache"), 1), 0);
    lacuna_ok(PLUGIN BENCH "--gemm admitted");
    assert_true(holds(out, "\"products\":{\"by\":\"admitted\",\"cublaslt\":"));
    assert_true(holds(out, "\"rows\":256,"));
    char **names;
    size_t count;
    struct err e = {0};
    ASSERT_OK(file_list(in_folder("cache/lacuna"), arena, &names, &count, &e), e);
    assert_int_equal(count, 1);
    assert_int_equal(lacuna(PLUGIN BENCH "--gemm fast"), 2);
    assert_true(holds(said, "auto, own, admitted or any"));
}

static void test_interrupted_is_whole(void **state) {
    (void)state;
    assert_int_equal(
        system(arena_printf(arena, "cp -r %s %s", in_folder("whole"), in_folder("again"))), 0);
    struct str ledger = test_read(arena, in_folder("again/trials.jsonl"));
    test_write(in_folder("again/trials.jsonl"), str_slice(ledger, 0, ledger.n / 2));
    lacuna_ok(PLUGIN RUN "again");
    assert_equal_runs(in_folder("whole"), in_folder("again"));
}

static void test_repeat_alone(void **state) {
    (void)state;
    struct str ledger = test_read(arena, in_folder("whole/trials.jsonl"));
    size_t at = str_find(ledger, STR("\"key\":\"m/placed/"), 0);
    assert_true(at != STR_NONE);
    at += strlen("\"key\":\"");
    struct str key = str_slice(ledger, at, str_find(ledger, STR("\""), at));
    lacuna_ok(arena_printf(arena, PLUGIN "repeat whole " STR_FMT, STR_ARG(key)));
    assert_true(holds(out, "the replies are the same"));
    assert_true(holds(out, "the shares of attention are the same"));
}

// The class that computes is part of the request: by `auto` as by name, and not as on the CPU.
static void test_auto_is_the_same_request(void **state) {
    (void)state;
    const char *automatic = PLUGIN RUN "whole --set 'models[0].backend=auto'";
    lacuna_ok(automatic);
    assert_true(holds(said, "is complete; nothing was run again"));
    assert_true(lacuna(RUN "whole --set 'models[0].backend=cpu'") != 0);
}

// A model with heads that there are no kernels for: on the CPU by `auto`, with the request of a run
// there, and refused by `cuda`.
static void test_a_model_that_is_not_served(void **state) {
    (void)state;
#define OTHER "run h.yaml --limit 2 --set tolerate.unscored=100% -o "
    sample_local_experiment(arena, fast_folder(), "h", 2); // `backend: cpu`, heads of 16
    assert_int_equal(lacuna(PLUGIN OTHER "none --set 'models[0].backend=cuda'"), 1);
    assert_true(holds(said, "cuda backend: there is no attention kernel for heads of 16 elements"));
    lacuna_ok(PLUGIN OTHER "other --set 'models[0].backend=auto'");
    assert_true(holds(said, "model m runs on the CPU: cuda backend: there is no attention kernel"));
    json_t *identity = read_json("other/identity.json"),
           *manifest = read_json("other/manifest.json");
    assert_string_equal(word(identity, "backend"), "cpu");
    assert_string_equal(word(identity, "numerics"), "bf16-1");
    const json_t *model = json_array_get(json_object_get(manifest, "models"), 0);
    assert_non_null(strstr(word(model, "backend_note"), "heads of 16"));
    json_decref(identity);
    json_decref(manifest);
    lacuna_ok(OTHER "other");
    assert_true(holds(said, "is complete; nothing was run again"));
}

static void test_without_a_plugin(void **state) {
    (void)state;
    assert_int_equal(lacuna("--cuda-plugin /nowhere.so " RUN "none"), 1);
    assert_true(holds(said, "/nowhere.so"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record_names_the_device),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_interrupted_is_whole),
        cmocka_unit_test(test_repeat_alone),
        cmocka_unit_test(test_auto_is_the_same_request),
        cmocka_unit_test(test_a_model_that_is_not_served),
        cmocka_unit_test(test_without_a_plugin),
    };
    return cmocka_run_group_tests_name("cuda runs", tests, setup, teardown);
}

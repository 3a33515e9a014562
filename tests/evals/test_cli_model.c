// `lacuna model` as a program: what it prints, and its exit codes.
#include "engine/base/file.h"
#include "engine/base/hash.h"
#include "engine/base/json.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define GOLDEN LACUNA_SOURCE_DIR "/tests/engine/golden/rope-llama3.gguf"

// stdout and stderr go to different texts. Returns the exit code.
static int run_model(struct arena *a, const char *arguments, struct str *out, struct str *said) {
    struct err e = {0};
    const char *to = arena_printf(a, "%s/out", test_folder());
    const char *log = arena_printf(a, "%s/said", test_folder());
    const char *command =
        arena_printf(a, "%s/lacuna model %s > %s 2> %s", LACUNA_BINARY_DIR, arguments, to, log);
    int status = system(command);
    assert_true(WIFEXITED(status));
    ASSERT_OK(file_read(to, 1 << 20, a, out, &e), e);
    ASSERT_OK(file_read(log, 1 << 20, a, said, &e), e);
    return WEXITSTATUS(status);
}

static void test_text(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct str out, said;
    assert_int_equal(run_model(a, GOLDEN, &out, &said), 0);
    assert_int_equal(said.n, 0);
    static const char *const parts[] = {
        "llama: 2 layers, width 64, feed-forward 64, vocabulary 101\n",
        "pairs (2i, 2i+1), 32 of 32 elements, base 500000, scaling llama3\n",
        "256 bytes a token",
        "       512            131072",
        "chat template none\n",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(out.p, parts[i])) fail_msg("no '%s' in:\n%s", parts[i], out.p);
    arena_destroy(a);
}

static void test_json(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct str out, said;
    struct err e = {0};
    json_t *json;
    assert_int_equal(run_model(a, "--json --length 700 --length=1 " GOLDEN, &out, &said), 0);
    ASSERT_OK(json_parse(out, "output", &json, &e), e);
    json_t *memory = json_object_get(json, "memory");
    assert_int_equal(json_array_size(memory), 2);
    json_t *row = json_array_get(memory, 0);
    assert_int_equal(json_integer_value(json_object_get(row, "tokens")), 700);
    assert_int_equal(json_integer_value(json_object_get(row, "kv_bytes")), 1024 * 256);
    char hex[HASH_HEX_SIZE];
    ASSERT_OK(hash_file(GOLDEN, hex, &e), e);
    assert_string_equal(json_string_value(json_object_get(json, "sha256")), hex);
    json_decref(json);
    arena_destroy(a);
}

static void test_errors(void **state) {
    (void)state;
    static const struct {
        const char *arguments;
        int code;
        const char *says;
    } cases[] = {
        {"", 2, "an argument is missing"},
        {"--length 0 " GOLDEN, 2, "from 1 to 1000000000, not \"0\""},
        {"--length 1e3 " GOLDEN, 2, "not \"1e3\""},
        {"--length 99999999999999999999 " GOLDEN, 2, "not \"99999999999999999999\""},
        {"/nowhere/x.gguf", 1, "/nowhere/x.gguf"},
        {LACUNA_SOURCE_DIR "/CMakeLists.txt", 1, "not a GGUF file"},
        {LACUNA_SOURCE_DIR "/tests", 1, "not a regular file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena *a = arena_create("test");
        struct str out, said;
        assert_int_equal(run_model(a, cases[i].arguments, &out, &said), cases[i].code);
        assert_int_equal(out.n, 0);
        if (!strstr(said.p, cases[i].says)) fail_msg("no '%s' in: %s", cases[i].says, said.p);
        arena_destroy(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

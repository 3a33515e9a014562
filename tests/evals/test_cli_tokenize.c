// `lacuna tokenize` as a program: lines in, lines out, exit codes.
#include "engine/base/file.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define VOCABULARY LACUNA_SOURCE_DIR "/tests/engine/golden/vocabulary.gguf"

// Runs it with this input; stdout and stderr together in *answer. Returns the exit code.
static int tokenize(struct arena *a, const char *arguments, const char *input, struct str *answer) {
    struct err e = {0};
    const char *in = arena_printf(a, "%s/in", test_folder());
    const char *out = arena_printf(a, "%s/out", test_folder());
    ASSERT_OK(file_write_atomic(in, str_from(input), &e), e);
    const char *command = arena_printf(a, "%s/lacuna tokenize %s < %s > %s 2>&1", LACUNA_BINARY_DIR,
                                       arguments, in, out);
    int status = system(command);
    assert_true(WIFEXITED(status));
    ASSERT_OK(file_read(out, 1 << 20, a, answer, &e), e);
    return WEXITSTATUS(status);
}

static void test_there_and_back(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    const char *input = "\"text\\n\\n### H\"\n\"\"\n\"nul \\u0000 and <|im_end|>\"\n"
                        "{\"text_base64\":\"YcP/Yg==\"}\n";
    struct str ids, text;
    assert_int_equal(tokenize(a, VOCABULARY, input, &ids), 0);
    assert_true(str_starts(ids, STR("[2706,208,208,3771,421]\n[]\n[")));
    assert_int_equal(tokenize(a, VOCABULARY " --decode", ids.p, &text), 0);
    assert_string_equal(text.p, input);
    arena_destroy(a);
}

static void test_options(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct str answer;
    assert_int_equal(tokenize(a, "--bos --special " VOCABULARY, "\"x<|im_end|>\"\n\"12\"", &answer),
                     0);
    assert_string_equal(answer.p, "[4,97,2]\n[4,26,27]\n");
    assert_int_equal(
        tokenize(a, VOCABULARY " --pre-tokenizer=qwen2", "\"text\\n\\n### H\"", &answer), 0);
    assert_string_equal(answer.p, "[2706,1130,3771,421]\n");
    assert_int_equal(tokenize(a, "--help", "", &answer), 0);
    assert_true(str_find(answer, STR("--pre-tokenizer NAME"), 0) != STR_NONE);
    arena_destroy(a);
}

static void test_errors(void **state) {
    (void)state;
    static const struct {
        const char *arguments, *input;
        int code;
        const char *says;
    } cases[] = {
        {VOCABULARY, "\"a\"\nb\n", 1, "stdin, line 2: not JSON"},
        {VOCABULARY, "[1]\n", 1, "line 1: expected a JSON string"},
        {VOCABULARY, "\n", 1, "line 1: is empty; an empty text is \"\""},
        {VOCABULARY, "{\"text_base64\":\"AA=A\"}\n", 1, "is not base64"},
        {VOCABULARY " --decode", "\"a\"\n", 1, "expected a JSON array"},
        {VOCABULARY " --decode", "[0,10367]\n", 1, "entry 2 is not an id from 0 to 10366"},
        {VOCABULARY " --decode", "[1.5]\n", 1, "entry 1"},
        {VOCABULARY " --decode --bos", "", 2, "no meaning"},
        {VOCABULARY " --pre-tokenizer guess", "", 1, "'guess' is not supported"},
        {VOCABULARY " --decoed", "", 2, "did you mean --decode"},
        {"", "", 2, "argument is missing"},
        {"/no/such/file", "", 1, "/no/such/file"},
    };
    struct arena *a = arena_create("test");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct str answer;
        int code = tokenize(a, cases[i].arguments, cases[i].input, &answer);
        if (code != cases[i].code || strstr(answer.p, cases[i].says) == NULL) {
            fail_msg("tokenize %s: exit code %d, %s", cases[i].arguments, code, answer.p);
        }
    }
    arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// `lacuna generate`, `score-text` and `bench` as programs, on a tiny model.
#include "tests/support/gguf_writer.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static struct arena *arena;

// Runs the program with `input` on stdin; returns its exit code, and what it wrote.
static int lacuna(const char *arguments, const char *input, const char **out, const char **said) {
    const char *folder = test_folder();
    test_write_file(arena_printf(arena, "%s/in", folder), str_from(input));
    int status = system(arena_printf(arena, "cd %s && %s/lacuna %s < in > out 2> said", folder,
                                     LACUNA_BINARY_DIR, arguments));
    struct str text;
    struct err e = {0};
    ASSERT_OK(file_read(arena_printf(arena, "%s/out", folder), 1 << 24, arena, &text, &e), e);
    *out = text.p;
    ASSERT_OK(file_read(arena_printf(arena, "%s/said", folder), 1 << 24, arena, &text, &e), e);
    *said = text.p;
    return WEXITSTATUS(status);
}

static json_t *line_of(const char *text, int number) {
    for (; number > 0; number--) text = strchr(text, '\n') + 1;
    json_t *value;
    struct err e = {0};
    struct str line = {text, (size_t)(strchr(text, '\n') - text)};
    ASSERT_OK(json_parse(line, "line", &value, &e), e);
    return value;
}

static void test_generate(void **state) {
    (void)state;
    const char *out, *said;
    // More inputs than run at once; replies come in input order. Text and its ids agree.
    struct buf input = {0};
    for (int i = 0; i < 40; i++) buf_printf(&input, i % 2 ? "[%d,7,8]\n" : "\"w%d x\"\n", 10 + i);
    assert_int_equal(lacuna("generate tiny.gguf --max-tokens 9 --threads 1", input.p, &out, &said),
                     0);
    assert_int_equal(str_count(str_from(out), STR("\n")), 40);
    for (int i = 0; i < 40; i += 3) {
        const char *alone, *ignored;
        const char *at = input.p;
        for (int k = 0; k < i; k++) at = strchr(at, '\n') + 1;
        const char *line = arena_memdup(arena, at, (size_t)(strchr(at, '\n') - at));
        assert_int_equal(
            lacuna("generate tiny.gguf --max-tokens 9 --threads 1", line, &alone, &ignored), 0);
        json_t *a = line_of(out, i), *b = line_of(alone, 0);
        assert_true(json_equal(a, b));
        json_int_t tokens = json_integer_value(json_object_get(a, "tokens"));
        assert_int_equal(json_array_size(json_object_get(a, "ids")), tokens);
        json_decref(a);
        json_decref(b);
    }
    buf_free(&input);
    const char *chat = "[{\"role\":\"user\",\"content\":\"hi\"}]\n";
    const char *first, *second, *other;
    const char *sampled = "generate tiny.gguf --chat --temperature 1.5 --seed 4 --threads 1";
    assert_int_equal(lacuna(sampled, chat, &first, &said), 0);
    assert_int_equal(lacuna(sampled, chat, &second, &said), 0);
    assert_int_equal(lacuna("generate tiny.gguf --chat --temperature 1.5 --seed 5 --threads 1",
                            chat, &other, &said),
                     0);
    assert_string_equal(first, second);
    assert_string_not_equal(first, other);
}

static void test_score_text(void **state) {
    (void)state;
    const char *out, *said;
    assert_int_equal(
        lacuna("score-text tiny.gguf --top 320 --threads 1", "[5,6,7]\n\n\"ab\"\n", &out, &said),
        0);
    json_t *line = line_of(out, 0), *ids = json_object_get(line, "ids");
    json_t *scores = json_object_get(line, "log_probabilities"),
           *top = json_object_get(line, "top");
    assert_int_equal(json_array_size(ids), 3);
    assert_int_equal(json_array_size(scores), 3);
    assert_int_equal(json_array_size(top), 3);
    assert_true(json_is_null(json_array_get(scores, 0)));
    for (size_t i = 0; i < 3; i++) {
        double sum = 0, last = INFINITY;
        for (size_t k = 0; k < 320; k++) {
            const json_t *pair = json_array_get(json_array_get(top, i), k);
            double p = json_number_value(json_array_get(pair, 1));
            sum += exp(p);
            assert_true(p <= last);
            last = p;
            bool next = i + 1 < 3 && json_integer_value(json_array_get(pair, 0)) ==
                                         json_integer_value(json_array_get(ids, i + 1));
            if (next) assert_true(p == json_number_value(json_array_get(scores, i + 1)));
        }
        assert_true(fabs(sum - 1) < 1e-5);
    }
    json_decref(line);
    line = line_of(out, 1);
    assert_int_equal(json_array_size(json_object_get(line, "ids")), 2);
    json_decref(line);
}

static void test_bench(void **state) {
    (void)state;
    const char *out, *said;
    const char *call = "bench tiny.gguf --json --prompt 40,9 --depth 0,16 --reply 3 --repeats 2 "
                       "--batch 3 --threads 1 --ops --chunk 20";
    assert_int_equal(lacuna(call, "", &out, &said), 0);
    json_t *result = line_of(out, 0), *tests = json_object_get(result, "tests"), *test;
    static const char *const names[] = {"pp40",   "pp9",     "tg3",
                                        "tg3@16", "tg3 x 3", "qkv 64x128, 20 rows"};
    assert_true(json_array_size(tests) > 20);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        test = json_array_get(tests, i);
        const char *name = json_string_value(json_object_get(test, "test"));
        if (strncmp(name, names[i], strlen(names[i])) != 0) fail_msg("%s: %s", names[i], name);
        const json_t *seconds = json_object_get(test, "seconds");
        assert_true(json_number_value(json_object_get(seconds, "median")) > 0);
        assert_true(json_is_string(json_object_get(test, "held_by")));
    }
    json_decref(result);
    call = "bench tiny.gguf --prompt 9 --depth none --repeats 1 --op-table c";
    assert_int_equal(lacuna(call, "", &out, &said), 0);
    assert_non_null(strstr(out, "op table c,"));
    assert_non_null(strstr(out, "\npp9 "));
    assert_null(strstr(out, "\ntg"));
}

// Tests that nobody asked for leave out what the model's context has no room for.
static void test_bench_of_a_short_context(void **state) {
    (void)state;
    const char *out, *said;
    const char *call = "bench " LACUNA_SOURCE_DIR "/tests/engine/golden/subject-full.gguf "
                       "--repeats 1 --batch 2 --reply 2";
    assert_int_equal(lacuna(call, "", &out, &said), 0);
    assert_non_null(strstr(out, "\npp512 "));
    assert_null(strstr(out, "\npp2048 "));
    assert_non_null(strstr(out, "\ntg2 "));
    assert_null(strstr(out, "\ntg2@2048 "));
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *arguments, *input, *said;
        int code;
    } cases[] = {
        {"generate tiny.gguf", "{\"a\":1}", "line 1: neither a text nor", 1},
        {"generate tiny.gguf", "\"a\" \"b\"", "line 1", 1},
        {"generate tiny.gguf", "\"\"", "no tokens", 1},
        {"generate tiny.gguf", "[320]", "outside the vocabulary", 1},
        {"generate tiny.gguf --max-tokens 4097", "\"a\"", "do not fit the context of 4096", 2},
        {"generate tiny.gguf --context 5000", "\"a\"", "trained for 4096", 2},
        {"generate tiny.gguf --temperature hot", "", "--temperature takes a number", 2},
        {"generate tiny.gguf --temprature 1", "", "did you mean --temperature", 2},
        {"generate tiny.gguf --chat", "\"a\"", "--chat takes an array", 1},
        {"generate nowhere.gguf", "", "nowhere.gguf", 1},
        {"score-text tiny.gguf --context 3", "[5,6,7,8]", "line 1: 4 tokens", 2},
        {"score-text tiny.gguf --backend cuda", "", "cuda backend: ", 1},
        {"generate 'no\x1B[31mwhere.gguf'", "", "no?[31mwhere.gguf", 1}, // for a terminal
        {"generate tiny.gguf --max-tokens 0", "", "--max-tokens 0 is not between 1 and", 2},
        {"generate tiny.gguf --context 99999999999", "", "--context 99999999999 is not", 2},
        {"score-text tiny.gguf --top -1", "", "--top -1 is not between 0 and", 2},
        {"bench tiny.gguf --repeats 0", "", "--repeats 0 is not between 1 and 64", 2},
        {"bench tiny.gguf --prompt 9223372036854775807", "", "--prompt takes numbers from 1", 2},
        {"bench tiny.gguf --prompt 0", "", "--prompt takes numbers from 1 to", 2},
        {"bench tiny.gguf --prompt 5,,6", "", "or none, not \"5,,6\"", 2},
        {"bench tiny.gguf --depth 5x", "", "--depth takes numbers from 0 to", 2},
        {"bench tiny.gguf --prompt none --depth none", "", "nothing to measure", 2},
        {"bench tiny.gguf --prompt 5000", "", "trained for 4096", 2},
        {"bench tiny.gguf --batch 65", "", "--batch 65 is not between 0 and 64", 2},
        {"bench tiny.gguf --memory 1000", "", "lower --prompt, --depth, --batch or --chunk.", 1},
        {"bench tiny.gguf --memory 1000 --batch 0", "", "lower --prompt, --depth or --chunk.", 1},
        {"bench tiny.gguf --memory 1000 --depth none", "", "lower --prompt or --chunk.", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *out, *said;
        assert_int_equal(lacuna(cases[i].arguments, cases[i].input, &out, &said), cases[i].code);
        if (strstr(said, cases[i].said) == NULL) fail_msg("%s: %s", cases[i].arguments, said);
    }
}

static int make_model(void **state) {
    (void)state;
    arena = arena_create("test");
    tiny_model_write(arena_printf(arena, "%s/tiny.gguf", test_folder()),
                     &(struct tiny_model_options){.seed = 6});
    return 0;
}

static int drop_arena(void **state) {
    (void)state;
    arena_destroy(arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generate), cmocka_unit_test(test_score_text),
        cmocka_unit_test(test_bench),    cmocka_unit_test(test_bench_of_a_short_context),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make_model, drop_arena);
}

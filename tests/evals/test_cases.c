// Cases from CSV and JSON lines, and the substitution of variables.
#include "tests/evals/experiment_sample.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/rng.h"
#include "evals/experiment.h"

#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

static int load(const char *name, struct str content, struct case_table *out, struct err *e) {
    const char *path = path_join(test_arena, test_folder(), name);
    test_write(path, content);
    return cases_load(path, "id", test_arena, out, e);
}

static void csv_is_read_strictly(void **state) {
    (void)state;
    struct err e = {0};
    struct case_table t;
    ASSERT_OK(load("a.csv",
                   STR("\xEF\xBB\xBFid,text,\"a, b\"\r\n"
                       "T-1,plain,x\r\n"
                       "T-2,\"He said \"\"no\"\",\r\nthen left\",\n"
                       "\"T-3\",,\"\"\n"
                       "T-4, spaced ,\xC3\xA9"),
                   &t, &e),
              e);
    assert_int_equal(t.column_count, 3);
    assert_string_equal(t.columns[0], "id");
    assert_string_equal(t.columns[2], "a, b");
    assert_int_equal(t.row_count, 4);
    assert_string_equal(t.rows[1].id, "T-2");
    assert_true(str_equal_c(t.rows[1].values[1], "He said \"no\",\r\nthen left"));
    assert_int_equal(t.rows[1].values[2].n, 0);
    assert_string_equal(t.rows[2].id, "T-3");
    assert_true(str_equal_c(t.rows[3].values[1], " spaced "));
    assert_true(str_equal_c(t.rows[3].values[2], "\xC3\xA9"));
    assert_true(hash_is_hex(str_from(t.sha256)));
}

static void json_lines_are_read_strictly(void **state) {
    (void)state;
    struct err e = {0};
    struct case_table t;
    ASSERT_OK(load("a.jsonl",
                   STR("{\"id\":\"T-1\",\"n\":7,\"text\":\"a\\nb\"}\n"
                       "{\"text\":\"\",\"id\":\"T-2\",\"n\":\"007\"}\r\n"),
                   &t, &e),
              e);
    assert_int_equal(t.row_count, 2);
    assert_true(str_equal_c(t.rows[0].values[1], "7"));
    assert_true(str_equal_c(t.rows[0].values[2], "a\nb"));
    assert_string_equal(t.rows[1].id, "T-2");
    assert_true(str_equal_c(t.rows[1].values[1], "007"));
}

static void broken_tables_are_named_by_line(void **state) {
    (void)state;
    static const struct {
        const char *name, *content, *expected;
    } cases[] = {
        {"b.csv", "id,a\nT-1\n", "b.csv:2: 1 field where the header has 2"},
        {"b.csv", "id,a\nT-1,x\nT-2,x,y\n", "b.csv:3: 3 fields where the header has 2"},
        {"b.csv", "id,a\nT-1,\"x\ny\"\n\nT-2,z\n", "b.csv:4: 1 field where"},
        {"b.csv", "id,a\nT-1,\"x\n", "b.csv:2: a quoted field is not closed"},
        {"b.csv", "id,a\nT-1,x\"y\n", "b.csv:2: a quote inside a field"},
        {"b.csv", "id,a\nT-1,\"x\"y\n", "b.csv:2: a character behind the closing quote"},
        {"b.csv", "id,a\nT-1,x\ry\n", "b.csv:2: a carriage return that ends no line"},
        {"b.csv", "id,a\nT-1,x\nT-1,y\n", "b.csv:3: the case id 'T-1' was already given in line 2"},
        {"b.csv", "id,a\n,x\n", "b.csv:2: the case id is empty"},
        {"b.csv", "id,a\nT/1,x\n", "b.csv:2: the case id 'T/1' cannot be part of a trial's key"},
        {"b.csv", "id,a\n\"T\n1\",x\n", "b.csv:2: the case id"},
        {"b.csv", "id,a\n-,x\n", "b.csv:2: the case id '-'"},
        {"b.csv", "id,a\nT\x7F,x\n", "b.csv:2: the case id"},
        {"b.csv", "ID,a\nT,x\n", "b.csv:1: there is no column 'id'"},
        {"b.csv", "id;a\nT;x\n",
         "b.csv:1: there is no column 'id': its columns are parted by semicolons"},
        {"b.csv", "id,id\nT,x\n", "b.csv:1: the column 'id' stands twice"},
        {"b.csv", "id,\nT,x\n", "b.csv:1: column 2 has no name"},
        {"b.csv", "id,a{b\nT,x\n", "b.csv:1: the column 'a{b' cannot be written as {{name}}"},
        {"b.csv", "id,re:a\nT,x\n", "cannot be written as {{name}}"},
        {"b.csv", "id,a\n", "b.csv: there is no case in it"},
        {"b.csv", "", "b.csv:1: column 1 has no name"},
        {"b.csv", "id,a\nT,\xFF\n", "b.csv:2: byte 0xFF is not UTF-8"},
        {"b.txt", "id,a\nT,x\n", "cases are read from a .csv or a .jsonl file"},
        {"b.jsonl", "{\"id\":\"T\"}\n{\"id\":\"T\"}\n",
         "b.jsonl:2: the case id 'T' was already given in line 1"},
        {"b.jsonl", "{\"id\":\"T\"}\n\n{\"id\":\"U\"}\n", "b.jsonl:2: an empty line"},
        {"b.jsonl", "{\"id\":\"T\"}\n{\"ID\":\"U\"}\n", "b.jsonl:2: the column 'id' is missing"},
        {"b.jsonl", "{\"id\":\"T\"}\n{\"id\":\"U\",\"x\":1}\n",
         "b.jsonl:2: the column 'x' is not in the first line"},
        {"b.jsonl", "{\"id\":\"T\",\"x\":1.5}\n",
         "b.jsonl:1: the column 'x' is neither a text nor a whole number"},
        {"b.jsonl", "{\"id\":\"T\",\"x\":null}\n", "is neither a text"},
        {"b.jsonl", "{\"id\":\"T\",\"id\":\"U\"}\n", "b.jsonl:1: not JSON"},
        {"b.jsonl", "[1]\n", "b.jsonl:1: expected an object"},
        {"b.jsonl", "{\"id\":\"T\"\n", "b.jsonl:1: not JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        struct case_table t;
        if (load(cases[i].name, str_from(cases[i].content), &t, &e) == 0)
            fail_msg("loads: %s", cases[i].content);
        if (e.code != ERR_CONFIG || strstr(e.text, cases[i].expected) == NULL)
            fail_msg("expected: %s\nfound: %s", cases[i].expected, e.text);
    }
    struct err e = {0};
    struct case_table t;
    ASSERT_FAILS(load("b.csv", (struct str){"id\nT\0\n", 6}, &t, &e), e, ERR_CONFIG,
                 "b.csv:2: a NUL character");
}

// Whatever is written by the rules of RFC 4180 is read back.
static void random_tables_survive(void **state) {
    (void)state;
    static const char *const pieces[] = {"a", "\"", ",", "\n", "\r\n", "\r", " ", "\xC3\xA9", "="};
    struct rng r = rng_open(20261130, "test", "csv");
    for (int round = 0; round < 200; round++) {
        const int columns = 1 + (int)rng_below(&r, 4), rows = 1 + (int)rng_below(&r, 6);
        struct str values[24];
        struct buf file = {0};
        buf_add_c(&file, "id");
        for (int c = 1; c < columns; c++) buf_printf(&file, ",c%d", c);
        buf_add_c(&file, "\r\n");
        for (int i = 0; i < rows * columns; i++) {
            struct buf value = {0};
            if (i % columns == 0)
                buf_printf(&value, "row %d", i / columns);
            else
                for (uint64_t n = rng_below(&r, 6); n > 0; n--)
                    buf_add_c(&value, pieces[rng_below(&r, sizeof pieces / sizeof *pieces)]);
            values[i] = str_copy(test_arena, buf_str(&value));
            const bool plain = value.n == 0 || strpbrk(value.p, "\",\r\n") == NULL;
            if (!plain || rng_below(&r, 3) == 0) {
                buf_add_char(&file, '"');
                for (size_t k = 0; k < value.n; k++)
                    buf_add_c(&file, value.p[k] == '"' ? "\"\"" : ((char[]){value.p[k], '\0'}));
                buf_add_char(&file, '"');
            } else {
                buf_add_str(&file, buf_str(&value));
            }
            const bool end = i % columns == columns - 1;
            if (!end || i + 1 < rows * columns || rng_below(&r, 2))
                buf_add_c(&file, !end ? "," : rng_below(&r, 2) ? "\n" : "\r\n");
            buf_free(&value);
        }
        struct err e = {0};
        struct case_table t;
        ASSERT_OK(load("r.csv", buf_str(&file), &t, &e), e);
        assert_int_equal(t.row_count, rows);
        for (int i = 0; i < rows * columns; i++)
            assert_true(str_equal(t.rows[i / columns].values[i % columns], values[i]));
        buf_free(&file);
    }
}

static int load_with_cases(const char *csv, const char *from, const char *to, struct experiment **x,
                           struct err *e) {
    const char *folder = test_folder();
    struct str s = str_from(sample_experiment);
    size_t at = str_find(s, str_from(from), 0);
    assert_true(at != STR_NONE);
    const char *text = arena_printf(test_arena, "%.*s%s%scases: {file: t.csv, id: id}\n", (int)at,
                                    s.p, to, s.p + at + strlen(from));
    test_write(path_join(test_arena, folder, "t.csv"), str_from(csv));
    const char *path = path_join(test_arena, folder, "x.yaml");
    test_write(path, str_from(text));
    return experiment_load(path, NULL, test_arena, x, e);
}

static void columns_are_variables(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x = NULL, *y = NULL;
    const char *csv = "id,question\nA,why?\nB,how?\n";
    ASSERT_OK(load_with_cases(csv, "repeats: 20\n", "", &x, &e), e);
    assert_int_equal(x->repeats, 2);
    assert_string_equal(x->cases_id, "id");
    assert_string_equal(x->cases_path, path_join(test_arena, test_folder(), "t.csv"));
    experiment_close(x);
    ASSERT_OK(load_with_cases(csv, "repeats: 20", "repeats: 1", &x, &e), e);
    assert_int_equal(x->repeats, 1);
    experiment_close(x);
    const char *path = path_join(test_arena, test_folder(), "x.yaml");
    struct experiment_overrides o = {.only = "case=A", .limit = -1};
    ASSERT_OK(experiment_load(path, &o, test_arena, &x, &e), e);
    experiment_close(x);
    o.only = "case=B"; // a row beyond the repeats
    ASSERT_FAILS(experiment_load(path, &o, test_arena, &x, &e), e, ERR_CONFIG,
                 "there is no case 'B'");
    ASSERT_FAILS(load_with_cases(csv, "repeats: 20", "repeats: 3", &x, &e), e, ERR_CONFIG,
                 "repeats: 3 repeats, but the cases have 2 rows");
    ASSERT_FAILS(load_with_cases("id,code\nA,1\n", "repeats: 20", "repeats: 1", &x, &e), e,
                 ERR_CONFIG, "constraints[0].vars.code: the cases have a column of that name");
    ASSERT_FAILS(load_with_cases("id,filler\nA,1\n", "repeats: 20\n", "", &x, &e), e, ERR_CONFIG,
                 "cases.file: a column is called 'filler'");
    ASSERT_FAILS(load_with_cases("id\nA\nA\n", "repeats: 20\n", "", &x, &e), e, ERR_CONFIG,
                 "t.csv:3: the case id 'A' was already given");
    const char *use = "Answer {{question}}";
    struct str s = str_from(sample_experiment);
    assert_true(str_find(s, STR("Write a short reply."), 0) != STR_NONE);
    ASSERT_FAILS(load_with_cases("id,quest\nA,1\n", "Write a short reply.", use, &x, &e), e,
                 ERR_CONFIG, "{{question}} is not defined; did you mean {{quest}}?");
    csv = "id,question\n1,a\n2,a\n3,a\n4,a\n5,a\n6,a\n7,a\n8,a\n9,a\n10,a\n11,a\n12,a\n13,a\n14,a\n"
          "15,a\n16,a\n17,a\n18,a\n19,a\n20,a\n";
    ASSERT_OK(load_with_cases(csv, "Write a short reply.", use, &x, &e), e);
    char before[HASH_HEX_SIZE], after[HASH_HEX_SIZE];
    ASSERT_OK(file_write_atomic(path_join(test_arena, test_folder(), "m.gguf"), STR("m"), &e), e);
    ASSERT_OK(sample_request_sha256(x, before, &e), e);
    // A record is read again without its cases; what they hold is part of the request.
    test_write(x->cases_path, STR("id,question\n1,b\n"));
    ASSERT_OK(sample_request_sha256(x, after, &e), e);
    assert_string_not_equal(before, after);
    ASSERT_OK(file_remove(x->cases_path, &e), e);
    ASSERT_OK(experiment_from_json(x->resolved, "resolved.json", x->folder, test_arena, &y, &e), e);
    assert_int_equal(y->repeats, 20);
    experiment_close(x);
    experiment_close(y);
}

static void names_are_replaced(void **state) {
    (void)state;
    const struct variable vars[] = {{"a", STR("1")}, {"long name", STR("{{a}}")}, {"e", STR("")}};
    static const struct {
        const char *text, *result, *error;
    } cases[] = {
        {"no name", "no name", NULL},
        {"{{a}}{{a}} {a} {{e}}}", "11 {a} }", NULL},
        {"{{long name}}", "{{a}}", NULL}, // what was put in is not looked at again
        {"{ {a} } }}", "{ {a} } }}", NULL},
        {"", "", NULL},
        {"x {{b}}", NULL, "here: {{b}} is not defined; known here: {{a}}, {{long name}}, {{e}}"},
        {"{{ a }}", NULL, "{{ a }} is not defined"},
        {"{{a", NULL, "here: '{{' at byte 0 is not followed by a name"},
        {"{{a}", NULL, "'{{' at byte 0"},
        {"ab{{}}", NULL, "'{{' at byte 2"},
        {"{{a\n}}", NULL, "'{{' at byte 0"},
        {"{{{a}}}", NULL, "'{{' at byte 0"},
        {"{{re:a}}", NULL, "{{re:a}} is not defined"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        struct str out;
        int result =
            variables_replace(str_from(cases[i].text), vars, 3, "here", test_arena, &out, &e);
        if (cases[i].error != NULL) {
            ASSERT_FAILS(result, e, ERR_CONFIG, cases[i].error);
        } else {
            ASSERT_OK(result, e);
            if (!str_equal_c(out, cases[i].result))
                fail_msg("'%s' gives '" STR_FMT "'", cases[i].text, STR_ARG(out));
        }
    }
}

static bool matches(struct str pattern, struct str subject) {
    int code;
    size_t offset;
    pcre2_code *p =
        pcre2_compile((PCRE2_SPTR)pattern.p, pattern.n, PCRE2_UTF, &code, &offset, NULL);
    if (p == NULL) fail_msg("error %d in '" STR_FMT "'", code, STR_ARG(pattern));
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(p, NULL);
    int found = pcre2_match(p, (PCRE2_SPTR)subject.p, subject.n, 0, 0, data, NULL);
    pcre2_match_data_free(data);
    pcre2_code_free(p);
    return found > 0;
}

// PCRE2 itself says whether an inserted value stands for itself and nothing else.
static void patterns_take_values_literally(void **state) {
    (void)state;
    static const char *const pieces[] = {
        "a", "7", ".", "*", "\\", "[", "]", "(",  ")",  "{",   "}",   "^",        "$",
        "|", "?", "+", "#", "-",  "/", " ", "\n", "\t", "\\E", "\\Q", "\xC3\xA9", "\xE6\x97\xA5",
        "Z", "_", "'", "\""};
    static const char *const frames[] = {"^{{v}}$(*ACCEPT)",  "\\A{{v}}\\z",    "\\A(?:x|{{v}})\\z",
                                         "(?x)\\A {{v}} \\z", "\\A{{v}}{1}\\z", "(?i)\\A{{v}}\\z"};
    struct rng r = rng_open(20261130, "test", "patterns");
    for (int i = 0; i < 3000; i++) {
        struct buf value = {0}, other = {0};
        for (uint64_t n = 1 + rng_below(&r, 6); n > 0; n--)
            buf_add_c(&value, pieces[rng_below(&r, sizeof pieces / sizeof *pieces)]);
        buf_printf(&other, "%s!", value.p);
        const struct variable v = {"v", buf_str(&value)};
        struct str out;
        struct err e = {0};
        const char *frame = frames[1 + rng_below(&r, 5)];
        ASSERT_OK(variables_replace_pattern(str_from(frame), &v, 1, "met", test_arena, &out, &e),
                  e);
        if (!matches(out, buf_str(&value)))
            fail_msg("'" STR_FMT "' does not match '%s'", STR_ARG(out), value.p);
        assert_false(matches(out, buf_str(&other)));
        buf_free(&value);
        buf_free(&other);
    }
}

static void patterns_know_where_they_are(void **state) {
    (void)state;
    const struct variable vars[] = {
        {"dot", STR("a.b")}, {"digit", STR("5")}, {"alt", STR("x|y")}, {"set", STR("]^-")}};
    static const struct {
        const char *pattern, *result, *error;
    } cases[] = {
        {"^{{dot}}+$", "^(?:a\\.b)+$", NULL},
        {"(.)\\1{{digit}}", "(.)\\1(?:5)", NULL},
        {"{{re:alt}}z", "(?:x|y)z", NULL},
        {"{{alt}}z", "(?:x\\|y)z", NULL},
        {"[{{set}}]", "[\\]\\^\\-]", NULL},
        {"[]{{digit}}]{{digit}}", "[]5](?:5)", NULL},
        {"[^]{{digit}}]", "[^]5]", NULL},
        {"[\\]{{digit}}]", "[\\]5]", NULL},
        {"\\[{{digit}}]", "\\[(?:5)]", NULL},
        {"\\\\{{digit}}", "\\\\(?:5)", NULL},
        {"\\Qa.[\\E{{digit}}", "\\Qa.[\\E(?:5)", NULL},
        {"\\d{5}", "\\d{5}", NULL},
        {"\\{{digit}}", NULL, "here: {{digit}} stands right behind a backslash"},
        {"\\Q{{dot}}\\E", NULL, "here: {{dot}} stands between \\Q and \\E"},
        {"{{gone}}", NULL, "{{gone}} is not defined; known here"},
        {"{{re:gone}}", NULL, "{{gone}} is not defined"},
        {"a{{2}}", NULL, "{{2}} is not defined"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        struct str out;
        int result = variables_replace_pattern(str_from(cases[i].pattern), vars, 4, "here",
                                               test_arena, &out, &e);
        if (cases[i].error != NULL) {
            ASSERT_FAILS(result, e, ERR_CONFIG, cases[i].error);
        } else {
            ASSERT_OK(result, e);
            if (!str_equal_c(out, cases[i].result))
                fail_msg("'%s' gives '" STR_FMT "'", cases[i].pattern, STR_ARG(out));
        }
    }
    const struct str set = STR("[{{set}}]");
    struct str out;
    struct err e = {0};
    ASSERT_OK(variables_replace_pattern(set, vars, 4, "here", test_arena, &out, &e), e);
    assert_true(matches(out, STR("]")) && matches(out, STR("-")) && matches(out, STR("^")));
    assert_false(matches(out, STR("a")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(csv_is_read_strictly, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(json_lines_are_read_strictly, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(broken_tables_are_named_by_line, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(random_tables_survive, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(columns_are_variables, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(names_are_replaced, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(patterns_take_values_literally, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(patterns_know_where_they_are, test_arena_open,
                                        test_arena_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

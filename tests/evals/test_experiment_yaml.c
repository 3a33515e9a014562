// What YAML offers and an experiment file must not use, misspelt keys, and texts that would not
// reach the model as they were written.
#include "tests/evals/experiment_sample.h"
#include "tests/support/support.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "evals/experiment.h"

#include <stdio.h>
#include <string.h>

// Every refusal is quick; instrumented code is given more time.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOAD_MS_MOST 1000.0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LOAD_MS_MOST 1000.0
#endif
#endif
#ifndef LOAD_MS_MOST
#define LOAD_MS_MOST 100.0
#endif

static int load_bytes(struct str bytes, struct experiment **x, struct err *e) {
    const char *path = path_join(test_arena, test_folder(), "x.yaml");
    test_write(path, bytes);
    return experiment_load(path, NULL, test_arena, x, e);
}

static struct str edited(const char *from, const char *to) {
    struct str s = str_from(sample_experiment);
    size_t at = str_find(s, str_from(from), 0);
    if (at == STR_NONE) fail_msg("'%s' is not in the sample", from);
    return str_from(
        arena_printf(test_arena, "%.*s%s%s", (int)at, s.p, to, s.p + at + strlen(from)));
}

static void expect_error(struct str bytes, const char *expected) {
    struct err e = {0};
    struct experiment *x = NULL;
    const uint64_t begin = clock_cpu_ns();
    int result = load_bytes(bytes, &x, &e);
    const double ms = CLOCK_MS(clock_cpu_ns() - begin);
    if (result == 0) fail_msg("loads, where expected: %s", expected);
    ASSERT_FAILS(result, e, ERR_CONFIG, expected);
    if (ms > LOAD_MS_MOST) fail_msg("%.0f ms for: %s", ms, expected);
}

// B41: a misspelt or misplaced key is an error with its place and path, never a default.
static void unknown_keys_are_errors(void **state) {
    (void)state;
    expect_error(edited("max_tokens: 96", "max-new-tokens: 8"),
                 "x.yaml:6:14: generation.max-new-tokens: unknown key; did you mean 'max_tokens'?");
    expect_error(edited("depths: [start", "dephts: [start"),
                 "x.yaml:24:38: placements[0].dephts: unknown key; did you mean 'depths'?");
    expect_error(edited("met: '[A-Z]", "chek: '[A-Z]"),
                 "x.yaml:22:58: constraints[2].chek: unknown key; did you mean 'check'?");
    expect_error(edited("max_tokens: 96", "seed: 7"),
                 "generation.seed: unknown key here; did you mean seed at the top level?");
    expect_error(edited("seed: 7", "temperature: 1"),
                 "3:1: temperature: unknown key here; did you mean generation.temperature?");
    expect_error(edited("seed: 7", "seed: [7]"),
                 "3:7: seed: expected a whole number, found a list");
    expect_error(
        edited("generation: {max_tokens: 96, temperature: 0, samples: 1}", "generation: 96"),
        "6:13: generation: expected a mapping (key: value), found '96'");
    expect_error(edited("kind: digits, count: 5", "knid: digits, count: 5"),
                 "constraints[0].vars.code.knid: unknown key; did you mean 'kind'?");
    expect_error(edited("{depth: middle}", "{dept: middle}"), "gates[0].where.dept: unknown key");
    expect_error(edited("seed: 7", "seed: 7\nhaystack: x"),
                 "4:1: haystack: unknown key; known here: lacuna");
}

static void all_errors_come_in_one_go(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x = NULL;
    const char *text = "lacuna: 1\n"
                       "name: my name\n"
                       "sed: 3\n"
                       "models:\n"
                       "  - {id: m, context_tokens: 1e3}\n"
                       "  - {id: m, path: a, context_tokens: 0x10, backend: gpu}\n"
                       "generation: {samples: 01, temperature: hot}\n"
                       "prompt: {messages: [{role: user, text: no}]}\n"
                       "constraints: [{id: c, kind: state, text: \"a {{b}}\", chek: x}]\n"
                       "placements: [{id: p, move: [d], depths: [0.5, start, 0]}]\n"
                       "lengths: {tokens: [2, 1]}\n"
                       "repeats: 1_000\n";
    assert_int_equal(load_bytes(str_from(text), &x, &e), -1);
    static const char *const expected[] = {
        "x.yaml:2:7: name: expected a name",
        "x.yaml:3:1: sed: unknown key; did you mean 'seed'?",
        "x.yaml:5:5: models[0].path: is missing",
        "x.yaml:5:29: models[0].context_tokens: expected",
        "x.yaml:6:10: models[1].id: 'm' is models[0] already",
        "x.yaml:6:38: models[1].context_tokens: expected",
        "x.yaml:6:53: models[1].backend: expected auto, cpu or cuda, found 'gpu'",
        "x.yaml:7:23: generation.samples: expected a whole number",
        "x.yaml:7:40: generation.temperature: expected",
        "x.yaml:8:40: prompt.messages[0].text: expected a text, but 'no' reads as true or false",
        "x.yaml:9:42: constraints[0].text: {{b}} is not defined",
        "x.yaml:9:53: constraints[0].chek: unknown key",
        "x.yaml:10:29: placements[0].move[0]: there is no constraint 'd'",
        "x.yaml:10:42: placements[0].depths[0]: '0.5' could be",
        "x.yaml:11:23: lengths.tokens[1]: 1 follows 2",
        "x.yaml:12:10: repeats: expected"};
    const char *at = e.text;
    size_t fit = sizeof expected / sizeof *expected;
    const char *more = strstr(e.text, "\n... and ");
    for (size_t i = 0; i < fit; i++) {
        const char *found = strstr(at, expected[i]);
        // The text of an error has its limits; what does not fit is counted.
        if (found == NULL && more != NULL) break;
        if (found == NULL) fail_msg("expected: %s\nin: %s", expected[i], at);
        assert_true(i < 8 || found > at);
        at = found;
    }
}

static void ambiguous_scalars_are_errors(void **state) {
    (void)state;
    static const char *const integers[] = {"1e3",
                                           "0x200",
                                           "0o17",
                                           "017",
                                           "1_000",
                                           "1,000",
                                           "+5",
                                           "5.0",
                                           "\"5\"",
                                           "'5'",
                                           "~",
                                           "null",
                                           "",
                                           "yes",
                                           "1:30",
                                           ".inf",
                                           "9999999999999999999",
                                           "five"};
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        expect_error(edited("repeats: 20", arena_printf(test_arena, "repeats: %s", integers[i])),
                     "repeats: expected a whole number");
    static const char *const booleans[] = {"yes", "no", "on", "off", "True",     "TRUE",
                                           "y",   "1",  "0",  "~",   "\"true\"", "[]"};
    for (size_t i = 0; i < sizeof booleans / sizeof *booleans; i++)
        expect_error(edited("kind: format,",
                            arena_printf(test_arena, "dotall: %s, kind: format,", booleans[i])),
                     "constraints[2].dotall: expected true or false");
    static const char *const texts[] = {"yes", "No",         "on",   "off",   "null",  "~",
                                        "007", "1e3",        "0x1F", "3.14",  "1_000", "12:30:45",
                                        "y",   "2026-11-30", ".nan", "-.inf", "+1",    "="};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        expect_error(edited("choices: [Monday", arena_printf(test_arena, "choices: [%s", texts[i])),
                     "constraints[1].vars.day.choices[0]: expected a text");
        struct err e = {0};
        struct experiment *x = NULL;
        ASSERT_OK(load_bytes(edited("choices: [Monday",
                                    arena_printf(test_arena, "choices: [\"%s\"", texts[i])),
                             &x, &e),
                  e);
        assert_true(str_equal_c(x->constraints[1].vars[0].choices[0], texts[i]));
        experiment_close(x);
    }
}

// B43 and its kind: what YAML allows and no experiment needs, each refused at its place.
static void yaml_extras_are_errors(void **state) {
    (void)state;
    expect_error(edited("seed: 7", "seed: 7\nseed: 8"),
                 "x.yaml:4:1: the key 'seed' was already given in line 3");
    expect_error(edited("kind: prose", "kind: prose, kind: noise"),
                 "x.yaml:11:25: the key 'kind' was already given in line 11");
    expect_error(edited("seed: 7", "seed: 7\n\"seed\": 8"), "the key 'seed' was already given");
    expect_error(edited("generation: {", "generation: {<<: {samples: 2}, "),
                 "x.yaml:6:14: <<: merge keys are not used here");
    expect_error(edited("seed: 7", "seed: !!int 7"), "x.yaml:3:7: the tag tag:yaml.org,2002:int");
    expect_error(edited("seed: 7", "seed: !env SEED"), "x.yaml:3:7: the tag !env");
    expect_error(edited("kind: prose", "sentences: !!python/list []"), "tags are not used here");
    expect_error(edited("lacuna: 1", "%YAML 1.1\n---\nlacuna: 1"), "directives (%YAML, %TAG)");
    expect_error(edited("lacuna: 1", "%TAG ! tag:x,2026:\n---\nlacuna: 1"), "directives");
    expect_error(edited("repeats: 20", "---\nrepeats: 20"),
                 "x.yaml:27:1: a second document begins");
    expect_error(edited("text: \"{{filler}}\\n\\nWrite a short reply.\"", "text: {{filler}} a"),
                 "a text that begins with {{ or [ must stand in quotes");
    expect_error(edited("seed: 7", "? [a, b]\n: 7"), "a key must be a word");
    expect_error(edited("seed: 7", "seed: *gone"),
                 "x.yaml:3:7: *gone has no anchor &gone before it");
    expect_error(edited("name: three-constraints\nseed: 7", "name: &seed x\nseed: *sed"),
                 "did you mean *seed?");
    expect_error(edited("name: three-constraints\nseed: 7", "name: &a x\nseed: &a 7"),
                 "the anchor &a was already given in line 2");
    expect_error(edited("seed: 7", "seed: [7"), "x.yaml:4:");
    expect_error(edited("seed: 7", "seed: \"7"), "x.yaml:");
    expect_error(edited("seed: 7", "\tseed: 7"), "x.yaml:3:1");
    expect_error(STR(""), "x.yaml:1:1: the file is empty");
    expect_error(STR("# only a comment\n"), "the file is empty");
    expect_error(STR("- a\n- b\n"), "x.yaml:1:1: expected a mapping (key: value), found a list");
    expect_error(STR("just words"), "x.yaml:1:1: expected a mapping");
}

static void bytes_that_are_no_text_are_errors(void **state) {
    (void)state;
    expect_error(edited("lacuna: 1", "\xEF\xBB\xBFlacuna: 1"),
                 "x.yaml:1:1: the file begins with a byte "
                 "order mark");
    expect_error(edited("seed: 7\n", "seed: 7\r\n"),
                 "x.yaml:3:8: a carriage return (CRLF line end)");
    expect_error(edited("careful", "caref\xFCl"), "x.yaml:9:44: byte 0xFC is not UTF-8");
    expect_error(edited("a careful", "\xC3\xA9\xE6\x97\xA5 \xFF"),
                 "x.yaml:9:40: byte 0xFF is not UTF-8");
    expect_error(edited("careful", "care\xE2\x80\xA8"
                                   "ful"),
                 "the line separator U+2028");
    expect_error(edited("careful", "care\xC2\x85"
                                   "ful"),
                 "write \"\\u0085\" in double quotes");
    expect_error(edited("careful", "care\x01"
                                   "ful"),
                 "x.yaml:9:43: control characters are not allowed");
    expect_error(edited("careful", "care\\0ful"), "the text holds a NUL character");
    expect_error((struct str){"\xFF\xFEl\0a\0", 6}, "the file is UTF-16");
    struct str with_nul = edited("careful", "care?ful");
    char *copy = arena_memdup(test_arena, with_nul.p, with_nul.n);
    *strchr(copy, '?') = '\0';
    expect_error((struct str){copy, with_nul.n}, "control characters are not allowed");
}

static const char *repeated(const char *text, int times) {
    struct buf out = {0};
    for (int i = 0; i < times; i++) buf_add_c(&out, text);
    const char *copy = str_to_c(test_arena, buf_str(&out));
    buf_free(&out);
    return copy;
}

static void bombs_are_refused_at_once(void **state) {
    (void)state;
    struct buf bomb = {0};
    buf_add_c(&bomb, "lacuna: 1\na: &a [x,x,x,x,x,x,x,x,x]\n");
    for (char c = 'b'; c <= 'i'; c++) {
        buf_printf(&bomb, "%c: &%c [", c, c);
        for (int i = 0; i < 9; i++) buf_printf(&bomb, "%s*%c", i == 0 ? "" : ",", c - 1);
        buf_add_c(&bomb, "]\n");
    }
    expect_error(buf_str(&bomb), "x.yaml:6:");
    expect_error(buf_str(&bomb),
                 "more than 16384 values, aliases counted as often as they are used");
    buf_free(&bomb);
    expect_error(STR("a: &x [*x]\n"), "x.yaml:1:8: *x stands inside its own anchor &x (line 1)");
    expect_error(STR("&r\nlacuna: 1\nname: {a: [*r]}\n"),
                 "x.yaml:3:12: *r stands inside its own anchor");
    const char *brackets = repeated("[", 20000);
    expect_error(str_from(arena_printf(test_arena, "a: %s%s", brackets, repeated("]", 20000))),
                 "nested more than 64 deep");
    expect_error(str_from(brackets), "nested more than 64 deep");
    expect_error(str_from(repeated("[\n", 40000)), "nested more than 64 deep");
    expect_error(str_from(repeated("{a: ", 40000)), "nested more than 64 deep");
    expect_error(str_from(repeated("- ", 40000)), "nested more than 64 deep");
    expect_error(str_from(repeated("? ", 40000)), "a key must be a word");
    struct buf blocks = {0};
    for (int i = 0; i < 1000; i++) buf_printf(&blocks, "%*sa:\n", i, "");
    expect_error(buf_str(&blocks), "x.yaml:65:65: nested more than 64 deep");
    buf_clear(&blocks);
    // Depth by way of aliases: every line is flat.
    buf_add_c(&blocks, "a0: &a0 [x]\n");
    for (int i = 1; i < 100; i++) buf_printf(&blocks, "a%d: &a%d [*a%d]\n", i, i, i - 1);
    expect_error(buf_str(&blocks), "nested more than 64 deep (through *");
    buf_free(&blocks);
    expect_error(str_from(repeated("- a\n", 200000)), "more than 16384 values");
    expect_error(str_from(arena_printf(test_arena, "[%s", repeated("a,", 400000))),
                 "more than 16384 values");
    expect_error(str_from(repeated("x", (1 << 20) + 1)), "x.yaml:1:1: the file has 1048577 bytes");
    struct buf keys = {0};
    for (int i = 0; i < 50000; i++) buf_printf(&keys, "k%d: 1\n", i);
    expect_error(buf_str(&keys), "x.yaml:1025:1: more than 1024 keys in one mapping");
    buf_clear(&keys);
    // Thousands of errors are counted, and cost little.
    for (int i = 0; i < 4000; i++) buf_printf(&keys, "%s%d", i == 0 ? "" : ", ", 9000 - i);
    struct str lengths = edited("512, 1024, 2048", keys.p);
    expect_error(lengths, "lengths.tokens[1]: 8999 follows 9000");
    expect_error(lengths, "more errors");
    expect_error(str_from(arena_printf(test_arena, "models: [%s]", repeated("{},", 10000))),
                 "models: expected at most 256 items, found 10000");
    buf_free(&keys);
}

static void ordinary_aliases_work(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x = NULL;
    struct str text = edited("{kind: digits, count: 5}", "&five {kind: digits, count: 5}");
    size_t at = str_find(text, STR("{kind: choice, choices: [Monday, Friday]}"), 0);
    text =
        str_from(arena_printf(test_arena, "%.*s*five%s", (int)at, text.p,
                              text.p + at + strlen("{kind: choice, choices: [Monday, Friday]}")));
    ASSERT_OK(load_bytes(text, &x, &e), e);
    assert_int_equal(x->constraints[1].vars[0].count, 5);
    experiment_close(x);
    // An override changes one use of the anchor and not the other.
    const char *set = "constraints[1].vars.day.count=3";
    struct experiment_overrides o = {.set = &set, .set_count = 1, .limit = -1};
    ASSERT_OK(
        experiment_load(path_join(test_arena, test_folder(), "x.yaml"), &o, test_arena, &x, &e), e);
    assert_int_equal(x->constraints[0].vars[0].count, 5);
    assert_int_equal(x->constraints[1].vars[0].count, 3);
    experiment_close(x);
}

// B45: one two-line text in every style: what the model gets, and what is warned about.
static void written_texts_arrive_or_are_warned_about(void **state) {
    (void)state;
    static const struct {
        const char *written, *text, *warning;
    } cases[] = {
        {"\"One.\\nTwo.{{filler}}\"", "One.\nTwo.{{filler}}", NULL},
        {"|-\n        One.\n        Two.{{filler}}", "One.\nTwo.{{filler}}", NULL},
        {"'One.\\nTwo.{{filler}}'", "One.\\nTwo.{{filler}}",
         "x.yaml:9:13: warning: prompt.messages[0].text: \\n stays two characters in single "
         "quotes"},
        {"One.\\nTwo.{{filler}}", "One.\\nTwo.{{filler}}",
         "\\n stays two characters without quotes"},
        {"|\n        One.\n        Two.{{filler}}", "One.\nTwo.{{filler}}\n",
         "the text ends with a line break, before whatever the chat template puts"},
        {">-\n        One.\n        Two.{{filler}}", "One. Two.{{filler}}",
         "the folded style (>) turns line breaks into spaces"},
        {"One.\n        Two.{{filler}}", "One. Two.{{filler}}",
         "line breaks of a text over several lines become spaces"},
        {"\"One.\n        Two.{{filler}}\"", "One. Two.{{filler}}",
         "line breaks of a text over several lines become spaces"},
        {"One.{{filler}} #tag", "One.{{filler}}",
         "the text ends before ' #', where a comment begins"},
        {"\"One.{{filler}} #tag\"", "One.{{filler}} #tag", NULL},
        {"One.{{filler}}#tag", "One.{{filler}}#tag", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        struct experiment *x = NULL;
        struct str s = edited(
            "    - {role: system, text: \"You are a careful assistant.\"}\n"
            "    - {role: user, text: \"{{filler}}\\n\\nWrite a short reply.\"}\n",
            arena_printf(test_arena, "    - text: %s\n      role: user\n", cases[i].written));
        ASSERT_OK(load_bytes(s, &x, &e), e);
        if (!str_equal_c(x->messages[0].text, cases[i].text))
            fail_msg("'" STR_FMT "', expected '%s'", STR_ARG(x->messages[0].text), cases[i].text);
        assert_int_equal(x->warning_count, cases[i].warning != NULL);
        if (cases[i].warning != NULL && strstr(x->warnings[0], cases[i].warning) == NULL)
            fail_msg("%s\nexpected: %s", x->warnings[0], cases[i].warning);
        experiment_close(x);
    }
    expect_error(edited("'(?<!\\d)\\d{5}(?!\\d)'", "\"\\bx\""),
                 "\\b in double quotes is a backspace");
    expect_error(edited("'(?<!\\d)\\d{5}(?!\\d)'", "\"\\d\""), "found unknown escape character");
    // In patterns a backslash-n in single quotes is right.
    struct err e = {0};
    struct experiment *x = NULL;
    ASSERT_OK(load_bytes(edited("'(?<!\\d)", "'\\n(?<!\\d)"), &x, &e), e);
    assert_int_equal(x->warning_count, 0);
    experiment_close(x);
}

static void unusual_roles_are_warned_about(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x = NULL;
    ASSERT_OK(load_bytes(edited("role: user", "role: usr"), &x, &e), e);
    assert_int_equal(x->warning_count, 1);
    assert_non_null(strstr(x->warnings[0], "x.yaml:10:14: warning: prompt.messages[1].role: an "
                                           "unusual role; did you mean user?"));
    experiment_close(x);
    ASSERT_OK(load_bytes(edited("role: system", "role: developer"), &x, &e), e);
    assert_int_equal(x->warning_count, 0);
    experiment_close(x);
}

static void texts_from_files_are_raw_bytes(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x = NULL;
    const struct str raw = STR("Rule:\r\n\t{{code}} \xFF\xEF\xBB\xBF");
    ASSERT_OK(file_write_atomic(path_join(test_arena, test_folder(), "rule.txt"), raw, &e), e);
    const char *from = "text: \"The order number is {{code}}.\"";
    ASSERT_OK(load_bytes(edited(from, "text_file: rule.txt"), &x, &e), e);
    assert_true(str_equal(x->constraints[0].text, raw));
    assert_int_equal(x->warning_count, 0);
    experiment_close(x);
    expect_error(edited(from, "text_file: rule.txt\n    text: \"a {{code}}\""),
                 "constraints[0].text_file: text is given too");
    expect_error(edited(from, "text_file: gone.txt"), "constraints[0].text_file: ");
    expect_error(edited(from, "text_file: ["), "x.yaml:");
    expect_error(edited("    text: \"The order number is {{code}}.\"\n", ""),
                 "13:5: constraints[0].text: is missing");
    ASSERT_OK(
        file_write_atomic(path_join(test_arena, test_folder(), "rule.txt"), STR("{{code}}\n"), &e),
        e);
    ASSERT_OK(load_bytes(edited(from, "text_file: rule.txt"), &x, &e), e);
    assert_int_equal(x->warning_count, 1);
    assert_non_null(strstr(x->warnings[0], "'rule.txt' ends with a line break"));
    experiment_close(x);
    ASSERT_OK(file_write_atomic(path_join(test_arena, test_folder(), "rule.txt"),
                                (struct str){"a\0b", 3}, &e),
              e);
    expect_error(edited(from, "text_file: rule.txt"), "'rule.txt' holds a NUL byte");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(unknown_keys_are_errors, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(all_errors_come_in_one_go, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(ambiguous_scalars_are_errors, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(yaml_extras_are_errors, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(bytes_that_are_no_text_are_errors, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(bombs_are_refused_at_once, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(ordinary_aliases_work, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(written_texts_arrive_or_are_warned_about, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(unusual_roles_are_warned_about, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(texts_from_files_are_raw_bytes, test_arena_open,
                                        test_arena_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

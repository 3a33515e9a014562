// `lacuna score` and `lacuna try` as programs, on a run of the scripted fixture.
#include "tests/support/fast_folder.h"
#include "tests/support/sample_run.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/log.h"
#include "evals/score.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static struct arena *arena;
static const char *experiment, *run; // a finished run of it

#define ANSWER                                                                                     \
    "{\"reply\": \"The order is {{0}}, the day tuesday.\", \"copy_after\": "                       \
    "[\"The order number is \"]}"

static int set_up(void **state) {
    (void)state;
    log_set_level(LOG_QUIET);
    arena = arena_create("test");
    experiment = sample_experiment(arena, fast_folder(), "scored", 4, "\"in_flight\": 2", ANSWER);
    run = path_join(arena, fast_folder(), "run");
    struct run_result result;
    struct err e = {0};
    ASSERT_OK(sample_run_report(experiment, run, false, &result, &e), e);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_destroy(arena);
    return 0;
}

static void write_whole(const char *path, struct str text) {
    struct err e = {0};
    ASSERT_OK(file_write_atomic(path, text, &e), e);
}

// stdout and stderr together; returns the exit code.
static int lacuna(const char *arguments, const char *input, struct str *answer) {
    const char *in = path_join(arena, fast_folder(), "in");
    const char *out = path_join(arena, fast_folder(), "out");
    write_whole(in, str_from(input));
    int status = system(
        arena_printf(arena, "%s/lacuna %s < %s > %s 2>&1", LACUNA_BINARY_DIR, arguments, in, out));
    assert_true(WIFEXITED(status));
    *answer = test_read(arena, out);
    return WEXITSTATUS(status);
}

#define ASSERT_HAS(text, part)                                                                     \
    do {                                                                                           \
        if (str_find((text), str_from(part), 0) == STR_NONE)                                       \
            fail_msg("\"" STR_FMT "\" lacks \"%s\"", STR_ARG(text), (part));                       \
    } while (0)

// The experiment with one text replaced by another, as a file beside it.
static const char *changed(const char *name, const char *from, const char *to) {
    struct str text = test_read(arena, experiment);
    size_t at = str_find(text, str_from(from), 0);
    assert_true(at != STR_NONE);
    struct buf b = {0};
    buf_add(&b, text.p, at);
    buf_add_c(&b, to);
    buf_add(&b, text.p + at + strlen(from), text.n - at - strlen(from));
    const char *path = path_join(arena, fast_folder(), name);
    write_whole(path, buf_str(&b));
    buf_free(&b);
    return path;
}

static const char *scores_file(struct str answer) {
    size_t at = str_find(answer, STR("/scores-"), 0);
    assert_true(at != STR_NONE);
    size_t end = str_find(answer, STR(".jsonl"), at);
    return arena_printf(arena, "%s" STR_FMT ".jsonl", run, STR_ARG(str_slice(answer, at, end)));
}

static void the_same_checks_give_the_same_verdicts(void **state) {
    (void)state;
    struct str ledger = test_read(arena, path_join(arena, run, "trials.jsonl")), answer;
    assert_int_equal(lacuna(arena_printf(arena, "score %s", run), "", &answer), 0);
    ASSERT_HAS(answer, "36 trials scored, 0 verdicts changed");
    struct str first = test_read(arena, scores_file(answer));
    assert_int_equal(lacuna(arena_printf(arena, "score %s", run), "", &answer), 0);
    ASSERT_HAS(answer, "(was there already)");
    assert_true(str_equal(first, test_read(arena, scores_file(answer))));
    assert_true(str_equal(ledger, test_read(arena, path_join(arena, run, "trials.jsonl"))));
    struct str verified;
    assert_int_equal(lacuna(arena_printf(arena, "verify %s", run), "", &verified), 0);
    // An edited file is no longer what scoring gives.
    const char *path = scores_file(answer);
    write_whole(path, str_slice(first, 0, first.n - 1));
    assert_int_equal(lacuna(arena_printf(arena, "score %s", run), "", &answer), 1);
    ASSERT_HAS(answer, "was edited");
    write_whole(path, first);
}

static void changed_checks_are_scored_apart(void **state) {
    (void)state;
    struct str ledger = test_read(arena, path_join(arena, run, "trials.jsonl")), answer;
    // The fixture always says "tuesday" in small letters.
    const char *other =
        changed("case.yaml", "value: \"{{day}}\",", "value: \"{{day}}\", ignore_case: true,");
    assert_int_equal(
        lacuna(arena_printf(arena, "score %s --experiment %s --json", run, other), "", &answer), 0);
    json_t *o;
    struct err e = {0};
    ASSERT_OK(json_parse(answer, "answer", &o, &e), e);
    size_t i, changes = json_array_size(json_object_get(o, "changes"));
    json_t *change;
    assert_true(changes > 0);
    json_array_foreach(json_object_get(o, "changes"), i, change) {
        assert_string_equal(json_string_value(json_object_get(change, "constraint")), "day");
        assert_string_equal(json_string_value(json_object_get(change, "before")), "omitted");
        assert_string_equal(json_string_value(json_object_get(change, "now")), "met");
    }
    // The file names what it read; each line carries the hash of the one before; the last is the
    // end.
    struct str file = test_read(arena, json_string_value(json_object_get(o, "file")));
    char previous[HASH_HEX_SIZE] = "", ledger_sha256[HASH_HEX_SIZE];
    hash_bytes(ledger.p, ledger.n, ledger_sha256);
    size_t lines = 0;
    for (size_t at = 0; at < file.n; lines++) {
        size_t end = str_find(file, STR("\n"), at) + 1;
        json_t *line;
        ASSERT_OK(json_parse(str_slice(file, at, end), "line", &line, &e), e);
        if (lines == 0) {
            json_t *of = json_object_get(line, "scores_of");
            assert_string_equal(json_string_value(json_object_get(of, "ledger_sha256")),
                                ledger_sha256);
        } else {
            assert_string_equal(json_string_value(json_object_get(line, "previous")), previous);
            assert_int_equal(json_integer_value(json_object_get(line, "line")), lines - 1);
            assert_int_equal(json_array_size(json_object_get(line, "verdicts")), 2);
        }
        json_decref(line);
        hash_bytes(file.p + at, end - at, previous);
        at = end;
    }
    assert_int_equal(lines, 37);
    assert_string_equal(json_string_value(json_object_get(o, "sha256")), previous);
    json_decref(o);
    assert_true(str_equal(ledger, test_read(arena, path_join(arena, run, "trials.jsonl"))));
}

static void gates_of_the_changed_file_decide(void **state) {
    (void)state;
    struct str answer;
    const char *other = changed("gates.yaml", "arms: [placed, absent, short]\n",
                                "arms: [placed, absent, short]\n"
                                "gates:\n"
                                "  - {id: days, of: day, at_least: 90%, pool: [length, depth]}\n");
    int code = lacuna(arena_printf(arena, "score %s --experiment %s", run, other), "", &answer);
    assert_int_equal(code, 100);
}

static void other_experiments_are_refused(void **state) {
    (void)state;
    struct str answer;
    const char *other = changed("seed.yaml", "seed: 11", "seed: 12");
    assert_int_equal(
        lacuna(arena_printf(arena, "score %s --experiment %s", run, other), "", &answer), 2);
    ASSERT_HAS(answer, "in more than its checks");
    ASSERT_HAS(answer, ": seed;");
    other = changed("text.yaml", "The pickup day is {{day}}.", "Pick it up on {{day}}.");
    assert_int_equal(
        lacuna(arena_printf(arena, "score %s --experiment %s", run, other), "", &answer), 2);
    ASSERT_HAS(answer, ": constraints;");
    assert_int_equal(lacuna(arena_printf(arena, "score %s/nothing", fast_folder()), "", &answer),
                     1);
}

static void trying_a_reply(void **state) {
    (void)state;
    struct str answer;
    assert_int_equal(lacuna(arena_printf(arena, "try %s order --var code=12345", experiment),
                            "Order **12,345**.\n", &answer),
                     0);
    ASSERT_HAS(answer, "order: met\n  `value` is \"12,345\" at bytes 8 to 14\n  with code = 12345");
    assert_int_equal(lacuna(arena_printf(arena, "try %s order --var code=12345", experiment),
                            "Order 12346.", &answer),
                     0);
    ASSERT_HAS(answer, "order: omitted\n  `value` is not in the reply\n  near misses: 12346\n");
    assert_int_equal(
        lacuna(arena_printf(arena, "try %s order --finish length", experiment), "Dear", &answer),
        0);
    ASSERT_HAS(answer, "order: unscored (cut)");
    // The value that repeat 2 has drawn, told by one call, is met in the next.
    assert_int_equal(
        lacuna(arena_printf(arena, "try %s order --repeat 2 --json", experiment), "x", &answer), 0);
    json_t *o;
    struct err e = {0};
    ASSERT_OK(json_parse(answer, "answer", &o, &e), e);
    const char *code = json_string_value(json_object_get(json_object_get(o, "vars"), "code"));
    assert_int_equal(strlen(code), 5);
    assert_int_equal(
        lacuna(arena_printf(arena, "try %s order --repeat 2 --json", experiment), code, &answer),
        0);
    ASSERT_HAS(answer, "\"verdict\":\"met\",\"reason\":null,\"by\":\"value\",\"match\":[0,5]");
    // The draw is the run's own.
    struct record *r;
    ASSERT_OK(record_open(run, arena, &r, &e), e);
    for (int64_t i = 0; i < r->trial_count; i++)
        if (r->trials[i].repeat == 2) assert_string_equal(r->trials[i].vars[0].value.p, code);
    record_close(r);
    json_decref(o);
    // Bytes that are not UTF-8 are judged and named as they are.
    assert_int_equal(lacuna(arena_printf(arena, "try %s order --var code=12345 --json", experiment),
                            "\xff 12345 \xc3", &answer),
                     0);
    ASSERT_HAS(answer, "\"match\":[2,7]");
}

static void trying_wrongly(void **state) {
    (void)state;
    struct str answer;
    static const struct {
        const char *arguments, *says;
    } cases[] = {{"ordr", "there is no constraint 'ordr'; there are order, day"},
                 {"order --var day=x", "the constraint 'order' has no variable 'day'"},
                 {"order --var code", "expected NAME=VALUE"},
                 {"order --repeat -1", "--repeat -1"},
                 {"order --finish cut", "expected stop or length"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int code =
            lacuna(arena_printf(arena, "try %s %s", experiment, cases[i].arguments), "x", &answer);
        if (code != 2) fail_msg("%s: %d " STR_FMT, cases[i].arguments, code, STR_ARG(answer));
        ASSERT_HAS(answer, cases[i].says);
    }
    const char *bad = changed("bad.yaml", "value: \"{{day}}\",", "met: \"({{day}}\",");
    assert_int_equal(lacuna(arena_printf(arena, "try %s day", bad), "x", &answer), 2);
    ASSERT_HAS(answer, "constraint \"day\": met: the pattern cannot compile");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_checks_give_the_same_verdicts),
        cmocka_unit_test(changed_checks_are_scored_apart),
        cmocka_unit_test(gates_of_the_changed_file_decide),
        cmocka_unit_test(other_experiments_are_refused),
        cmocka_unit_test(trying_a_reply),
        cmocka_unit_test(trying_wrongly),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

// `lacuna plan` and `lacuna prompt` as programs, on the scripted fixture.
#include "engine/base/file.h"
#include "engine/base/hash.h"
#include "engine/base/json.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static struct arena *arena;

static int setup(void **state) {
    (void)state;
    arena = arena_create("test");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_destroy(arena);
    return 0;
}

// Runs the program in the tests' folder. Returns the exit code.
static int lacuna(const char *arguments, struct str *out, struct str *said) {
    struct err e = {0};
    const char *to = path_join(arena, test_folder(), "out");
    const char *log = path_join(arena, test_folder(), "said");
    int status = system(arena_printf(arena, "cd %s && %s/lacuna %s > %s 2> %s", test_folder(),
                                     LACUNA_BINARY_DIR, arguments, to, log));
    assert_true(WIFEXITED(status));
    ASSERT_OK(file_read(to, 1 << 20, arena, out, &e), e);
    ASSERT_OK(file_read(log, 1 << 20, arena, said, &e), e);
    return WEXITSTATUS(status);
}

static json_t *lacuna_json(const char *arguments) {
    struct err e = {0};
    struct str out, said;
    json_t *json;
    if (lacuna(arguments, &out, &said) != 0) fail_msg("%s: %s", arguments, said.p);
    ASSERT_OK(json_parse(str_trim(out), arguments, &json, &e), e);
    return json;
}

static int64_t integer(const json_t *o, const char *key) {
    assert_true(json_is_integer(json_object_get(o, key)));
    return json_integer_value(json_object_get(o, key));
}

static void write_experiment(void) {
    static const char rules[] = "{\"lacuna_fixture\": 1, \"exact_ids\": true, "
                                "\"context_tokens\": 1000, \"in_flight\": 2, \"order\": \"first\", "
                                "\"seed\": 1, \"rules\": [{\"reply\": \"It is Oslo.\"}]}";
    static const char text[] =
        "lacuna: 1\n"
        "name: small\n"
        "models: [{id: toy, fixture: rules.json, context_tokens: 1000}]\n"
        "generation: {max_tokens: 16}\n"
        "prompt:\n"
        "  messages: [{role: user, text: \"{{filler}}\\n\\nWhich\\ttown?\"}]\n"
        "  filler: {kind: prose}\n"
        "constraints:\n"
        "  - {id: town, kind: state, text: \"The town is {{t}}.\", value: \"{{t}}\",\n"
        "     vars: {t: {kind: choice, choices: [Oslo, Lima, Rome]}}}\n"
        "placements: [{id: row, move: [town], depths: [start, middle, end]}]\n"
        "lengths: {tokens: [120, 200]}\n"
        "repeats: 2\n"
        "arms: [placed, absent]\n";
    struct err e = {0};
    ASSERT_OK(file_write_atomic(path_join(arena, test_folder(), "rules.json"), STR(rules), &e), e);
    ASSERT_OK(file_write_atomic(path_join(arena, test_folder(), "x.yaml"), STR(text), &e), e);
}

static void plan_says_what_would_run(void **state) {
    (void)state;
    write_experiment();
    json_t *plan = lacuna_json("plan x.yaml --json");
    assert_int_equal(integer(plan, "trials"), 16);
    assert_int_equal(integer(plan, "prompt_tokens"), 8 * (120 + 200));
    assert_int_equal(integer(plan, "reply_tokens_most"), 16 * 16);
    assert_int_equal(json_array_size(json_object_get(plan, "keys")), 16);
    assert_false(json_is_true(json_object_get(plan, "partial")));
    json_decref(plan);
    struct str out, said;
    assert_int_equal(lacuna("plan x.yaml", &out, &said), 0);
    assert_int_equal(said.n, 0);
    static const char *const parts[] = {"small: 16 trials = 12 placed + 4 absent; 2 repeats",
                                        "prompts   2,560 tokens, ", "replies   at most 256 tokens",
                                        "power: "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(out.p, parts[i]) == NULL) fail_msg("no '%s' in:\n%s", parts[i], out.p);
    plan = lacuna_json("plan x.yaml --json --only length=120,depth=end --limit 1");
    assert_int_equal(integer(plan, "trials"), 1);
    assert_true(json_is_true(json_object_get(plan, "partial")));
    json_decref(plan);
}

// A model with a window: start of 512 tokens is beyond its reach of 254, the end within one window.
static void plan_tells_what_a_window_sees(void **state) {
    (void)state;
    struct str out, said;
    const char *arguments = "plan " LACUNA_SOURCE_DIR "/configs/known-subjects.yaml "
                            "--set lengths.tokens=[512] --set repeats=4 --set gates=[] "
                            "--set 'placements[0].depths=[start,middle,end]'";
    json_t *plan = lacuna_json(arena_printf(arena, "%s --json", arguments));
    const json_t *models = json_object_get(plan, "models");
    assert_true(json_is_null(json_object_get(json_array_get(models, 0), "window")));
    const json_t *window = json_object_get(json_array_get(models, 1), "window");
    assert_int_equal(integer(window, "layers"), 2);
    assert_int_equal(integer(window, "tokens"), 128);
    assert_int_equal(integer(window, "reach_tokens"), 254);
    assert_int_equal(integer(window, "constraints"), 12);
    int64_t out_of_reach = integer(window, "out_of_reach");
    assert_in_range(out_of_reach, 4, 8);
    assert_int_equal(out_of_reach + integer(window, "relayed"), 8);
    json_decref(plan);
    assert_int_equal(lacuna(arguments, &out, &said), 0);
    const char *line = arena_printf(arena,
                                    "a reply depends on the last 255 tokens of its prompt\n"
                                    "            of 12 placed constraints %d stand beyond that",
                                    (int)out_of_reach);
    if (strstr(out.p, line) == NULL) fail_msg("no '%s' in:\n%s", line, out.p);
}

static void plan_refuses_with_exit_code_2(void **state) {
    (void)state;
    struct str out, said;
    write_experiment();
    assert_int_equal(lacuna("plan x.yaml --set lengths.tokens=[990]", &out, &said), 2);
    assert_true(strstr(said.p, "990") && strstr(said.p, "1006") && strstr(said.p, "1000"));
    assert_int_equal(lacuna("plan x.yaml --set lengths.tokens=[10]", &out, &said), 2);
    assert_true(strstr(said.p, "no room for filler"));
    assert_int_equal(
        lacuna("plan x.yaml --set 'constraints[0].violated=(garden|kitchen|river)'", &out, &said),
        2);
    assert_true(strstr(said.p, "matches the filler"));
    assert_int_equal(lacuna("plan x.yaml --limit -3", &out, &said), 2);
    assert_int_equal(lacuna("plan x.yaml --limit 0", &out, &said), 2);
    assert_true(strstr(said.p, "a number of trials"));
    assert_int_equal(lacuna("plan", &out, &said), 2);
    assert_int_equal(lacuna("prompt x.yaml toy/placed/120/row@middel/1/0", &out, &said), 2);
    assert_true(strstr(said.p, "toy/placed/120/row@middle/1/0"));
    assert_int_equal(lacuna("prompt x.yaml", &out, &said), 2);
    assert_int_equal(lacuna("prompt --help", &out, &said), 0);
    assert_true(strstr(out.p, "--escapes"));
}

// What a run takes and how long it lasts, on models of which one sequence has two pages.
static void plan_tells_memory_and_time(void **state) {
    (void)state;
    struct str out, said;
    const char *plan = arena_printf(arena,
                                    "plan %s/configs/known-subjects.yaml --set repeats=3 "
                                    "--set gates=[] --only model=full",
                                    LACUNA_SOURCE_DIR);
    json_t *roomy = lacuna_json(arena_printf(arena, "%s --json", plan));
    const json_t *m = json_array_get(json_object_get(roomy, "models"), 0);
    int64_t least = integer(m, "memory_least_bytes");
    assert_int_equal(integer(m, "replies_at_once"), 32);
    assert_true(integer(m, "memory_planned_bytes") > least && integer(m, "weights_bytes") > 0);
    assert_true(json_is_null(json_object_get(m, "seconds_most")));
    json_decref(roomy);
    json_t *tight =
        lacuna_json(arena_printf(arena, "%s --json --memory %lld", plan, (long long)least));
    m = json_array_get(json_object_get(tight, "models"), 0);
    assert_int_equal(integer(m, "replies_at_once"), 1);
    assert_int_equal(integer(m, "memory_planned_bytes"), least);
    json_decref(tight);
    // The run agrees, with its evidence.
    const char *run = arena_printf(arena, "run%s", strchr(plan, ' '));
    int64_t bound = least - 1;
    assert_int_equal(lacuna(arena_printf(arena, "%s -o short --memory %lld", run, (long long)bound),
                            &out, &said),
                     1);
    assert_true(strstr(said.p, "; allow at least "));
    assert_true(strstr(said.p, ", or lower context_tokens, or set evidence to off"));
    assert_int_equal(lacuna(arena_printf(arena, "%s -o least --memory %lld", run, (long long)least),
                            &out, &said),
                     0);
    // What no evidence changes is known before anything is planned.
    assert_int_equal(lacuna(arena_printf(arena, "%s -o early --memory 64K", run), &out, &said), 1);
    assert_true(strstr(said.p, "model full: one prompt at a time takes "));
    assert_true(strstr(said.p, "--memory allows 0.1 MiB; allow at least "));
    assert_false(strstr(said.p, "evidence"));
    assert_false(file_exists(arena_printf(arena, "%s/early", test_folder())));
    // With a record that has all of it, no model is loaded.
    assert_int_equal(lacuna(arena_printf(arena, "%s -o least --memory 64K", run), &out, &said), 0);
    assert_int_equal(lacuna(arena_printf(arena, "%s --memory 1000", plan), &out, &said), 0);
    assert_true(strstr(out.p, "this does not fit here"));
    assert_int_equal(lacuna(arena_printf(arena, "%s --measure", plan), &out, &said), 0);
    assert_true(strstr(out.p, "prompt tokens a second and "));
    assert_true(strstr(out.p, " of 32 replies at once\n"));
}

// As asked for, and as the text says it too.
static void plan_tells_how_weights_are_held(void **state) {
    (void)state;
    struct str out, said;
    static const char *const forms[] = {"stored", "unpacked"};
    for (int i = 0; i < 2; i++) {
        const char *plan = arena_printf(arena,
                                        "plan %s/configs/known-subjects.yaml --set repeats=3 "
                                        "--set gates=[] --set 'models=[{id: full, template: plain, "
                                        "path: %s/tests/engine/golden/subject-full.gguf, "
                                        "context_tokens: 576, weights: %s}]'",
                                        LACUNA_SOURCE_DIR, LACUNA_SOURCE_DIR, forms[i]);
        json_t *o = lacuna_json(arena_printf(arena, "%s --json", plan));
        const json_t *m = json_array_get(json_object_get(o, "models"), 0);
        assert_string_equal(json_string_value(json_object_get(m, "weights")), forms[i]);
        const char *words = arena_printf(arena, "%.1f MiB of weights (%s), and beside them",
                                         (double)integer(m, "weights_bytes") / (1 << 20), forms[i]);
        json_decref(o);
        assert_int_equal(lacuna(plan, &out, &said), 0);
        if (strstr(out.p, words) == NULL) fail_msg("no '%s' in:\n%s", words, out.p);
    }
}

// Null where it does not fit.
static json_t *planned_with(const char *size) {
    json_t *o = lacuna_json(arena_printf(arena,
                                         "plan %s/configs/known-subjects.yaml --set repeats=3 "
                                         "--set gates=[] --only model=full --json --memory %s",
                                         LACUNA_SOURCE_DIR, size));
    const json_t *m = json_array_get(json_object_get(o, "models"), 0);
    json_t *planned = json_incref(json_object_get(m, "memory_planned_bytes"));
    json_decref(o);
    return planned;
}

static void memory_has_units(void **state) {
    (void)state;
    json_t *all = planned_with("0");
    int64_t most = json_integer_value(all), unit = 1024;
    assert_true(most > 4 << 20);
    static const char *const names[] = {"K", "KiB", "M", "MiB"};
    for (int i = 0; i < 4; i++) {
        if (i == 2) unit *= 1024;
        // the last unit below what is wanted bounds it, and the first above does not
        json_t *less =
            planned_with(arena_printf(arena, "%lld%s", (long long)(most / unit), names[i]));
        json_t *more =
            planned_with(arena_printf(arena, "%lld%s", (long long)(most / unit + 1), names[i]));
        assert_true(json_integer_value(less) < most && json_integer_value(less) > 0);
        assert_int_equal(json_integer_value(more), most);
        json_decref(less);
        json_decref(more);
    }
    json_t *gib = planned_with("1G");
    assert_int_equal(json_integer_value(gib), most);
    json_decref(gib);
    json_decref(all);
    static const char *const refused[] = {"-1", "1.5G", "512MB", "512m",  "G",
                                          "''", "' 5'", "1Ki",   "0x10M", "+5"};
    struct str out, said;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *arguments = arena_printf(arena, "plan none.yaml --memory %s", refused[i]);
        assert_int_equal(lacuna(arguments, &out, &said), 2);
        if (strstr(said.p, "--memory takes a whole number of bytes") == NULL)
            fail_msg("%s: %s", refused[i], said.p);
    }
    assert_int_equal(lacuna("plan none.yaml --memory 8589934592G", &out, &said), 2);
    assert_non_null(strstr(said.p, "more than any machine has"));
}

static void prompt_shows_spans_and_bytes(void **state) {
    (void)state;
    struct str out, said;
    write_experiment();
    const char *key = "toy/placed/120/row@middle/1/0";
    assert_int_equal(lacuna(arena_printf(arena, "prompt x.yaml %s", key), &out, &said), 0);
    assert_true(strstr(out.p, key) && strstr(out.p, "120 tokens ("));
    assert_true(strstr(out.p, "⟨town⟩The town is ") && strstr(out.p, ".⟨/town⟩ "));
    assert_int_equal(lacuna(arena_printf(arena, "prompt x.yaml %s --escapes", key), &out, &said),
                     0);
    assert_true(strstr(out.p, "\\n\n\\n\nWhich\\ttown?"));
    json_t *shown = lacuna_json(arena_printf(arena, "prompt x.yaml %s --json", key));
    assert_int_equal(json_array_size(json_object_get(shown, "ids")), 120);
    struct str text = str_from(json_string_value(json_object_get(shown, "text")));
    char hex[HASH_HEX_SIZE];
    hash_bytes(text.p, text.n, hex);
    assert_string_equal(hex, json_string_value(json_object_get(shown, "prompt_sha256")));
    const json_t *span = json_array_get(json_object_get(shown, "spans"), 0);
    size_t from = (size_t)integer(span, "first_byte"), bytes = (size_t)integer(span, "bytes");
    assert_true(str_starts(str_slice(text, from, from + bytes), STR("The town is ")));
    assert_int_equal(lacuna(arena_printf(arena, "prompt x.yaml %s --raw", key), &out, &said), 0);
    assert_true(str_equal(out, text));
    json_decref(shown);
}

// The record gives back, byte for byte, what the experiment gives.
static void prompt_of_a_run_is_that_of_its_experiment(void **state) {
    (void)state;
    struct str out, said, again;
    write_experiment();
    int code = lacuna("run x.yaml -o run", &out, &said);
    if (code != 0 && code != 3) fail_msg("exit code %d: %s", code, said.p);
    json_t *plan = lacuna_json("plan x.yaml --json");
    const json_t *keys = json_object_get(plan, "keys");
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const char *key = json_string_value(json_array_get(keys, i));
        assert_int_equal(lacuna(arena_printf(arena, "prompt x.yaml %s", key), &out, &said), 0);
        assert_int_equal(lacuna(arena_printf(arena, "prompt run %s", key), &again, &said), 0);
        assert_true(str_equal(out, again));
    }
    json_decref(plan);
    assert_int_equal(lacuna("prompt run toy/none", &out, &said), 2);
    assert_true(strstr(said.p, "has no trial 'toy/none'"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan_says_what_would_run),
        cmocka_unit_test(plan_tells_what_a_window_sees),
        cmocka_unit_test(plan_refuses_with_exit_code_2),
        cmocka_unit_test(plan_tells_memory_and_time),
        cmocka_unit_test(plan_tells_how_weights_are_held),
        cmocka_unit_test(memory_has_units),
        cmocka_unit_test(prompt_shows_spans_and_bytes),
        cmocka_unit_test(prompt_of_a_run_is_that_of_its_experiment),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

#include "tests/support/sample_run.h"

#include "tests/support/gguf_writer.h"
#include "tests/support/support.h"

#include "engine/base/file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char text[] =
    "lacuna: 1\n"
    "name: sample\n"
    "seed: 11\n"
    "models:\n"
    "  - {id: m, %s, context_tokens: 4096}\n"
    "generation: {max_tokens: %d, temperature: 0, samples: 1}\n"
    "prompt:\n"
    "  messages:\n"
    "    - {role: user, text: \"{{filler}}\\n\\nState the order number and the day.\"}\n"
    "  filler: {kind: prose}\n"
    "constraints:\n"
    "  - {id: order, kind: state, text: \"The order number is {{code}}.\",\n"
    "     vars: {code: {kind: digits, count: 5}}, value: \"{{code}}\"}\n"
    "  - {id: day, kind: state, text: \"The pickup day is {{day}}.\", value: \"{{day}}\",\n"
    "     vars: {day: {kind: choice, choices: [Monday, Tuesday, Friday]}}}\n"
    "placements:\n"
    "  - {id: order-moves, move: [order], depths: [start, middle, end], others: {day: 25%%}}\n"
    "lengths: {tokens: [%s]}\n"
    "repeats: %d\n"
    "arms: [placed, absent, short]\n";

static const char equal_text[] =
    "lacuna: 1\n"
    "name: equal\n"
    "seed: 3\n"
    "models: [{id: m, fixture: %s.json, context_tokens: 4096}]\n"
    "generation: {max_tokens: 40, temperature: 0.7, samples: 2}\n"
    "prompt:\n"
    "  messages: [{role: user, text: \"{{filler}}\\n\\nState both.\"}]\n"
    "  filler: {kind: prose}\n"
    "constraints:\n"
    "  - {id: order, kind: state, text: \"The order number is {{code}}.\",\n"
    "     vars: {code: {kind: digits, count: 5}}, value: \"{{code}}\"}\n"
    "  - {id: day, kind: state, text: \"The pickup day is {{day}}.\", value: \"{{day}}\",\n"
    "     vars: {day: {kind: choice, choices: [Monday, Tuesday, Friday]}}}\n"
    "placements:\n"
    "  - {id: a, move: [order], depths: [start, middle], others: {day: 25%%}}\n"
    "  - {id: b, move: [day], depths: [25%%], others: {order: middle}}\n"
    "lengths: {tokens: [160]}\n"
    "repeats: 3\n"
    "arms: [placed]\n";

// Of a run that was watched, and of no other.
static void assert_equal_evidence(struct arena *a, const char *left, const char *right) {
    const char *one = path_join(a, left, "evidence.jsonl");
    const char *other = path_join(a, right, "evidence.jsonl");
    assert_int_equal(file_exists(one), file_exists(other));
    if (!file_exists(one)) return;
    if (!str_equal(test_read(a, one), test_read(a, other)))
        fail_msg("evidence.jsonl: differs from that of %s", right);
}

static void write_text(struct arena *a, const char *folder, const char *name, const char *content) {
    test_write(path_join(a, folder, name), str_from(content));
}

const char *sample_experiment(struct arena *a, const char *folder, const char *name, int repeats,
                              const char *rules_head, const char *rules) {
    const char *model = arena_printf(a, "fixture: %s.json", name);
    write_text(a, folder, arena_printf(a, "%s.yaml", name),
               arena_printf(a, text, model, 40, "128, 192", repeats));
    write_text(
        a, folder, arena_printf(a, "%s.json", name),
        arena_printf(a, "{\"lacuna_fixture\": 1, %s, \"rules\": [%s]}\n", rules_head, rules));
    return arena_printf(a, "%s/%s.yaml", folder, name);
}

const char *sample_equal_experiment(struct arena *a, const char *folder, const char *rules) {
    write_text(a, folder, "equal.yaml", arena_printf(a, equal_text, rules));
    return path_join(a, folder, "equal.yaml");
}

const char *sample_local_experiment(struct arena *a, const char *folder, const char *name,
                                    int repeats) {
    const char *file = arena_printf(a, "%s.gguf", name);
    tiny_model_write(path_join(a, folder, file), &(struct tiny_model_options){.seed = 5});
    const char *model = arena_printf(a, "path: %s, backend: cpu", file);
    write_text(a, folder, arena_printf(a, "%s.yaml", name),
               arena_printf(a, text, model, 12, "400, 560", repeats));
    return arena_printf(a, "%s/%s.yaml", folder, name);
}

int sample_run_report(const char *experiment, const char *folder, bool retry_errors,
                      struct run_result *result, struct err *e) {
    struct arena *a = arena_create("run");
    struct experiment *x;
    struct run_options options = {
        .folder = folder, .runs_folder = "runs", .threads = 1, .retry_errors = retry_errors};
    struct buf terminal = {0};
    int exit_code, failed = experiment_load(experiment, NULL, a, &x, e);
    if (failed == 0) {
        failed = run_experiment(x, &options, a, result, e);
        result->folder = folder;
        experiment_close(x);
    }
    if (failed == 0 && !result->interrupted)
        failed = run_report(folder, NULL, a, &exit_code, &terminal, e);
    buf_free(&terminal);
    arena_destroy(a);
    return failed;
}

int sample_run_child(const char *experiment, const char *folder) {
    struct run_result result;
    struct err e = {0};
    if (sample_run_report(experiment, folder, false, &result, &e) == 0) return 0;
    fprintf(stderr, "%s\n", e.text);
    return 1;
}

void assert_equal_runs(const char *left, const char *right) {
    static const char *const names[] = {"identity.json",      "plan.jsonl",      "trials.jsonl",
                                        "inputs/index.jsonl", "inputs/pack.zst", "resolved.json",
                                        "experiment.yaml",    "report.html",     "report.md",
                                        "results.csv",        "junit.xml"};
    struct arena *a = arena_create("test");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct str l = test_read(a, path_join(a, left, names[i]));
        struct str r = test_read(a, path_join(a, right, names[i]));
        if (!str_equal(l, r)) fail_msg("%s: differs from that of %s", names[i], right);
    }
    assert_equal_evidence(a, left, right);
    char **names_left;
    size_t count;
    struct err e = {0};
    ASSERT_OK(file_list(path_join(a, right, "pending"), a, &names_left, &count, &e), e);
    assert_int_equal(count, 0);
    arena_destroy(a);
}

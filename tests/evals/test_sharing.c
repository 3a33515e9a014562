// What the plan says is shared is shared, and memory changes neither that nor a byte of the record.
#include "tests/support/fast_folder.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/log.h"
#include "engine/walk.h"
#include "evals/run.h"
#include "evals/run_setup.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 576, PROMPTS = WALK_IN_FLIGHT };

static struct arena *arena;

static const char *run(const char *name, uint64_t memory_bytes, struct err *e) {
    static const char *const set[] = {"repeats=3", "generation.samples=2",
                                      "generation.temperature=0.8", "gates=[]"};
    const struct experiment_overrides overrides = {.set = set, .set_count = 4, .limit = -1};
    const char *folder = path_join(arena, fast_folder(), name);
    const struct run_options options = {
        .folder = folder, .runs_folder = "runs", .threads = 1, .memory_bytes = memory_bytes};
    struct experiment *x;
    struct run_result result;
    ASSERT_OK(experiment_load(test_data(arena, "../configs/known-subjects.yaml"), &overrides, arena,
                              &x, e),
              *e);
    int failed = run_experiment(x, &options, arena, &result, e);
    experiment_close(x);
    if (failed != 0) return NULL;
    assert_int_equal(result.done, result.planned);
    return folder;
}

static struct str file_of(const char *folder, const char *name) {
    struct str text;
    struct err e = {0};
    ASSERT_OK(file_read(path_join(arena, folder, name), 1 << 24, arena, &text, &e), e);
    return text;
}

static json_t *next_line(const char **at) {
    const char *end = strchr(*at, '\n');
    if (end == NULL) return NULL;
    json_t *value;
    struct err e = {0};
    ASSERT_OK(json_parse((struct str){*at, (size_t)(end - *at)}, "line", &value, &e), e);
    *at = end + 1;
    return value;
}

static json_int_t integer(const json_t *o, const char *key) {
    return json_integer_value(json_object_get(o, key));
}

// Timings by trial number against the plan: forecast and fact. The last token of a prompt is always
// computed, also when it is equal to the one before.
static void assert_as_planned(const char *folder) {
    struct err e = {0};
    struct record *r;
    ASSERT_OK(record_open(folder, arena, &r, &e), e);
    int64_t computed = 0, forecast = 0, fact = 0;
    const char *at = file_of(folder, "timings.jsonl").p;
    for (json_t *line; (line = next_line(&at)) != NULL; json_decref(line)) {
        if (json_object_get(line, "same_as") != NULL) continue;
        const struct record_trial *t = &r->trials[integer(line, "trial")];
        forecast += t->shared_tokens < t->prompt_tokens ? t->shared_tokens : t->prompt_tokens - 1;
        fact += integer(line, "shared_tokens");
        computed++;
    }
    assert_true(computed > 100 && fact > 0);
    assert_int_equal(fact, forecast);
    record_close(r);
}

// Bytes beside the weights with which one prompt and its reply fit, and those of a page.
static uint64_t least_bytes(uint64_t *page) {
    struct err e = {0};
    struct model *m;
    struct backend *b;
    const struct backend_options cpu = {.name = "cpu", .threads = 1};
    struct session_options o = {.context_tokens = CONTEXT};
    struct session_plan p;
    ASSERT_OK(model_open(test_data(arena, "engine/golden/subject-full.gguf"), arena, &m, &e), e);
    ASSERT_OK(backend_open(&cpu, &b, &e), e);
    walk_session_options(&o, CONTEXT, PROMPTS);
    o.pages_most = 0;
    o.watched = PROMPTS; // the span of one constraint each
    ASSERT_OK(session_plan_make(b, m, &o, &p, &e), e);
    backend_close(b);
    model_close(m);
    *page = p.page_bytes;
    return p.total_bytes - p.weights_bytes;
}

static void test_record_at_any_budget(void **state) {
    (void)state;
    struct err e = {0};
    uint64_t page, least = least_bytes(&page);
    const char *roomy = run("roomy", 0, &e);
    if (roomy == NULL) fail_msg("%s", e.text);
    assert_as_planned(roomy);
    static const unsigned more[] = {0, 1, 2, 5, 20};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        const char *folder =
            run(arena_printf(arena, "budget-%u", more[i]), least + more[i] * page, &e);
        if (folder == NULL) fail_msg("%u pages above the least: %s", more[i], e.text);
        for (int f = 0; f < 2; f++) {
            const char *name = f == 0 ? "trials.jsonl" : "evidence.jsonl";
            assert_true(str_equal(file_of(roomy, name), file_of(folder, name)));
        }
        assert_as_planned(folder);
    }
    assert_null(run("too-little", least - 1, &e));
    assert_int_equal(e.code, ERR_MEMORY);
    assert_non_null(strstr(e.text, "set evidence to off"));
}

// What `plan` says of memory without loading is what a run then takes.
static void test_forecast_of_memory(void **state) {
    (void)state;
    struct err e = {0};
    uint64_t page, least = least_bytes(&page);
    const struct experiment_overrides none = {.limit = -1};
    struct experiment *x;
    ASSERT_OK(
        experiment_load(test_data(arena, "../configs/known-subjects.yaml"), &none, arena, &x, &e),
        e);
    const struct {
        uint64_t bound;
        int replies;
    } cases[] = {{least - 1, 0},        {least, 1},  {least + page, 1}, {least + 2 * page, 2},
                 {least + 7 * page, 4}, {0, PROMPTS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct run_options options = {.threads = 1, .memory_bytes = cases[i].bound};
        struct provider *p;
        ASSERT_OK(run_provider_open(x, 0, &options, true, 1, &p, &e), e);
        const struct provider_memory *m = &p->can.memory;
        assert_true(m->least_bytes == least && m->weights_bytes > 0);
        assert_int_equal(m->replies, cases[i].replies);
        assert_true((m->planned_bytes == 0) == (cases[i].replies == 0));
        if (cases[i].bound != 0) assert_true(m->planned_bytes <= cases[i].bound);
        p->ops->close(p);
    }
    experiment_close(x);
}

int main(void) {
    log_set_level(LOG_QUIET);
    arena = arena_create("test");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_record_at_any_budget),
                                       cmocka_unit_test(test_forecast_of_memory)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_destroy(arena);
    return failed;
}

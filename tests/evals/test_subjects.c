// The whole harness on trained models whose abilities are known (tests/oracle/train_subjects.py),
// by the shipped experiment: `full` is found at its ceiling at every depth; `window` is found blind
// exactly where its two layers of window 128 cannot see the code, at its ceiling within one window,
// and the report says which places these are.
#include "tests/support/fast_folder.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/log.h"
#include "evals/run.h"
#include "evals/run_setup.h"
#include "evals/summarize.h"

#include <stdio.h>
#include <string.h>

enum { WINDOW = 128, REACH = 2 * (WINDOW - 1) };

struct subjects {
    struct arena *a;
    struct record *r;
    struct experiment *x;
    struct summary s;
    struct str markdown;
};

static void assert_sound(const char *folder) {
    struct buf findings = {0};
    struct err e = {0};
    bool sound;
    ASSERT_OK(record_verify(folder, true, &findings, &sound, &e), e);
    if (!sound) fail_msg("%s", findings.p);
    buf_free(&findings);
}

// The shipped experiment with some keys changed: run, verified, reported, summed up.
static struct subjects run_subjects(const char *name, const char *const *set, int set_count) {
    struct subjects t = {.a = arena_create("test")};
    struct err e = {0};
    const struct experiment_overrides overrides = {.set = set, .set_count = set_count, .limit = -1};
    const char *folder = path_join(t.a, fast_folder(), name);
    const struct run_options options = {.folder = folder, .runs_folder = "runs", .threads = 1};
    struct run_result result;
    struct experiment *x;
    struct buf terminal = {0};
    int exit_code;
    ASSERT_OK(
        experiment_load(test_data(t.a, "../configs/known-subjects.yaml"), &overrides, t.a, &x, &e),
        e);
    ASSERT_OK(run_experiment(x, &options, t.a, &result, &e), e);
    experiment_close(x);
    assert_int_equal(result.done, result.planned);
    assert_sound(folder);
    ASSERT_OK(run_report(folder, NULL, t.a, &exit_code, &terminal, &e), e);
    buf_free(&terminal);
    assert_int_equal(exit_code, 0);
    ASSERT_OK(file_read(path_join(t.a, folder, "report.md"), 1 << 20, t.a, &t.markdown, &e), e);
    ASSERT_OK(record_open(folder, t.a, &t.r, &e), e);
    ASSERT_OK(run_recorded_experiment(t.r, folder, t.a, &t.x, &e), e);
    ASSERT_OK(summarize(t.r, t.x, t.a, &t.s, &e), e);
    assert_int_equal(t.s.ok, t.s.planned);
    return t;
}

static void close_subjects(struct subjects *t) {
    experiment_close(t->x);
    record_close(t->r);
    arena_destroy(t->a);
}

static const struct summary_table *table_of(const struct subjects *t, const char *model) {
    for (int i = 0; i < t->s.table_count; i++)
        if (strcmp(t->s.tables[i].model, model) == 0 &&
            strcmp(t->s.tables[i].constraint, "code") == 0)
            return &t->s.tables[i];
    fail_msg("no table of %s", model);
    return NULL;
}

static void assert_ceiling(const char *what, const struct summary_rate *r) {
    if (r->n == 0 || r->met != r->n || r->low < 0.9)
        fail_msg("%s: %d of %d, lower bound %.3f", what, r->met, r->n, r->low);
}

static void assert_full_everywhere(const struct subjects *t) {
    const struct summary_table *table = table_of(t, "full");
    assert_true(table->cell_count > 0);
    for (int i = 0; i < table->cell_count; i++) {
        const struct summary_cell *c = &table->cells[i];
        assert_ceiling(arena_printf(t->a, "full at %s of %d", t->s.places[c->column].place,
                                    t->s.lengths[c->length]),
                       &c->rate);
        assert_true(c->has_lift && c->lift == 1);
    }
    assert_ceiling("full, short", &table->brief);
    for (int i = 0; i < table->remark_count; i++) // nothing to remark but how it stands out
        assert_int_equal(strncmp(table->remarks[i], "Salient: ", 9), 0);
    for (int i = 0; i < t->s.contrast_count; i++) {
        const struct summary_contrast *c = &t->s.contrasts[i];
        if (strcmp(c->model, "full") == 0 && c->defined) assert_true(c->effect == 0);
    }
}

// By the trials themselves: distances of the code's first and last byte from the prompt's last.
static void assert_window_by_distance(const struct subjects *t) {
    int n[3] = {0}, met[3] = {0};
    for (int64_t i = 0; i < t->r->trial_count; i++) {
        const struct record_trial *p = &t->r->trials[i];
        if (strcmp(p->model, "window") != 0 || strcmp(p->arm, "placed") != 0) continue;
        assert_int_equal(p->span_count, 1);
        int first = (int)p->prompt_tokens - 1 - (int)p->spans[0].first_token;
        int last = first - (int)p->spans[0].tokens + 1;
        int where = first < WINDOW ? 0 : last <= REACH ? 1 : 2;
        n[where]++;
        met[where] += t->r->outcomes[i]->verdicts[0].verdict == VERDICT_MET;
    }
    printf("window: %d of %d directly, %d of %d by way of tokens between, %d of %d out of reach\n",
           met[0], n[0], met[1], n[1], met[2], n[2]);
    for (int i = 0; i < 3; i++) assert_true(n[i] >= 36);
    assert_true(met[0] * 100 >= n[0] * 99);
    assert_true(met[1] * 4 > n[1] && met[1] < n[1]); // a curve, not a cliff
    assert_int_equal(met[2], 0);
}

// By the report: cells that are wholly out of reach, wholly within one window, or between.
static void assert_window_by_cell(const struct subjects *t) {
    static const struct {
        int length;
        const char *place;
        bool blind;
    } expected[] = {{128, "start", false}, {128, "middle", false}, {128, "end", false},
                    {256, "90%", false},   {256, "end", false},    {512, "start", true},
                    {512, "40%", true},    {512, "90%", false},    {512, "end", false}};
    const struct summary_table *table = table_of(t, "window");
    int seen = 0;
    for (int i = 0; i < table->cell_count; i++)
        for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
            const struct summary_cell *c = &table->cells[i];
            if (t->s.lengths[c->length] != expected[k].length) continue;
            if (strcmp(t->s.places[c->column].place, expected[k].place) != 0) continue;
            seen++;
            if (!expected[k].blind) {
                assert_ceiling(expected[k].place, &c->rate);
                continue;
            }
            assert_int_equal(c->rate.met, 0);
            assert_true(c->rate.high < 0.1 && c->lift == 0);
        }
    assert_int_equal(seen, sizeof expected / sizeof *expected);
    assert_ceiling("window, short", &table->brief);
    assert_true(table->remark_count >= 1);
    for (int i = 1; i < table->remark_count; i++)
        assert_int_equal(strncmp(table->remarks[i], "Salient: ", 9), 0);
    static const char *const words[] = {"Out of the window's reach: code at start, 40%",
                                        "depends on the last 255 tokens of its prompt",
                                        "code at start, 40%, middle"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(table->remarks[0], words[i]) == NULL) fail_msg("%s", table->remarks[0]);
    if (strstr(t->markdown.p, "Out of the window") == NULL) fail_msg("%s", t->markdown.p);
}

static void test_known_subjects(void **state) {
    (void)state;
    static const char *const set[] = {"repeats=36",
                                      "placements[0].depths=[start,40%,middle,75%,90%,end]"};
    struct subjects t = run_subjects("known", set, 2);
    assert_full_everywhere(&t);
    assert_window_by_distance(&t);
    assert_window_by_cell(&t);
    close_subjects(&t);
}

// What was learnt does not hang on the filler.
static void test_prose(void **state) {
    (void)state;
    static const char *const set[] = {"repeats=36", "prompt.filler.kind=prose",
                                      "lengths.tokens=[512]",
                                      "placements[0].depths=[start,25%,middle,75%,end]"};
    struct subjects t = run_subjects("prose", set, 4);
    assert_full_everywhere(&t);
    close_subjects(&t);
}

int main(void) {
    log_set_level(LOG_QUIET);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_subjects),
                                       cmocka_unit_test(test_prose)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Gates on lift, middle gap, violations and baselines: what they measure, on which side of the
// bound they fall, and what they promise before a run.
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "evals/compare.h"
#include "evals/gates.h"
#include "evals/stats.h"
#include "evals/summarize.h"
#include "tests/support/compared_run.h"
#include "tests/support/fast_folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double ends = 0.9, middle = 0.9, absent = 0.1;

static double rates(const struct record_trial *t) {
    if (strcmp(t->arm, "absent") == 0) return absent;
    if (strcmp(t->arm, "short") == 0) return 1;
    return strcmp(t->depth, "50.000") == 0 ? middle : ends;
}

static struct experiment_gate gate_on(const char *metric) {
    return (struct experiment_gate){
        .id = "g",
        .metric = metric,
        .of = 0,
        .where = {.model = -1, .length_tokens = -1, .placement = -1, .arm = ARM_PLACED},
        .pool_length = true,
        .pool_placement = true,
        .pool_depth = strcmp(metric, "middle_gap") != 0};
}

static void open_run(struct simulated_run *s, struct experiment_gate *g, int repeats,
                     uint64_t seed) {
    simulated_open(s, rates);
    s->x.gates = g;
    s->x.gate_count = 1;
    s->x.repeats = repeats;
    compared_run(s, seed, "w");
}

static const struct summary_gate *judge(struct simulated_run *s) {
    static struct summary out;
    struct err e = {0};
    ASSERT_OK(summarize(&s->r, &s->x, s->arena, &out, &e), e);
    assert_int_equal(out.gate_count, 1);
    return &out.gates[0];
}

static bool met(const struct simulated_run *s, int64_t i) {
    return s->r.outcomes[i]->verdicts[0].verdict == VERDICT_MET;
}

// Per repeat by hand: the mean of placed minus the same length's absent trial.
static void lift_is_placed_minus_absent(void **state) {
    (void)state;
    struct simulated_run s;
    struct experiment_gate g = gate_on("lift");
    g.has_at_least = true;
    g.at_least = 0.2;
    open_run(&s, &g, 15, 3);
    double d[15] = {0}, sum = 0;
    for (int64_t i = 0; i < s.r.trial_count; i++) {
        const struct record_trial *t = &s.r.trials[i];
        if (strcmp(t->arm, "placed") == 0) d[t->repeat] += met(&s, i) / 6.0;
        if (strcmp(t->arm, "absent") == 0) d[t->repeat] -= met(&s, i) / 2.0;
    }
    for (int r = 0; r < 15; r++) sum += d[r];
    const struct summary_gate *j = judge(&s);
    struct stats_interval want = stats_paired(d, 15);
    assert_true(fabs(j->value - sum / 15) < 1e-12);
    assert_true(fabs(j->low - want.low) < 1e-12 && fabs(j->high - want.high) < 1e-12);
    assert_int_equal(j->result, GATE_PASSED);
    g.at_least = 0.99;
    assert_int_equal(judge(&s)->result, GATE_FAILED);
    g.at_least = (j->low + j->high) / 2;
    assert_int_equal(judge(&s)->result, GATE_UNDECIDED);
    simulated_close(&s);
}

static void gap_is_ends_minus_middle(void **state) {
    (void)state;
    struct simulated_run s;
    struct experiment_gate g = gate_on("middle_gap");
    g.has_at_most = true;
    g.at_most = 0.2;
    middle = 0.2;
    open_run(&s, &g, 30, 4);
    middle = 0.9;
    double d[30] = {0}, sum = 0;
    for (int64_t i = 0; i < s.r.trial_count; i++) {
        const struct record_trial *t = &s.r.trials[i];
        if (strcmp(t->arm, "placed") != 0) continue;
        double weight = strcmp(t->depth, "50.000") == 0 ? -0.5 : 0.25;
        d[t->repeat] += weight * met(&s, i);
    }
    for (int r = 0; r < 30; r++) sum += d[r];
    const struct summary_gate *j = judge(&s);
    assert_true(fabs(j->value - sum / 30) < 1e-12);
    assert_int_equal(j->result, GATE_FAILED);
    assert_non_null(strstr(j->text, "order: middle gap at most 0.2"));
    g.at_most = 1;
    assert_int_equal(judge(&s)->result, GATE_PASSED);
    simulated_close(&s);
}

static void few_repeats_decide_no_difference(void **state) {
    (void)state;
    struct simulated_run s;
    struct experiment_gate g = gate_on("middle_gap");
    g.has_at_most = true;
    g.at_most = 1;
    open_run(&s, &g, 9, 4);
    const struct summary_gate *j = judge(&s);
    assert_int_equal(j->result, GATE_UNDECIDED);
    assert_non_null(strstr(j->why, "underpowered"));
    simulated_close(&s);
}

static void violations_are_counted(void **state) {
    (void)state;
    struct simulated_run s;
    struct experiment_gate g = gate_on("violated_rate");
    g.of = 1;
    g.has_at_most = true;
    g.at_most = 0.2;
    open_run(&s, &g, 20, 5);
    assert_int_equal(judge(&s)->result, GATE_PASSED);
    int violated = 0;
    for (int64_t i = 0; i < s.r.trial_count; i++) {
        if (strcmp(s.r.trials[i].arm, "placed") != 0 || i % 2 == 0) continue;
        simulated_verdict(&s, i, 1)->verdict = VERDICT_VIOLATED;
        violated++;
    }
    const struct summary_gate *j = judge(&s);
    assert_int_equal(j->result, GATE_FAILED);
    assert_string_equal(j->measured, arena_printf(s.arena, "%d/120 violated", violated));
    simulated_close(&s);
}

// Writes the run's own baseline and points its gate there.
static void take_baseline(struct simulated_run *s, struct experiment_gate *g) {
    struct baseline b;
    struct buf text = {0};
    struct err e = {0};
    compared_side(s, &b);
    ASSERT_OK(baseline_write(&b, &text, &e), e);
    baseline_close(&b);
    g->baseline = path_join(test_arena, fast_folder(), "b.jsonl");
    test_write(g->baseline, buf_str(&text));
    buf_free(&text);
}

static void regression_is_the_drop(void **state) {
    (void)state;
    struct simulated_run good, now;
    struct experiment_gate g = gate_on("regression");
    g.has_at_most = true;
    g.at_most = 0.1;
    g.baseline_name = "b.jsonl";
    g.baseline = path_join(test_arena, fast_folder(), "none.jsonl");
    open_run(&good, &g, 40, 6);
    const struct summary_gate *j = judge(&good);
    assert_int_equal(j->result, GATE_UNDECIDED);
    assert_non_null(strstr(j->why, "there is no baseline b.jsonl"));
    take_baseline(&good, &g);
    j = judge(&good);
    assert_int_equal(j->result, GATE_PASSED);
    assert_string_equal(j->detail, "");
    ends = middle = 0.5;
    open_run(&now, &g, 40, 7);
    ends = middle = 0.9;
    j = judge(&now);
    assert_int_equal(j->result, GATE_FAILED);
    assert_true(j->value > 0.3 && j->low > 0.1);
    assert_non_null(strstr(j->detail, "lost toy/placed/"));
    assert_non_null(strstr(j->detail, "order: omitted, was met"));
    g.at_most = 0.9;
    assert_int_equal(judge(&now)->result, GATE_PASSED);
    simulated_close(&now);
    // another model has to be meant
    simulated_open(&now, rates);
    now.x.gates = &g;
    now.x.gate_count = 1;
    now.x.repeats = 40;
    compared_run(&now, 6, "other weights");
    j = judge(&now);
    assert_int_equal(j->result, GATE_UNDECIDED);
    assert_non_null(strstr(j->why, "allow: [model]"));
    const char *allow[] = {"model"};
    g.allow = allow;
    g.allow_count = 1;
    assert_int_equal(judge(&now)->result, GATE_PASSED);
    simulated_close(&now);
    simulated_close(&good);
}

static void changed_replies_are_exact(void **state) {
    (void)state;
    struct simulated_run s;
    struct experiment_gate g = gate_on("changed_replies");
    g.of = -1;
    g.pool_length = g.pool_placement = g.pool_depth = false;
    g.has_at_most = true;
    g.baseline_name = "b.jsonl";
    open_run(&s, &g, 3, 8); // exact, so three repeats are enough
    take_baseline(&s, &g);
    const struct summary_gate *j = judge(&s);
    assert_int_equal(j->result, GATE_PASSED);
    assert_string_equal(j->measured, "0/18 changed");
    s.r.outcomes[2]->reply = STR("other words, same verdict");
    j = judge(&s);
    assert_int_equal(j->result, GATE_FAILED);
    assert_string_equal(j->why, "1 of 18 replies changed");
    assert_string_equal(j->detail, arena_printf(s.arena, "changed %s\n", s.r.trials[2].key));
    s.r.outcomes[2]->status = STATUS_ERROR; // no reply, no verdict
    j = judge(&s);
    assert_int_equal(j->result, GATE_UNDECIDED);
    simulated_close(&s);
}

// What the design can detect, in words that stay true where it can detect nothing.
static void detectable_differences(void **state) {
    (void)state;
    for (int repeats = 1; repeats <= 40; repeats++) {
        struct simulated_run s;
        struct design_outlook out;
        struct err e = {0};
        simulated_open(&s, rates);
        s.x.repeats = repeats;
        simulated_plan(&s);
        ASSERT_OK(gates_plan(&s.x, s.r.trials, s.r.trial_count, s.arena, &out, &e), e);
        assert_int_equal(out.repeats, repeats);
        bool none = strstr(out.sentence, "no difference between two places, however large") != NULL;
        assert_true(none == (out.detectable > 1));
        assert_true(none == (repeats < 6)); // five repeats: p is 1/16 at the least
        if (!none)
            assert_non_null(strstr(out.sentence, arena_printf(s.arena, "is %.0f points, at best",
                                                              100 * out.detectable)));
        simulated_close(&s);
    }
}

static const struct gate_outlook *look(struct simulated_run *s, int code, struct err *e) {
    static struct design_outlook out;
    int result = gates_plan(&s->x, s->r.trials, s->r.trial_count, s->arena, &out, e);
    assert_int_equal(result, code);
    return &out.gates[0];
}

// What cannot pass on perfect data is an error, with the repeats that it takes; these do pass.
static void impossible_differences(void **state) {
    (void)state;
    static const struct {
        const char *metric;
        double bound;
    } cases[] = {{"middle_gap", 0.05}, {"regression", 0.05}, {"lift", 0.95}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct simulated_run s;
        struct experiment_gate g = gate_on(cases[i].metric);
        bool lift = strcmp(cases[i].metric, "lift") == 0;
        g.has_at_least = lift;
        g.has_at_most = !lift;
        g.at_least = g.at_most = cases[i].bound;
        if (strcmp(g.metric, "regression") == 0) {
            g.baseline = path_join(test_arena, fast_folder(), "none.jsonl");
            g.baseline_name = "none.jsonl";
        }
        open_run(&s, &g, 20, 1);
        struct err e = {0};
        assert_string_equal(look(&s, -1, &e)->id, "g");
        const char *takes = strstr(e.text, "it takes ");
        assert_non_null(takes);
        int needed = (int)strtol(takes + 9, NULL, 10);
        assert_true(needed > 20);
        simulated_close(&s);
        open_run(&s, &g, needed, 1);
        e = (struct err){0};
        const struct gate_outlook *o = look(&s, 0, &e);
        assert_true(o->possible);
        assert_int_equal(o->repeats, needed);
        simulated_close(&s);
    }
}

// The forecast, against runs where there is no gap and one repeat in ten differs by chance.
static void the_forecast_holds(void **state) {
    (void)state;
    struct simulated_run s;
    struct experiment_gate g = gate_on("middle_gap");
    g.has_at_most = true;
    g.at_most = 0.1;
    open_run(&s, &g, 40, 1);
    struct err e = {0};
    double forecast = look(&s, 0, &e)->pass_probability;
    uint64_t r = 88172645463325252u;
    int passed = 0;
    enum { RUNS = 4000 };
    for (int run = 0; run < RUNS; run++) {
        double d[40];
        for (int i = 0; i < 40; i++) {
            r ^= r << 13;
            r ^= r >> 7;
            r ^= r << 17;
            double u = (double)(r >> 11) / 9007199254740992.0;
            d[i] = u < 0.05 ? 1 : u < 0.1 ? -1 : 0;
        }
        passed += stats_paired_contrast(d, 40, 1.5).high <= 0.1;
    }
    assert_true(forecast > 0.1 && forecast < 0.95);
    assert_true(fabs(forecast - (double)passed / RUNS) <
                4 * sqrt(forecast * (1 - forecast) / RUNS));
    simulated_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lift_is_placed_minus_absent),
        cmocka_unit_test(gap_is_ends_minus_middle),
        cmocka_unit_test(few_repeats_decide_no_difference),
        cmocka_unit_test(violations_are_counted),
        cmocka_unit_test_setup_teardown(regression_is_the_drop, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(changed_replies_are_exact, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(impossible_differences, test_arena_open, test_arena_close),
        cmocka_unit_test(detectable_differences),
        cmocka_unit_test(the_forecast_holds),
    };
    return cmocka_run_group_tests_name("gates", tests, NULL, NULL);
}

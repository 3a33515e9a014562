// A model in a few numbers, against the same numbers computed here in another way, on simulated
// runs.
#include "tests/support/support.h"

#include "evals/stats.h"
#include "evals/summarize.h"
#include "tests/support/simulated_run.h"

#include <math.h>
#include <string.h>

static double falls_with_length(const struct record_trial *t) {
    if (strcmp(t->arm, "placed") != 0) return 0.5;
    double rate = t->length > 1000 ? 0.5 : 1;
    return strcmp(t->depth, "50.000") == 0 ? rate - 0.3 : rate;
}
static double always(const struct record_trial *t) {
    (void)t;
    return 1;
}
static double seldom(const struct record_trial *t) {
    (void)t;
    return 0.1;
}

static const struct summary_aggregate *take(struct simulated_run *s, struct summary *out) {
    struct err e = {0};
    s->x.effective_level = 0.85;
    ASSERT_OK(summarize(&s->r, &s->x, s->arena, out, &e), e);
    assert_int_equal(out->aggregate_count, 2);
    assert_string_equal(out->aggregates[0].constraint, "order");
    assert_string_equal(out->aggregates[1].constraint, "all");
    return &out->aggregates[0];
}

// Share of order's met trials among those whose key has this part.
static double share(const struct simulated_run *s, const char *part) {
    int n = 0, met = 0;
    for (int64_t i = 0; i < s->r.trial_count; i++) {
        if (strstr(s->r.trials[i].key, part) == NULL) continue;
        n++;
        met += s->r.outcomes[i]->verdicts[0].verdict == VERDICT_MET;
    }
    assert_true(n > 0);
    return (double)met / n;
}

static void assert_estimate(const struct summary_estimate *e, double value) {
    assert_true(e->defined && e->has_interval);
    if (fabs(e->value - value) > 1e-12) fail_msg("%.12g, expected %.12g", e->value, value);
    assert_true(e->low < e->value + 1e-12 && e->value - 1e-12 < e->high);
}

static void over_depth(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct simulated_run s;
        struct summary out;
        simulated_open(&s, falls_with_length);
        s.places[1].depth = 50000;
        s.places[3].depth = 60000; // start, middle, end, 60 %
        s.rows[0].place_count = 4;
        simulated_plan(&s);
        simulated_answer(&s, seed);
        const struct summary_aggregate *g = take(&s, &out);
        double start = share(&s, "@start"), middle = share(&s, "@middle"), end = share(&s, "@end");
        assert_estimate(&g->middle_gap, (start + end) / 2 - middle);
        assert_estimate(&g->primacy, start - middle);
        assert_estimate(&g->recency, end - middle);
        double later = share(&s, "@60%");
        double area =
            0.5 * (start + middle) / 2 + 0.1 * (middle + later) / 2 + 0.4 * (later + end) / 2;
        assert_estimate(&g->area, area);
        assert_true(g->area_from == 0 && g->area_to == 100000);
        assert_int_equal(g->rate.n, 20 * 2 * 4);
        assert_int_equal(g->sample_count, 0);
        simulated_close(&s);
    }
}

static void effective_length(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    simulated_open(&s, always);
    s.x.repeats = 40; // 40 of 40: the lower bound is 0.91
    simulated_plan(&s);
    simulated_answer(&s, 1);
    const struct summary_aggregate *g = take(&s, &out);
    assert_string_equal(g->effective, "at least 1024 tokens, the longest that ran");
    // Half of the longer prompts fail at each place.
    for (int64_t i = 0; i < s.r.trial_count; i++)
        if (s.r.trials[i].length == 1024 && s.r.trials[i].repeat % 2)
            simulated_verdict(&s, i, 0)->verdict = VERDICT_OMITTED;
    g = take(&s, &out);
    assert_string_equal(g->effective, "512 tokens");
    for (int64_t i = 0; i < s.r.trial_count; i++)
        if (s.r.trials[i].repeat % 10) simulated_verdict(&s, i, 0)->verdict = VERDICT_MET;
    g = take(&s, &out);
    // what is odd is met again
    assert_string_equal(g->effective, "at least 1024 tokens, the longest that ran");
    for (int64_t i = 0; i < s.r.trial_count; i++)
        if (s.r.trials[i].length == 1024 && s.r.trials[i].repeat < 5)
            simulated_verdict(&s, i, 0)->verdict = VERDICT_OMITTED;
    g = take(&s, &out);
    assert_string_equal(g->effective, "512 tokens shown; 1024 are not excluded");
    for (int64_t i = 0; i < s.r.trial_count; i++)
        simulated_verdict(&s, i, 0)->verdict =
            s.r.trials[i].repeat < 5 ? VERDICT_OMITTED : VERDICT_MET;
    g = take(&s, &out);
    assert_string_equal(g->effective, "none shown; 1024 tokens are not excluded");
    simulated_close(&s);
    simulated_open(&s, seldom);
    simulated_plan(&s);
    simulated_answer(&s, 1);
    assert_string_equal(take(&s, &out)->effective, "below 512 tokens");
    simulated_close(&s);
    simulated_open(&s, always);
    s.x.repeats = 9;
    simulated_plan(&s);
    simulated_answer(&s, 1);
    g = take(&s, &out);
    assert_string_equal(g->effective, "underpowered");
    assert_true(g->middle_gap.defined && !g->middle_gap.has_interval);
    simulated_close(&s);
}

// Of the four samples of repeat r, r % 5 are met, everywhere.
static void from_samples(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    simulated_open(&s, always);
    s.x.generation.samples = 4;
    simulated_plan(&s);
    simulated_answer(&s, 1);
    for (int64_t i = 0; i < s.r.trial_count; i++)
        if (s.r.trials[i].sample >= s.r.trials[i].repeat % 5)
            simulated_verdict(&s, i, 0)->verdict = VERDICT_OMITTED;
    const struct summary_aggregate *g = take(&s, &out);
    assert_int_equal(g->sample_count, 2);
    assert_int_equal(g->samples[0].k, 2);
    assert_int_equal(g->samples[1].k, 4);
    // Pairs of four: 1, 3 and 6 of 6 for two, three and four met.
    assert_estimate(&g->samples[0].all, (1.0 / 6 + 3.0 / 6 + 1) / 5);
    assert_estimate(&g->samples[0].any, (3.0 / 6 + 5.0 / 6 + 1 + 1) / 5);
    assert_estimate(&g->samples[1].all, 1.0 / 5);
    assert_estimate(&g->samples[1].any, 4.0 / 5);
    // All trials of a repeat agree: the interval is that of 20 repeats.
    struct stats_interval wilson = stats_wilson(4, 20);
    assert_true(g->samples[1].all.low <= wilson.low + 1e-9);
    simulated_close(&s);
}

static void models_count_their_trials(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    struct err e = {0};
    simulated_open(&s, always);
    s.models[1] = (struct experiment_model){.id = "other"};
    s.x.model_count = 2;
    simulated_plan(&s);
    simulated_answer(&s, 1);
    int64_t last = s.r.trial_count - 1;
    s.r.outcomes[last]->status = STATUS_INVALID;
    s.r.outcomes[last]->reason_code = "placement";
    simulated_verdict(&s, last - 1, 0)->verdict = VERDICT_UNSCORED;
    simulated_verdict(&s, last - 1, 0)->reason = "cut";
    s.r.outcomes[0] = NULL;
    ASSERT_OK(summarize(&s.r, &s.x, s.arena, &out, &e), e);
    assert_int_equal(out.models[0].planned, out.models[1].planned);
    assert_int_equal(out.models[0].done, out.models[0].planned - 1);
    assert_int_equal(out.models[0].unscored + out.models[0].invalid, 0);
    assert_int_equal(out.models[1].invalid, 1);
    assert_int_equal(out.models[1].unscored, 1);
    assert_int_equal(out.models[1].ok, out.models[1].planned - 1);
    assert_int_equal(out.aggregate_count, 4);
    simulated_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_depth),
        cmocka_unit_test(effective_length),
        cmocka_unit_test(from_samples),
        cmocka_unit_test(models_count_their_trials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

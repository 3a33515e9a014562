// The part of the studies that goes through whole reports and comparisons.
#include "tests/support/study.h"

#include "evals/compare.h"
#include "evals/gates.h"
#include "evals/summarize.h"
#include "evals/tally.h"
#include "tests/support/compared_run.h"
#include "tests/support/support.h"

#include <string.h>

static struct { double ends, middle, absent; } study_rates;

static double planted(const struct record_trial *t) {
    if (strcmp(t->arm, "absent") == 0) return study_rates.absent;
    return strcmp(t->depth, "50.000") == 0 ? study_rates.middle : study_rates.ends;
}

static void plant(double rate) {
    study_rates.ends = study_rates.middle = rate;
}

static void open_run(struct simulated_run *s, int repeats, double agreement, uint64_t luck) {
    simulated_open(s, planted);
    s->agreement = agreement;
    s->luck = luck;
    s->x.repeats = repeats;
    s->x.length_count = 1;
    s->x.arms[ARM_ABSENT] = s->x.arms[ARM_SHORT] = false;
    s->x.primary = (struct experiment_primary){true, "met_rate", 0, "middle_against_ends"};
}

// A report claims a difference where test and interval both show one.
static bool claims(const struct summary_contrast *c) {
    return c->defined && !c->underpowered && c->p_holm < 0.05 && c->has_interval &&
           (c->low > 0 || c->high < 0);
}

void study_reports(double rate, double gate, int repeats, double agreement, int runs, uint64_t seed,
                   struct study_reports *out) {
    struct experiment_gate g = simulated_gate(gate);
    struct rng r = rng_open(seed, "study", "reports");
    *out = (struct study_reports){.runs = runs};
    plant(rate);
    for (int i = 0; i < runs; i++) {
        struct simulated_run s;
        struct summary summary;
        struct design_outlook outlook;
        struct err e = {0};
        open_run(&s, repeats, agreement, rng_u64(&r));
        s.x.seed = rng_u64(&r);
        s.x.gates = &g;
        s.x.gate_count = 1;
        simulated_plan(&s);
        simulated_answer(&s, rng_u64(&r));
        ASSERT_OK(summarize(&s.r, &s.x, s.arena, &summary, &e), e);
        bool other = false;
        for (int k = 0; k < summary.contrast_count; k++) {
            if (summary.contrasts[k].primary)
                out->claims += claims(&summary.contrasts[k]);
            else
                other = other || claims(&summary.contrasts[k]);
        }
        out->exploratory += other;
        out->passed += summary.gates[0].result == GATE_PASSED;
        out->failed += summary.gates[0].result == GATE_FAILED;
        if (i == 0) {
            ASSERT_OK(gates_plan(&s.x, s.r.trials, s.r.trial_count, s.arena, &outlook, &e), e);
            out->forecast = outlook.gates[0].pass_probability;
        }
        simulated_close(&s);
    }
}

double study_gate_truth(const struct study_gate *g) {
    double placed = (2 * g->ends + g->middle) / 3;
    if (strcmp(g->metric, "lift") == 0) return placed - g->absent;
    if (strcmp(g->metric, "middle_gap") == 0) return g->ends - g->middle;
    return g->before - placed;
}

static enum summary_gate_result gate_result(struct simulated_run *s,
                                            const struct gates_against *against) {
    struct tally t;
    struct summary_gate *gates;
    int count;
    struct err e = {0};
    ASSERT_OK(tally_make(&s->x, s->r.trials, s->r.trial_count, s->r.outcomes, s->arena, &t, &e), e);
    ASSERT_OK(gates_judge(&t, &s->r, true, against, s->arena, &gates, &count, &e), e);
    assert_int_equal(count, 1);
    return gates[0].result;
}

void study_gates(const struct study_gate *g, int runs, uint64_t seed, struct study_verdicts *out) {
    static const char *const allowed[] = {"model"};
    struct compare_options options = {.allow = allowed, .allow_count = 1};
    struct experiment_gate gate = simulated_gate(0);
    bool lift = strcmp(g->metric, "lift") == 0;
    gate.metric = g->metric;
    gate.where.has_place = false;
    gate.pool_depth = strcmp(g->metric, "middle_gap") != 0;
    gate.pool_placement = true;
    gate.has_at_least = lift;
    gate.has_at_most = !lift;
    gate.at_least = gate.at_most = study_gate_truth(g);
    struct rng r = rng_open(seed, "study", "gates");
    *out = (struct study_verdicts){.runs = runs};
    for (int i = 0; i < runs; i++) {
        struct simulated_run before, now;
        struct baseline b;
        uint64_t luck = rng_u64(&r);
        open_run(&before, g->repeats, g->agreement, luck);
        open_run(&now, g->repeats, g->agreement, luck);
        now.x.arms[ARM_ABSENT] = lift;
        now.x.gates = &gate;
        now.x.gate_count = 1;
        plant(g->before);
        compared_run(&before, rng_u64(&r), "old weights");
        study_rates.ends = g->ends;
        study_rates.middle = g->middle;
        study_rates.absent = g->absent;
        compared_run(&now, rng_u64(&r), "new weights");
        compared_side(&before, &b);
        struct gates_against against = {&b, &options};
        enum summary_gate_result result = gate_result(&now, &against);
        out->passed += result == GATE_PASSED;
        out->failed += result == GATE_FAILED;
        baseline_close(&b);
        simulated_close(&before);
        simulated_close(&now);
    }
}

void study_comparisons(double before, double now, int repeats, double agreement, int runs,
                       uint64_t seed, struct study_comparisons *out) {
    struct rng r = rng_open(seed, "study", "comparisons");
    *out = (struct study_comparisons){.runs = runs};
    for (int i = 0; i < runs; i++) {
        struct simulated_run old, new;
        struct baseline a, b;
        struct comparison c;
        struct compare_options options = {.margin = COMPARE_MARGIN, .seed = rng_u64(&r)};
        static const char *const allowed[] = {"model"};
        options.allow = allowed;
        options.allow_count = 1;
        uint64_t luck = rng_u64(&r);
        open_run(&old, repeats, agreement, luck);
        open_run(&new, repeats, agreement, luck);
        plant(before);
        compared_run(&old, rng_u64(&r), "old weights");
        plant(now);
        compared_run(&new, rng_u64(&r), "new weights");
        compared_side(&old, &a);
        compared_side(&new, &b);
        compare_runs(&a, &b, &options, new.arena, &c);
        assert_null(c.refused);
        assert_true(c.rows[0].overall);
        bool any = false;
        for (int k = 0; k < c.row_count; k++) any = any || c.rows[k].answer == COMPARE_REGRESSED;
        out->regressed += c.rows[0].answer == COMPARE_REGRESSED;
        out->improved += c.rows[0].answer == COMPARE_IMPROVED;
        out->any_regressed += any;
        baseline_close(&a);
        baseline_close(&b);
        simulated_close(&old);
        simulated_close(&new);
    }
}

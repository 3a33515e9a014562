// The part of the studies that goes through whole reports and comparisons.
#include "tests/support/study.h"

#include "evals/compare.h"
#include "evals/gates.h"
#include "evals/summarize.h"
#include "tests/support/compared_run.h"
#include "tests/support/support.h"

#include <string.h>

static double study_rate; // of every placed trial

static double flat(const struct record_trial *t) {
    (void)t;
    return study_rate;
}

static struct experiment_gate gate_at_least(double bound) {
    return (struct experiment_gate){.id = "g",
                                    .metric = "met_rate",
                                    .of = 0,
                                    .has_at_least = true,
                                    .at_least = bound,
                                    .where = {.model = -1,
                                              .length_tokens = -1,
                                              .placement = -1,
                                              .has_place = true,
                                              .place = {PLACE_AT_DEPTH, DEPTH_MOST / 2},
                                              .arm = ARM_PLACED},
                                    .pool_length = true};
}

static void open_run(struct simulated_run *s, int repeats, double agreement, uint64_t luck) {
    simulated_open(s, flat);
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
    struct experiment_gate g = gate_at_least(gate);
    struct rng r = rng_open(seed, "study", "reports");
    *out = (struct study_reports){.runs = runs};
    study_rate = rate;
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

void study_comparisons(double before, double now, int repeats, double agreement, int runs,
                       uint64_t seed, struct study_comparisons *out) {
    struct rng r = rng_open(seed, "study", "comparisons");
    *out = (struct study_comparisons){.runs = runs};
    for (int i = 0; i < runs; i++) {
        struct simulated_run old, new;
        struct baseline a, b;
        struct comparison c;
        struct compare_options options = {.detect = COMPARE_DETECT, .seed = rng_u64(&r)};
        static const char *const allowed[] = {"model"};
        options.allow = allowed;
        options.allow_count = 1;
        uint64_t luck = rng_u64(&r);
        open_run(&old, repeats, agreement, luck);
        open_run(&new, repeats, agreement, luck);
        study_rate = before;
        compared_run(&old, rng_u64(&r), "old weights");
        study_rate = now;
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

// Summaries on simulated models whose true rates are known: rates and who is in them, contrasts,
// controls in words, gates, exit codes.
#include "tests/support/support.h"

#include "evals/contrast.h"
#include "evals/gates.h"
#include "evals/summarize.h"
#include "tests/support/simulated_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double rate_of(const struct record_trial *t, double start, double middle, double end) {
    if (strcmp(t->arm, "absent") == 0) return 0;
    if (strcmp(t->arm, "short") == 0) return 1;
    return strcmp(t->depth, "50.000") == 0 ? middle : strcmp(t->depth, "0.000") == 0 ? start : end;
}

static double lost_in_the_middle(const struct record_trial *t) {
    return rate_of(t, 0.9, 0.4, 0.9);
}
static double the_same_everywhere(const struct record_trial *t) {
    return rate_of(t, 0.6, 0.6, 0.6);
}
static double always(const struct record_trial *t) {
    return rate_of(t, 1, 1, 1);
}
static double says_it_anyway(const struct record_trial *t) {
    return strcmp(t->arm, "short") == 0 ? 0.1 : 0.7;
}

static void take(struct simulated_run *s, struct summary *out) {
    struct err e = {0};
    ASSERT_OK(summarize(&s->r, &s->x, s->arena, out, &e), e);
}

static const struct summary_table *table_of(const struct summary *s, const char *constraint) {
    for (int i = 0; i < s->table_count; i++)
        if (strcmp(s->tables[i].constraint, constraint) == 0) return &s->tables[i];
    fail_msg("no table of %s", constraint);
    return NULL;
}

static const struct summary_cell *cell_of(const struct summary_table *t, int length, int column) {
    for (int i = 0; i < t->cell_count; i++)
        if (t->cells[i].length == length && t->cells[i].column == column) return &t->cells[i];
    fail_msg("no cell %d %d", length, column);
    return NULL;
}

static const struct summary_count *count_of(const struct summary *s, const char *what) {
    for (int i = 0; i < s->count_count; i++)
        if (strcmp(s->counts[i].what, what) == 0) return &s->counts[i];
    return NULL;
}

static const struct summary_contrast *contrast_of(const struct summary *s, const char *name,
                                                  const char *scope) {
    for (int i = 0; i < s->contrast_count; i++)
        if (strcmp(s->contrasts[i].name, name) == 0 && strcmp(s->contrasts[i].scope, scope) == 0)
            return &s->contrasts[i];
    return NULL;
}

#define ASSERT_HAS(text, part)                                                                     \
    do {                                                                                           \
        if (strstr((text), (part)) == NULL) fail_msg("\"%s\" lacks \"%s\"", (text), (part));       \
    } while (0)

static int64_t find(const struct simulated_run *s, const char *part, int skip) {
    for (int64_t i = 0; i < s->r.trial_count; i++)
        if (strstr(s->r.trials[i].key, part) != NULL && skip-- == 0) return i;
    fail_msg("no trial with %s", part);
    return -1;
}

// Met over all ok trials, whatever the reply says; invalid and error in no rate and counted on top.
static void who_is_in_the_rate(void **state) {
    (void)state;
    struct simulated_run s;
    simulated_open(&s, always);
    s.x.tolerate_errors_ppm = 10000; // 1 %
    simulated_plan(&s);
    simulated_answer(&s, 1);
    const char *cell = "placed/512/order-moves@middle";
    struct record_verdict *v = simulated_verdict(&s, find(&s, cell, 0), 0);
    v->verdict = VERDICT_UNSCORED;
    v->reason = "cut";
    s.r.outcomes[find(&s, cell, 0)]->finish = "length";
    s.r.outcomes[find(&s, cell, 1)]->finish = "length"; // cut, and met all the same
    v = simulated_verdict(&s, find(&s, cell, 2), 0);
    v->verdict = VERDICT_OMITTED;
    v->near = &(struct str){"48213", 5};
    v->near_count = 1;
    simulated_verdict(&s, find(&s, cell, 3), 0)->verdict = VERDICT_VIOLATED;
    s.r.outcomes[find(&s, cell, 4)]->status = STATUS_INVALID;
    s.r.outcomes[find(&s, cell, 4)]->reason_code = "placement";
    s.r.outcomes[find(&s, cell, 5)]->status = STATUS_ERROR;
    s.r.outcomes[find(&s, cell, 5)]->reason_code = "hang";
    struct summary out;
    take(&s, &out);
    const struct summary_rate *r = &cell_of(table_of(&out, "order"), 0, 1)->rate;
    assert_int_equal(r->n, 18);
    assert_int_equal(r->met, 15);
    assert_int_equal(r->repeats, 18);
    assert_int_equal(r->finished_n, 16);
    assert_int_equal(r->finished_met, 14);
    assert_int_equal(r->omitted, 1);
    assert_int_equal(r->violated, 1);
    assert_int_equal(r->unscored, 1);
    assert_int_equal(r->near, 1);
    assert_true(fabs(r->rate - 15.0 / 18) < 1e-12 && r->low < r->rate && r->rate < r->high);
    // "all" is met where each is; a violation outweighs what is missing.
    r = &cell_of(table_of(&out, "all"), 0, 1)->rate;
    assert_int_equal(r->met, 15);
    assert_int_equal(out.invalid, 1);
    assert_int_equal(out.error, 1);
    assert_int_equal(out.ok, out.planned - 2);
    assert_int_equal(count_of(&out, "invalid: placement")->count, 1);
    assert_int_equal(count_of(&out, "error: hang")->count, 1);
    assert_int_equal(count_of(&out, "unscored: cut")->count, 1);
    // One error of 180 is tolerated here, one invalid trial is not.
    assert_false(count_of(&out, "error")->beyond_tolerated);
    assert_true(count_of(&out, "invalid")->beyond_tolerated);
    assert_int_equal(summary_exit_code(&out), 1);
    ASSERT_HAS(out.warnings[0], "invalid: 1");
    s.r.outcomes[find(&s, cell, 4)]->status = STATUS_OK;
    take(&s, &out);
    assert_int_equal(summary_exit_code(&out), 0);
    simulated_close(&s);
}

static void lift_depths_and_controls(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    simulated_open(&s, says_it_anyway);
    simulated_plan(&s);
    simulated_answer(&s, 2);
    take(&s, &out);
    const struct summary_table *t = table_of(&out, "order");
    ASSERT_HAS(t->remarks[0], "The model says this anyway");
    ASSERT_HAS(t->remarks[1], "Not understood even when short: with 64 tokens");
    ASSERT_HAS(table_of(&out, "price")->remarks[0], "No temptation");
    const struct summary_cell *c = cell_of(t, 1, 2);
    assert_true(c->has_lift && fabs(c->lift - (c->rate.rate - t->absent[1].rate)) < 1e-12);
    assert_int_equal(c->depth_real_low, 100000);
    assert_int_equal(c->depth_real_high, 100001);
    assert_true(c->depth_mean >= 100000 && c->depth_mean <= 100001);
    assert_int_equal(t->brief.n, 20);
    ASSERT_HAS(out.does_not_show, "512 and 1024 tokens");
    ASSERT_HAS(out.does_not_show, "start, middle, end");
    ASSERT_HAS(out.does_not_show, "greedy");
    // Where a tolerance was needed the real lengths are told.
    for (int64_t i = 0; i < s.r.trial_count; i++)
        s.r.trials[i].prompt_tokens = (uint32_t)s.r.trials[i].length;
    s.r.trials[find(&s, "absent/1024", 0)].prompt_tokens = 1003;
    take(&s, &out);
    ASSERT_HAS(out.does_not_show, "prompts of 512 and 1024 (really 1003 to 1024) tokens");
    s.r.trials[find(&s, "placed/1024/order-moves@end", 3)].prompt_tokens = 1020;
    take(&s, &out);
    c = cell_of(table_of(&out, "order"), 1, 2);
    assert_true(c->tokens_low == 1020 && c->tokens_high == 1024);
    // A violation without the constraint is the temptation.
    simulated_verdict(&s, find(&s, "absent/512", 0), 1)->verdict = VERDICT_VIOLATED;
    take(&s, &out);
    assert_int_equal(table_of(&out, "price")->remark_count, 0);
    // Replies of the short arm that could not be scored, and such as there are none.
    assert_null(strstr(table_of(&out, "order")->remarks[1], "unscored"));
    for (int i = 0; i < 20; i++)
        simulated_verdict(&s, find(&s, "/short/", i), 0)->verdict = VERDICT_UNSCORED;
    take(&s, &out);
    ASSERT_HAS(table_of(&out, "order")->remarks[1], "Of these replies 20 are unscored");
    for (int i = 0; i < 20; i++) s.r.outcomes[find(&s, "/short/", i)]->status = STATUS_ERROR;
    take(&s, &out);
    ASSERT_HAS(table_of(&out, "order")->remarks[1], "No answered trial in the short arm");
    simulated_close(&s);
    simulated_open(&s, always);
    s.x.arms[ARM_SHORT] = s.x.arms[ARM_ABSENT] = false;
    simulated_plan(&s);
    simulated_answer(&s, 2);
    take(&s, &out);
    assert_false(cell_of(table_of(&out, "order"), 0, 0)->has_lift);
    ASSERT_HAS(table_of(&out, "order")->remarks[0], "No short arm");
    simulated_close(&s);
}

// Six repeats change one way, each in one of six trials: the exact test says p = 1/32, the interval
// holds 0, and so no difference is claimed.
static void a_difference_needs_test_and_interval(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    simulated_open(&s, always);
    s.x.repeats = 12;
    s.x.primary = (struct experiment_primary){true, "met_rate", 0, "middle_against_ends"};
    simulated_plan(&s);
    simulated_answer(&s, 3);
    for (int repeat = 0; repeat < 6; repeat++)
        simulated_verdict(&s, find(&s, "placed/512/order-moves@start", repeat), 0)->verdict =
            VERDICT_OMITTED;
    take(&s, &out);
    const struct summary_contrast *c = &out.contrasts[0];
    assert_float_equal(c->p, 1.0 / 32, 1e-12);
    assert_true(c->has_interval && c->low < 0 && 0 < c->high);
    ASSERT_HAS(c->sentence, "No difference shown: the test alone would show one");
    simulated_close(&s);
}

static void a_known_effect_is_found(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    simulated_open(&s, lost_in_the_middle);
    s.x.repeats = 40;
    s.x.primary = (struct experiment_primary){true, "met_rate", 0, "middle_against_ends"};
    simulated_plan(&s);
    simulated_answer(&s, 3);
    take(&s, &out);
    const struct summary_contrast *c = &out.contrasts[0];
    assert_true(c->primary && c->defined && c->has_interval && !c->underpowered);
    assert_string_equal(c->scope, "all lengths");
    assert_int_equal(c->repeats, 40);
    assert_true(c->effect > 0.35 && c->effect < 0.65);
    assert_true(c->low < 0.5 && 0.5 < c->high && c->p < 0.001);
    ASSERT_HAS(c->sentence, "Difference shown: order is met");
    ASSERT_HAS(c->sentence, "more often at the ends than in the middle");
    for (int i = 1; i < out.contrast_count; i++) {
        const struct summary_contrast *x = &out.contrasts[i];
        assert_false(x->primary);
        assert_true(x->p_holm >= x->p);
        ASSERT_HAS(x->sentence, "Exploratory: ");
        // The primary is not tested twice.
        assert_false(strcmp(x->name, c->name) == 0 && strcmp(x->scope, c->scope) == 0);
    }
    c = contrast_of(&out, "start_against_end", "length 512");
    assert_true(fabs(c->effect) < 0.3 && c->p > 0.05);
    ASSERT_HAS(c->sentence, "No difference shown");
    c = contrast_of(&out, "places_alike", "all lengths");
    assert_true(c->p_holm < 0.05 && c->has_interval && 0 < c->low && c->low < 0.5 && c->q > 6);
    // A repeat that lacks one of the cells is left out, whole.
    s.r.outcomes[find(&s, "@middle", 5)]->status = STATUS_ERROR;
    take(&s, &out);
    assert_int_equal(out.contrasts[0].repeats, 39);
    s.r.outcomes[find(&s, "@middle", 5)]->status = STATUS_OK;
    // Missing at both ends instead: the gap is negative and says so.
    for (int64_t i = 0; i < s.r.trial_count; i++)
        if (strcmp(s.r.trials[i].arm, "placed") == 0)
            simulated_verdict(&s, i, 0)->verdict =
                strcmp(s.r.trials[i].depth, "50.000") == 0 ? VERDICT_MET : VERDICT_OMITTED;
    take(&s, &out);
    assert_true(out.contrasts[0].effect == -1 && out.contrasts[0].high > -1);
    ASSERT_HAS(out.contrasts[0].sentence, "100.0 points less often at the ends");
    // Equal rates are not "0.0 points more often".
    for (int64_t i = 0; i < s.r.trial_count; i++)
        if (strcmp(s.r.trials[i].arm, "placed") == 0)
            simulated_verdict(&s, i, 0)->verdict = VERDICT_MET;
    take(&s, &out);
    ASSERT_HAS(out.contrasts[0].sentence, "order is met as often at the ends as in the middle");
    // Both ends weigh one half.
    for (int64_t i = 0; i < s.r.trial_count; i++)
        if (strcmp(s.r.trials[i].arm, "placed") == 0)
            simulated_verdict(&s, i, 0)->verdict =
                strcmp(s.r.trials[i].depth, "100.000") == 0 ? VERDICT_MET : VERDICT_OMITTED;
    take(&s, &out);
    assert_true(out.contrasts[0].effect == 0.5);
    simulated_close(&s);
}

static void no_effect_is_seldom_claimed(void **state) {
    (void)state;
    int primary = 0, any = 0;
    enum { ROUNDS = 60 };
    for (int i = 0; i < ROUNDS; i++) {
        struct simulated_run s;
        struct summary out;
        simulated_open(&s, the_same_everywhere);
        s.x.repeats = 12;
        s.x.seed = (uint64_t)i;
        s.x.primary = (struct experiment_primary){true, "met_rate", 0, "middle_against_ends"};
        simulated_plan(&s);
        simulated_answer(&s, 100 + (uint64_t)i);
        take(&s, &out);
        primary += out.contrasts[0].p_holm <= 0.05;
        bool claimed = false;
        for (int k = 1; k < out.contrast_count; k++) claimed |= out.contrasts[k].p_holm <= 0.05;
        any += claimed;
        simulated_close(&s);
    }
    assert_in_range(primary, 0, 9); // 5 % of 60 is 3
    assert_in_range(any, 0, 9);
}

static void underpowered_and_undefined(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    simulated_open(&s, lost_in_the_middle);
    s.x.repeats = 8;
    s.x.primary = (struct experiment_primary){true, "met_rate", 0, "middle_against_ends"};
    simulated_plan(&s);
    simulated_answer(&s, 4);
    take(&s, &out);
    assert_true(out.contrasts[0].underpowered && !out.contrasts[0].has_interval);
    ASSERT_HAS(out.contrasts[0].sentence, "Underpowered: 8 repeats");
    assert_true(cell_of(table_of(&out, "order"), 0, 0)->rate.underpowered);
    simulated_close(&s);
    simulated_open(&s, lost_in_the_middle);
    s.rows[0].place_count = 2; // no end
    s.x.primary = (struct experiment_primary){true, "met_rate", 0, "middle_against_ends"};
    simulated_plan(&s);
    simulated_answer(&s, 4);
    take(&s, &out);
    assert_true(out.contrasts[0].primary && !out.contrasts[0].defined);
    ASSERT_HAS(out.contrasts[0].sentence, "Undefined: order-moves does not stand at depth 100 %");
    assert_null(contrast_of(&out, "start_against_end", "all lengths"));
    simulated_close(&s);
}

static void unscored_shares_are_said(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    simulated_open(&s, always);
    s.x.primary = (struct experiment_primary){true, "met_rate", 0, "middle_against_ends"};
    simulated_plan(&s);
    simulated_answer(&s, 5);
    take(&s, &out);
    assert_null(strstr(out.contrasts[0].sentence, "unscored"));
    for (int i = 0; i < 10; i++) {
        struct record_verdict *v = simulated_verdict(&s, find(&s, "@middle", i), 0);
        v->verdict = VERDICT_UNSCORED;
        v->reason = "cut";
    }
    take(&s, &out);
    ASSERT_HAS(out.contrasts[0].sentence, "unscored replies differ by 25.0 points");
    simulated_close(&s);
}

// Rows and lengths in any order of the file: axes ascend, anchors stand around the depths.
static void axes_ascend(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    simulated_open(&s, lost_in_the_middle);
    s.places[0] = place_at(100000);
    s.places[1] = place_at(0);
    s.places[2] = place_at(50000);
    s.lengths[0] = 16384;
    s.lengths[1] = 512;
    s.lengths[2] = 2048;
    s.x.length_count = 3;
    simulated_plan(&s);
    simulated_answer(&s, 6);
    take(&s, &out);
    assert_int_equal(out.lengths[0], 512);
    assert_int_equal(out.lengths[2], 16384);
    assert_string_equal(out.places[0].place, "start");
    assert_string_equal(out.places[1].place, "middle");
    assert_string_equal(out.places[2].place, "end");
    assert_string_equal(out.places[1].moved, "order");
    const struct summary_table *t = table_of(&out, "order");
    assert_int_equal(t->cell_count, 9);
    for (int i = 0; i < 9; i++)
        assert_true((t->cells[i].column == 1) == (t->cells[i].rate.rate < 0.65));
    simulated_close(&s);
}

// Two rows with an equal prompt share one completion: pooled, it is counted once.
static void equal_completions_count_once(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    simulated_open(&s, the_same_everywhere);
    s.rows[1] = s.rows[0];
    s.rows[1].id = "again";
    s.x.placement_count = 2;
    struct experiment_gate gate = {.id = "g",
                                   .metric = "met_rate",
                                   .of = 0,
                                   .has_at_least = true,
                                   .at_least = 0.1,
                                   .where = {-1, -1, -1, false, place_at(0), ARM_PLACED},
                                   .pool_length = true,
                                   .pool_placement = true,
                                   .pool_depth = true};
    s.x.gates = &gate;
    s.x.gate_count = 1;
    simulated_plan(&s);
    simulated_answer(&s, 7);
    take(&s, &out);
    assert_int_equal(out.gates[0].n, 20 * 2 * 6);
    for (int64_t i = 0; i < s.r.trial_count; i++) {
        struct record_trial *t = &s.r.trials[i];
        if (t->placement == NULL || strcmp(t->placement, "again") != 0) continue;
        char *twin = arena_strdup(s.arena, t->key);
        char *at = strstr(twin, "again");
        char *key = arena_printf(s.arena, "%.*sorder-moves%s", (int)(at - twin), twin, at + 5);
        int64_t k = find(&s, key, 0);
        memcpy(t->ids_sha256, s.r.trials[k].ids_sha256, HASH_HEX_SIZE);
        s.r.outcomes[i]->verdicts = s.r.outcomes[k]->verdicts;
    }
    take(&s, &out);
    assert_int_equal(out.gates[0].n, 20 * 2 * 3);
    assert_int_equal(out.gates[0].repeats, 20);
    assert_int_equal(cell_of(table_of(&out, "order"), 0, 4)->rate.n, 20); // a cell stays whole
    simulated_close(&s);
}

static void gates_judge_bounds(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    simulated_open(&s, always);
    struct experiment_gate gate = simulated_gate(0.8);
    s.x.gates = &gate;
    s.x.gate_count = 1;
    simulated_plan(&s);
    simulated_answer(&s, 8);
    take(&s, &out);
    assert_int_equal(out.gate_count, 1);
    assert_int_equal(out.gates[0].result, GATE_PASSED); // 20 repeats of two lengths: from 0.832
    assert_string_equal(out.gates[0].text,
                        "order: met rate at least 0.8 where depth=middle, pooled over length");
    assert_int_equal(summary_exit_code(&out), 0);
    gate.at_least = 0.85;
    take(&s, &out);
    assert_int_equal(out.gates[0].result, GATE_UNDECIDED);
    assert_int_equal(summary_exit_code(&out), 3);
    for (int i = 0; i < 8; i++) // 32 of 40: below the gate, but not shown to be
        simulated_verdict(&s, find(&s, "@middle", i * 5), 0)->verdict = VERDICT_OMITTED;
    take(&s, &out);
    assert_true(out.gates[0].value < 0.85);
    assert_int_equal(out.gates[0].result, GATE_UNDECIDED);
    for (int i = 0; i < 40; i++)
        if (i % 3) simulated_verdict(&s, find(&s, "@middle", i), 0)->verdict = VERDICT_OMITTED;
    take(&s, &out);
    assert_int_equal(out.gates[0].result, GATE_FAILED);
    assert_int_equal(summary_exit_code(&out), 100);
    ASSERT_HAS(out.gates[0].why, "the upper bound is below 0.85");
    gate = simulated_gate(0);
    gate.has_at_least = false;
    gate.has_at_most = true;
    gate.at_most = 0.5;
    take(&s, &out); // 14 of 40
    assert_int_equal(out.gates[0].result,
                     gate.at_most >= out.gates[0].high ? GATE_PASSED : GATE_UNDECIDED);
    gate.at_most = 0.1;
    take(&s, &out);
    assert_int_equal(out.gates[0].result, GATE_FAILED);
    // Open dimensions: the gate holds in each of them.
    gate = simulated_gate(0.5);
    gate.pool_length = false;
    take(&s, &out);
    assert_int_equal(out.gate_count, 2);
    assert_string_equal(out.gates[1].id, "g[length=1024]");
    gate.where.has_place = false;
    take(&s, &out);
    assert_int_equal(out.gate_count, 6);
    assert_string_equal(out.gates[5].id, "g[length=1024, depth=end]");
    assert_int_equal(out.gates[5].result, GATE_PASSED);
    gate.where.arm = ARM_SHORT;
    take(&s, &out);
    assert_int_equal(out.gate_count, 1);
    assert_int_equal(out.gates[0].n, 20);
    // An unfinished run decides nothing.
    s.r.outcomes[0] = NULL;
    take(&s, &out);
    assert_int_equal(out.gates[0].result, GATE_UNDECIDED);
    ASSERT_HAS(out.gates[0].why, "not finished");
    assert_false(out.complete);
    simulated_close(&s);
}

static void gates_look_ahead(void **state) {
    (void)state;
    struct simulated_run s;
    struct design_outlook out;
    struct err e = {0};
    simulated_open(&s, always);
    struct experiment_gate gate = simulated_gate(0.6);
    s.x.gates = &gate;
    s.x.gate_count = 1;
    simulated_plan(&s);
    ASSERT_OK(gates_plan(&s.x, s.r.trials, s.r.trial_count, s.arena, &out, &e), e);
    assert_true(out.gates[0].possible);
    assert_int_equal(out.gates[0].trials, 40);
    assert_int_equal(out.gates[0].repeats, 20);
    assert_true(fabs(out.gates[0].healthy_rate - 0.8) < 1e-12);
    // By hand: 17 of 20 is the first count whose exact lower bound (0.621) reaches 0.6 (16: 0.563),
    // and P(X >= 17 | 20, 0.8) = 0.4114.
    assert_true(fabs(out.gates[0].pass_probability - 0.4114) < 0.0005);
    assert_true(out.gates[0].sure_from > 0.8 && out.gates[0].sure_from < 0.95);
    assert_int_equal(out.repeats, 20);
    ASSERT_HAS(out.sentence, "With 20 repeats");
    // What cannot pass on perfect data is refused, with what it would take.
    gate.at_least = 0.9;
    ASSERT_FAILS(
        gates_plan(&s.x, s.r.trials, s.r.trial_count, s.arena, &out, &e), e, ERR_CONFIG,
        "with all of its 40 trials (20 repeats) met, the lower bound is 0.832, not at least "
        "0.9; it takes 36 repeats");
    gate.at_least = 1;
    ASSERT_FAILS(gates_plan(&s.x, s.r.trials, s.r.trial_count, s.arena, &out, &e), e, ERR_CONFIG,
                 "no number of repeats");
    s.x.limit = 5; // a part of the plan cannot promise anything
    ASSERT_OK(gates_plan(&s.x, s.r.trials, s.r.trial_count, s.arena, &out, &e), e);
    assert_false(out.gates[0].possible);
    simulated_close(&s);
}

static void foreign_records_are_refused(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    struct err e = {0};
    simulated_open(&s, always);
    simulated_plan(&s);
    simulated_answer(&s, 9);
    s.r.outcomes[3]->verdict_count = 1;
    ASSERT_FAILS(summarize(&s.r, &s.x, s.arena, &out, &e), e, ERR_RECORD,
                 "has no verdict on the constraint 'price'");
    s.r.outcomes[3]->verdict_count = 2;
    s.r.trials[2].model = "another";
    ASSERT_FAILS(summarize(&s.r, &s.x, s.arena, &out, &e), e, ERR_RECORD, "no such model");
    simulated_close(&s);
}

// The schema's words for contrasts, and the table that computes them.
static void schema_and_contrasts_agree(void **state) {
    (void)state;
    struct err e = {0};
    json_t *schema;
    ASSERT_OK(
        json_read_file(LACUNA_SOURCE_DIR "/configs/experiment.schema.json", 1 << 20, &schema, &e),
        e);
    const json_t *words = schema;
    static const char *const keys[] = {"properties", "primary", "properties", "contrast", "enum"};
    for (int i = 0; i < 5; i++) words = json_object_get(words, keys[i]);
    assert_int_equal(json_array_size(words), 4);
    for (size_t i = 0; i < json_array_size(words); i++)
        assert_non_null(contrast_find(json_string_value(json_array_get(words, i))));
    assert_null(contrast_find("places_alike"));
    json_decref(schema);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schema_and_contrasts_agree),
        cmocka_unit_test(who_is_in_the_rate),
        cmocka_unit_test(lift_depths_and_controls),
        cmocka_unit_test(a_difference_needs_test_and_interval),
        cmocka_unit_test(a_known_effect_is_found),
        cmocka_unit_test(no_effect_is_seldom_claimed),
        cmocka_unit_test(underpowered_and_undefined),
        cmocka_unit_test(unscored_shares_are_said),
        cmocka_unit_test(axes_ascend),
        cmocka_unit_test(equal_completions_count_once),
        cmocka_unit_test(gates_judge_bounds),
        cmocka_unit_test(gates_look_ahead),
        cmocka_unit_test(foreign_records_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

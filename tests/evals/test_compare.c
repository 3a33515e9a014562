// Comparisons of simulated runs: identical ones, planted changes, what has to be allowed, and how
// often a comparison of equals cries wolf.
#include "tests/support/support.h"

#include "engine/base/rng.h"
#include "evals/compare.h"
#include "tests/support/compared_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double rate_now = 0.5;

static double flat(const struct record_trial *t) {
    (void)t;
    return rate_now;
}

struct pair {
    struct simulated_run before, now;
    struct baseline a, b;
    struct comparison c;
};

static const struct compare_options plain = {.margin = COMPARE_MARGIN, .seed = 7};

static void open_pair(struct pair *p) {
    simulated_open(&p->before, flat);
    simulated_open(&p->now, flat);
}

static void compare(struct pair *p, const struct compare_options *o) {
    compared_side(&p->before, &p->a);
    compared_side(&p->now, &p->b);
    compare_runs(&p->a, &p->b, o, p->now.arena, &p->c);
}

static void close_pair(struct pair *p) {
    baseline_close(&p->a);
    baseline_close(&p->b);
    simulated_close(&p->before);
    simulated_close(&p->now);
}

static const struct comparison_row *row_of(const struct comparison *c, const char *constraint,
                                           const char *scope) {
    for (int i = 0; i < c->row_count; i++)
        if (strcmp(c->rows[i].constraint, constraint) == 0 && strcmp(c->rows[i].scope, scope) == 0)
            return &c->rows[i];
    fail_msg("no row %s, %s", constraint, scope);
    return NULL;
}

static void equal_runs_are_identical(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    p.now.x.repeats = p.before.x.repeats = 3;
    compared_run(&p.before, 1, "w");
    compared_run(&p.now, 1, "w");
    compare(&p, &plain);
    assert_null(p.c.refused);
    assert_int_equal(p.c.field_count, 0);
    assert_true(p.c.same_identity);
    assert_int_equal(p.c.identical, p.now.r.trial_count);
    assert_int_equal(p.c.flip_count, 0);
    assert_int_equal(p.c.row_count, 9);
    assert_true(p.c.rows[0].overall);
    // 3 repeats could show nothing, but identical replies are no matter of chance
    for (int i = 0; i < p.c.row_count; i++)
        assert_int_equal(p.c.rows[i].answer, COMPARE_NO_DIFFERENCE);
    assert_int_equal(compare_exit_code(&p.c), 0);
    close_pair(&p);
}

// Equal identities with other replies are somebody's fault, and it is said.
static void changed_replies_are_found(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    compared_run(&p.before, 1, "w");
    compared_run(&p.now, 1, "w");
    p.now.r.outcomes[17]->ids[1] = 99;
    p.now.r.outcomes[30]->reply = STR("something else");
    compare(&p, &plain);
    assert_int_equal(p.c.compared - p.c.identical, 2);
    assert_int_equal(p.c.pairs[17].first_token, 1);
    assert_int_equal(p.c.pairs[30].first_token, 2); // the ids agree, the text does not
    assert_int_equal(p.c.warning_count, 1);
    assert_non_null(strstr(p.c.warnings[0], "fault of the program or of the machine"));
    close_pair(&p);
}

// Exact two-sided binomial test, by factorials.
static double mcnemar(int lost, int won) {
    int n = lost + won, k = lost < won ? lost : won;
    double sum = 0;
    for (int i = 0; i <= k; i++)
        sum += exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) - n * log(2));
    return fmin(1, 2 * sum);
}

static void one_cell_is_mcnemar(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct pair p;
        open_pair(&p);
        struct simulated_run *runs[] = {&p.before, &p.now};
        for (int i = 0; i < 2; i++) {
            runs[i]->rows[0].place_count = 1;
            runs[i]->x.length_count = 1;
            runs[i]->x.repeats = 40;
            rate_now = i == 0 ? 0.8 : 0.5;
            compared_run(runs[i], seed * 2 + (uint64_t)i, "w");
        }
        compare(&p, &plain);
        const struct comparison_row *r = row_of(&p.c, "order", "all lengths");
        assert_int_equal(r->pairs, 40);
        assert_int_equal(r->won - r->lost, r->met_now - r->met_before);
        assert_true(fabs(r->p - (mcnemar(r->lost, r->won))) < 1e-9);
        assert_true(fabs(r->effect - ((double)(r->won - r->lost) / 40)) < 1e-12);
        // Bonett and Price: one more of each kind of discordant pair
        double n = 42, m = (r->won - r->lost) / n, q = (r->won + r->lost + 2) / n;
        double half = 1.959963984540054 * sqrt((q - m * m) / n);
        assert_true(fabs(r->low - (m - half)) < 1e-12);
        assert_true(fabs(r->high - (m + half)) < 1e-12);
        close_pair(&p);
    }
}

static void a_loss_is_a_regression(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    rate_now = 0.9;
    compared_run(&p.before, 1, "w");
    rate_now = 0.4;
    compared_run(&p.now, 2, "other");
    const char *const allow[] = {"model"};
    struct compare_options o = plain;
    compare(&p, &o);
    assert_non_null(strstr(p.c.refused, "differ in model"));
    assert_string_equal(p.c.allow, "model");
    assert_int_equal(p.c.row_count, 0);
    assert_int_equal(compare_exit_code(&p.c), 3);
    o.allow = allow;
    o.allow_count = 1;
    baseline_close(&p.a);
    baseline_close(&p.b);
    compare(&p, &o);
    assert_null(p.c.refused);
    assert_true(p.c.fields[0].allowed);
    const struct comparison_row *all = &p.c.rows[0];
    assert_int_equal(all->answer, COMPARE_REGRESSED);
    assert_true(all->high < 0);
    // "price" is met always: nothing to be seen, and the replies are other ones
    assert_int_not_equal(row_of(&p.c, "price", "all lengths")->answer, COMPARE_REGRESSED);
    assert_int_equal(compare_exit_code(&p.c), 100);
    assert_int_equal(p.c.lost + p.c.won, p.c.flip_count);
    assert_true(p.c.lost > p.c.won && p.c.won > 0);
    for (int64_t i = 0; i < p.c.flip_count; i++) {
        assert_int_equal(p.c.flips[i].before == VERDICT_MET, i < p.c.lost);
        assert_int_equal(p.c.flips[i].now == VERDICT_MET, i >= p.c.lost);
    }
    close_pair(&p);
}

// The other way round is the same comparison with the sign turned.
static void turned_round(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    rate_now = 0.75;
    compared_run(&p.before, 3, "w");
    rate_now = 0.4;
    compared_run(&p.now, 4, "w");
    compare(&p, &plain);
    struct comparison back;
    compare_runs(&p.b, &p.a, &plain, p.now.arena, &back);
    assert_int_equal(back.row_count, p.c.row_count);
    assert_int_equal(back.lost, p.c.won);
    for (int i = 0; i < back.row_count; i++) {
        const struct comparison_row *l = &p.c.rows[i], *r = &back.rows[i];
        assert_true(fabs(l->effect - (-r->effect)) < 1e-12);
        assert_true(fabs(l->low - (-r->high)) < 1e-12);
        assert_true(l->p == r->p && l->p_holm == r->p_holm);
        if (l->answer == COMPARE_REGRESSED) assert_int_equal(r->answer, COMPARE_IMPROVED);
    }
    assert_int_equal(p.c.rows[0].answer, COMPARE_REGRESSED);
    assert_int_equal(compare_exit_code(&back), 0);
    close_pair(&p);
}

// Trials are paired by name: the order of the baseline's lines means nothing.
static void order_means_nothing(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    compared_run(&p.before, 5, "w");
    compared_run(&p.now, 6, "w");
    compare(&p, &plain);
    struct rng r = rng_open(9, "test", "order");
    for (int64_t i = p.a.trial_count - 1; i > 0; i--) {
        int64_t k = (int64_t)rng_below(&r, (uint64_t)i + 1);
        struct baseline_trial held = p.a.trials[i];
        p.a.trials[i] = p.a.trials[k];
        p.a.trials[k] = held;
    }
    struct comparison shuffled;
    compare_runs(&p.a, &p.b, &plain, p.now.arena, &shuffled);
    assert_int_equal(shuffled.row_count, p.c.row_count);
    for (int i = 0; i < p.c.row_count; i++)
        assert_string_equal(shuffled.rows[i].sentence, p.c.rows[i].sentence);
    for (int64_t i = 0; i < p.c.flip_count; i++)
        assert_string_equal(shuffled.flips[i].pair->now->key, p.c.flips[i].pair->now->key);
    close_pair(&p);
}

static void every_field_needs_its_word(void **state) {
    (void)state;
    static const struct {
        const char *key, *in, *word;
    } cases[] = {{"sha256", "model", "model"},
                 {"template_sha256", "model", "template"},
                 {"tokenizer_sha256", "model", "tokenizer"},
                 {"numerics", "", "numerics"},
                 {"backend", "", "backend"},
                 {"checks_sha256", "", "checks"},
                 {"max_tokens", "generation", "generation"},
                 {"analysis_sha256", "", NULL},
                 {"experiment", "", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pair p;
        open_pair(&p);
        compared_run(&p.before, 1, "w");
        compared_run(&p.now, 1, "w");
        json_t *o = p.now.r.identity;
        if (strcmp(cases[i].in, "model") == 0)
            o = json_array_get(json_object_get(o, "models"), 0);
        else if (cases[i].in[0] != '\0')
            o = json_object_get(o, cases[i].in);
        json_put(o, cases[i].key, json_text_c("another"));
        compare(&p, &plain);
        assert_int_equal(p.c.field_count, 1);
        if (cases[i].word == NULL) {
            assert_null(p.c.refused);
            assert_true(p.c.fields[0].harmless);
        } else {
            assert_string_equal(p.c.allow, cases[i].word);
            for (int k = 0; compare_fields[k] != NULL; k++) { // another word does not open it
                struct compare_options o2 = plain;
                o2.allow = &compare_fields[k];
                o2.allow_count = 1;
                compare_runs(&p.a, &p.b, &o2, p.now.arena, &p.c);
                assert_int_equal(p.c.refused == NULL,
                                 strcmp(compare_fields[k], cases[i].word) == 0);
            }
        }
        close_pair(&p);
    }
}

static void other_prompts_need_a_word(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    compared_run(&p.before, 1, "w");
    compared_run(&p.now, 1, "w");
    p.now.r.trials[5].prompt_sha256[3] ^= 1;
    compare(&p, &plain);
    assert_string_equal(p.c.allow, "prompts");
    assert_false(p.c.same_identity);
    close_pair(&p);
}

static void plans_that_differ(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    p.before.x.repeats = 12;
    p.now.x.repeats = 15;
    compared_run(&p.before, 1, "w");
    compared_run(&p.now, 2, "w");
    compare(&p, &plain);
    assert_true(p.c.needs_common);
    assert_non_null(strstr(p.c.refused, "the plans differ"));
    assert_int_equal(p.c.only_before, 0);
    assert_int_equal(p.c.only_now, p.now.r.trial_count - p.before.r.trial_count);
    struct compare_options o = plain;
    o.common = true;
    compare_runs(&p.a, &p.b, &o, p.now.arena, &p.c);
    assert_null(p.c.refused);
    assert_int_equal(p.c.rows[0].repeats, 12);
    close_pair(&p);
}

static void constraints_that_differ(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    compared_run(&p.before, 1, "w");
    compared_run(&p.now, 1, "w");
    for (int64_t i = 0; i < p.now.r.trial_count; i++)
        p.now.r.outcomes[i]->verdicts[1].constraint = "discount";
    compare(&p, &plain);
    assert_string_equal(p.c.refused,
                        "the plans differ: 180 trials in both, 0 only in the baseline, 0 only in "
                        "the run, constraints price only in the baseline, constraints discount "
                        "only in the run");
    struct compare_options o = plain;
    o.common = true;
    compare_runs(&p.a, &p.b, &o, p.now.arena, &p.c);
    assert_null(p.c.refused);
    assert_int_equal(p.c.constraint_count, 1);
    assert_string_equal(p.c.rows[0].constraint, "order");
    close_pair(&p);
}

// One model each: another name is a difference of the model, and the trials are the same ones.
static void a_renamed_model(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    p.now.models[0].id = "toy-q8";
    compared_run(&p.before, 1, "w");
    compared_run(&p.now, 1, "w8");
    const char *const allow[] = {"model"};
    struct compare_options o = plain;
    o.allow = allow;
    o.allow_count = 1;
    compare(&p, &o);
    assert_null(p.c.refused);
    assert_int_equal(p.c.pair_count, p.now.r.trial_count);
    assert_int_equal(p.c.identical, p.c.pair_count);
    assert_string_equal(p.c.rows[0].model, "toy-q8");
    close_pair(&p);
}

static void trials_without_a_reply(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    compared_run(&p.before, 1, "w");
    compared_run(&p.now, 1, "w");
    p.before.r.outcomes[3]->status = STATUS_ERROR;
    p.now.r.outcomes[4]->status = STATUS_INVALID;
    compare(&p, &plain);
    assert_int_equal(p.c.not_ok, 2);
    assert_int_equal(p.c.compared, p.c.pair_count - 2);
    assert_int_equal(p.c.warning_count, 1);
    close_pair(&p);
}

// Few repeats, or too few for the difference that is asked for.
static void underpowered(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    p.before.x.repeats = p.now.x.repeats = 9;
    compared_run(&p.before, 1, "w");
    compared_run(&p.now, 2, "w");
    compare(&p, &plain);
    assert_int_equal(p.c.rows[0].answer, COMPARE_UNDERPOWERED);
    assert_false(p.c.rows[0].has_interval);
    assert_int_equal(compare_exit_code(&p.c), 3);
    close_pair(&p);
    open_pair(&p);
    p.before.x.repeats = p.now.x.repeats = 200;
    compared_run(&p.before, 1, "w");
    compared_run(&p.now, 2, "w");
    struct compare_options o = plain;
    compare(&p, &o);
    double largest = p.c.rows[0].largest;
    assert_true(largest > 0.02 && largest < 0.15);
    assert_true(largest == fmax(p.c.rows[0].high, -p.c.rows[0].low));
    assert_int_equal(p.c.rows[0].answer, COMPARE_NO_DIFFERENCE);
    o.margin = largest * 0.99;
    compare_runs(&p.a, &p.b, &o, p.now.arena, &p.c);
    assert_int_equal(p.c.rows[0].answer, COMPARE_UNDERPOWERED);
    close_pair(&p);
}

// Nothing changed but the dice: "regressed" at most 5 times in 100, whatever row says it.
static void false_alarms(void **state) {
    (void)state;
    enum { RUNS = 400 };
    int alarms = 0;
    for (uint64_t i = 0; i < RUNS; i++) {
        struct pair p;
        open_pair(&p);
        rate_now = 0.3 + 0.4 * (double)(i % 3) / 2;
        p.before.x.repeats = p.now.x.repeats = 14;
        p.before.x.arms[ARM_ABSENT] = p.now.x.arms[ARM_ABSENT] = false;
        compared_run(&p.before, 1000 + 2 * i, "w");
        compared_run(&p.now, 1001 + 2 * i, "w");
        compare(&p, &plain);
        alarms += compare_exit_code(&p.c) == 100;
        close_pair(&p);
    }
    // 5 % and three standard errors of 400 runs
    if (alarms > RUNS * (0.05 + 3 * sqrt(0.05 * 0.95 / RUNS)))
        fail_msg("%d of %d comparisons of equals regressed", alarms, RUNS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_runs_are_identical),
        cmocka_unit_test(changed_replies_are_found),
        cmocka_unit_test(one_cell_is_mcnemar),
        cmocka_unit_test(a_loss_is_a_regression),
        cmocka_unit_test(turned_round),
        cmocka_unit_test(order_means_nothing),
        cmocka_unit_test(every_field_needs_its_word),
        cmocka_unit_test(other_prompts_need_a_word),
        cmocka_unit_test(plans_that_differ),
        cmocka_unit_test(constraints_that_differ),
        cmocka_unit_test(a_renamed_model),
        cmocka_unit_test(trials_without_a_reply),
        cmocka_unit_test(underpowered),
        cmocka_unit_test(false_alarms),
    };
    return cmocka_run_group_tests_name("compare", tests, NULL, NULL);
}

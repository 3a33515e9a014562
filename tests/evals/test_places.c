// Places of constraints: spelling, several spots at once, rows that leave a constraint out.
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/rng.h"
#include "evals/experiment_scalar.h"
#include "evals/judge.h"
#include "evals/plan.h"
#include "evals/summarize.h"
#include "evals/tally.h"
#include "tests/evals/plan_sample.h"
#include "tests/support/simulated_run.h"

#include <stdio.h>
#include <string.h>

static int spans_of(const struct record_trial *t, const char *constraint) {
    int n = 0;
    for (int i = 0; i < t->span_count; i++) n += strcmp(t->spans[i].constraint, constraint) == 0;
    return n;
}

// ---- spelling ----

static struct place read_place(const char *text) {
    struct place p;
    if (scalar_place(str_from(text), &p) != 0) fail_msg("'%s' is no place", text);
    return p;
}

static void spellings_go_there_and_back(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"end+start", "start+end"},
        {"50%", "middle"},
        {"end+in_system", "in_system+end"},
        {"75%+12.5%+start", "start+12.5%+75%"},
        {"after_filler+25+before_filler", "before_filler+25%+after_filler"}};
    char text[PLACE_TEXT_SIZE];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        place_text(read_place(pairs[i][0]), text);
        assert_string_equal(text, pairs[i][1]);
        assert_true(place_equal(read_place(text), read_place(pairs[i][0])));
    }
    static const char *const wrong[] = {"start+",     "+end",       "start+start",
                                        "0%+start",   "start++end", "",
                                        "absent+end", "start+mid",  "1%+2%+3%+4%+5%"};
    struct place p;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(scalar_place(str_from(wrong[i]), &p), -1);
}

// Any set of spots, in any order of writing, is one place with one spelling, in one order.
static void random_places_are_ordered(void **state) {
    (void)state;
    struct rng r = rng_open(20, "test", "places");
    struct place places[40];
    for (int i = 0; i < 40; i++) {
        struct buf b = {0};
        int count = 1 + (int)rng_below(&r, PLACE_SPOTS_MOST);
        for (int k = 0; k < count; k++) // different thousandths: no spot stands twice
            buf_printf(&b, "%s%d.%03d%%", k == 0 ? "" : "+", (int)rng_below(&r, 100),
                       (int)rng_below(&r, 100) * 10 + k);
        places[i] = read_place(b.p);
        assert_int_equal(places[i].more_count, count - 1);
        for (int k = 0; k < count - 1; k++)
            assert_true(place_spot(&places[i], k).depth < place_spot(&places[i], k + 1).depth);
        char text[PLACE_TEXT_SIZE];
        place_text(places[i], text);
        assert_true(place_equal(read_place(text), places[i]));
        buf_free(&b);
    }
    for (int i = 0; i < 40; i++)
        for (int k = 0; k < 40; k++) {
            assert_int_equal(place_compare(places[i], places[k]),
                             -place_compare(places[k], places[i]));
            for (int m = 0; m < 40; m++)
                if (place_compare(places[i], places[k]) < 0 &&
                    place_compare(places[k], places[m]) < 0)
                    assert_true(place_compare(places[i], places[m]) < 0);
        }
}

// ---- several spots ----

static void a_rule_stands_at_both_ends(void **state) {
    (void)state;
    struct experiment *x;
    struct plan p = make("  - {id: row, move: [order], depths: [end, start+end, start],\n"
                         "     anchors: [in_system+end],\n"
                         "     others: {day: 25%+75%, contact: middle}}\n",
                         NULL, &x);
    assert_int_equal(p.trial_count, 4 * (4 + 1));
    const struct record_trial *t = planned_find(&p, "fake/placed/256/row@start+end/2/0");
    assert_string_equal(t->depth, "start+end");
    assert_int_equal(t->prompt_tokens, 256);
    assert_int_equal(t->span_count, 5);
    static const char *const order[] = {"order", "day", "contact", "day", "order"};
    static const char *const places[] = {"start", "25%", "middle", "75%", "end"};
    for (int i = 0; i < 5; i++) {
        assert_string_equal(t->spans[i].constraint, order[i]);
        assert_string_equal(t->spans[i].place, places[i]);
    }
    assert_string_equal(t->spans[0].depth, "0.000");
    assert_string_equal(t->spans[4].depth, "100.000");
    assert_int_equal(t->spans[0].bytes, t->spans[4].bytes);
    t = planned_find(&p, "fake/placed/256/row@in_system+end/0/0");
    assert_string_equal(t->spans[0].place, "in_system");
    assert_string_equal(t->spans[0].depth, "-");
    assert_int_equal(spans_of(t, "order"), 2);
    // Columns in reading order: the system message first, the doubled place behind its first spot.
    struct tally y;
    struct err e = {0};
    ASSERT_OK(tally_make(x, p.trials, p.trial_count, NULL, arena, &y, &e), e);
    static const char *const columns[] = {"in_system+end", "start", "start+end", "end"};
    assert_int_equal(y.column_count, 4);
    for (int i = 0; i < 4; i++) {
        char text[PLACE_TEXT_SIZE];
        place_text(y.columns[i].place, text);
        assert_string_equal(text, columns[i]);
    }
    experiment_close(x);
    p = make("  - {id: row, move: [order], depths: [start, start+end],\n"
             "     others: {day: 25%, contact: 75%}}\n",
             "depth=end+start", &x);
    assert_int_equal(p.trial_count, 4);
    assert_string_equal(p.trials[0].depth, "start+end");
    experiment_close(x);
}

static void places_belong_where_they_may(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x;
    static const char *const wrong[][2] = {
        {"  - {id: r, move: [order], depths: [in_system+end], others: {day: end, contact: end}}\n",
         "depths[0]: 'in_system+end' belongs under anchors"},
        {"  - {id: r, move: [order], anchors: [start+end], others: {day: end, contact: end}}\n",
         "anchors[0]: 'start+end' belongs under depths"},
        {"  - {id: r, move: [order], depths: [absent], others: {day: end, contact: end}}\n",
         "depths[0]: expected start, middle, end"},
        {"  - {id: r, move: [order], depths: [start+start], others: {day: end, contact: end}}\n",
         "joined by +: 2 to 4 different ones"},
        {"  - {id: r, move: [order], depths: [start, end+start, start+end],\n"
         "     others: {day: end, contact: end}}\n",
         "start+end stands in the row twice"},
        {"  - {id: r, move: [order], depths: [start], others: {day: end, contact: absent}}\n",
         "every row leaves 'contact' out"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ASSERT_FAILS(load(wrong[i][0], NULL, &x, &e), e, ERR_CONFIG, wrong[i][1]);
}

// Gates and --only name places as keys do.
static void gates_ask_for_such_places(void **state) {
    (void)state;
    struct experiment *x;
    struct err e = {0};
    const char *rows = "  - {id: row, move: [order], depths: [start, start+end],\n"
                       "     others: {day: 25%, contact: 75%}}\n"
                       "  - {id: all, scatter: [order, day], depths: [start, end],\n"
                       "     others: {contact: middle}}\n";
    override("gates=[{metric: met_rate, of: order, at_least: 10%, where: {depth: end+start}}, "
             "{metric: met_rate, of: all, at_least: 10%, where: {depth: order-2}}]");
    struct plan p = make(rows, NULL, &x);
    assert_string_equal(x->gates[0].id, "met_rate of order at_least 10% where depth=start+end");
    struct tally t;
    ASSERT_OK(tally_make(x, p.trials, p.trial_count, NULL, arena, &t, &e), e);
    static const int of[] = {0, TALLY_ALL_CONSTRAINTS};
    for (int i = 0; i < 2; i++) {
        struct tally_filter f = TALLY_EVERYTHING(ARM_PLACED);
        f.has_place = true;
        f.place = x->gates[i].where.place;
        assert_int_equal(tally_planned(&t, &f, of[i]).n, 4);
    }
    experiment_close(x);
    overrides[0] = "gates=[{metric: met_rate, of: order, at_least: 10%, where: {depth: order-3}}]";
    ASSERT_FAILS(load(rows, NULL, &x, &e), e, ERR_CONFIG,
                 "where.depth: no placement moves a constraint to order-3");
}

// ---- left out ----

static const char one_each[] = "  - {id: a, move: [order], depths: [start, end],\n"
                               "     others: {day: middle, contact: absent}}\n"
                               "  - {id: b, move: [contact], depths: [middle],\n"
                               "     others: {order: absent, day: absent}}\n";

// The same without a word on each: what a row does not name stands where `rest` says.
static const char one_each_by_rest[] = "  - {id: a, move: [order], depths: [start, end],\n"
                                       "     others: {contact: absent}, rest: middle}\n"
                                       "  - {id: b, move: [contact], depths: [middle],\n"
                                       "     rest: absent}\n";

static void expect_one_each(const char *rows) {
    struct experiment *x;
    struct err e = {0};
    struct plan p = make(rows, NULL, &x);
    struct check_set *checks = check_set_open();
    for (int64_t i = 0; i < p.trial_count; i++) {
        const struct record_trial *t = &p.trials[i];
        bool placed = t->placement != NULL, a = placed && strcmp(t->placement, "a") == 0;
        assert_int_equal(spans_of(t, "order"), a);
        assert_int_equal(spans_of(t, "day"), a);
        assert_int_equal(spans_of(t, "contact"), placed && !a);
        struct reply reply = {.text = STR("Nothing to say."), .answer = {0, 15}, .finish = "stop"};
        struct record_verdict *v;
        int count;
        ASSERT_OK(judge_reply(x, checks, t, &reply, arena, &v, &count, &e), e);
        assert_int_equal(count, !placed ? 3 : a ? 2 : 1);
        for (int k = 0; placed && k < count; k++) assert_true(spans_of(t, v[k].constraint) > 0);
    }
    check_set_close(checks);
    struct tally y;
    ASSERT_OK(tally_make(x, p.trials, p.trial_count, NULL, arena, &y, &e), e);
    struct tally_filter f = TALLY_EVERYTHING(ARM_PLACED);
    assert_int_equal(tally_planned(&y, &f, 0).n, 8);
    assert_int_equal(tally_planned(&y, &f, 2).n, 4);
    assert_int_equal(tally_planned(&y, &f, TALLY_ALL_CONSTRAINTS).n, 12);
    f = TALLY_EVERYTHING(ARM_ABSENT);
    assert_int_equal(tally_planned(&y, &f, 2).n, 4);
    experiment_close(x);
}

static void rows_leave_constraints_out(void **state) {
    (void)state;
    expect_one_each(one_each);
    expect_one_each(one_each_by_rest);
}

static double half(const struct record_trial *t) {
    (void)t;
    return 0.5;
}

// What a row leaves out has no verdict in it, no cell, and no say in "all constraints".
static void rates_are_over_what_was_asked(void **state) {
    (void)state;
    struct simulated_run s;
    struct summary out;
    struct err e = {0};
    simulated_open(&s, half);
    struct experiment_other absent = {.constraint = 1, .place = {.anchor = PLACE_ABSENT}};
    s.rows[1] = s.rows[0];
    s.rows[1].id = "alone";
    s.rows[1].others = &absent;
    s.rows[1].other_count = 1;
    s.x.placement_count = 2;
    simulated_plan(&s);
    simulated_answer(&s, 21);
    int order_met = 0, alone = 0;
    for (int64_t i = 0; i < s.r.trial_count; i++) {
        const struct record_trial *t = &s.r.trials[i];
        if (t->placement == NULL) continue;
        simulated_verdict(&s, i, 1)->verdict = VERDICT_OMITTED;
        if (strcmp(t->placement, "alone") != 0) continue;
        s.r.outcomes[i]->verdict_count = 1;
        order_met += simulated_verdict(&s, i, 0)->verdict == VERDICT_MET;
        alone++;
    }
    ASSERT_OK(summarize(&s.r, &s.x, s.arena, &out, &e), e);
    for (int i = 0; i < out.table_count; i++) {
        const struct summary_table *t = &out.tables[i];
        int met = 0, n = 0;
        for (int k = 0; k < t->cell_count; k++) {
            if (strcmp(out.places[t->cells[k].column].placement, "alone") != 0) continue;
            met += t->cells[k].rate.met;
            n += t->cells[k].rate.n;
        }
        bool price = strcmp(t->constraint, "price") == 0;
        assert_int_equal(n, price ? 0 : alone);
        assert_int_equal(met, price ? 0 : order_met);
    }
    // The same without its place in the row is damage.
    s.rows[1].others = NULL;
    s.rows[1].other_count = 0;
    ASSERT_FAILS(summarize(&s.r, &s.x, s.arena, &out, &e), e, ERR_RECORD, "no verdict on");
    simulated_close(&s);
}

// ---- scattered ----

// Each constraint at each place, and behind each other one, equally often.
static void orders_are_balanced(void **state) {
    (void)state;
    for (int n = 2; n <= 9; n++) {
        struct experiment_placement row = {.scatter = true, .move_count = n};
        int orders = placement_orders(&row), at[9][9] = {{0}}, behind[9][9] = {{0}};
        assert_int_equal(orders, n % 2 == 0 ? n : 2 * n);
        for (int o = 0; o < orders; o++) {
            int member[9];
            for (int i = 0; i < n; i++) member[i] = -1;
            for (int m = 0; m < n; m++) {
                int place = placement_order(&row, o, m);
                assert_in_range(place, 0, n - 1);
                assert_int_equal(member[place], -1);
                member[place] = m;
                at[m][place]++;
            }
            for (int i = 1; i < n; i++) behind[member[i - 1]][member[i]]++;
        }
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++) {
                assert_int_equal(at[i][k], orders / n);
                assert_int_equal(behind[i][k], i == k ? 0 : orders / n);
            }
    }
}

static const char scattered[] = "  - {id: row, scatter: [contact, order, day],\n"
                                "     depths: [end, start, middle]}\n";

static void constraints_are_scattered(void **state) {
    (void)state;
    struct experiment *x;
    struct plan p = make(scattered, NULL, &x);
    assert_int_equal(p.trial_count, 4 * (6 + 1));
    for (int o = 1; o <= 6; o++) {
        char asked[16];
        snprintf(asked, sizeof asked, "order-%d", o);
        const struct record_trial *t =
            planned_find(&p, arena_printf(arena, "fake/placed/256/row@%s/3/0", asked));
        assert_string_equal(t->depth, asked);
        assert_int_equal(t->span_count, 3);
        static const char *const places[] = {"start", "middle", "end"};
        for (int i = 0; i < 3; i++) {
            assert_string_equal(t->spans[i].place, places[i]);
            int member = 0;
            while (strcmp(x->constraints[member].id, t->spans[i].constraint) != 0) member++;
            assert_int_equal(placement_order(&x->placements[0], o - 1, member), i);
        }
    }
    experiment_close(x);
    p = make(scattered, "depth=order-2,repeat=1", &x);
    assert_int_equal(p.trial_count, 1);
    experiment_close(x);
    // One order a repeat, in turn.
    p = make("  - {id: row, scatter: [order, day], orders: one, depths: [start, end],\n"
             "     others: {contact: middle}}\n",
             "arm=placed", &x);
    assert_int_equal(p.trial_count, 4);
    for (int r = 0; r < 4; r++)
        planned_find(&p, arena_printf(arena, "fake/placed/256/row@order-%d/%d/0", r % 2 + 1, r));
    experiment_close(x);
}

static void scattering_is_checked(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x;
    static const char *const wrong[][2] = {
        {"  - {id: r, scatter: [order, day], move: [order], depths: [start, end],\n"
         "     others: {contact: end}}\n",
         "move: scatter is given too"},
        {"  - {id: r, scatter: [order, day], depths: [start], others: {contact: end}}\n",
         "scatter: 2 constraints over 1 places"},
        {"  - {id: r, scatter: [order, order], depths: [start, end],\n"
         "     others: {contact: end, day: end}}\n",
         "scatter: 'order' stands in it twice"},
        {"  - {id: r, move: [order], orders: one, depths: [start], others: {contact: end, day: "
         "end}}\n",
         "orders: only scatter has orders"},
        {"  - {id: r, depths: [start], others: {contact: end, day: end}}\n", "move: is missing"},
        {"  - {id: r, move: [order], depths: [order-1], others: {contact: end, day: end}}\n",
         "depths[0]: expected start"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ASSERT_FAILS(load(wrong[i][0], NULL, &x, &e), e, ERR_CONFIG, wrong[i][1]);
    ASSERT_FAILS(load(scattered, "depth=middle", &x, &e), e, ERR_CONFIG, "depth 'middle'");
    ASSERT_FAILS(load(scattered, "depth=order-7", &x, &e), e, ERR_CONFIG, "depth 'order-7'");
}

// A constraint is met unless it stands in the middle.
static bool met_at_the_ends(const struct record_trial *t, int constraint) {
    static const char *const ids[] = {"order", "day", "contact"};
    bool met = false;
    for (int k = 0; k < t->span_count; k++)
        if (strcmp(t->spans[k].constraint, ids[constraint]) == 0)
            met = strcmp(t->spans[k].place, "middle") != 0;
    return met;
}

// Every constraint is told by its own depth; all together by the order.
static void scattered_rows_are_read_by_own_depth(void **state) {
    (void)state;
    struct experiment *x;
    struct err e = {0};
    struct plan p = make(scattered, NULL, &x);
    struct record r = made_up(&p, x, met_at_the_ends);
    struct experiment_gate gates[1] = {{.id = "own",
                                        .metric = "met_rate",
                                        .has_at_most = true,
                                        .at_most = 0.5,
                                        .of = 1,
                                        .where = {.model = -1,
                                                  .length_tokens = -1,
                                                  .placement = -1,
                                                  .has_place = true,
                                                  .place = place_at(DEPTH_MOST / 2)}}};
    x->gates = gates;
    x->gate_count = 1;
    struct summary out;
    ASSERT_OK(summarize(&r, x, arena, &out, &e), e);
    assert_int_equal(out.place_count, 3 + 6);
    assert_string_equal(out.places[0].moved, "each of order, day, contact");
    for (int i = 0; i < out.table_count; i++) {
        const struct summary_table *t = &out.tables[i];
        bool all = strcmp(t->constraint, "all") == 0;
        assert_int_equal(t->cell_count, all ? 6 : 3);
        for (int k = 0; k < t->cell_count; k++) {
            const struct summary_place *place = &out.places[t->cells[k].column];
            assert_int_equal(t->cells[k].rate.n, all ? 4 : 8);
            assert_int_equal(t->cells[k].rate.repeats, 4);
            assert_true(all == str_starts(str_from(place->place), STR("order-")));
            int met = all || strcmp(place->place, "middle") == 0 ? 0 : 8;
            assert_int_equal(t->cells[k].rate.met, met);
        }
    }
    int gaps = 0;
    for (int i = 0; i < out.contrast_count; i++) {
        const struct summary_contrast *c = &out.contrasts[i];
        assert_string_not_equal(c->constraint, "all");
        if (strcmp(c->name, "middle_against_ends") != 0) continue;
        gaps++;
        assert_true(c->effect == 1.0);
        assert_int_equal(c->repeats, 4);
    }
    assert_int_equal(gaps, 3);
    assert_int_equal(out.gates[0].n, 8);
    assert_string_equal(out.gates[0].measured, "0/8 met");
    experiment_close(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings_go_there_and_back),
        cmocka_unit_test(random_places_are_ordered),
        cmocka_unit_test_setup_teardown(a_rule_stands_at_both_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(places_belong_where_they_may, setup, teardown),
        cmocka_unit_test_setup_teardown(gates_ask_for_such_places, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_leave_constraints_out, setup, teardown),
        cmocka_unit_test(rates_are_over_what_was_asked),
        cmocka_unit_test(orders_are_balanced),
        cmocka_unit_test_setup_teardown(constraints_are_scattered, setup, teardown),
        cmocka_unit_test_setup_teardown(scattering_is_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(scattered_rows_are_read_by_own_depth, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

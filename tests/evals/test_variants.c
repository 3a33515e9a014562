// Wordings of a constraint: drawn for repeats or crossed, and what the plan keeps of them.
#include "tests/evals/plan_sample.h"

#include "engine/base/rng.h"
#include "reports/record_internal.h"

#include <stdio.h>

static const char row[] = "  - {id: row, move: [order], depths: [start, end],\n"
                          "     others: {day: 25%, contact: 75%}}\n";
#define ORDER                                                                                      \
    "constraints[0]={id: order, kind: state, value: '{{code}}', "                                  \
    "vars: {code: {kind: digits, count: 5}}, variants: "
static const char three[] = ORDER "['The order number is {{code}}.', 'Order number: {{code}}.', "
                                  "'Note {{code}} as the number of the order.']}";
static const char crossed[] = ORDER "['The order number is {{code}}.', 'Order number: {{code}}.', "
                                    "'Note {{code}} as the number.'], draw_variants: cross}";

static int variant_of(const struct record_trial *t, const char *constraint) {
    for (int i = 0; i < t->variant_count; i++)
        if (strcmp(t->variants[i].constraint, constraint) == 0) return t->variants[i].variant;
    return 0;
}

// Over each block of three repeats each wording stands once; the same in all cells of a repeat, and
// whatever else is planned.
static void wordings_are_drawn_in_balance(void **state) {
    (void)state;
    struct experiment *x;
    override(three);
    override("repeats=12");
    override("arms=[placed, absent, short]");
    struct plan p = make(row, NULL, &x);
    int drawn[12], orders = 0;
    assert_int_equal(p.trial_count, 12 * (2 + 1 + 1));
    for (int r = 0; r < 12; r++) {
        const struct record_trial *t =
            planned_find(&p, arena_printf(arena, "fake/placed/256/row@start/%d/0", r));
        drawn[r] = variant_of(t, "order");
        assert_in_range(drawn[r], 1, 3);
        assert_int_equal(t->variant_count, 1);
        t = planned_find(&p, arena_printf(arena, "fake/placed/256/row@end/%d/0", r));
        assert_int_equal(variant_of(t, "order"), drawn[r]);
        t = planned_find(&p, arena_printf(arena, "fake/short/-/-/%d/0", r));
        assert_int_equal(variant_of(t, "order"), drawn[r]);
        t = planned_find(&p, arena_printf(arena, "fake/absent/256/-/%d/0", r));
        assert_int_equal(t->variant_count, 0);
        if (r % 3 != 2) continue;
        assert_int_equal((1 << drawn[r]) | (1 << drawn[r - 1]) | (1 << drawn[r - 2]), 0xE);
        orders |= 1 << (drawn[r - 2] * 3 + drawn[r - 1]);
    }
    assert_true((orders & (orders - 1)) != 0); // blocks differ
    experiment_close(x);
    overrides[1] = "repeats=4";
    p = make(row, NULL, &x);
    for (int r = 0; r < 4; r++)
        assert_int_equal(
            variant_of(planned_find(&p, arena_printf(arena, "fake/placed/256/row@end/%d/0", r)),
                       "order"),
            drawn[r]);
    experiment_close(x);
}

static void wordings_are_crossed(void **state) {
    (void)state;
    struct experiment *x;
    struct err e = {0};
    override(crossed);
    struct plan p = make(row, NULL, &x);
    assert_int_equal(p.trial_count, 4 * (2 * 3 + 1));
    static const char *const texts[] = {"The order number is", "Order number:", "Note"};
    struct provider *providers[] = {fake};
    for (int v = 1; v <= 3; v++) {
        const char *key = arena_printf(arena, "fake/placed/256/row@end~%d/2/0", v);
        const struct record_trial *t = planned_find(&p, key);
        assert_int_equal(variant_of(t, "order"), v);
        assert_string_equal(t->depth, "100.000");
        assert_int_equal(t->prompt_tokens, 256);
        struct record_trial again;
        struct record_part *parts;
        size_t count;
        ASSERT_OK(plan_prompt(x, providers, key, arena, &again, &parts, &count, &e), e);
        struct buf text = {0};
        for (size_t i = 0; i < count; i++) buf_add_str(&text, parts[i].text);
        const struct record_span *s = &t->spans[t->span_count - 1];
        assert_string_equal(s->constraint, "order");
        assert_true(str_starts(str_slice(buf_str(&text), s->first_byte, s->first_byte + s->bytes),
                               str_from(texts[v - 1])));
        buf_free(&text);
    }
    experiment_close(x);
    p = make(row, "variant=3,depth=end", &x);
    assert_int_equal(p.trial_count, 4);
    experiment_close(x);
    ASSERT_FAILS(load(row, "variant=4", &x, &e), e, ERR_CONFIG, "no row crosses a wording '4'");
    // A row that leaves the constraint out has nothing to cross.
    p = make("  - {id: row, move: [order], depths: [start], others: {day: 25%, contact: 75%}}\n"
             "  - {id: rest, move: [day], depths: [end], others: {order: absent, contact: 75%}}\n",
             "arm=placed", &x);
    assert_int_equal(p.trial_count, 4 * (3 + 1));
    planned_find(&p, "fake/placed/256/rest@end/0/0");
    experiment_close(x);
}

static void wordings_stand_in_the_record(void **state) {
    (void)state;
    struct experiment *x;
    struct err e = {0};
    override(three);
    override(
        "constraints[1]={id: day, kind: state, value: '{{day}}', variants: ['Pickup: {{day}}.', "
        "'On {{day}}.'], vars: {day: {kind: choice, choices: [Monday, Tuesday]}}}");
    struct plan p = make(row, NULL, &x);
    for (int64_t i = 0; i < p.trial_count; i++) {
        json_t *line;
        struct record_trial back;
        ASSERT_OK(record_trial_write(&p.trials[i], &line, &e), e);
        ASSERT_OK(record_trial_read(line, "line", arena, &back, &e), e);
        assert_int_equal(back.variant_count, p.trials[i].placement == NULL ? 0 : 2);
        for (int k = 0; k < back.variant_count; k++)
            assert_int_equal(variant_of(&back, x->constraints[k].id),
                             variant_of(&p.trials[i], x->constraints[k].id));
        json_decref(line);
    }
    experiment_close(x);
}

static void wordings_are_checked(void **state) {
    (void)state;
    struct experiment *x;
    struct err e = {0};
    static const struct {
        const char *first, *second, *expected;
    } wrong[] = {
        {"constraints[0].draw_variants=cross", NULL, "draw_variants: there are no variants"},
        {"constraints[0].variants=[a, b]", NULL, "variants: text is given too"},
        {ORDER "['{{code}}!', 'It is {{code}}.', '{{code}}!']}", NULL,
         "variants[2]: is the same text as variants[0]"},
        {ORDER "['{{code}}!', 'It is {{cod}}.']}", NULL, "did you mean {{code}}"},
        {ORDER "['{{code}}!']}", NULL, "constraints[0].variants: "},
        {"constraints[0]={id: order, kind: state, value: a}", NULL, "text: is missing"},
        {"constraints[0]={id: order, kind: state, variants: [a b, a c, a d], value: a, "
         "draw_variants: cross}",
         "constraints[1]={id: day, kind: state, variants: [x y, y z], value: a, draw_variants: "
         "cross}",
         "crossed wordings change together"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        override_count = 0;
        override(wrong[i].first);
        if (wrong[i].second != NULL) override(wrong[i].second);
        ASSERT_FAILS(load(row, NULL, &x, &e), e, ERR_CONFIG, wrong[i].expected);
    }
    override_count = 0;
    override(ORDER "['The order number is {{code}}.', 'There is an order.']}");
    ASSERT_OK(load(row, NULL, &x, &e), e);
    assert_int_equal(x->warning_count, 1);
    assert_non_null(strstr(x->warnings[0], "does not use {{code}}"));
    experiment_close(x);
}

// Wording 2 is never understood; at the end every other wording is.
static bool met_by_wording(const struct record_trial *t, int constraint) {
    return constraint == 0 && variant_of(t, "order") != 2 && t->placement != NULL &&
           strcmp(t->depth, "100.000") == 0;
}

static const char *cell(const struct summary_grid *g, const char *group, int column) {
    for (int i = 0; i < g->row_count; i++)
        if (strcmp(g->rows[i][0], group) == 0) return g->rows[i][column];
    fail_msg("no group %s", group);
    return NULL;
}

static void spreads_stand_side_by_side(void **state) {
    (void)state;
    struct experiment *x;
    struct err e = {0};
    struct summary out;
    override(crossed);
    override("repeats=10");
    struct plan p = make(row, NULL, &x);
    struct record r = made_up(&p, x, met_by_wording);
    ASSERT_OK(summarize(&r, x, arena, &out, &e), e);
    assert_int_equal(out.grid_count, 1);
    const struct summary_grid *g = &out.grids[0];
    assert_string_equal(g->title, "Wordings of order, fake");
    assert_int_equal(g->row_count, 3 + 2);
    assert_string_equal(cell(g, "wording 1", 2), "10/20");
    assert_string_equal(cell(g, "wording 2", 2), "0/20");
    assert_string_equal(cell(g, "wording 2", 1), "Order number: {{code}}.");
    assert_string_equal(cell(g, "start", 2), "0/30");
    assert_string_equal(cell(g, "end", 2), "20/30");
    assert_int_equal(g->sentence_count, 2);
    assert_true(str_starts(str_from(g->sentences[0]),
                           STR("Spread between wordings: 50.0 points (0.0 to 50.0 %), 95 % bounds "
                               "of the true range ")));
    assert_true(str_starts(str_from(g->sentences[1]),
                           STR("Spread between places: 66.7 points (0.0 to 66.7 %), 95 % bounds")));
    struct buf text = {0};
    ASSERT_OK(report_markdown(&r, &out, &text, &e), e);
    assert_non_null(strstr(text.p, "## Wordings of order, fake"));
    assert_non_null(strstr(text.p, "| wording 2 |"));
    buf_free(&text);
    experiment_close(x);
    // Drawn: no repeat has two wordings, and the report says so.
    overrides[0] = three;
    p = make(row, NULL, &x);
    r = made_up(&p, x, met_by_wording);
    ASSERT_OK(summarize(&r, x, arena, &out, &e), e);
    assert_non_null(strstr(out.grids[0].sentences[0], "no repeat has them all"));
    assert_non_null(strstr(out.grids[0].sentences[1], "95 % bounds"));
    experiment_close(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(wordings_are_drawn_in_balance, setup, teardown),
        cmocka_unit_test_setup_teardown(wordings_are_crossed, setup, teardown),
        cmocka_unit_test_setup_teardown(wordings_stand_in_the_record, setup, teardown),
        cmocka_unit_test_setup_teardown(wordings_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(spreads_stand_side_by_side, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

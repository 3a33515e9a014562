// Constraints that contradict each other: which one wins, and what the report says of it.
#include "tests/evals/plan_sample.h"

#include <stdio.h>

static const char two_ends[] = "  - {id: row, scatter: [order, day], depths: [start, end],\n"
                               "     others: {contact: middle}}\n";

static size_t place_of(const struct record_trial *t, int constraint) {
    static const char *const ids[] = {"order", "day", "contact"};
    for (int i = 0; i < t->span_count; i++)
        if (strcmp(t->spans[i].constraint, ids[constraint]) == 0) return t->spans[i].first_byte;
    return 0;
}

static bool later_wins(const struct record_trial *t, int c) {
    return c < 2 && place_of(t, c) > place_of(t, 1 - c);
}

static bool order_wins(const struct record_trial *t, int c) {
    (void)t;
    return c == 0;
}

// The later one in repeats 0 to 8, else neither or both.
static bool mostly_later(const struct record_trial *t, int c) {
    if (t->repeat < 9) return later_wins(t, c);
    return t->repeat % 2 == 0;
}

static struct summary summary_of(const char *placements, const char *repeats,
                                 bool (*met)(const struct record_trial *, int),
                                 struct experiment **x) {
    struct err e = {0};
    struct summary out;
    override_count = 0;
    override("constraints[1].contradicts=order");
    override(repeats);
    struct plan p = make(placements, NULL, x);
    struct record r = made_up(&p, *x, met);
    ASSERT_OK(summarize(&r, *x, arena, &out, &e), e);
    return out;
}

static void check_row(const struct summary_grid *g, int row, const char *const *cells) {
    for (int i = 0; i < g->column_count; i++) assert_string_equal(g->rows[row][i], cells[i]);
}

static void the_later_one_wins(void **state) {
    (void)state;
    struct experiment *x;
    struct summary s = summary_of(two_ends, "repeats=12", later_wins, &x);
    assert_int_equal(s.grid_count, 1);
    const struct summary_grid *g = &s.grids[0];
    assert_string_equal(g->title, "order against day, fake");
    assert_int_equal(g->row_count, 3);
    check_row(g, 0,
              (const char *[]){"order first", "12", "0 (0 %)", "0 (0 %)", "12 (100 %)", "0 (0 %)"});
    check_row(g, 2,
              (const char *[]){"both orders", "24", "0 (0 %)", "0 (0 %)", "24 (100 %)", "0 (0 %)"});
    // 2 / 2^12, to four digits
    assert_non_null(strstr(g->sentences[0], "Late wins: the later one is met 100.0 points more "
                                            "often"));
    assert_non_null(strstr(g->sentences[0], "p = 0.0005, 12 repeats"));
    assert_int_equal(g->sentence_count, 1);
    experiment_close(x);
}

// Rows that give one prompt have one reply, which counts once.
static void equal_prompts_count_once(void **state) {
    (void)state;
    static const char twice[] = "  - {id: row, scatter: [order, day], depths: [start, end],\n"
                                "     others: {contact: middle}}\n"
                                "  - {id: again, scatter: [order, day], depths: [start, end],\n"
                                "     others: {contact: middle}}\n";
    struct experiment *x;
    struct summary s = summary_of(twice, "repeats=12", later_wins, &x);
    assert_string_equal(s.grids[0].rows[2][1], "24");
    experiment_close(x);
}

// What one text has over the other is no effect of places.
static void a_stronger_text_is_no_place(void **state) {
    (void)state;
    struct experiment *x;
    struct summary s = summary_of(two_ends, "repeats=12", order_wins, &x);
    const struct summary_grid *g = &s.grids[0];
    check_row(g, 0,
              (const char *[]){"order first", "12", "0 (0 %)", "12 (100 %)", "0 (0 %)", "0 (0 %)"});
    check_row(g, 1,
              (const char *[]){"day first", "12", "0 (0 %)", "0 (0 %)", "12 (100 %)", "0 (0 %)"});
    assert_non_null(strstr(g->sentences[0], "No difference shown between early and late: the later "
                                            "one is met 0.0 points"));
    experiment_close(x);
}

static void mixed_replies_are_counted(void **state) {
    (void)state;
    struct experiment *x;
    struct summary s = summary_of(two_ends, "repeats=12", mostly_later, &x);
    const struct summary_grid *g = &s.grids[0];
    // repeats 9 and 11 meet neither, repeat 10 both
    check_row(g, 2,
              (const char *[]){"both orders", "24", "2 (8 %)", "0 (0 %)", "18 (75 %)", "4 (17 %)"});
    assert_non_null(strstr(g->sentences[0], "75.0 points more often"));
    assert_non_null(strstr(g->sentences[0], "p = 0.0039")); // 2 / 2^9
    assert_non_null(strstr(g->sentences[1], "2 of 24 replies meet both"));
    experiment_close(x);
    s = summary_of(two_ends, "repeats=4", later_wins, &x);
    assert_non_null(strstr(s.grids[0].sentences[0], "Underpowered: 4 repeats"));
    experiment_close(x);
}

static void one_order_alone_tells_nothing(void **state) {
    (void)state;
    struct experiment *x;
    struct summary s = summary_of("  - {id: row, move: [order], depths: [start, start+end],\n"
                                  "     others: {day: middle, contact: middle}}\n",
                                  "repeats=12", later_wins, &x);
    const struct summary_grid *g = &s.grids[0];
    // A rule at both ends stands neither before nor behind the other.
    assert_string_equal(g->rows[2][1], "12");
    assert_non_null(strstr(g->sentences[0], "cannot be told: no repeat has both orders"));
    experiment_close(x);
}

static void names_are_checked(void **state) {
    (void)state;
    struct experiment *x;
    struct err e = {0};
    override("constraints[1].contradicts=ordr");
    ASSERT_FAILS(load(two_ends, NULL, &x, &e), e, ERR_CONFIG, "did you mean 'order'");
    overrides[0] = "constraints[1].contradicts=day";
    ASSERT_FAILS(load(two_ends, NULL, &x, &e), e, ERR_CONFIG, "'day' cannot contradict itself");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_later_one_wins, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_prompts_count_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stronger_text_is_no_place, setup, teardown),
        cmocka_unit_test_setup_teardown(mixed_replies_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(one_order_alone_tells_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_checked, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

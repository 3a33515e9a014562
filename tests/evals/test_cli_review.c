// Audits: the blind sample, the strict import, agreement against values worked out by hand, and
// what `lacuna review` leaves in a run.
#include "tests/support/fast_folder.h"
#include "tests/support/sample_run.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/log.h"
#include "evals/review.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

// ---- a record in memory ----

enum { TRIALS = 400 };
static const char hostile[] = "=1+1, \"quoted\"\r\nnext; , end";

struct made {
    struct experiment x;
    struct record r;
};

// Of "a": 90 % met, of "b": 5 % violated, 5 % check errors, 10 % cut.
static struct made *make(void) {
    struct arena *a = test_arena;
    struct made *m = arena_alloc(a, sizeof *m);
    m->x.constraint_count = 2;
    m->x.constraints = arena_array(a, 2, sizeof *m->x.constraints);
    m->x.constraints[0] =
        (struct experiment_constraint){.id = "a", .text = STR("Say {{code}}, please.")};
    m->x.constraints[1] = (struct experiment_constraint){.id = "b", .text = STR("Be brief.")};
    struct record *r = &m->r;
    r->trial_count = TRIALS;
    r->trials = arena_array(a, TRIALS, sizeof *r->trials);
    r->outcomes = arena_array(a, TRIALS, sizeof *r->outcomes);
    snprintf(r->ledger_sha256, sizeof r->ledger_sha256, "%064d", 7);
    for (int i = 0; i < TRIALS; i++) {
        struct record_outcome *o = arena_alloc(a, sizeof *o);
        struct record_trial *t = &r->trials[i];
        t->key = arena_printf(a, "m/placed/512/row@middle/%d/0", i);
        t->vars = arena_alloc(a, sizeof *t->vars);
        t->vars[0] = (struct record_var){"a", "code", str_from(arena_printf(a, "c%d", i))};
        t->var_count = 1;
        o->status = STATUS_OK;
        o->reply = str_from(hostile);
        o->answer[1] = o->reply.n;
        o->verdict_count = 2;
        o->verdicts = arena_array(a, 2, sizeof *o->verdicts);
        o->verdicts[0] = (struct record_verdict){
            .constraint = "a", .verdict = i % 10 == 0 ? VERDICT_OMITTED : VERDICT_MET};
        o->verdicts[1] = (struct record_verdict){.constraint = "b", .verdict = VERDICT_MET};
        if (i % 20 == 0) o->verdicts[1].verdict = VERDICT_VIOLATED;
        if (i % 20 == 1 || i % 10 == 2) {
            o->verdicts[1].verdict = VERDICT_UNSCORED;
            o->verdicts[1].reason = i % 20 == 1 ? "check:match_limit" : "cut";
        }
        r->outcomes[i] = o;
    }
    return m;
}

static struct review_rows draw(const struct made *m, int sample, uint64_t seed) {
    struct review_rows rows;
    struct err e = {0};
    ASSERT_OK(review_draw(&m->r, &m->x, sample, seed, test_arena, &rows, &e), e);
    return rows;
}

static int count_of(const struct review_rows *rows, int constraint, enum review_label said) {
    int n = 0;
    for (int i = 0; i < rows->count; i++)
        n += rows->rows[i].constraint == constraint && rows->rows[i].said == said;
    return n;
}

static void samples_hold_every_kind_of_verdict(void **state) {
    (void)state;
    struct made *m = make();
    struct review_rows rows = draw(m, 60, 1);
    assert_int_equal(rows.count, 60);
    assert_int_equal(rows.population_all, 2 * TRIALS - TRIALS / 20); // errors of checks are out
    assert_int_equal(count_of(&rows, 0, REVIEW_MET), 12);
    assert_int_equal(count_of(&rows, 0, REVIEW_OMITTED), 12);
    assert_int_equal(count_of(&rows, 1, REVIEW_MET), 12);
    assert_int_equal(count_of(&rows, 1, REVIEW_OMITTED), 12); // cut
    assert_int_equal(count_of(&rows, 1, REVIEW_VIOLATED), 12);
    for (int i = 0; i < rows.count; i++)
        for (int k = 0; k < i; k++) assert_string_not_equal(rows.rows[i].id, rows.rows[k].id);
    struct review_rows again = draw(m, 60, 1), other = draw(m, 60, 2);
    int same = 0;
    for (int i = 0; i < 60; i++) {
        assert_string_equal(again.rows[i].id, rows.rows[i].id);
        same += strcmp(other.rows[i].id, rows.rows[i].id) == 0;
    }
    assert_true(same < 10);
    // Not sorted by verdict: a reader cannot guess from the place.
    int changes = 0;
    for (int i = 1; i < 60; i++) changes += rows.rows[i].said != rows.rows[i - 1].said;
    assert_true(changes > 15);
    rows = draw(m, 100000, 1); // all there is
    assert_int_equal(rows.count, rows.population_all);
    rows = draw(m, 45, 1); // a small stratum gives what it has (20), others the rest
    assert_int_equal(count_of(&rows, 1, REVIEW_VIOLATED), 9);
    m->r.trial_count = 0;
    struct err e = {0};
    ASSERT_FAILS(review_draw(&m->r, &m->x, 60, 1, test_arena, &rows, &e), e, ERR_RECORD,
                 "no verdict");
}

static void files_are_blind_and_harmless(void **state) {
    (void)state;
    struct made *m = make();
    struct review_rows rows = draw(m, 20, 3);
    struct buf csv = {0};
    struct err e = {0};
    ASSERT_OK(review_csv(&m->r, &m->x, &rows, test_arena, &csv, &e), e);
    static const char *const secrets[] = {"placed", "middle", "violated", "omitted", "cut"};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        assert_null(strstr(csv.p, secrets[i]));
    const char *path = path_join(test_arena, test_folder(), "sample.csv");
    test_write(path, buf_str(&csv));
    struct case_table table;
    ASSERT_OK(cases_load(path, "id", test_arena, &table, &e), e);
    assert_int_equal(table.row_count, 20);
    assert_int_equal(table.column_count, 4);
    for (int i = 0; i < 20; i++) {
        const struct review_row *row = &rows.rows[i];
        const char *text = row->constraint == 0
                               ? arena_printf(test_arena, "Say c%d, please.", (int)row->trial)
                               : "Be brief.";
        assert_true(str_equal_c(table.rows[i].values[1], text));
        assert_true(str_equal_c(table.rows[i].values[2],
                                arena_printf(test_arena, "'%s", hostile))); // no formula
        assert_int_equal(table.rows[i].values[3].n, 0);
    }
    buf_free(&csv);
}

static const char *filled(const struct review_rows *rows, int from, const char *label,
                          const char *more) {
    struct buf b = {0};
    buf_add_c(&b, "\xEF\xBB\xBFhuman,id\n"); // as a spreadsheet may save it: other columns, a BOM
    for (int i = from; i < rows->count; i++) buf_printf(&b, "%s,%s\n", label, rows->rows[i].id);
    buf_add_c(&b, more);
    const char *path = path_join(test_arena, test_folder(), "filled.csv");
    test_write(path, buf_str(&b));
    buf_free(&b);
    return path;
}

static void imports_are_strict(void **state) {
    (void)state;
    struct made *m = make();
    struct review_rows rows = draw(m, 20, 3);
    struct err e = {0};
    ASSERT_OK(review_read(filled(&rows, 0, " met ", ""), &rows, test_arena, &e), e);
    for (int i = 0; i < 20; i++) assert_int_equal(rows.rows[i].human, REVIEW_MET);
    ASSERT_FAILS(review_read(filled(&rows, 0, "", ""), &rows, test_arena, &e), e, ERR_INPUT,
                 "human is \"\"; expected met, omitted, violated or unsure");
    ASSERT_FAILS(review_read(filled(&rows, 0, "yes", ""), &rows, test_arena, &e), e, ERR_INPUT,
                 "human is \"yes\"");
    ASSERT_FAILS(review_read(filled(&rows, 1, "met", ""), &rows, test_arena, &e), e, ERR_INPUT,
                 arena_printf(test_arena, "%s: is missing", rows.rows[0].id));
    ASSERT_FAILS(review_read(filled(&rows, 0, "met", "met,rabcdef\n"), &rows, test_arena, &e), e,
                 ERR_INPUT, "rabcdef: is no row of this sample");
    const char *twice = arena_printf(test_arena, "met,%s\n", rows.rows[0].id);
    assert_int_equal(review_read(filled(&rows, 0, "met", twice), &rows, test_arena, &e), -1);
    ASSERT_FAILS(review_read("x.txt", &rows, test_arena, &e), e, ERR_INPUT, "ends in .csv");
    const char *path = path_join(test_arena, test_folder(), "other.csv");
    test_write(path, STR("id,verdict\nx,met\n"));
    ASSERT_FAILS(review_read(path, &rows, test_arena, &e), e, ERR_INPUT, "no column 'human'");
}

// 90 met of which 5 of 5 agree, 10 omitted of which 3 of 5: weights 18 and 2, so 0.9 + 0.1 x 0.6;
// effective size 100^2 / (5 x 18^2 + 5 x 2^2); Wilson's bounds at that size from statsmodels.
static void agreement_is_weighted_back(void **state) {
    (void)state;
    struct review_row list[11];
    int population[REVIEW_CLASSES] = {90, 10, 0};
    struct review_rows rows = {list, 11, population, 100};
    for (int i = 0; i < 11; i++)
        list[i] = (struct review_row){.said = i < 5 ? REVIEW_MET : REVIEW_OMITTED,
                                      .human = i < 5 || i >= 8 ? REVIEW_MET : REVIEW_OMITTED};
    list[10].human = REVIEW_UNSURE;
    struct review_agreement g;
    review_agree(&rows, 1, -1, &g);
    assert_int_equal(g.rows, 11);
    assert_int_equal(g.unsure, 1);
    assert_int_equal(g.judged, 10);
    assert_int_equal(g.agreed, 8);
    assert_true(g.share > 0.96 - 1e-12 && g.share < 0.96 + 1e-12);
    assert_true(g.interval.low > 0.566682743 - 1e-8 && g.interval.low < 0.566682743 + 1e-8);
    assert_true(g.interval.high > 0.997734695 - 1e-8 && g.interval.high < 0.997734695 + 1e-8);
    // po = 0.96, pe = 0.9 x 0.94 + 0.1 x 0.06
    assert_true(g.has_kappa && g.kappa > 0.7297297 - 1e-6 && g.kappa < 0.7297298 + 1e-6);
    assert_true(g.covered == 1);
    assert_int_equal(g.table[REVIEW_OMITTED][REVIEW_MET], 2);
    rows.count = 5; // no omitted row is judged: nothing is known of a tenth
    review_agree(&rows, 1, -1, &g);
    assert_true(g.covered > 0.9 - 1e-12 && g.covered < 0.9 + 1e-12);
    assert_false(g.has_kappa);
}

// The weighted share is right on the average, the raw one is not: checks of "b" that say violated
// are wrong every time here, and they are one in twenty.
static void the_weighted_share_is_unbiased(void **state) {
    (void)state;
    struct made *m = make();
    double sum = 0, raw = 0;
    enum { DRAWS = 300 };
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        struct review_rows rows = draw(m, 60, seed);
        for (int i = 0; i < rows.count; i++) {
            struct review_row *r = &rows.rows[i];
            bool wrong = r->said == REVIEW_VIOLATED || (r->said == REVIEW_MET && r->trial % 8 == 3);
            r->human = !wrong ? r->said : REVIEW_OMITTED;
        }
        struct review_agreement g;
        review_agree(&rows, 2, -1, &g);
        sum += g.share;
        raw += (double)g.agreed / g.judged;
    }
    int agree = 0, all = 0;
    for (int i = 0; i < TRIALS; i++)
        for (int k = 0; k < 2; k++) {
            const struct record_verdict *v = &m->r.outcomes[i]->verdicts[k];
            enum review_label said;
            if (!review_label_of(v, &said)) continue;
            all++;
            agree += said != REVIEW_VIOLATED && !(said == REVIEW_MET && i % 8 == 3);
        }
    double truth = (double)agree / all;
    if (sum / DRAWS < truth - 0.01 || sum / DRAWS > truth + 0.01)
        fail_msg("%.3f, truth %.3f", sum / DRAWS, truth);
    assert_true(raw / DRAWS < truth - 0.05);
}

// ---- the program ----

static int lacuna(const char *arguments, struct str *answer) {
    const char *out = path_join(test_arena, fast_folder(), "out");
    struct err e = {0};
    int status = system(
        arena_printf(test_arena, "%s/lacuna %s > %s 2>&1", LACUNA_BINARY_DIR, arguments, out));
    assert_true(WIFEXITED(status));
    ASSERT_OK(file_read(out, (size_t)1 << 24, test_arena, answer, &e), e);
    return WEXITSTATUS(status);
}

#define ASSERT_HAS(text, part)                                                                     \
    do {                                                                                           \
        if (str_find((text), str_from(part), 0) == STR_NONE)                                       \
            fail_msg("\"" STR_FMT "\" lacks \"%s\"", STR_ARG(text), (part));                       \
    } while (0)

static void reports_say_who_looked(void **state) {
    (void)state;
    struct arena *a = test_arena;
    struct err e = {0};
    const char *experiment =
        sample_experiment(a, fast_folder(), "reviewed", 4, "\"in_flight\": 2",
                          "{\"reply\": \"The order is {{0}}, the day tuesday.\", \"copy_after\": "
                          "[\"The order number is \"]}");
    const char *run = path_join(a, fast_folder(), "run");
    const char *csv = path_join(a, fast_folder(), "s.csv");
    struct run_result result;
    struct str answer, ledger, now, text;
    ASSERT_OK(sample_run_report(experiment, run, false, &result, &e), e);
    ASSERT_OK(file_read(path_join(a, run, "trials.jsonl"), 1 << 24, a, &ledger, &e), e);
    ASSERT_OK(file_read(path_join(a, run, "report.md"), 1 << 24, a, &text, &e), e);
    ASSERT_HAS(text, "never audited by a human");
    assert_int_equal(lacuna(arena_printf(a, "review %s --sample 8 -o %s", run, csv), &answer), 0);
    ASSERT_HAS(answer, "8 rows");
    assert_int_equal(lacuna(arena_printf(a, "review %s -o %s", run, csv), &answer), 2);
    ASSERT_HAS(answer, "s.csv: is there already");
    ASSERT_OK(file_read(csv, 1 << 24, a, &text, &e), e);
    struct buf filled_in = {0};
    int rows = 0;
    for (size_t at = 0, end; at < text.n; at = end + 2) {
        end = str_find(text, STR("\r\n"), at);
        buf_add_str(&filled_in, str_slice(text, at, end));
        buf_add_c(&filled_in, rows++ == 0 ? "\r\n" : rows == 2 ? "unsure\r\n" : "omitted\r\n");
    }
    assert_int_equal(rows, 9);
    test_write(csv, buf_str(&filled_in));
    buf_free(&filled_in);
    const char *import = arena_printf(a, "review %s --sample 8 --import %s", run, csv);
    if (lacuna(import, &answer) != 0) fail_msg(STR_FMT, STR_ARG(answer));
    ASSERT_HAS(answer, "(1 unsure)");
    ASSERT_HAS(answer, "/reviews/review-");
    assert_int_equal(lacuna(import, &answer), 0);
    ASSERT_HAS(answer, "(was there already)");
    assert_int_equal(lacuna(arena_printf(a, "%s --seed 2", import), &answer), 1);
    ASSERT_HAS(answer, "is not the filled-in sample");
    assert_int_equal(lacuna(arena_printf(a, "%s --json", import), &answer), 0);
    ASSERT_HAS(answer, "\"unsure\":1,\"judged\":7");
    assert_int_equal(lacuna(arena_printf(a, "report %s", run), &answer), 0);
    ASSERT_HAS(answer, "The checks agree with a human on ");
    ASSERT_HAS(answer, " of 7 sampled verdicts, 1 unsure.");
    static const char *const reports[] = {"report.md", "report.html"};
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(file_read(path_join(a, run, reports[i]), 1 << 24, a, &text, &e), e);
        ASSERT_HAS(text, "of 7 sampled verdicts");
    }
    assert_int_equal(lacuna(arena_printf(a, "verify %s", run), &answer), 0);
    ASSERT_OK(file_read(path_join(a, run, "trials.jsonl"), 1 << 24, a, &now, &e), e);
    assert_true(str_equal(ledger, now)); // verdicts are never changed
    char **names;
    size_t count, at;
    ASSERT_OK(file_list(path_join(a, run, "reviews"), a, &names, &count, &e), e);
    assert_int_equal(count, 1);
    const char *review = path_join(a, path_join(a, run, "reviews"), names[0]);
    ASSERT_OK(file_read(review, 1 << 24, a, &text, &e), e);
    at = str_find(text, STR("\"human\":\"omitted\""), 0);
    assert_true(at != STR_NONE);
    test_write(review, str_from(arena_printf(a, STR_FMT "\"human\":\"met\"%s", (int)at, text.p,
                                             text.p + at + strlen("\"human\":\"omitted\""))));
    assert_int_equal(lacuna(arena_printf(a, "report %s", run), &answer), 1);
    ASSERT_HAS(answer, "was changed after it was written");
}

// 25 / 11 * 11 is above 25 in doubles, and likewise for many sizes.
static void full_agreement_is_1_whatever_the_weights(void **state) {
    (void)state;
    for (int judged = 1; judged <= 60; judged++) {
        for (int verdicts = judged; verdicts <= 120; verdicts++) {
            struct review_row list[60] = {0};
            int population[REVIEW_CLASSES] = {[REVIEW_MET] = verdicts};
            struct review_rows rows = {list, judged, population, verdicts};
            struct review_agreement g;
            for (int i = 0; i < judged; i++) list[i].said = list[i].human = REVIEW_MET;
            review_agree(&rows, 1, -1, &g);
            assert_int_equal(g.agreed, judged);
            assert_true(g.share > 1 - 1e-12 && g.share <= 1);
            assert_true(g.interval.low < 1 && g.interval.high == 1);
        }
    }
}

int main(void) {
    log_set_level(LOG_QUIET);
#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)
    const struct CMUnitTest tests[] = {
        TEST(samples_hold_every_kind_of_verdict),
        TEST(files_are_blind_and_harmless),
        TEST(imports_are_strict),
        TEST(agreement_is_weighted_back),
        TEST(the_weighted_share_is_unbiased),
        TEST(full_agreement_is_1_whatever_the_weights),
        TEST(reports_say_who_looked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

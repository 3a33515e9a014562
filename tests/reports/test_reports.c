// Renderers: axis and figures agree with the data (B55), no text runs as code (B57), CSV survives
// spreadsheets and strict parsers (B59). The summary is built by hand, so that only rendering is
// tested.
#include "tests/support/support.h"

#include "reports/escape.h"
#include "reports/layout.h"
#include "reports/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTHS = 3, DEPTHS = 5, REPEATS = 12 };
static int lengths[LENGTHS] = {512, 2048, 16384};
static const int32_t depths[DEPTHS] = {100000, 0, 50000, 25000, 75000}; // as a file may list them
static const char *const depth_names[DEPTHS] = {"end", "start", "middle", "25%", "75%"};

struct fixture {
    struct arena *arena;
    struct summary summary;
    struct record record;
};

static struct summary_rate rate_of(int met, int n) {
    return (struct summary_rate){.n = n,
                                 .met = met,
                                 .repeats = n,
                                 .rate = n > 0 ? (double)met / n : 0,
                                 .low = 0.1,
                                 .high = 0.9,
                                 .underpowered = n < 10,
                                 .finished_n = n,
                                 .finished_met = met};
}

// One constraint over 3 lengths and 5 depths; only (2048, 75 %) fails.
static void fill_table(struct arena *a, struct summary *s) {
    struct summary_table *t = arena_alloc(a, sizeof *t);
    t->model = s->models[0].id;
    t->constraint = s->constraints[0];
    t->cell_count = LENGTHS * DEPTHS;
    t->cells = arena_array(a, (size_t)t->cell_count, sizeof *t->cells);
    for (int l = 0; l < LENGTHS; l++)
        for (int d = 0; d < DEPTHS; d++)
            t->cells[l * DEPTHS + d] = (struct summary_cell){
                .length = l,
                .column = d,
                .rate = rate_of(lengths[l] == 2048 && depths[d] == 75000 ? 0 : REPEATS, REPEATS)};
    t->absent = arena_array(a, LENGTHS, sizeof *t->absent);
    for (int l = 0; l < LENGTHS; l++) t->absent[l] = rate_of(1, REPEATS);
    t->brief = rate_of(REPEATS, REPEATS);
    s->tables = t;
    s->table_count = 1;
}

static void fill_aggregate(struct arena *a, struct summary *s, const char *hostile) {
    s->aggregates = arena_alloc(a, sizeof *s->aggregates);
    s->aggregates[0] = (struct summary_aggregate){.model = hostile,
                                                  .constraint = hostile,
                                                  .placement = hostile,
                                                  .rate = rate_of(4, 8),
                                                  .level = 0.85,
                                                  .effective = "512 tokens shown",
                                                  .middle_gap = {true, true, 0.125, -0.05, 0.3, 12},
                                                  .primacy = {true, false, 0.25, 0, 0, 8},
                                                  .area = {true, true, 0.71, 0.6, 0.8, 12},
                                                  .area_to = 50000};
    s->aggregate_count = 1;
}

static struct fixture fixture_make(const char *hostile, struct str reply) {
    struct fixture f = {.arena = arena_create("test")};
    struct arena *a = f.arena;
    struct summary *s = &f.summary;
    *s = (struct summary){.experiment = hostile,
                          .request_sha256 = "r",
                          .plan_sha256 = "p",
                          .ledger_sha256 = "l",
                          .model_count = 1,
                          .constraint_count = 1,
                          .lengths = lengths,
                          .length_count = LENGTHS,
                          .place_count = DEPTHS,
                          .repeats = REPEATS,
                          .samples = 1,
                          .planned = 1,
                          .done = 1,
                          .ok = 1,
                          .does_not_show = hostile,
                          .audit = hostile};
    s->models = arena_alloc(a, sizeof *s->models);
    s->models[0] = (struct summary_model){.id = hostile,
                                          .name = hostile,
                                          .sha256 = "sha",
                                          .numerics = "bf16-1",
                                          .backend = "cpu",
                                          .tensor_types = "Q4_1",
                                          .planned = 31,
                                          .invalid = 2,
                                          .unscored = 3};
    fill_aggregate(a, s, hostile);
    s->constraints = arena_array(a, 3, sizeof *s->constraints);
    s->constraint_texts = s->constraint_kinds = s->constraints;
    s->constraints[0] = hostile;
    s->places = arena_array(a, DEPTHS, sizeof *s->places);
    for (int d = 0; d < DEPTHS; d++)
        s->places[d] = (struct summary_place){"row", depth_names[d], depths[d], "order"};
    fill_table(a, s);
    s->warnings = arena_array(a, 1, sizeof *s->warnings);
    s->warnings[0] = hostile;
    s->warning_count = 1;
    struct record_trial *t = arena_alloc(a, sizeof *t);
    *t = (struct record_trial){.key = hostile,
                               .model = hostile,
                               .arm = "placed",
                               .length = 512,
                               .placement = hostile,
                               .depth = "50.000",
                               .case_id = hostile,
                               .prompt_tokens = 512};
    struct record_outcome *o = arena_alloc(a, sizeof *o);
    *o = (struct record_outcome){.key = hostile,
                                 .attempt = 1,
                                 .status = STATUS_OK,
                                 .reply = reply,
                                 .tokens = 7,
                                 .finish = "stop",
                                 .verdict_count = 1};
    o->verdicts = arena_alloc(a, sizeof *o->verdicts);
    o->verdicts[0] = (struct record_verdict){.constraint = hostile, .verdict = VERDICT_OMITTED};
    f.record = (struct record){.folder = "/nonexistent",
                               .trials = t,
                               .trial_count = 1,
                               .outcomes = arena_alloc(a, sizeof *f.record.outcomes),
                               .done_count = 1};
    f.record.outcomes[0] = o;
    return f;
}

// "data-met" of the cell with these data attributes, straight from the markup.
static int met_in_markup(const char *html, int length, const char *place) {
    char wanted[96];
    snprintf(wanted, sizeof wanted, "data-length=\"%d\" data-place=\"%s\" data-met=\"", length,
             place);
    const char *p = strstr(html, wanted);
    assert_non_null(p);
    return (int)strtol(p + strlen(wanted), NULL, 10);
}

static void heat_map_agrees_with_the_data(void **state) {
    (void)state;
    struct err e = {0};
    struct fixture f = fixture_make("plain", STR("ok"));
    struct buf html = {0};
    ASSERT_OK(report_html(&f.record, &f.summary, &html, &e), e);
    assert_int_equal(met_in_markup(html.p, 2048, "75%"), 0);
    assert_int_equal(met_in_markup(html.p, 2048, "25%"), REPEATS);
    assert_int_equal(met_in_markup(html.p, 512, "75%"), REPEATS);
    // Colours are the page's own, which differ on a dark one; the rate says how much of them.
    const char *svg = strstr(html.p, "<svg class=\"heat\"");
    const char *full = strstr(svg, "class=\"edge high\" fill-opacity=\"1.00\"/>");
    const char *none = strstr(svg, "class=\"edge low\" fill-opacity=\"1.00\"/>");
    assert_true(full != NULL && none != NULL);
    // Depth 0 stands at the top, lengths ascend as numbers.
    const char *start = strstr(svg, ">start</text>"), *middle = strstr(svg, ">middle</text>");
    const char *end = strstr(svg, ">end</text>");
    assert_true(start < middle && middle < end);
    assert_non_null(strstr(svg, "depth (start at the top)"));
    const char *x512 = strstr(svg, ">512 tokens</text>"), *x2048 = strstr(svg, ">2048</text>");
    const char *x16384 = strstr(svg, ">16384</text>");
    assert_true(x512 < x2048 && x2048 < x16384);
    buf_free(&html);
    arena_destroy(f.arena);
}

static const char *const hostile_texts[] = {
    "<img src=x onerror=alert(1)>",       "\" autofocus onfocus=alert(1) x=\"",
    "</script><script>alert(1)</script>", "'><svg onload=alert(1)>",
    "]]></system-out><failure/>",         "\xE2\x80\xAE desrever",
    "\xFF\xFE broken \x01\x1B[31m",
};

static void check_markup(const char *text) {
    assert_null(strstr(text, "<img"));
    assert_null(strstr(text, "<script"));
    assert_null(strstr(text, "<svg onload"));
    assert_null(strstr(text, "<failure/>"));
    assert_null(strstr(text, "\" autofocus"));
    assert_null(strstr(text, "\xE2\x80\xAE"));
    assert_true(utf8_valid(str_from(text)));
    for (const char *p = text; *p != '\0'; p++)
        assert_true((unsigned char)*p >= 0x20 || *p == '\n' || *p == '\t');
}

static void no_text_runs_as_code(void **state) {
    (void)state;
    struct err e = {0};
    for (size_t i = 0; i < sizeof hostile_texts / sizeof *hostile_texts; i++) {
        struct fixture f = fixture_make(hostile_texts[i], str_from(hostile_texts[i]));
        struct buf html = {0}, xml = {0}, markdown = {0};
        ASSERT_OK(report_html(&f.record, &f.summary, &html, &e), e);
        check_markup(html.p);
        assert_non_null(strstr(html.p, "default-src 'none'"));
        ASSERT_OK(report_junit(&f.record, &f.summary, &xml, &e), e);
        check_markup(xml.p);
        ASSERT_OK(report_markdown(&f.record, &f.summary, &markdown, &e), e);
        assert_null(strstr(markdown.p, "<img"));
        assert_null(strstr(markdown.p, "<script"));
        buf_free(&html);
        buf_free(&xml);
        buf_free(&markdown);
        arena_destroy(f.arena);
    }
}

static void entities_are_shown_as_typed(void **state) {
    (void)state;
    struct buf out = {0};
    escape_html(&out, STR("&lt;b&gt; javascript:alert(1)"));
    assert_string_equal(out.p, "&amp;lt;b&amp;gt; javascript:alert(1)");
    buf_clear(&out);
    char *many = malloc(1 << 20);
    memset(many, '<', 1 << 20);
    escape_html(&out, (struct str){many, 1 << 20});
    assert_int_equal(out.n, 4u << 20);
    free(many);
    buf_free(&out);
}

static void terminals_get_nothing_to_obey(void **state) {
    (void)state;
    struct buf out = {0};
    escape_terminal(&out, STR("a\x1b[2J\r\x7f \xc2\x9b\xe2\x80\xae\t\xd8\xb1\xc3\xa9\n\xff"));
    assert_string_equal(out.p, "a?[2J?? ??\t\xd8\xb1\xc3\xa9\n\xef\xbf\xbd");
    buf_free(&out);
}

// A strict RFC 4180 reader: counts fields of the row at *p and copies the last one.
static int read_row(const char **p, struct buf *last) {
    int fields = 1;
    buf_clear(last);
    const char *s = *p;
    for (;;) {
        if (*s == '"') {
            for (s++; *s != '"' || s[1] == '"'; s++) {
                assert_true(*s != '\0');
                if (*s == '"') s++;
                buf_add_char(last, *s);
            }
            s++;
        } else {
            for (; strchr(",\r\n\"", *s) == NULL; s++) buf_add_char(last, *s);
        }
        if (*s == ',') {
            fields++;
            buf_clear(last);
            s++;
            continue;
        }
        assert_true(s[0] == '\r' && s[1] == '\n');
        *p = s + 2;
        return fields;
    }
}

static void csv_is_strict_and_harmless(void **state) {
    (void)state;
    struct err e = {0};
    char *large = malloc(40001);
    memset(large, 'x', 40000);
    large[40000] = '\0';
    const struct {
        struct str reply;
        const char *read;
    } cases[] = {
        {STR("=1+1"), "'=1+1"},
        {STR("@SUM(A1)"), "'@SUM(A1)"},
        {STR("-5"), "'-5"},
        {STR("-cmd"), "'-cmd"},
        {STR("\tx"), "'\tx"},
        {STR("\rx"), "'\rx"},
        {STR("a \"b\", c\r\nd"), "a \"b\", c\r\nd"},
        {STR("\nx"), "'\nx"},
        {STR("nul\0here"), "nulhere"},
        {STR("\0=1+1"), "'=1+1"}, // NUL is left out, so the formula would begin the cell
        {STR("\0\0\0"), ""},
        {STR("\xEF\xBC\x9D"
             "1"),
         "'\xEF\xBC\x9D"
         "1"},
        {STR("\xEF\xBC\xA0"
             "a"),
         "'\xEF\xBC\xA0"
         "a"},
        {{large, 40000}, large},
        {STR("plain"), "plain"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f = fixture_make("name", cases[i].reply);
        struct buf csv = {0}, last = {0};
        ASSERT_OK(report_csv(&f.record, &f.summary, &csv, &e), e);
        assert_int_equal(strlen(csv.p), csv.n);
        const char *p = csv.p;
        int columns = read_row(&p, &last);
        assert_string_equal(last.p, "reply");
        assert_int_equal(read_row(&p, &last), columns);
        assert_string_equal(last.p, cases[i].read);
        assert_int_equal(*p, '\0'); // one trial, one constraint: one row
        buf_free(&csv);
        buf_free(&last);
        arena_destroy(f.arena);
    }
    free(large);
}

// A model's few numbers stand in each report, and without an interval it says why.
static void few_numbers_are_shown(void **state) {
    (void)state;
    struct fixture f = fixture_make("name", STR("ok"));
    struct err e = {0};
    static const char *const parts[] = {"512 tokens shown", "85 %", "+12.5 points (-5.0 to +30.0)",
                                        "+25.0 points (underpowered)", "71 % (60 to 80)"};
    for (int k = 0; k < 3; k++) {
        struct buf out = {0};
        if (k == 0) ASSERT_OK(report_html(&f.record, &f.summary, &out, &e), e);
        if (k == 1) ASSERT_OK(report_markdown(&f.record, &f.summary, &out, &e), e);
        if (k == 2) report_terminal(&f.summary, &out);
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (strstr(out.p, parts[i]) == NULL) fail_msg("report %d lacks %s", k, parts[i]);
        if (k == 0) assert_non_null(strstr(out.p, "depths 0 to 50 %"));
        if (k == 1) assert_non_null(strstr(out.p, "2 invalid, 0 error; 3 ok with an unscored"));
        buf_free(&out);
    }
    arena_destroy(f.arena);
}

// Where prompts are not exactly as long as asked, and where the constraint really stood.
static void real_lengths_and_depths_are_shown(void **state) {
    (void)state;
    struct fixture f = fixture_make("name", STR("ok"));
    struct err e = {0};
    struct summary_cell *c = &f.summary.tables[0].cells[0];
    char length[64], wanted[64];
    layout_length(&f.summary, &f.summary.tables[0], c->length, length);
    assert_null(strchr(length, '('));
    c->tokens_low = 408;
    c->tokens_high = 415;
    c->depth_mean = 12300;
    c->depth_real_low = 11000;
    c->depth_real_high = 14000;
    snprintf(wanted, sizeof wanted, "%d (408 to 415)", f.summary.lengths[c->length]);
    for (int k = 0; k < 3; k++) {
        struct buf out = {0};
        if (k == 0) ASSERT_OK(report_html(&f.record, &f.summary, &out, &e), e);
        if (k == 1) ASSERT_OK(report_markdown(&f.record, &f.summary, &out, &e), e);
        if (k == 2) report_terminal(&f.summary, &out);
        assert_non_null(strstr(out.p, wanted));
        if (k == 0) assert_non_null(strstr(out.p, "depth 12.3 %"));
        if (k == 0) assert_non_null(strstr(out.p, "real length 408 to 415 tokens"));
        if (k == 1) assert_non_null(strstr(out.p, "11.0 to 14.0 %"));
        buf_free(&out);
    }
    arena_destroy(f.arena);
}

static void terminal_table_is_small(void **state) {
    (void)state;
    struct fixture f = fixture_make("name", STR("ok"));
    struct buf out = {0};
    report_terminal(&f.summary, &out);
    assert_non_null(strstr(out.p, "12/12 [10-90]"));
    assert_non_null(strstr(out.p, "0/12 [10-90]"));
    f.summary.tables[0].cells[0].rate = rate_of(4, 8);
    buf_clear(&out);
    report_terminal(&f.summary, &out);
    assert_non_null(strstr(out.p, "4/8 [10-90]*"));
    assert_non_null(strstr(out.p, "underpowered"));
    buf_free(&out);
    arena_destroy(f.arena);
}

// Primary contrast and what the grids say come before any table, and so do the other arms' rates.
static void reports_lead_with_the_answer(void **state) {
    (void)state;
    struct err e = {0};
    struct fixture f = fixture_make("name", STR("ok"));
    const char *says[] = {"Late wins: the later one is met more often."};
    struct summary_contrast primary = {.model = "m",
                                       .constraint = "order",
                                       .placement = "row",
                                       .name = "middle_against_ends",
                                       .scope = "all lengths",
                                       .primary = true,
                                       .defined = true,
                                       .sentence = "Difference shown: order is met less often."};
    struct summary_grid grid = {
        .title = "one against other", .note = "", .sentences = says, .sentence_count = 1};
    f.summary.contrasts = &primary;
    f.summary.grids = &grid;
    f.summary.contrast_count = f.summary.grid_count = 1;
    f.summary.aggregates[0].absent = rate_of(1, 11);
    f.summary.aggregates[0].brief = rate_of(10, 13);
    for (int k = 0; k < 2; k++) {
        struct buf out = {0};
        if (k == 0) ASSERT_OK(report_html(&f.record, &f.summary, &out, &e), e);
        if (k == 1) ASSERT_OK(report_markdown(&f.record, &f.summary, &out, &e), e);
        const char *box = strstr(out.p, "What it says"), *few = strstr(out.p, "in a few numbers");
        const char *table = strstr(out.p, "Met, by length and depth");
        assert_true(box != NULL && box < few && few < table);
        const char *contrast = strstr(out.p, primary.sentence), *late = strstr(out.p, says[0]);
        assert_true(box < contrast && contrast < late && late < few);
        assert_true(few < strstr(few, "1/11") && strstr(few, "1/11") < strstr(few, "10/13"));
        assert_true(strstr(few, "10/13") < table);
        const char *limits = strstr(out.p, "What this does not show");
        assert_true(few < limits && limits < table);
        buf_free(&out);
    }
    arena_destroy(f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heat_map_agrees_with_the_data),
        cmocka_unit_test(no_text_runs_as_code),
        cmocka_unit_test(entities_are_shown_as_typed),
        cmocka_unit_test(terminals_get_nothing_to_obey),
        cmocka_unit_test(csv_is_strict_and_harmless),
        cmocka_unit_test(few_numbers_are_shown),
        cmocka_unit_test(reports_lead_with_the_answer),
        cmocka_unit_test(real_lengths_and_depths_are_shown),
        cmocka_unit_test(terminal_table_is_small),
    };
    return cmocka_run_group_tests_name("reports", tests, NULL, NULL);
}

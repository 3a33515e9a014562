// The whole harness on a simulated subject: the report finds the chances that were planted.
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "evals/run.h"
#include "evals/summarize.h"
#include "tests/support/fast_folder.h"

#include <math.h>
#include <string.h>

static const char experiment[] =
    "lacuna: 1\n"
    "name: planted\n"
    "seed: %d\n"
    "models:\n"
    "  - {id: strong, simulated: strong.json, context_tokens: 2048}\n"
    "  - {id: weak, simulated: weak.json, context_tokens: 2048}\n"
    "generation: {max_tokens: 40, temperature: 0}\n"
    "prompt:\n"
    "  messages:\n"
    "    - {role: user, text: \"{{filler}}\\n\\nState the order number.\"}\n"
    "  filler: {kind: prose}\n"
    "constraints:\n"
    "  - {id: order, kind: state, text: \"The order number is {{code}}.\", value: \"{{code}}\",\n"
    "     violated: '(?<!\\d)\\d{5}(?!\\d)', vars: {code: {kind: digits, count: 5}}}\n"
    "  - {id: polite, kind: format, text: \"Say cheers.\", met: 'Cheers'}\n"
    "placements:\n"
    "  - {id: order-moves, move: [order], depths: [start, middle, end], others: {polite: 75%%}}\n"
    "lengths: {tokens: [128, 256]}\n"
    "repeats: 60\n"
    "arms: [placed, absent, short]\n"
    "primary: {metric: met_rate, of: order, contrast: middle_against_ends}\n";

static const char subject[] =
    "{\"lacuna_simulated\": 1, \"seed\": %d, \"agreement\": 0.2,"
    " \"curve\": {\"by_depth\": [[0, 0.95], [50, %s], [100, 0.95]],"
    "  \"by_length\": [[128, 1], [256, 0.9]], \"elsewhere\": 0.7},"
    " \"begin\": \"Hello.\", \"constraints\": ["
    "  {\"id\": \"order\", \"rows\": \"order-moves\", \"copy_after\": \"order number is \","
    "   \"met\": \"It is {{0}}.\", \"violated\": \"It is {{wrong 0}}.\", \"violated_share\": 0.5},"
    "  {\"id\": \"polite\", \"rows\": \"none\", \"met\": \"Cheers\", \"omitted\": \"Bye\","
    "   \"curve\": {\"absent\": 0.4, \"short\": 0.9}}]}";

// Within 4.5 standard errors.
static void near(const char *what, int met, int n, double chance) {
    double sd = sqrt(chance * (1 - chance) / n);
    if (fabs((double)met / n - chance) > 4.5 * sd + 1e-12)
        fail_msg("%s: %d of %d where %g is planted", what, met, n, chance);
}

static void check_order(const struct summary *s, const struct summary_table *t, double middle) {
    for (int i = 0; i < t->cell_count; i++) {
        const struct summary_cell *c = &t->cells[i];
        double chance = s->places[c->column].depth == 50000 ? middle : 0.95;
        if (s->lengths[c->length] == 256) chance *= 0.9;
        assert_int_equal(c->rate.n, 60);
        near("order", c->rate.met, 60, chance);
        assert_int_equal(c->rate.met + c->rate.violated + c->rate.omitted, 60);
    }
    assert_int_equal(t->brief.met, 60);
    for (int i = 0; i < s->length_count; i++) assert_int_equal(t->absent[i].met, 0);
}

static void check_polite(const struct summary *s, const struct summary_table *t) {
    for (int i = 0; i < t->cell_count; i++)
        near("polite", t->cells[i].rate.met, 60,
             s->lengths[t->cells[i].length] == 256 ? 0.63 : 0.7);
    near("polite, short", t->brief.met, 60, 0.9);
    for (int i = 0; i < s->length_count; i++) near("polite, absent", t->absent[i].met, 60, 0.4);
}

static void the_report_finds_what_was_planted(void **state) {
    (void)state;
    static const struct {
        const char *model, *middle;
        double chance;
    } models[] = {{"strong", "0.95", 0.95}, {"weak", "0.4", 0.4}};
    const char *folder = fast_folder();
    struct arena *a = test_arena;
    for (int m = 0; m < 2; m++)
        test_write(path_join(a, folder, arena_printf(a, "%s.json", models[m].model)),
                   str_from(arena_printf(a, subject, 3, models[m].middle)));
    const char *path = path_join(a, folder, "planted.yaml");
    test_write(path, str_from(arena_printf(a, experiment, 5)));
    struct experiment *x;
    struct run_options options = {.folder = path_join(a, folder, "run"), .threads = 1};
    struct run_result result;
    struct record *r;
    struct summary s;
    struct err e = {0};
    ASSERT_OK(experiment_load(path, NULL, a, &x, &e), e);
    ASSERT_OK(run_experiment(x, &options, a, &result, &e), e);
    ASSERT_OK(record_open(options.folder, a, &r, &e), e);
    ASSERT_OK(summarize(r, x, a, &s, &e), e);
    assert_int_equal(s.ok, s.planned);
    int tables = 0;
    for (int i = 0; i < s.table_count; i++)
        for (int m = 0; m < 2; m++) {
            const struct summary_table *t = &s.tables[i];
            if (strcmp(t->model, models[m].model) != 0) continue;
            if (strcmp(t->constraint, "order") == 0) check_order(&s, t, models[m].chance);
            if (strcmp(t->constraint, "polite") == 0) check_polite(&s, t);
            tables++;
        }
    assert_int_equal(tables, 6); // two constraints and all, two models
    // The gap is planted in one of them, and is claimed there only.
    for (int i = 0; i < s.contrast_count; i++) {
        const struct summary_contrast *c = &s.contrasts[i];
        if (!c->primary) continue;
        bool weak = strcmp(c->model, "weak") == 0;
        assert_int_equal(c->p_holm < 0.05 && c->low > 0, weak);
        assert_true(c->low <= (weak ? 0.95 * 0.55 : 0) && c->high >= (weak ? 0.95 * 0.55 : 0));
    }
    record_close(r);
    experiment_close(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_report_finds_what_was_planted, test_arena_open,
                                        test_arena_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

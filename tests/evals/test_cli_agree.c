// lacuna agree: two runs of one experiment, of servers and of a local model, and what it refuses.
#include "tests/support/fast_folder.h"
#include "tests/support/program.h"
#include "tests/support/sample_run.h"
#include "tests/support/served_model.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "reports/record.h"

#include <math.h>
#include <string.h>

static int64_t number(const json_t *o, const char *key) {
    const json_t *value = json_object_get(o, key);
    if (!json_is_integer(value)) fail_msg("%s is no number", key);
    return json_integer_value(value);
}

// `lacuna agree ARGUMENTS --json`; the caller's.
static json_t *agree(const char *arguments) {
    struct err e = {0};
    json_t *o;
    expect_exit(0, arena_printf(test_arena, "agree %s --json", arguments));
    ASSERT_OK(json_parse(program_out, "agree", &o, &e), e);
    return o;
}

static struct record *open_run(const char *run) {
    struct err e = {0};
    struct record *r;
    ASSERT_OK(record_open(path_join(test_arena, fast_folder(), run), test_arena, &r, &e), e);
    return r;
}

// Some replies say another number, or none at all; 0: none do.
static int spoiled;
static void spoil(void *context, int request, struct http_server_answer *a) {
    (void)context;
    char *reply = strstr(a->body.p, "It is ");
    if (spoiled > 0 && request % spoiled == 1) memset(reply + 6, '*', 5);
    if (spoiled == 5 && request % 7 == 3) a->status = 400;
}

static void open_served(struct served_model *m, const char *name, const char *settings) {
    m->fault = spoil;
    served_model_open(m);
    served_experiment(test_arena, fast_folder(), name, m, 4, settings);
}

static void verdicts_are_counted(void **state) {
    (void)state;
    struct served_model m = {0};
    open_served(&m, "v", "in_flight: 1");
    spoiled = 4;
    expect_exit(0, "run v.yaml -o first");
    spoiled = 3;
    served_model_close(&m);
    struct served_model other = {0};
    open_served(&other, "w", "in_flight: 1, repeat_check: 3");
    expect_exit(0, "run w.yaml -o second");
    // The same from the two records.
    struct record *a = open_run("first"), *b = open_run("second");
    int met[2][2] = {{0}}, same = 0, apart = 0;
    for (int64_t i = 0; i < a->trial_count; i++) {
        assert_string_equal(a->trials[i].key, b->trials[i].key);
        const int x = a->outcomes[i]->verdicts[0].verdict == VERDICT_MET;
        const int y = b->outcomes[i]->verdicts[0].verdict == VERDICT_MET;
        met[x][y]++;
        apart += x != y;
        same += str_equal(a->outcomes[i]->reply, b->outcomes[i]->reply);
    }
    assert_true(met[0][0] > 0 && met[0][1] > 0 && met[1][0] > 0 && met[1][1] > 0);
    const double n = 36, observed = (met[0][0] + met[1][1]) / n;
    const double first = (met[1][0] + met[1][1]) / n, second = (met[0][1] + met[1][1]) / n;
    const double chance = first * second + (1 - first) * (1 - second);
    json_t *o = agree("first second");
    const json_t *row = json_array_get(json_object_get(o, "agreement"), 0);
    assert_int_equal(json_array_size(json_object_get(o, "agreement")), 1); // one constraint
    assert_int_equal(number(o, "pairs"), 36);
    assert_int_equal(number(o, "pairs_by_ids"), 0);
    assert_int_equal(number(o, "same_text"), same);
    assert_int_equal(number(row, "both_met"), met[1][1]);
    assert_int_equal(number(row, "only_first"), met[1][0]);
    assert_int_equal(number(row, "only_second"), met[0][1]);
    assert_int_equal(number(row, "neither"), met[0][0]);
    assert_int_equal(number(row, "repeats"), 4);
    assert_int_equal(number(row, "agree_ppm"), lround(observed * 1e6));
    assert_true(number(row, "low_ppm") < number(row, "agree_ppm"));
    assert_true(number(row, "high_ppm") > number(row, "agree_ppm"));
    assert_int_equal(number(row, "kappa_ppm"), lround((observed - chance) / (1 - chance) * 1e6));
    assert_int_equal(json_array_size(json_object_get(o, "apart")), apart);
    const json_t *noise = json_array_get(json_object_get(o, "noise"), 0);
    assert_string_equal(json_string_value(json_object_get(noise, "of")), "second");
    assert_int_equal(number(noise, "requests"), 3);
    // Each that is listed is apart in the records.
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(o, "apart"), i, item) {
        int64_t at = record_find(a, json_string_value(json_object_get(item, "key")));
        assert_true(at >= 0);
        assert_string_equal(json_string_value(json_object_get(item, "first")),
                            verdict_name(a->outcomes[at]->verdicts[0].verdict));
        assert_string_equal(json_string_value(json_object_get(item, "second")),
                            verdict_name(b->outcomes[at]->verdicts[0].verdict));
    }
    json_decref(o);
    record_close(a);
    record_close(b);
    expect_exit(0, "agree first second");
    assert_holds(program_out, "pairs: 36 trials with equal prompts (0 by token ids, 36 by their");
    assert_holds(program_out, "apart: prod/");
    assert_holds(program_out, "noise of B: prod gave another text to ");
    served_model_close(&other);
}

static void what_is_no_pair_is_told(void **state) {
    (void)state;
    struct served_model m = {0};
    open_served(&m, "u", "in_flight: 1");
    spoiled = 0;
    expect_exit(0, "run u.yaml -o whole");
    spoiled = 5;
    expect_exit(1,
                "run u.yaml -o part --set 'lengths.tokens=[300]' --set generation.max_tokens=16");
    json_t *o = agree("whole part");
    const int64_t failed = number(o, "not_ok");
    assert_in_range(failed, 2, 4);
    assert_int_equal(number(o, "only_in_first"), 16); // the longer ones
    assert_int_equal(number(o, "only_in_second"), 0);
    assert_int_equal(number(o, "pairs"), 20 - failed);
    assert_int_equal(number(o, "other_prompts"), 0);
    json_decref(o);
    expect_exit(0, "agree whole part");
    assert_holds(program_out, "not paired: 16 only in A");
    assert_holds(program_out, "invalid or ended in an error in one of the two");
    assert_holds(program_out, "warning: the two generate otherwise: max_tokens 32 there, 16 here");
    // Nothing that could be compared.
    spoiled = 0;
    expect_exit(0, "run u.yaml -o seed --set seed=12");
    expect_exit(3, "agree whole seed");
    assert_holds(program_said, "have no equal prompt: of 36 common trials 36 have other prompts");
    expect_exit(0, "run u.yaml -o checks --set 'constraints[0].ignore_case=true'");
    expect_exit(3, "agree whole checks");
    assert_holds(program_said, "their checks differ");
    expect_exit(0, "run u.yaml -o length --set 'lengths.tokens=[400]' --only arm=placed");
    expect_exit(3, "agree whole length");
    assert_holds(program_said, "have no trial in common");
    expect_exit(2, "agree whole whole");
    assert_holds(program_said, "are one record");
    expect_exit(2, "agree whole");
    expect_exit(1, "agree whole nowhere");
    expect_exit(2, "agree whole part --models prod,other");
    assert_holds(program_said, "part: has no model other");
    expect_exit(2, "agree whole part --models prod");
    served_model_close(&m);
}

static void models_of_one_run_can_be_named(void **state) {
    (void)state;
    struct served_model m = {0};
    open_served(&m, "one", "in_flight: 1");
    spoiled = 3;
    struct str text = test_read(test_arena, path_join(test_arena, fast_folder(), "one.yaml"));
    size_t begin = str_find(text, STR("  - {id: prod"), 0), end = str_find(text, STR("\n"), begin);
    struct str entry = str_slice(text, begin + 12, end + 1);
    const char *two = arena_printf(
        test_arena, STR_FMT "  - {id: next" STR_FMT STR_FMT, STR_ARG(str_slice(text, 0, end + 1)),
        STR_ARG(str_slice(entry, 1, entry.n)), STR_ARG(str_slice(text, end + 1, text.n)));
    test_write(path_join(test_arena, fast_folder(), "two.yaml"), str_from(two));
    expect_exit(0, "run two.yaml -o two");
    json_t *o = agree("two two --models prod,next");
    assert_int_equal(number(o, "pairs"), 36);
    assert_int_equal(number(o, "only_in_first"), 0);
    const json_t *row = json_array_get(json_object_get(o, "agreement"), 0);
    assert_int_equal(number(row, "both_met") + number(row, "only_first") +
                         number(row, "only_second") + number(row, "neither"),
                     36);
    json_decref(o);
    // Models of other names are no pair by themselves.
    expect_exit(0, "run one.yaml -o one");
    expect_exit(0, "agree one two");
    expect_exit(0, "run two.yaml -o next --only model=next");
    expect_exit(3, "agree one next");
    assert_holds(program_said, "have no trial in common");
    expect_exit(0, "agree one next --models prod,next");
    served_model_close(&m);
}

static void a_local_model_and_a_server_are_paired_by_text(void **state) {
    (void)state;
    struct served_model m = {0};
    spoiled = 0;
    served_model_open(&m);
    sample_local_experiment(test_arena, fast_folder(), "tiny", 2);
    struct str text = test_read(test_arena, path_join(test_arena, fast_folder(), "tiny.yaml"));
    struct str local = STR("path: tiny.gguf, backend: cpu");
    size_t at = str_find(text, local, 0);
    const char *served = arena_printf(
        test_arena,
        STR_FMT "endpoint: \"http://127.0.0.1:%d/v1\", name: small, count: tiny.gguf, shortfall: "
                "99%%" STR_FMT,
        STR_ARG(str_slice(text, 0, at)), http_server_port(m.server),
        STR_ARG(str_slice(text, at + local.n, text.n)));
    test_write(path_join(test_arena, fast_folder(), "served.yaml"), str_from(served));
    expect_exit(0, "run tiny.yaml -o local --set tolerate.unscored=100%");
    expect_exit(0, "run served.yaml -o served --set tolerate.unscored=100%");
    json_t *o = agree("local served");
    assert_int_equal(number(o, "pairs"), 18);       // every one: the file counts for both alike
    assert_int_equal(number(o, "pairs_by_ids"), 0); // a server tells no ids
    assert_int_equal(number(o, "other_prompts"), 0);
    assert_int_equal(number(o, "only_in_first") + number(o, "only_in_second"), 0);
    json_decref(o);
    expect_exit(0, "agree local served");
    assert_holds(program_out, "(cpu, numerics bf16-1)");
    assert_holds(program_out, "(served, numerics none)");
    served_model_close(&m);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(verdicts_are_counted),
        TEST(what_is_no_pair_is_told),
        TEST(models_of_one_run_can_be_named),
        TEST(a_local_model_and_a_server_are_paired_by_text),
    };
    return cmocka_run_group_tests_name("cli_agree", tests, NULL, NULL);
}

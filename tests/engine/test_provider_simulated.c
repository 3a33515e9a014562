// Simulated subjects: the planted chances, agreement within repeats, what replies say, and what a
// subject file may not say.
#include "tests/support/support.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "engine/provider_simulated.h"
#include "engine/provider_simulated_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int open_text(const char *text, bool plan_only, struct provider **p, struct err *e) {
    static char path[256];
    snprintf(path, sizeof path, "%s/subject.json", test_folder());
    struct err write_error = {0};
    ASSERT_OK(file_write_atomic(path, str_from(text), &write_error), write_error);
    *p = NULL;
    struct provider_options o = {.id = "subject", .simulated = path, .plan_only = plan_only};
    return provider_open(&o, p, e);
}

static struct provider *open_ok(const char *text) {
    struct provider *p = NULL;
    struct err e = {0};
    ASSERT_OK(open_text(text, false, &p, &e), e);
    return p;
}

// The reply to one trial; false: an error, whose text is in *c.
static bool ask(struct provider *p, const char *key, const char *prompt, struct arena *a,
                struct provider_completion *c) {
    struct provider_piece piece = {str_from(prompt), false};
    struct provider_generation g = {.max_tokens = 40, .top_p = 1};
    struct provider_request request = {
        .ticket = 7, .key = key, .pieces = &piece, .piece_count = 1, .generation = &g};
    bool accepted, any;
    struct err e = {0};
    ASSERT_OK(p->ops->submit(p, &request, &accepted, &e), e);
    assert_true(accepted);
    ASSERT_OK(p->ops->next(p, a, c, &any, &e), e);
    assert_true(any && c->ticket == 7);
    return c->ok;
}

static bool says(struct provider *p, const char *word, const char *key, struct arena *a) {
    struct provider_completion c;
    assert_true(ask(p, key, "The code is 12345. Go on.", a, &c));
    return str_find(c.text, str_from(word), 0) != STR_NONE;
}

static unsigned fresh_seed(void) {
    unsigned seed = (unsigned)(clock_ns() / 1000 % 1000000);
    print_message("seed %u\n", seed);
    return seed;
}

static const char curves[] =
    "{\"lacuna_simulated\": 1, \"seed\": %u, \"agreement\": %s, \"prompt_agreement\": %s,"
    " \"curve\": {\"by_depth\": [[0, 0.9], [50, 0.4], [100, 0.8]], \"elsewhere\": 0.6,"
    "  \"by_place\": {\"in_system\": 0.97}, \"by_length\": [[500, 1], [1500, 0.5]],"
    "  \"short\": 0.95, \"absent\": 0.1},"
    " \"constraints\": ["
    "  {\"id\": \"code\", \"rows\": [\"row\"], \"copy_after\": \"code is \","
    "   \"met\": \"It is {{0}}.\", \"omitted\": \"Dunno.\", \"violated\": \"It is {{wrong 0}}!\","
    "   \"violated_share\": 0.25, \"said_anyway\": \"It is 12345.\"},"
    "  {\"id\": \"other\", \"curve\": {\"by_depth\": [[0, 0.3]], \"half_length\": 1000},"
    "   \"met\": [\"YES one\", \"YES two\"]}]}";

// Each cell's share is the planted chance; the bounds hold for all cells of all seeds but one in a
// million.
static void test_chances(void **state) {
    (void)state;
    static const struct {
        const char *key, *word;
        double chance;
    } cells[] = {
        {"m/placed/500/row@start/%d/0", "12345", 0.9},
        {"m/placed/500/row@25%%/%d/0", "12345", 0.65},
        {"m/placed/500/row@middle/%d/0", "12345", 0.4},
        {"m/placed/1000/row@87.5%%/%d/0", "12345", 0.7 * 0.75},
        {"m/placed/9000/row@end/%d/0", "12345", 0.8 * 0.5},
        {"m/placed/1500/row@in_system/%d/0", "12345", 0.97 * 0.5},
        {"m/placed/500/row@start+middle/%d/0", "12345", 0.9},
        {"m/placed/500/row-2@start/%d/0", "12345", 0.6},
        {"m/short/-/-/%d/0", "12345", 0.95},
        {"m/absent/9000/-/%d/0", "12345", 0.1},
        {"m/placed/500/row@start/%d/0", "Dunno", 0.1 * 0.75},
        {"m/placed/3000/row@end/case/%d/0", "YES", 0.3 * 0.25},
    };
    struct arena *a = arena_create("test");
    struct provider *p = open_ok(arena_printf(a, curves, fresh_seed(), "0", "0"));
    enum { TRIALS = 4000 };
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        int count = 0;
        for (int r = 0; r < TRIALS; r++) {
            char key[80];
            snprintf(key, sizeof key, cells[i].key, r);
            count += says(p, cells[i].word, key, a);
        }
        double chance = cells[i].chance, sd = sqrt(chance * (1 - chance) / TRIALS);
        if (fabs((double)count / TRIALS - chance) > 5.5 * sd)
            fail_msg("%s: %d of %d where %g is planted", cells[i].key, count, TRIALS, chance);
    }
    p->ops->close(p);
    arena_destroy(a);
}

// Correlation of two trials of one repeat, of two samples of one prompt, and of two repeats; its
// standard deviation is 0.013 at most. Both chances must be away from 0 and 1.
static double correlation(struct provider *p, const char *left, const char *right,
                          struct arena *a) {
    enum { PAIRS = 6000 };
    double both = 0, x = 0, y = 0;
    for (int r = 0; r < PAIRS; r++) {
        bool is_left = says(p, "12345", arena_printf(a, left, r), a);
        bool is_right = says(p, "12345", arena_printf(a, right, r), a);
        x += is_left / (double)PAIRS;
        y += is_right / (double)PAIRS;
        both += (is_left && is_right) / (double)PAIRS;
    }
    return (both - x * y) / sqrt(x * (1 - x) * y * (1 - y));
}

static void test_agreement(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct provider *p = open_ok(arena_printf(a, curves, fresh_seed(), "0.36", "0.25"));
    double repeat =
        correlation(p, "m/placed/500/other@start/%d/0", "n/placed/500/other@end/%d/0", a);
    double prompt =
        correlation(p, "m/placed/500/other@start/%d/0", "m/placed/500/other@start/%d/1", a);
    double apart =
        correlation(p, "m/placed/500/other@start/%d/0", "m/placed/500/other@start/%d9999/0", a);
    assert_true(fabs(repeat - 0.36) < 0.08);
    assert_true(fabs(prompt - (0.36 + 0.4 * 0.4 * 0.25)) < 0.08);
    assert_true(fabs(apart) < 0.08);
    p->ops->close(p);
    arena_destroy(a);
}

// Equal files answer equally whatever was asked before; where one curve lies below another, with
// the same seed, it honours in a subset of the trials.
static void test_equal_draws(void **state) {
    (void)state;
    static const char file[] =
        "{\"lacuna_simulated\": 1, \"agreement\": 0.3, \"curve\": {\"by_depth\": [[0, %s]]},"
        " \"constraints\": [{\"id\": \"code\", \"copy_after\": \"code is \", \"met\": \"{{0}}\"}]}";
    struct arena *a = arena_create("test");
    struct provider *high = open_ok(arena_printf(a, file, "0.8"));
    struct provider *low = open_ok(arena_printf(a, file, "0.5"));
    struct provider *again = open_ok(arena_printf(a, file, "0.5"));
    int lost = 0, count = 2000;
    for (int r = 0; r < count; r++) {
        const char *key = arena_printf(a, "m/placed/500/row@middle/%d/0", r);
        const char *back = arena_printf(a, "m/placed/500/row@middle/%d/0", count - 1 - r);
        bool was = says(high, "12345", key, a), is = says(low, "12345", key, a);
        assert_true(was || !is);
        lost += was && !is;
        assert_int_equal(says(again, "12345", back, a), says(low, "12345", back, a));
    }
    assert_true(abs(lost - 600) < 110); // 3 of 10, 5 standard deviations
    high->ops->close(high);
    low->ops->close(low);
    again->ops->close(again);
    arena_destroy(a);
}

static void test_replies(void **state) {
    (void)state;
    static const char file[] =
        "{\"lacuna_simulated\": 1, \"in_flight\": 2, \"begin\": \"Dear you,\", \"end\": \"Bye\","
        " \"cut\": [[1000, 0], [2000, 1]], \"cut_reply\": \"Dear\","
        " \"curve\": {\"by_depth\": [[0, 0], [40, 0], [50, 1]]},"
        " \"constraints\": [{\"id\": \"code\", \"find\": \"code is\", \"copy_after\": [\"code is "
        "\"],"
        "  \"met\": \"It is {{0}}.\", \"omitted\": \"Or {{wrong 0}}.\"},"
        " {\"id\": \"rule\", \"met\": \"OK\"}]}";
    struct arena *a = arena_create("test");
    struct provider *p = open_ok(file);
    struct provider_completion c;
    assert_true(ask(p, "m/placed/500/r@end/1/0", "First some words. The code is B-7.", a, &c));
    assert_true(str_equal_c(c.text, "Dear you, It is B-7. OK Bye") && c.finish == FINISH_STOP);
    assert_true(ask(p, "m/placed/500/r@start/1/0", "The code is B-7. Then other words.", a, &c));
    assert_true(str_starts(c.text, STR("Dear you, Or ")) && c.tokens == (int)c.ids.count);
    assert_true(c.text.p[13] != 'B' && c.text.p[14] == '-' && c.text.p[15] != '7');
    assert_true(ask(p, "m/placed/2000/r@end/1/0", "The code is B-7.", a, &c));
    assert_true(str_equal_c(c.text, "Dear") && c.finish == FINISH_LENGTH);
    assert_false(ask(p, "m/placed/500/r@in_system/1/0", "Nothing.", a, &c));
    assert_string_equal(c.reason_code, "simulated");
    assert_non_null(strstr(c.reason_text, "no chance at the place 'in_system'"));
    assert_false(ask(p, "m/placed/500", "Nothing.", a, &c));
    p->ops->cancel(p);
    bool any;
    struct err e = {0};
    ASSERT_OK(p->ops->next(p, a, &c, &any, &e), e);
    assert_false(any);
    p->ops->close(p);
    arena_destroy(a);
}

static void test_bad_files(void **state) {
    (void)state;
#define ONE(text) "{\"lacuna_simulated\": 1, \"constraints\": [{\"id\": \"a\"," text "}]}"
    static const char *const bad[][2] = {
        {"[]", "not a JSON object"},
        {"{\"lacuna_simulated\": 2, \"constraints\": []}", "this program reads 1"},
        {"{\"lacuna_simulated\": 1}", "constraints"},
        {"{\"lacuna_simulated\": 1, \"constraint\": []}", "did you mean \"constraints\""},
        {"{\"lacuna_simulated\": 1, \"agreement\": 1.5, \"constraints\": []}", "outside 0 to 1"},
        {ONE("\"met\": \"x\""), "neither \"by_depth\" nor \"by_place\""},
        {ONE("\"curve\": {\"by_depth\": [[0, 1]]}"), "\"met\" is missing"},
        {ONE("\"met\": \"x\", \"curve\": {\"by_depth\": [[0, 2]]}"), "2 is outside 0 to 1"},
        {ONE("\"met\": \"x\", \"curve\": {\"by_depth\": [[0, 1], [0, 1]]}"), "must ascend"},
        {ONE("\"met\": \"x\", \"curve\": {\"by_depth\": [0, 1]}"), "not a point"},
        {ONE("\"met\": \"x\", \"rows\": \"r\", \"curve\": {\"by_depth\": [[0, 1]]}"), "elsewhere"},
        {ONE("\"met\": \"x\", \"violated_share\": 1, \"curve\": {\"by_depth\": [[0, 1]]}"),
         "needs a text \"violated\""},
        {ONE("\"met\": \"{{0}}\", \"copy_after\": \"is\", \"curve\": {\"by_depth\": [[0, 1]],"
             "\"absent\": 0.1}"),
         "said_anyway"},
        {ONE("\"met\": \"x\", \"curve\": {\"by_length\": [[1, 1]], \"half_length\": 9}"),
         "one must go"},
        {"{\"lacuna_simulated\": 1, \"curve\": {\"by_place\": {\"end\": 1}}, \"constraints\": ["
         "{\"id\": \"a\", \"met\": \"x\"}, {\"id\": \"a\", \"met\": \"x\"}]}",
         "constraints[0] already"},
    };
#undef ONE
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct provider *p;
        struct err e = {0};
        assert_int_equal(open_text(bad[i][0], false, &p, &e), -1);
        if (strstr(e.text, bad[i][1]) == NULL) fail_msg("%s\ngives: %s", bad[i][0], e.text);
    }
    struct provider *p;
    bool accepted;
    struct err e = {0};
    struct provider_request request = {0};
    ASSERT_OK(open_text("{\"lacuna_simulated\": 1, \"constraints\": []}", true, &p, &e), e);
    assert_int_equal(p->ops->submit(p, &request, &accepted, &e), -1);
    p->ops->close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chances),     cmocka_unit_test(test_agreement),
        cmocka_unit_test(test_equal_draws), cmocka_unit_test(test_replies),
        cmocka_unit_test(test_bad_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

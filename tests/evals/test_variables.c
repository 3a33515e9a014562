// Variables: their kinds, the ones that messages and constraints share, what stands near them.
#include "tests/support/support.h"

#include "evals/check.h"
#include "evals/words.h"
#include "tests/support/planned.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                       \
    "lacuna: 1\n"                                                                                  \
    "name: vars\n"                                                                                 \
    "models: [{id: m, path: m.gguf, context_tokens: 4096}]\n"                                      \
    "generation: {max_tokens: 16}\n"                                                               \
    "lengths: {tokens: [256]}\n"                                                                   \
    "arms: [placed]\n"

static const char magic[] =
    HEAD "repeats: 40\n"
         "vars:\n"
         "  key: {kind: words}\n"
         "  id: {kind: uuid}\n"
         "prompt:\n"
         "  messages:\n"
         "    - {role: user, text: \"{{filler}}\\n\\nWhat is the number for {{key}}? {{id}}\"}\n"
         "constraints:\n"
         "  - id: first\n"
         "    kind: state\n"
         "    text: \"The number for {{key}} is {{value}}.\"\n"
         "    vars: {value: {kind: number, least: 1000000, most: 9999999}}\n"
         "    value: \"{{value}}\"\n"
         "  - id: second\n"
         "    kind: state\n"
         "    text: \"Say {{id}}, {{small}} times.\"\n"
         "    vars: {small: {kind: number, least: 3, most: 12}}\n"
         "    value: \"{{id}}\"\n"
         "placements: [{id: a, move: [first], depths: [middle], others: {second: end}}]\n";

static bool is_key(struct str s) {
    const char *dash = memchr(s.p, '-', s.n);
    if (dash == NULL) return false;
    uint32_t points[64];
    for (size_t i = 0; i < s.n; i++) points[i] = (unsigned char)s.p[i];
    size_t n = (size_t)(dash - s.p);
    return words_prefix(WORDS_ADJECTIVE, points, s.n) == n &&
           words_prefix(WORDS_NOUN, points + n + 1, s.n - n - 1) == s.n - n - 1;
}

static bool is_uuid(struct str s) {
    static const char shape[] = "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx";
    if (s.n != sizeof shape - 1) return false;
    for (size_t i = 0; i < s.n; i++) {
        bool hex = strchr("0123456789abcdef", s.p[i]) != NULL;
        if (shape[i] == 'x'   ? !hex
            : shape[i] == 'y' ? strchr("89ab", s.p[i]) == NULL
                              : s.p[i] != shape[i])
            return false;
    }
    return true;
}

static void kinds_have_their_shapes(void **state) {
    (void)state;
    struct err e = {0};
    struct planned p;
    ASSERT_OK(planned_make(magic, &p, &e), e);
    int seen[13] = {0}, equal = 0;
    assert_int_equal(p.plan.trial_count, 40);
    for (int64_t i = 0; i < 40; i++) {
        const struct record_trial *t = &p.plan.trials[i];
        assert_true(is_key(planned_value(t, RECORD_SHARED_VARS, "key")));
        assert_true(is_uuid(planned_value(t, RECORD_SHARED_VARS, "id")));
        struct str value = planned_value(t, "first", "value");
        assert_int_equal(value.n, 7);
        assert_true(value.p[0] != '0');
        seen[atol(str_to_c(test_arena, planned_value(t, "second", "small")))]++;
        for (int64_t k = 0; k < i; k++)
            equal += str_equal(value, planned_value(&p.plan.trials[k], "first", "value"));
    }
    assert_int_equal(seen[0] + seen[1] + seen[2], 0);
    int different = 0;
    for (int i = 3; i <= 12; i++) different += seen[i] > 0;
    assert_true(different >= 7 && equal <= 1);
    planned_close(&p);
}

// Shared variables stand in the messages and in each constraint, drawn from their own name alone.
static void shared_variables_are_shared(void **state) {
    (void)state;
    struct err e = {0};
    struct planned p;
    ASSERT_OK(planned_make(magic, &p, &e), e);
    const char *const name = "m/placed/256/a@middle/3/0";
    const struct record_trial *t = planned_trial(&p, name);
    assert_int_equal(t->var_count, 4); // each once, the shared ones first
    assert_string_equal(t->vars[0].constraint, "*");
    struct str text = planned_prompt(&p, name), key = planned_value(t, "*", "key"),
               id = planned_value(t, "*", "id");
    assert_int_equal(str_count(text, key), 2);
    assert_int_equal(str_count(text, id), 2);
    key = str_copy(test_arena, key);
    planned_close(&p);
    // Another constraint's variables do not change them.
    struct buf b = {0};
    buf_add_c(&b, magic);
    char *small = strstr(b.p, "{kind: number, least: 3, most: 12}");
    memcpy(small, "{kind: digits, count: 9}          ", 34);
    const char *other = arena_strdup(test_arena, b.p);
    buf_free(&b);
    ASSERT_OK(planned_make(other, &p, &e), e);
    assert_true(str_equal(key, planned_value(planned_trial(&p, name), "*", "key")));
    planned_close(&p);
}

static void names_and_settings_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *old, *now, *says;
    } cases[] = {
        {"key: {kind: words}", "value: {kind: words}",
         "constraints[0].vars.value: the experiment's own vars have that name"},
        {"id: {kind: uuid}", "filler: {kind: uuid}", "vars.filler: the name 'filler' is taken"},
        {"{kind: uuid}", "{kind: uuid, count: 3}", "vars.id.count: only kinds digits and letters"},
        {"{kind: uuid}", "{kind: uuid, least: 3}", "vars.id.least: only kind number takes least"},
        {"least: 3, most: 12", "least: 3", "vars.small: a number needs least and most"},
        {"least: 3, most: 12", "least: 13, most: 12", "small.least: 13 is greater than most (12)"},
        {"for {{key}}?", "for {{kay}}?", "{{kay}} is not defined; did you mean {{key}}?"},
        {"{kind: uuid}", "{kind: uid}", "vars.id.kind: expected digits, letters, choice, number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        struct planned p;
        const char *at = strstr(magic, cases[i].old);
        assert_non_null(at);
        const char *yaml = arena_printf(test_arena, "%.*s%s%s", (int)(at - magic), magic,
                                        cases[i].now, at + strlen(cases[i].old));
        ASSERT_FAILS(planned_make(yaml, &p, &e), e, ERR_CONFIG, cases[i].says);
        planned_close(&p);
    }
}

static struct record_verdict judge(const struct experiment_constraint *c,
                                   const struct variable *vars, int count, const char *text) {
    struct check_set *set = check_set_open();
    const struct check *check;
    struct err e = {0};
    struct record_verdict v;
    struct reply reply = {.text = str_from(text), .answer = {0, strlen(text)}, .finish = "stop"};
    ASSERT_OK(check_prepare(set, c, vars, count, &check, &e), e);
    check_judge(check, &reply, test_arena, &v);
    check_set_close(set);
    return v;
}

static void near_misses_have_the_shape(void **state) {
    (void)state;
    struct experiment_variable own = {
        .name = "n", .kind = VARIABLE_NUMBER, .least = 90, .most = 1200};
    struct experiment_variable shared[] = {{.name = "key", .kind = VARIABLE_WORDS},
                                           {.name = "id", .kind = VARIABLE_UUID}};
    struct variable vars[] = {{"n", STR("512")},
                              {"key", STR("amber-lantern")},
                              {"id", STR("12345678-9abc-4def-8123-456789abcdef")}};
    struct experiment_constraint c = {.id = "c",
                                      .kind = CONSTRAINT_STATE,
                                      .text = STR("text"),
                                      .value = STR("{{n}}"),
                                      .vars = &own,
                                      .var_count = 1,
                                      .shared = shared,
                                      .shared_count = 2};
    struct record_verdict v = judge(&c, vars, 3, "It is 7, or 14, or 1,300, not 12345.");
    assert_int_equal(v.verdict, VERDICT_OMITTED);
    assert_int_equal(v.near_count, 2);
    assert_true(str_equal_c(v.near[0], "14") && str_equal_c(v.near[1], "1,300"));
    c.value = STR("{{key}}");
    v = judge(&c, vars, 3, "The well-known snowy-otter and xsnowy-otter, Snowy-otters.");
    assert_int_equal(v.near_count, 1);
    assert_true(str_equal_c(v.near[0], "snowy-otter"));
    c.value = (struct str){0};
    c.met = STR("(?i){{id}}");
    v = judge(&c, vars, 3, "id 12345678-9abc-4def-8123-456789abcdee and 1234-9abc");
    assert_int_equal(v.near_count, 1);
    assert_true(str_equal_c(v.near[0], "12345678-9abc-4def-8123-456789abcdee"));
    assert_int_equal(judge(&c, vars, 3, "id 12345678-9abc-4def-8123-456789abcdef").verdict,
                     VERDICT_MET);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kinds_have_their_shapes, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(shared_variables_are_shared, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(names_and_settings_are_checked, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(near_misses_have_the_shape, test_arena_open,
                                        test_arena_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

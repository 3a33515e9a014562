// Verdicts: kinds, precedence, limits, echoes, near misses, and checks that prove themselves.
#include "tests/support/support.h"

#include "evals/check.h"

#include <stdio.h>
#include <string.h>

static struct check_set *set;
static struct arena *arena;

static int set_up(void **state) {
    (void)state;
    set = check_set_open();
    arena = arena_create("test");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    check_set_close(set);
    arena_destroy(arena);
    return 0;
}

static struct variable vars[] = {
    {"code", {"19763", 5}}, {"day", {"Friday", 6}}, {"tag", {"QXZV", 4}}, {"word", {"tulip", 5}}};
enum { VARS = 4 };
static struct str days[] = {{"Monday", 6}, {"Thursday", 8}, {"Friday", 6}};
static struct experiment_variable kinds[] = {
    {.name = "code", .kind = VARIABLE_DIGITS, .count = 5},
    {.name = "day", .kind = VARIABLE_CHOICE, .choices = days, .choice_count = 3},
    {.name = "tag", .kind = VARIABLE_LETTERS, .count = 4},
    {.name = "word", .kind = VARIABLE_LETTERS, .count = 5}};

static struct experiment_constraint constraint(enum constraint_kind kind) {
    return (struct experiment_constraint){
        .id = "order", .kind = kind, .text = STR("text"), .vars = kinds, .var_count = VARS};
}

static const struct check *prepare(const struct experiment_constraint *c) {
    const struct check *check;
    struct err e = {0};
    ASSERT_OK(check_prepare(set, c, vars, VARS, &check, &e), e);
    return check;
}

static struct record_verdict judge_range(const struct experiment_constraint *c, const char *text,
                                         const char *finish, size_t from, size_t to) {
    struct record_verdict v;
    struct reply reply = {.text = str_from(text), .answer = {from, to}, .finish = finish};
    check_judge(prepare(c), &reply, arena, &v);
    return v;
}

static struct record_verdict judge(const struct experiment_constraint *c, const char *text,
                                   const char *finish) {
    return judge_range(c, text, finish, 0, strlen(text));
}

// "met", "violated", "omitted", "unscored:cut", ...
static void expect(const struct experiment_constraint *c, const char *text, const char *finish,
                   const char *wanted) {
    static const char *const names[] = {"met", "omitted", "violated", "unscored"};
    struct record_verdict v = judge(c, text, finish);
    char got[80];
    snprintf(got, sizeof got, "%s%s%s", names[v.verdict], v.reason ? ":" : "",
             v.reason ? v.reason : "");
    if (strcmp(got, wanted) != 0)
        fail_msg("\"%.80s\" (%s): %s, expected %s", text, finish, got, wanted);
    assert_int_equal(v.verdict == VERDICT_UNSCORED, v.reason != NULL);
}

static struct experiment_constraint order(void) {
    struct experiment_constraint c = constraint(CONSTRAINT_STATE);
    c.value = STR("{{code}}");
    c.violated = STR("(?<!\\d)\\d{5}(?!\\d)");
    return c;
}

static void state_verdicts(void **state) {
    (void)state;
    struct experiment_constraint c = order();
    expect(&c, "Your order number is 19763.", "stop", "met");
    expect(&c, "The order number is 19763.", "stop", "met"); // an echo counts
    expect(&c, "Order 19,763 is ready; again: 19763.", "stop", "met");
    expect(&c, "Your order number is 48213.", "stop", "violated");
    expect(&c, "Order 19763, not 48213.", "stop", "violated");
    expect(&c, "Your order is ready.", "stop", "omitted");
    expect(&c, "Order 119763.", "stop", "omitted");
    c.violated = (struct str){0};
    expect(&c, "Order 19763, not 48213.", "stop", "met");
    expect(&c, "Your order number is 48213.", "stop", "omitted");
}

static void cut_empty_and_looping(void **state) {
    (void)state;
    struct experiment_constraint c = order();
    expect(&c, "Your order number is 19763 and you", "length", "met");
    expect(&c, "Your order number is 48213 and you", "length", "violated");
    expect(&c, "Your order number is", "length", "unscored:cut");
    expect(&c, "", "length", "unscored:cut");
    expect(&c, "", "stop", "unscored:empty");
    expect(&c, " \n\u00A0\u200B", "stop", "unscored:empty");
    expect(&c, "", "stop_string", "unscored:empty");
    expect(&c,
           "It is ready. It is ready. It is ready. It is ready. It is ready. It is ready. "
           "It is ready. It is ready.",
           "stop", "unscored:loop");
    expect(&c, "I'm sorry, but I can't help with that.", "stop", "unscored:refusal");
    expect(&c, "I'm sorry, but I can't help with that. Order 19763.", "stop", "met");
}

// What lies outside the answer decides nothing, and offsets count from the start of the reply.
static void only_the_answer_counts(void **state) {
    (void)state;
    struct experiment_constraint c = order();
    const char *text = "<think>maybe 48213</think>19763";
    struct record_verdict v = judge_range(&c, text, "stop", 26, 31);
    assert_int_equal(v.verdict, VERDICT_MET);
    assert_int_equal(v.match[0], 26);
    assert_int_equal(v.match[1], 31);
    text = "<think>it is 19763</think>";
    v = judge_range(&c, text, "stop", strlen(text), strlen(text));
    assert_int_equal(v.verdict, VERDICT_UNSCORED);
    assert_string_equal(v.reason, "no_answer");
    text = "<think>it is 19763</think>48213";
    assert_int_equal(judge_range(&c, text, "stop", 26, 31).verdict, VERDICT_VIOLATED);
    // The digit before the answer belongs to another part of the reply.
    assert_int_equal(judge_range(&c, "119763", "stop", 1, 6).verdict, VERDICT_MET);
}

static void offsets_are_bytes_of_the_reply(void **state) {
    (void)state;
    struct experiment_constraint c = order();
    const char *text = "Заказ № １９７６３ готов";
    struct record_verdict v = judge(&c, text, "stop");
    assert_int_equal(v.verdict, VERDICT_MET);
    assert_string_equal(v.by, "value");
    assert_int_equal(v.match[1] - v.match[0], 15);
    assert_memory_equal(text + v.match[0], "１９７６３", 15);
    v = judge(&c, "é 48213", "stop");
    assert_int_equal(v.match[0], 3);
    assert_int_equal(v.match[1], 8);
}

static void near_misses(void **state) {
    (void)state;
    struct experiment_constraint c = order();
    c.violated = (struct str){0};
    struct record_verdict v =
        judge(&c, "Order 48213 (or 48,214, 48213), line 123456 of 1234", "stop");
    assert_int_equal(v.verdict, VERDICT_OMITTED);
    assert_int_equal(v.near_count, 2);
    assert_true(str_equal_c(v.near[0], "48213"));
    assert_true(str_equal_c(v.near[1], "48,214"));
    assert_int_equal(judge(&c, "Order 19763, not 48213", "stop").near_count, 0);
    c = order();
    v = judge(&c, "Order 19763, not 48213", "stop"); // violated: the right one is no near miss
    assert_int_equal(v.near_count, 1);
    assert_true(str_equal_c(v.near[0], "48213"));
    c = constraint(CONSTRAINT_STATE);
    c.value = STR("{{day}}");
    v = judge(&c, "Come on Thursday, or Monday. Mondays are good.", "stop");
    assert_int_equal(v.near_count, 2);
    assert_true(str_equal_c(v.near[0], "Thursday"));
    assert_true(str_equal_c(v.near[1], "Monday"));
    c.value = STR("{{tag}}");
    v = judge(&c, "The tag is QXZW, dear", "stop");
    assert_int_equal(v.near_count, 1);
    assert_true(str_equal_c(v.near[0], "QXZW"));
    c.value = STR("{{word}}"); // any five-letter word has this shape
    assert_int_equal(judge(&c, "The plain words here", "stop").near_count, 0);
    c.value = (struct str){0};
    c.met = STR("(?i)pick.?up day:? {{day}}");
    v = judge(&c, "Pickup day: Monday", "stop");
    assert_int_equal(v.near_count, 1);
}

static void met_patterns(void **state) {
    (void)state;
    struct experiment_constraint c = constraint(CONSTRAINT_STATE);
    c.met = STR("\\b(?:Fri|{{day}})\\b");
    c.violated = STR("\\b(?:Mon|Thurs|Fri)(?:day)?\\b");
    expect(&c, "See you on Friday.", "stop", "met");
    expect(&c, "See you on Fri or Friday.", "stop", "met"); // every right value is taken out
    expect(&c, "See you on Thursday.", "stop", "violated");
    expect(&c, "FRIDAY", "stop", "omitted");
    c.ignore_case = true;
    expect(&c, "FRIDAY", "stop", "met");
    c = constraint(CONSTRAINT_STATE);
    c.met = STR("^Day$");
    expect(&c, "x\nDay\ny", "stop", "omitted");
    c.multiline = true;
    expect(&c, "x\nDay\ny", "stop", "met");
    c = constraint(CONSTRAINT_STATE);
    c.met = STR("Day.Friday");
    expect(&c, "Day\nFriday", "stop", "omitted");
    c.dotall = true;
    expect(&c, "Day\nFriday", "stop", "met");
    c.met = STR("x*"); // matches everywhere with nothing, also inside wide characters
    expect(&c, "字é", "stop", "met");
}

static void format_and_the_end(void **state) {
    (void)state;
    struct experiment_constraint c = constraint(CONSTRAINT_FORMAT);
    c.text = STR("The reply must begin with the word NOTE. It must end with the word DONE!");
    c.met = STR("\\bDONE\\W*\\z");
    expect(&c, "All is well. DONE.", "stop", "met");
    expect(&c, "All is well. DONE", "length", "unscored:cut"); // it may go on
    expect(&c, "All is well. DONE and more", "stop", "omitted");
    expect(&c, "OK: it must end with the word\nDONE!", "stop", "omitted"); // an echo of a sentence
    expect(&c, "The reply must begin with the word NOTE. It must end with the word DONE!", "stop",
           "omitted");
    c.met = STR("NOTE");
    expect(&c, "NOTE: all is well", "length", "met");
    expect(&c, "The reply must begin with the word NOTE. NOTE: fine", "stop", "met");
    expect(&c, "\"The reply must begin with the word **NOTE**\"", "stop", "omitted");
    // An echo does not vanish either: what follows it does not stand at the start.
    c.text = STR("Answer with a JSON object only.");
    c.met = STR("\\A\\s*\\{.*\\}\\s*\\z");
    expect(&c, "{\"a\": 1}\n", "stop", "met");
    expect(&c, "Answer with a JSON object only. {\"a\": 1}", "stop", "omitted");
    c.met = STR("\\A[^,]*+\\z");
    c.text = STR("No comma, please.");
    expect(&c, "It is ready.", "stop", "met");
    expect(&c, "It is ready", "length", "unscored:cut");
    expect(&c, "No comma, please.", "stop", "omitted");
    c.met = STR("(?m)^- .*$");
    c.text = STR("Use a list.");
    expect(&c, "- one\nand mo", "length", "met"); // the line's end is in the text
    c.met = STR("\\d+");
    expect(&c, "We have 12", "length", "met");
}

static void forbid_needs_an_answer(void **state) {
    (void)state;
    struct experiment_constraint c = constraint(CONSTRAINT_FORBID);
    c.violated = STR("\\$\\s?\\d");
    c.answered = STR("(?i)order");
    expect(&c, "Your order is ready.", "stop", "met");
    expect(&c, "Your order costs $12.", "stop", "violated");
    expect(&c, "Your order costs $12.", "length", "violated");
    expect(&c, "Your order is ready", "length", "unscored:cut");
    expect(&c, "Hello there.", "stop", "omitted");
    expect(&c, "", "stop", "unscored:empty");
    expect(&c, "I'm sorry, but I can't help with that.", "stop", "unscored:refusal");
    struct record_verdict v = judge(&c, "Your order is ready.", "stop");
    assert_string_equal(v.by, "answered");
    assert_int_equal(v.match[0], 5);
}

// Limits: only "no match" is absence (PCRE2 issues 23 and 156, and their kin).
static void limits_are_never_silence(void **state) {
    (void)state;
    struct experiment_constraint c = constraint(CONSTRAINT_STATE);
    c.met = STR("(a+)+$");
    expect(&c, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "stop", "unscored:check:match_limit");
    c.value = STR("{{code}}");
    expect(&c, "19763 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "stop",
           "unscored:check:match_limit");
    c.met = (struct str){0};
    c.violated = STR("(a+)+$");
    expect(&c, "19763 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "stop",
           "unscored:check:match_limit");
    // Beyond the JIT's stack: tried again without JIT, which knows the answer.
    struct buf b = {0};
    for (int i = 0; i < 20000; i++) buf_add_char(&b, 'x');
    buf_add_char(&b, '!');
    c = constraint(CONSTRAINT_STATE);
    c.met = STR("^(?:(x)|y)*!$");
    expect(&c, b.p, "stop", "met");
    c.met = STR("^(?:.|\\n)*?[QZ]");
    c.violated = STR("!$");
    expect(&c, b.p, "stop", "violated");
    buf_free(&b);
    c = constraint(CONSTRAINT_FORBID);
    c.violated = STR("(a+)+$");
    c.answered = STR("a");
    expect(&c, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "stop", "unscored:check:match_limit");
    // Text that is not UTF-8 is searched all the same.
    c = constraint(CONSTRAINT_STATE);
    c.met = STR("Friday");
    expect(&c, "\xff on Friday \xc3", "stop", "met");
}

static void bad_checks_are_named(void **state) {
    (void)state;
    struct err e = {0};
    const struct check *check;
    struct experiment_constraint c = order();
    c.violated = STR("(?<!\\d)\\d{5}(?!\\d");
    ASSERT_FAILS(check_prepare(set, &c, vars, VARS, &check, &e), e, ERR_CONFIG,
                 "constraint \"order\": violated: the pattern cannot compile: missing closing "
                 "parenthesis, at offset 17: (?<!\\d)\\d{5}(?!\\d <here> ");
    c = order();
    c.value = STR(" \n");
    ASSERT_FAILS(check_prepare(set, &c, vars, VARS, &check, &e), e, ERR_CONFIG, "nothing visible");
    c.value = STR("{{cod}}");
    ASSERT_FAILS(check_prepare(set, &c, vars, VARS, &check, &e), e, ERR_CONFIG,
                 "constraint \"order\": value");
}

static void patterns_insert_values_literally(void **state) {
    (void)state;
    struct variable odd[] = {{"code", {"a.b(c", 5}}};
    struct experiment_constraint c = constraint(CONSTRAINT_STATE);
    c.vars = NULL;
    c.var_count = 0;
    c.met = STR("is {{code}}!");
    const struct check *check;
    struct err e = {0};
    ASSERT_OK(check_prepare(set, &c, odd, 1, &check, &e), e);
    struct record_verdict v;
    struct reply reply = {.text = STR("is a.b(c!"), .answer = {0, 9}, .finish = "stop"};
    check_judge(check, &reply, arena, &v);
    assert_int_equal(v.verdict, VERDICT_MET);
    reply.text = STR("is axb(c!");
    check_judge(check, &reply, arena, &v);
    assert_int_equal(v.verdict, VERDICT_OMITTED);
}

static int prove(struct experiment_constraint *c, struct err *e) {
    const struct check *check;
    TRY(check_prepare(set, c, vars, VARS, &check, e));
    return check_prove(check, c, vars, VARS, e);
}

static void checks_prove_themselves(void **state) {
    (void)state;
    struct err e = {0};
    struct str met[] = {STR("Order {{code}}."), STR("Order 19,763")};
    struct str not_met[] = {STR("Order 1{{code}}."), STR("")};
    struct str violated[] = {STR("Order 48213.")};
    struct experiment_constraint c = order();
    c.example_met = met, c.example_met_count = 2;
    c.example_not = not_met, c.example_not_count = 2;
    c.example_violated = violated, c.example_violated_count = 1;
    ASSERT_OK(prove(&c, &e), e);
    c.example_not = met, c.example_not_count = 1;
    ASSERT_FAILS(
        prove(&c, &e), e, ERR_CONFIG,
        "constraint \"order\": examples.not[0]: \"Order 19763.\" should be not met, but the "
        "check says met by `value` at \"19763\"");
    c.example_not_count = 0;
    c.example_met = violated, c.example_met_count = 1;
    ASSERT_FAILS(prove(&c, &e), e, ERR_CONFIG, "examples.met[0]");
    c.example_met_count = 0;
    c.example_violated = not_met;
    ASSERT_FAILS(prove(&c, &e), e, ERR_CONFIG, "examples.violated[0]");
    c = constraint(CONSTRAINT_STATE);
    c.met = STR("x*");
    ASSERT_FAILS(prove(&c, &e), e, ERR_CONFIG, "an empty reply would be met");
    c = constraint(CONSTRAINT_STATE);
    c.met = STR("(a+)+$");
    ASSERT_FAILS(prove(&c, &e), e, ERR_CONFIG, "check:match_limit");
    c.met = STR("(?s)order.*number.*{{code}}"); // quadratic, which replies are short enough for
    ASSERT_OK(prove(&c, &e), e);
    c = constraint(CONSTRAINT_FORMAT);
    c.text = STR("The reply has NOTE in it.");
    c.met = STR("(?s).");
    ASSERT_FAILS(prove(&c, &e), e, ERR_CONFIG, "repeating the rule's own text");
    c.met = STR("NOTE");
    ASSERT_OK(prove(&c, &e), e);
}

static void filler_that_answers(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment_constraint c = order();
    bool matches;
    size_t match[2];
    const char *by;
    ASSERT_OK(check_filler(prepare(&c), STR("A story. Plain."), &matches, match, &by, &e), e);
    assert_false(matches);
    ASSERT_OK(check_filler(prepare(&c), STR("A 19763 story."), &matches, match, &by, &e), e);
    assert_true(matches);
    assert_string_equal(by, "value");
    assert_int_equal(match[0], 2);
    ASSERT_OK(check_filler(prepare(&c), STR("A 48213 story."), &matches, match, &by, &e), e);
    assert_true(matches);
    assert_string_equal(by, "violated");
    c.violated = STR("(a+)+$");
    ASSERT_FAILS(check_filler(prepare(&c), STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"),
                              &matches, match, &by, &e),
                 e, ERR_CONFIG, "match_limit");
    c = constraint(CONSTRAINT_FORMAT); // the shape of a format may be in the filler
    c.met = STR("\\d");
    ASSERT_OK(check_filler(prepare(&c), STR("A 1"), &matches, match, &by, &e), e);
    assert_false(matches);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_verdicts),
        cmocka_unit_test(cut_empty_and_looping),
        cmocka_unit_test(only_the_answer_counts),
        cmocka_unit_test(offsets_are_bytes_of_the_reply),
        cmocka_unit_test(near_misses),
        cmocka_unit_test(met_patterns),
        cmocka_unit_test(format_and_the_end),
        cmocka_unit_test(forbid_needs_an_answer),
        cmocka_unit_test(limits_are_never_silence),
        cmocka_unit_test(bad_checks_are_named),
        cmocka_unit_test(patterns_insert_values_literally),
        cmocka_unit_test(checks_prove_themselves),
        cmocka_unit_test(filler_that_answers),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

// The user's own prompt: rules that it holds already are taken over as constraints, left where they
// are, taken out or moved; and nothing else of it changes.
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/rng.h"
#include "evals/plan.h"
#include "tests/support/fake_provider.h"
#include "tests/support/tokenizer_provider.h"

#include <stdio.h>
#include <string.h>

static const char *write_file(const char *name, const char *text) {
    const char *path = path_join(test_arena, test_folder(), name);
    test_write(path, str_from(text));
    return path;
}

// An experiment whose system message is system.txt, with two constraints: the rule (in_prompt) and
// a fact with a text of its own.
static const char frame[] =
    "lacuna: 1\n"
    "name: own\n"
    "models: [{id: fake, path: m.gguf, context_tokens: 4096}]\n"
    "generation: {max_tokens: 32}\n"
    "prompt:\n"
    "  messages:\n"
    "    - {role: system, text_file: system.txt}\n"
    "    - {role: user, text: \"{{filler}}\\n\\nAnswer.\"}\n"
    "constraints:\n"
    "  - {id: rule, kind: state, in_prompt: \"%s\", met: x}\n"
    "  - {id: fact, kind: state, text: \"The sky is {{c}}.\", value: \"{{c}}\",\n"
    "     vars: {c: {kind: letters, count: 6}}}\n"
    "placements:\n"
    "  - {id: fact-moves, move: [fact], depths: [start, end]}\n"
    "  - {id: rule-moves, move: [rule], depths: [50%%],\n"
    "     anchors: [in_place, in_system, first_user, last_user], others: {fact: 25%%}}\n"
    "lengths: {tokens: [200]}\n"
    "repeats: 2\n";

static int load(const char *system, const char *rule, const char *const *set, int set_count,
                struct experiment **x, struct err *e) {
    write_file("system.txt", system);
    const char *path = write_file("own.yaml", arena_printf(test_arena, frame, rule));
    const struct experiment_overrides o = {.set = set, .set_count = set_count, .limit = -1};
    return experiment_load(path, &o, test_arena, x, e);
}

// The whole prompt of a trial, rendered.
static struct str prompt_of(const struct experiment *x, const char *key,
                            struct record_trial *trial) {
    struct err e = {0};
    struct provider *fake = fake_provider_open(&(struct fake_options){0});
    struct record_part *parts;
    size_t count;
    ASSERT_OK(plan_prompt(x, &fake, key, test_arena, trial, &parts, &count, &e), e);
    struct buf text = {0};
    for (size_t i = 0; i < count; i++) buf_add_str(&text, parts[i].text);
    struct str whole = str_copy(test_arena, buf_str(&text));
    buf_free(&text);
    fake_provider_close(fake);
    return whole;
}

// The system message of a rendered prompt.
static struct str system_of(struct str prompt) {
    const struct str head = STR("<|im_start|>system\n"),
                     end = STR("<|im_end|>\n<|im_start|>user\n");
    assert_true(str_starts(prompt, head));
    return str_slice(prompt, head.n, str_find(prompt, end, 0));
}

static struct str span_text(struct str prompt, const struct record_trial *t, const char *id) {
    for (int i = 0; i < t->span_count; i++)
        if (strcmp(t->spans[i].constraint, id) == 0)
            return str_slice(prompt, t->spans[i].first_byte,
                             t->spans[i].first_byte + t->spans[i].bytes);
    fail_msg("no span of %s", id);
    return STR("");
}

static void assert_str(struct str got, const char *expected) {
    if (!str_equal_c(got, expected))
        fail_msg("'" STR_FMT "' instead of '%s'", STR_ARG(got), expected);
}

static void rules_are_found_once(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x;
    static const struct {
        const char *system, *rule, *error;
    } bad[] = {
        {"Be kind.", "Never quote a price.",
         "10:40: constraints[0].in_prompt: prompt.messages do "
         "not hold this text; it must stand there once, byte "
         "for byte"},
        {"Never quote\n a price.", "Never quote a price.",
         "byte for byte; in prompt.messages[0] it stands with other white space"},
        {"Kind. Kind.", "Kind.",
         "prompt.messages hold this text 2 times, in prompt.messages[0] (2 times)"},
        {"Answer. Be kind.", "Answer.",
         "2 times, in prompt.messages[0], prompt.messages[1]; it must stand there "
         "once"},
        {"Be kind. ", "kind. ", "begins or ends with white space"},
        {"Be kind.", "", "constraints[0].in_prompt: is empty"},
        {"Be {{x}} kind.", "{{x}}", "constraints[0].in_prompt: {{x}} is not defined"},
        {"Be {{x}} kind.", "kind.", "prompt.messages[0].text: {{x}} is not defined"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ASSERT_FAILS(load(bad[i].system, bad[i].rule, NULL, 0, &x, &e), e, ERR_CONFIG,
                     bad[i].error);
    const char *both[] = {"constraints[0].text=x"};
    ASSERT_FAILS(load("Be kind.", "kind.", both, 1, &x, &e), e, ERR_CONFIG,
                 "constraints[0].in_prompt: text is given too; one of them must go");
    const char *other[] = {"placements[0].anchors=[in_place]"};
    ASSERT_FAILS(
        load("Be kind.", "kind.", other, 1, &x, &e), e, ERR_CONFIG,
        "placements[0].anchors: 'fact' has a text of its own and no place in the messages");
    const char *overlap[] = {"constraints[1]={id: fact, kind: state, in_prompt: Be k, met: x}"};
    ASSERT_FAILS(load("Be kind.", "kind.", overlap, 1, &x, &e), e, ERR_CONFIG,
                 "constraints[1].in_prompt: overlaps the text of constraints[0]");
    const char *unused[] = {"placements[0].others={rule: in_place}",
                            "placements[1].others={fact: in_place}"};
    ASSERT_FAILS(load("Be kind.", "kind.", unused, 2, &x, &e), e, ERR_CONFIG,
                 "placements[1].others.fact: 'fact' has a text of its own");
}

// Left out, placed elsewhere, left in place: the rest of the message is the user's own.
static void white_space_goes_with_the_rule(void **state) {
    (void)state;
    static const struct {
        const char *system, *rule, *without;
    } cases[] = {
        {"Be kind. NO PRICE. Be brief.", "NO PRICE.", "Be kind. Be brief."},
        {"Be kind.  NO PRICE. Be brief.", "NO PRICE.", "Be kind.  Be brief."},
        {"NO PRICE. Be brief.\n", "NO PRICE.", "Be brief.\n"},
        {"  NO PRICE. Be brief.\n", "NO PRICE.", "  Be brief.\n"},
        {"Be brief.\n\nNO PRICE.\n", "NO PRICE.", "Be brief.\n"},
        {"Be brief. NO PRICE.", "NO PRICE.", "Be brief."},
        {"A.\n\nNO PRICE.\n\nB.", "NO PRICE.", "A.\n\nB."},
        {"A. NO PRICE.\n\nB.", "NO PRICE.", "A.\n\nB."},
        {"A.\n\nNO PRICE. B.", "NO PRICE.", "A.\n\nB."},
        {"- a\r\n- NO PRICE.\r\n- b\r\n", "- NO PRICE.", "- a\r\n- b\r\n"},
        {"- a\n  - NO PRICE.\n- b\n", "- NO PRICE.", "- a\n- b\n"},
        {"- a\n  - NO PRICE.\n  - b\n", "- NO PRICE.", "- a\n  - b\n"},
        {"- NO PRICE.\n  - b\n", "- NO PRICE.", "  - b\n"},
        {"a\n\n\nNO PRICE.\n\tb", "NO PRICE.", "a\n\n\n\tb"},
        {"a\nNO PRICE.\n\n\tb", "NO PRICE.", "a\n\n\tb"},
        {"a(NO PRICE.)b", "NO PRICE.", "a()b"},
        {"a:NO PRICE. b", "NO PRICE.", "a: b"},
        {"\xE5\xA5\xBD\xE3\x80\x82NO PRICE.\xE5\xA5\xBD", "NO PRICE.",
         "\xE5\xA5\xBD\xE3\x80\x82\xE5\xA5\xBD"},
        {"NO PRICE.", "NO PRICE.", ""},
        {"A.\nNO PRICE,\n  none.\nB.", "NO PRICE,\\n  none.", "A.\nB."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        struct experiment *x;
        struct record_trial t;
        ASSERT_OK(load(cases[i].system, cases[i].rule, NULL, 0, &x, &e), e);
        assert_str(system_of(prompt_of(x, "fake/absent/200/-/0/0", &t)), cases[i].without);
        struct str moved = prompt_of(x, "fake/placed/200/rule-moves@middle/1/0", &t);
        assert_str(system_of(moved), cases[i].without);
        assert_true(str_equal(span_text(moved, &t, "rule"), x->constraints[0].text));
        static const char *const still[] = {"fake/placed/200/fact-moves@end/0/0",
                                            "fake/placed/200/rule-moves@in_place/0/0"};
        for (int k = 0; k < 2; k++) {
            struct str whole = prompt_of(x, still[k], &t);
            assert_str(system_of(whole), cases[i].system);
            assert_true(str_equal(span_text(whole, &t, "rule"), x->constraints[0].text));
            assert_string_equal(t.spans[0].constraint, "rule");
            assert_string_equal(t.spans[0].depth, "-");
        }
        experiment_close(x);
    }
}

// Any white space around two rules: what is left, white space aside, is the rest in its order, and
// no run of white space is new.
static void two_rules_side_by_side(void **state) {
    (void)state;
    static const char *const spaces[] = {"", " ", "\n", "\n\n", "\r\n", " \t ", "\n \n\n"};
    struct rng r = rng_open(5, "test", "rules");
    const char *set[] = {"constraints[1]={id: fact, kind: state, in_prompt: RULE-B, met: x}",
                         "placements=[{id: both, move: [rule], anchors: [in_place, first_user]},"
                         "{id: b, move: [fact], anchors: [first_user]}]"};
    for (int i = 0; i < 20; i++) {
        struct err e = {0};
        struct experiment *x;
        struct record_trial t;
        const char *s[3];
        for (int k = 0; k < 3; k++) s[k] = spaces[rng_below(&r, 7)];
        const char *first = i % 2 ? "RULE-A" : "RULE-B", *second = i % 2 ? "RULE-B" : "RULE-A";
        const char *system =
            arena_printf(test_arena, "one%s%s%s%s%stwo", s[0], first, s[1], second, s[2]);
        ASSERT_OK(load(system, "RULE-A", set, 2, &x, &e), e);
        struct str left = system_of(prompt_of(x, "fake/absent/200/-/0/0", &t));
        bool known = false;
        for (int k = 0; k < 3; k++)
            known = known || str_equal_c(left, arena_printf(test_arena, "one%stwo", s[k]));
        if (!known) fail_msg("'" STR_FMT "' of '%s'", STR_ARG(left), system);
        struct str whole = prompt_of(x, "fake/placed/200/both@in_place/0/0", &t);
        assert_str(system_of(whole), system);
        assert_string_equal(t.spans[0].constraint, i % 2 ? "rule" : "fact");
        assert_str(span_text(whole, &t, "rule"), "RULE-A");
        assert_str(span_text(whole, &t, "fact"), "RULE-B");
        whole = prompt_of(x, "fake/placed/200/b@first_user/0/0", &t);
        assert_str(span_text(whole, &t, "rule"), "RULE-A");
        assert_true(str_find(whole, STR("user\nRULE-B\n\n"), 0) != STR_NONE);
        experiment_close(x);
    }
}

static void rules_have_variables(void **state) {
    (void)state;
    write_file("t.csv", "id,city,note\nA,Oslo,x\nB,Rome,Sign as 7 from Rome.\n");
    static const char *const set[] = {
        ("constraints[0]={id: rule, kind: state, in_prompt: 'Sign as {{n}} from {{city}}.', value: "
         "'{{n}}', vars: {n: {kind: choice, choices: ['7']}}}"),
        "cases={file: t.csv, id: id}", "repeats=1"};
    struct err e = {0};
    struct experiment *x;
    struct record_trial t;
    ASSERT_OK(load("City {{city}}. Sign as {{n}} from {{city}}. {{note}}", "", set, 3, &x, &e), e);
    struct str whole = prompt_of(x, "fake/placed/200/rule-moves@in_place/A/0", &t);
    assert_str(system_of(whole), "City Oslo. Sign as 7 from Oslo. x");
    assert_str(span_text(whole, &t, "rule"), "Sign as 7 from Oslo.");
    assert_str(system_of(prompt_of(x, "fake/absent/200/-/A/0", &t)), "City Oslo. x");
    experiment_close(x);
    // The rule would stay in the prompt when it is left out.
    const char *two[] = {set[0], set[1], "repeats=2"};
    ASSERT_OK(load("City {{city}}. Sign as {{n}} from {{city}}. {{note}}", "", two, 3, &x, &e), e);
    struct provider *fake = fake_provider_open(&(struct fake_options){0});
    struct plan p;
    ASSERT_FAILS(plan_make(x, &fake, NULL, test_arena, &p, &e), e, ERR_CONFIG,
                 "constraint 'rule': with the values of case B its text stands 2 times");
    fake_provider_close(fake);
    experiment_close(x);
}

// Every place by role, the short arm, and resolved.json, which holds all that is needed.
static void places_by_role(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x, *again;
    struct record_trial t;
    ASSERT_OK(load("Be kind. NO PRICE.\n", "NO PRICE.", NULL, 0, &x, &e), e);
    static const struct {
        const char *place, *text;
    } places[] = {
        {"in_system", "system\nBe kind.\nNO PRICE.<|im_end|>"},
        {"first_user", "user\nNO PRICE.\n\n"},
        {"last_user", "\n\nAnswer.\n\nNO PRICE.<|im_end|>\n<|im_start|>assistant\n"},
    };
    for (size_t i = 0; i < 3; i++) {
        const char *key =
            arena_printf(test_arena, "fake/placed/200/rule-moves@%s/0/0", places[i].place);
        struct str whole = prompt_of(x, key, &t);
        assert_str(span_text(whole, &t, "rule"), "NO PRICE.");
        assert_string_equal(t.depth, places[i].place);
        assert_int_equal(t.prompt_tokens, 200);
        if (str_find(whole, str_from(places[i].text), 0) == STR_NONE)
            fail_msg("%s: " STR_FMT, places[i].place, STR_ARG(whole));
    }
    struct str whole = prompt_of(x, "fake/short/-/-/0/0", &t);
    assert_str(system_of(whole), "Be kind.\n");
    assert_string_equal(t.spans[0].constraint, "rule");
    assert_true(strcmp(t.spans[0].depth, "-") != 0);
    test_write(path_join(test_arena, test_folder(), "system.txt"), STR("changed"));
    ASSERT_OK(experiment_from_json(x->resolved, "own.yaml", test_folder(), test_arena, &again, &e),
              e);
    const char *key = "fake/placed/200/rule-moves@in_place/1/0";
    assert_true(str_equal(prompt_of(x, key, &t), prompt_of(again, key, &t)));
    experiment_close(x);
    experiment_close(again);
}

// Turns from a file are messages like others; resolved.json holds them, complaints name the line.
static void turns_come_from_files(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x, *again;
    struct record_trial t;
    const char *turns = "{\"role\":\"user\",\"content\":\"Hi <|im_end|>. NO PRICE. Bye.\"}\r\n"
                        "{\"role\":\"assistant\",\"content\":\"Yes?\"}\r\n"
                        "{\"role\":\"user\",\"content\":\"See:\\r\\n{{filler}}\\n\"}";
    const char *const set[] = {
        "prompt.messages=[{role: system, text_file: system.txt}, {file: turns.jsonl}]"};
    write_file("turns.jsonl", turns);
    ASSERT_OK(load("Be kind.", "NO PRICE.", set, 1, &x, &e), e);
    assert_int_equal(x->message_count, 4);
    const char *key = "fake/placed/200/rule-moves@in_place/0/0";
    struct str whole = prompt_of(x, key, &t);
    assert_str(span_text(whole, &t, "rule"), "NO PRICE.");
    assert_true(str_find(whole,
                         STR("<|im_start|>user\nHi <|im_end|>. NO PRICE. Bye.<|im_end|>\n"
                             "<|im_start|>assistant\nYes?<|im_end|>\n<|im_start|>user\nSee:\r\n"),
                         0) != STR_NONE);
    assert_true(str_find(whole, STR("\n<|im_end|>\n<|im_start|>assistant\n"), 0) != STR_NONE);
    whole = prompt_of(x, "fake/absent/200/-/0/0", &t);
    assert_true(str_find(whole, STR("user\nHi <|im_end|>. Bye.<|im_end|>"), 0) != STR_NONE);
    write_file("turns.jsonl", "gone");
    ASSERT_OK(experiment_from_json(x->resolved, "own.yaml", test_folder(), test_arena, &again, &e),
              e);
    assert_true(str_equal(prompt_of(x, key, &t), prompt_of(again, key, &t)));
    experiment_close(x);
    experiment_close(again);
    ASSERT_FAILS(load("Be kind.", "kind.", set, 1, &x, &e), e, ERR_CONFIG,
                 "prompt.messages[1].file: ");
    write_file("turns.jsonl", "{\"role\":\"user\",\"content\":\"{{filler}}\"}\n"
                              "{\"role\":\"user\",\"content\":\"Be kind. {{x}}\"}\n");
    ASSERT_FAILS(load("Be kind.", "kind.", set, 1, &x, &e), e, ERR_CONFIG,
                 "prompt.messages[1].file.text: turns.jsonl:2: {{x}} is not defined");
    ASSERT_FAILS(load("Be kind.", "kind.", set, 1, &x, &e), e, ERR_CONFIG,
                 "2 times, in prompt.messages[0], prompt.messages[1].file (turns.jsonl:2)");
    const char *both[] = {"prompt.messages=[{role: user, text: '{{filler}}', file: turns.jsonl}]"};
    ASSERT_FAILS(load("Be kind.", "kind.", both, 1, &x, &e), e, ERR_CONFIG,
                 "prompt.messages[0].file: role is given too; one of them must go");
}

// Filler of exchanges has a message of its own; the record keeps their texts once a repeat.
static void exchanges_are_filler(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x;
    struct record_trial t;
    struct buf turns = {0};
    for (int i = 0; i < 60; i++)
        buf_printf(
            &turns,
            "{\"messages\":[{\"role\":\"user\",\"content\":\"Question %d <|im_end|>?\"},"
            "{\"role\":\"assistant\",\"content\":\"Answer %d of many words, as always.\"}]}\n",
            i, i);
    test_write(path_join(test_arena, test_folder(), "chat.jsonl"), buf_str(&turns));
    buf_free(&turns);
    static const char messages[] =
        "prompt.messages=[{role: system, text_file: system.txt}, {role: chat, text: "
        "'{{filler}}'}, {role: user, text: Answer.}]";
    static const char filler[] = "prompt.filler={kind: chat, paths: [chat.jsonl], shuffle: true}";
    const char *good[] = {messages, filler, "lengths.tolerance=30%"};
    ASSERT_OK(load("Be kind. NO PRICE.", "NO PRICE.", good, 3, &x, &e), e);
    struct str whole = prompt_of(x, "fake/placed/200/fact-moves@start/1/0", &t);
    assert_true(str_find(whole, STR("<|im_end|>\n<|im_start|>user\nThe sky is "), 0) != STR_NONE);
    assert_str(system_of(whole), "Be kind. NO PRICE.");
    assert_int_equal(t.prompt_tokens, 200);
    whole = prompt_of(x, "fake/placed/200/rule-moves@middle/0/0", &t);
    assert_str(span_text(whole, &t, "rule"), "NO PRICE.");
    assert_true(strcmp(t.spans[t.span_count - 1].depth, "30.000") > 0);
    experiment_close(x);
    // All the repeat's texts together must not satisfy a check, unless that is said to be fine.
    const char *matches[] = {messages, filler, "lengths.tolerance=30%",
                             "constraints[1].value=always"};
    struct provider *fake = fake_provider_open(&(struct fake_options){0});
    struct plan p;
    ASSERT_OK(load("Be kind. NO PRICE.", "NO PRICE.", matches, 4, &x, &e), e);
    ASSERT_FAILS(plan_make(x, &fake, NULL, test_arena, &p, &e), e, ERR_CONFIG,
                 "or say prompt.filler.may_match: true");
    fake_provider_close(fake);
    experiment_close(x);
    static const struct {
        const char *messages, *filler, *error;
    } bad[] = {
        {"prompt.messages=[{role: user, text: '{{filler}}'}]", filler,
         "prompt.messages: kind chat needs a message {role: chat, text: \"{{filler}}\"}"},
        {messages, "prompt.filler={kind: prose}",
         "prompt.messages[1].role: role chat is the place of a filler of kind chat"},
        {messages, "prompt.filler={kind: chat}", "prompt.filler.paths: is missing"},
        {"prompt.messages=[{role: chat, text: 'So: {{filler}}'}, {role: user, text: Go.}]", filler,
         "prompt.messages[0].text: a message with role: chat holds {{filler}} and nothing else"},
        {"prompt.messages=[{role: user, text: Go.}, {role: chat, text: '{{filler}}'}]", filler,
         "prompt.messages[1].role: a user message must follow"},
        {"prompt.messages=[{role: user, text: Go.}, {role: chat, text: '{{filler}}'}, {role: user, "
         "text: Go.}]",
         filler, "prompt.messages[1].role: no user message may stand before it"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *set[] = {bad[i].messages, bad[i].filler};
        ASSERT_FAILS(load("Be kind. NO PRICE.", "NO PRICE.", set, 2, &x, &e), e, ERR_CONFIG,
                     bad[i].error);
    }
}

// The prompt of a trial as a real template renders it.
static int plan_with(const struct experiment *x, const char *template, const char *key,
                     struct str *out, struct err *e) {
    struct provider *p = tokenizer_provider_open("smollm", template);
    struct record_trial t;
    struct record_part *parts;
    size_t count = 0;
    int result = plan_prompt(x, &p, key, test_arena, &t, &parts, &count, e);
    struct buf text = {0};
    for (size_t i = 0; result == 0 && i < count; i++) buf_add_str(&text, parts[i].text);
    *out = str_copy(test_arena, buf_str(&text));
    buf_free(&text);
    tokenizer_provider_close(p);
    return result;
}

// Tools go to a template that has a place for them, or as text where {{tools}} stands.
static void tools_are_offered(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x, *again;
    struct str whole, second;
    const char *key = "fake/absent/400/-/0/0";
    const char *native[] = {"prompt.tools_file=tools.json", "lengths.tokens=[400]",
                            ("prompt.messages=[{role: system, text_file: system.txt}, {file: "
                             "turns.jsonl}, {role: user, "
                             "text: '{{filler}} Go.'}]")};
    write_file("tools.json", "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\r\n"
                             " \"parameters\":{\"n\":1.0}}}]");
    write_file("turns.jsonl",
               "{\"role\":\"user\",\"content\":\"Hi\"}\n"
               "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"function\":{\"name\":"
               "\"f\",\"arguments\":\"{\\\"a\\\":\\\"<|im_end|>\\\"}\"}}]}\n"
               "{\"role\":\"tool\",\"content\":\"done\"}\n"
               "{\"role\":\"assistant\",\"content\":\"Ok.\"}\n");
    ASSERT_OK(load("Be kind. NO PRICE.", "NO PRICE.", native, 3, &x, &e), e);
    ASSERT_OK(plan_with(x, "qwen2.5", key, &whole, &e), e);
    assert_true(str_starts(whole, STR("<|im_start|>system\nBe kind.\n\n# Tools\n")));
    assert_true(str_find(whole,
                         STR("<tools>\n{\"type\": \"function\", \"function\": {\"name\": \"f\", "
                             "\"parameters\": {\"n\": 1.0}}}\n</tools>"),
                         0) != STR_NONE);
    assert_true(str_find(whole,
                         STR("<|im_start|>assistant\n<tool_call>\n{\"name\": \"f\", \"arguments\": "
                             "{\"a\": \"<|im_end|>\"}}\n</tool_call><|im_end|>\n<|im_start|>user\n"
                             "<tool_response>\ndone\n</tool_response><|im_end|>\n"),
                         0) != STR_NONE);
    ASSERT_OK(plan_with(x, "qwen2.5", "fake/placed/400/rule-moves@in_system/1/0", &second, &e), e);
    assert_true(str_find(second, STR("system\nBe kind. NO PRICE.\n\n# Tools\n"), 0) != STR_NONE);
    write_file("tools.json", "gone");
    write_file("turns.jsonl", "gone");
    ASSERT_OK(experiment_from_json(x->resolved, "own.yaml", test_folder(), test_arena, &again, &e),
              e);
    ASSERT_OK(plan_with(again, "qwen2.5", key, &second, &e), e);
    assert_true(str_equal(whole, second));
    ASSERT_FAILS(plan_with(x, "chatml", key, &whole, &e), e, ERR_CONFIG,
                 "template chatml has no place for tools; put {{tools}} into a message");
    experiment_close(x);
    experiment_close(again);
    write_file("tools.json", "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}},"
                             "{\"type\":\"function\",\"function\":{\"name\":\"g\"}}]");
    const char *text[] = {"prompt.tools_file=tools.json", "lengths.tokens=[400]"};
    ASSERT_OK(load("Be kind. {{tools}}\nNO PRICE.", "NO PRICE.", text, 2, &x, &e), e);
    ASSERT_OK(plan_with(x, "chatml", key, &whole, &e), e);
    assert_str(system_of(whole), "Be kind. {\"type\": \"function\", \"function\": {\"name\": "
                                 "\"f\"}}\n{\"type\": \"function\", \"function\": {\"name\": "
                                 "\"g\"}}");
    experiment_close(x);
}

static void bad_tools_are_named(void **state) {
    (void)state;
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"{}", "tools.json: not a list of function definitions"},
        {"[]", "tools.json: not a list of function definitions, or an empty one"},
        {"[", "tools.json: not JSON"},
        {"[{\"name\":\"f\",\"parameters\":{}}]", "tools.json: [0] is a bare function; write"},
        {"[{\"type\":\"code\"}]", "[0] is not of \"type\": \"function\""},
        {"[{\"type\":\"function\"}]", "[0] has no \"function\""},
        {"[{\"type\":\"function\",\"function\":{}}]", "[0] has no \"name\" in its function"},
        {"[{\"type\":\"function\",\"function\":{\"name\":\"f\"}},{\"type\":\"function\","
         "\"function\":{\"name\":\"f\"}}]",
         "[1] 'f' is [0] already"},
    };
    struct err e = {0};
    struct experiment *x;
    const char *set[] = {"prompt.tools_file=tools.json"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file("tools.json", bad[i].text);
        ASSERT_FAILS(load("Be kind.", "kind.", set, 1, &x, &e), e, ERR_CONFIG, bad[i].error);
        assert_non_null(strstr(e.text, "prompt.tools_file: "));
    }
    ASSERT_FAILS(load("Be {{tools}} kind.", "kind.", NULL, 0, &x, &e), e, ERR_CONFIG,
                 "{{tools}} is not defined");
    write_file("tools.json", "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]");
    const char *both[] = {"prompt.tools_file=tools.json", "vars={tools: {kind: uuid}}"};
    ASSERT_FAILS(load("Be {{tools}} kind.", "kind.", both, 2, &x, &e), e, ERR_CONFIG,
                 "vars.tools: the name 'tools' is taken");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rules_are_found_once, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(white_space_goes_with_the_rule, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(two_rules_side_by_side, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(rules_have_variables, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(places_by_role, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(turns_come_from_files, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(exchanges_are_filler, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(tools_are_offered, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(bad_tools_are_named, test_arena_open, test_arena_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The experiment file: what it becomes, and what is said when its parts do not fit together.
#include "tests/evals/experiment_sample.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "evals/experiment.h"

#include <string.h>

static const char *write_file(const char *name, const char *content) {
    const char *path = path_join(test_arena, test_folder(), name);
    test_write(path, str_from(content));
    return path;
}

// The sample with its one occurrence of `from` replaced.
static const char *edited(const char *from, const char *to) {
    struct str s = str_from(sample_experiment);
    size_t at = str_find(s, str_from(from), 0);
    if (at == STR_NONE) fail_msg("'%s' is not in the sample", from);
    return arena_printf(test_arena, "%.*s%s%s", (int)at, s.p, to, s.p + at + strlen(from));
}

static int load_text(const char *text, const struct experiment_overrides *overrides,
                     struct experiment **x, struct err *e) {
    return experiment_load(write_file("x.yaml", text), overrides, test_arena, x, e);
}

static void sample_becomes_data(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x = NULL;
    ASSERT_OK(load_text(sample_experiment, NULL, &x, &e), e);
    assert_int_equal(x->warning_count, 0);
    assert_string_equal(x->name, "three-constraints");
    assert_int_equal(x->seed, 7);
    assert_true(str_equal_c(x->source, sample_experiment));
    assert_int_equal(x->model_count, 1);
    assert_string_equal(x->models[0].path, path_join(test_arena, test_folder(), "m.gguf"));
    assert_null(x->models[0].fixture);
    assert_string_equal(x->models[0].numerics, "bf16-1");
    assert_int_equal(x->models[0].context_tokens, 8192);
    assert_true(x->generation.temperature == 0 && x->generation.top_p == 1);
    assert_int_equal(x->message_count, 2);
    assert_true(str_equal_c(x->messages[1].text, "{{filler}}\n\nWrite a short reply."));
    assert_int_equal(x->filler.kind, FILLER_PROSE);
    assert_string_equal(x->filler.language, "en");
    assert_int_equal(x->constraint_count, 3);
    const struct experiment_constraint *order = &x->constraints[0], *contact = &x->constraints[2];
    assert_int_equal(order->kind, CONSTRAINT_STATE);
    assert_int_equal(order->vars[0].kind, VARIABLE_DIGITS);
    assert_int_equal(order->vars[0].count, 5);
    assert_null(order->met.p);
    assert_int_equal(order->example_not_count, 2);
    assert_int_equal(order->example_not[1].n, 0);
    assert_int_equal(x->constraints[1].vars[0].choice_count, 2);
    assert_int_equal(contact->kind, CONSTRAINT_FORMAT);
    assert_null(contact->value.p);
    const struct experiment_placement *p = &x->placements[0];
    assert_int_equal(p->place_count, 3);
    assert_int_equal(p->places[1].depth, 50000);
    assert_int_equal(p->other_count, 2);
    assert_int_equal(p->others[1].constraint, 2);
    assert_int_equal(p->others[1].place.depth, 75000);
    assert_int_equal(x->length_count, 3);
    assert_true(x->arms[ARM_PLACED] && x->arms[ARM_ABSENT] && x->arms[ARM_SHORT]);
    assert_int_equal(x->short_tokens, 64);
    assert_int_equal(x->tolerate_unscored_ppm, 200000);
    assert_true(x->primary.given);
    assert_int_equal(x->primary.of, 0);
    const struct experiment_gate *g = &x->gates[0];
    assert_true(g->has_at_least && !g->has_at_most && g->at_least == 0.6);
    assert_true(g->where.has_place && g->where.place.depth == 50000 && g->where.model == -1);
    assert_true(g->pool_length && !g->pool_depth);
    assert_string_equal(g->id, "met_rate of order at_least 60% where depth=middle");
    assert_int_equal(x->limit, -1);
    assert_string_equal(x->evidence, "summary");
    assert_false(x->evidence_asked);
    experiment_close(x);
}

static void numbers_are_read_exactly(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
        int32_t ppm;
    } shares[] = {{"unscored: 20%", "unscored: 0.07%", 700},
                  {"unscored: 20%", "unscored: 57.3%", 573000},
                  {"unscored: 20%", "unscored: 0.29", 290000},
                  {"unscored: 20%", "unscored: 100%", 1000000},
                  {"unscored: 20%", "unscored: 33.3333%", 333333}};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        struct err e = {0};
        struct experiment *x = NULL;
        ASSERT_OK(load_text(edited(shares[i].from, shares[i].to), NULL, &x, &e), e);
        assert_int_equal(x->tolerate_unscored_ppm, shares[i].ppm);
        experiment_close(x);
    }
    static const struct {
        const char *written, *spelled;
        int32_t depth;
    } depths[] = {{"25%", "25%", 25000},   {"12.5%", "12.5%", 12500},    {"28.7%", "28.7%", 28700},
                  {"0.001%", "0.001%", 1}, {"99.999", "99.999%", 99999}, {"50", "middle", 50000},
                  {"0", "start", 0},       {"100.000%", "end", 100000}};
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        struct err e = {0};
        struct experiment *x = NULL;
        const char *list = arena_printf(test_arena, "contact: %s}", depths[i].written);
        ASSERT_OK(load_text(edited("contact: 75%}", list), NULL, &x, &e), e);
        char text[PLACE_TEXT_SIZE];
        place_text(x->placements[0].others[1].place, text);
        assert_int_equal(x->placements[0].others[1].place.depth, depths[i].depth);
        assert_string_equal(text, depths[i].spelled);
        experiment_close(x);
    }
}

// What is wrong in one place: the line, the path and what is said. The line number is the sample's.
static const struct {
    const char *from, *to, *expected;
} misfits[] = {
    {"id: smollm2", "id: a/b", "x.yaml:5:10: models[0].id: expected a name"},
    {"context_tokens: 8192", "weights: auto",
     "x.yaml:5:5: models[0].context_tokens: is missing: expected a whole number"},
    {"path: m.gguf, ", "",
     "models[0].path: is missing: a model needs a path (or an endpoint, a fixture or "
     "a simulated subject)"},
    {"path: m.gguf", "path: m.gguf, fixture: f.json", "models[0].fixture: path is given too"},
    {"path: m.gguf", "path: m.gguf, endpoint: x, name: y", "models[0].endpoint: path is given too"},
    {"path: m.gguf", "endpoint: x", "models[0].name: is missing: expected a text"},
    {"path: m.gguf", "path: m.gguf, name: y", "models[0].name: goes with endpoint"},
    {"path: m.gguf", "endpoint: x, name: y, backend: cuda",
     "models[0].backend: is of a model file; a server decides it itself"},
    {"path: m.gguf", "endpoint: x, name: y, api: ids",
     "models[0].count: api ids needs a GGUF file"},
    {"path: m.gguf", "endpoint: x, name: y, body: {a: yes}", "models[0].body: some readers take"},
    {"path: m.gguf", "endpoint: x, name: y, body: [1]",
     "models[0].body: expected a mapping of JSON values, found a list"},
    {"path: m.gguf", "path: m.gguf, simulated: s.json",
     "models[0].simulated: path is given too; one of them must go"},
    {"repeats: ", "effective_level: 0%\nrepeats: ",
     "effective_level: a lower bound is never below 0 %"},
    {"repeats: ", "effective_level: 1\nrepeats: ", "and never reaches 100 %"},
    {"samples: 1", "samples: 3", "generation.samples: 3 samples at temperature 0"},
    {"temperature: 0", "temperature: -1",
     "6:43: generation.temperature: expected a decimal number"},
    {"samples: 1", "top_p: 0", "generation.top_p: expected a decimal number from 0.000001 to 1"},
    {"samples: 1", "stop: [\"\"]", "generation.stop[0]: an empty text"},
    {"{{filler}}\\n", "", "8:3: prompt.messages: {{filler}} is missing"},
    {"Write a", "{{filler}}", "prompt.messages: {{filler}} stands 2 times"},
    {"Write a", "{{fuller}}",
     "10:26: prompt.messages[1].text: {{fuller}} is not defined; did you "
     "mean {{filler}}?"},
    {"Write a", "{{code}}",
     "prompt.messages[1].text: {{code}} is not defined; known here: {{filler}}"},
    {"kind: prose", "kind: files", "prompt.filler.paths: is missing: kinds files and chat need"},
    {"kind: prose", "kind: chat", "prompt.messages: kind chat needs a message {role: chat"},
    {"kind: prose", "kind: prose, paths: [a]", "prompt.filler.paths: only kinds files and chat"},
    {"kind: prose", "kind: files, paths: [a], wrapper: \"{{text}} {{m}}\"",
     "prompt.filler.wrapper: {{m}} is not defined; known here: {{text}}, {{n}}"},
    {"kind: prose", "kind: files, paths: [a], wrapper: \"<doc>\"",
     "prompt.filler.wrapper: {{text}} must stand in it once"},
    {"kind: prose", "kind: pros",
     "expected prose, noise, files, pairs, chat, json_pairs, common_words or frequent_words, found "
     "'pros'; did you mean "
     "'prose'?"},
    {"is {{code}}.", "is {{cod}}.",
     "constraints[0].text: {{cod}} is not defined; did you mean "
     "{{code}}?"},
    {"'(?<!\\d)", "'{{re:kode}}(?<!\\d)", "constraints[0].violated: {{kode}} is not defined"},
    {"Order {{code}}", "Order {{}}",
     "constraints[0].examples.met[0]: '{{' at byte 6 is not followed by"},
    {"id: day", "id: order", "constraints[1].id: 'order' is constraints[0] already"},
    {"value: \"{{day}}\"", "answered: x",
     "constraints[1]: kind state needs value (or met, or check)"},
    {"met: '[A-Z][a-z]+'", "violated: x", "constraints[2]: kind format needs met (or check)"},
    {"kind: format, text: \"Name a contact.\", met: ", "kind: forbid, text: a, answered: ",
     "constraints[2]: kind forbid needs violated"},
    {"kind: format, text: \"Name a contact.\", met: ", "kind: forbid, text: a, violated: ",
     "constraints[2]: kind forbid needs answered"},
    {"met: '[A-Z][a-z]+'", "met: a, value: b",
     "constraints[2].value: only kind state takes a value"},
    {"value: \"{{code}}\" ", "value: 01234",
     "17:12: constraints[0].value: expected a text, but "
     "'01234' reads as a number; write \"01234\" in quotes"},
    {"value: \"{{code}}\" ", "value: 12345",
     "constraints[0].value: expected a text, but '12345' reads"},
    {"kind: digits, count: 5", "kind: digits", "constraints[0].vars.code: needs count"},
    {"kind: digits, count: 5", "kind: choice, choices: [a, b, a]",
     "constraints[0].vars.code.choices[2]: 'a' stands in the list twice"},
    {"kind: digits, count: 5", "kind: digits, count: 5, choices: [a]",
     "only kind choice takes choices"},
    {"move: [order]", "move: [ordre]",
     "placements[0].move[0]: there is no constraint 'ordre'; did you "
     "mean 'order'?"},
    {"move: [order]", "move: [order, day]", "placements[0].others.day: 'day' moves in this row"},
    {"move: [order]", "move: [order, order]", "placements[0].move: 'order' stands in it twice"},
    {"day: 25%, ", "", "25:6: placements[0].others: no place for 'day'; every constraint must"},
    {"middle, end]", "middle, 50%]", "placements[0].depths: middle stands in the row twice"},
    {"depths: [start, middle, end],", "", "placements[0]: needs depths (or anchors)"},
    {"depths: [start", "depths: [0.5",
     "placements[0].depths[0]: '0.5' could be a fraction or a per cent"},
    {"depths: [start", "depths: [strat",
     "expected start, middle, end or a share of the filler such as "
     "25%, found 'strat'; did you mean 'start'?"},
    {"depths: [start", "depths: [in_system, start", "'in_system' belongs under anchors"},
    {"depths: [start", "anchors: [middle], depths: [start", "'middle' belongs under depths"},
    {"depths: [start", "depths: [101%", "placements[0].depths[0]: expected start"},
    {"role: system", "role: user", NULL},
    {"[512, 1024, 2048]", "[512, 2048, 1024]", "26:31: lengths.tokens[2]: 1024 follows 2048"},
    {"[512, 1024, 2048]", "[512, 512]", "lengths.tokens[1]: 512 follows 512"},
    {"[512, 1024, 2048]", "[]", "lengths.tokens: expected at least 1 item"},
    {"[512, 1024, 2048]", "512",
     "lengths.tokens: expected a list of which each item is a whole number, "
     "found '512'"},
    {"[placed, absent, short]", "[absent]", "arms: 'placed' is missing"},
    {"repeats: 20", "repeats: 0", "27:10: repeats: expected a whole number from 1 to"},
    {"repeats: 20\n", "", "repeats: is missing"},
    {"metric: met_rate, of: order, at_least: 0.6", "metric: regression, of: order, at_most: 5%",
     "gates[0]: regression needs a baseline: a file of `lacuna baseline RUN -o FILE`"},
    {"metric: met_rate, of: order, at_least: 0.6",
     "metric: regression, baseline: b.jsonl, of: order, at_least: 5%",
     "gates[0].at_least: regression is bounded from above"},
    {"metric: met_rate, of: order, at_least: 0.6", "baseline: b.json, at_least: 0.6",
     "gates[0].baseline: met_rate looks at this run alone"},
    {"metric: met_rate, of: order, at_least: 0.6",
     "metric: regression, baseline: b.jsonl, of: order, allow: [models], at_most: 5%",
     "found 'models'; did you mean 'model'?"},
    {"metric: met_rate, of: order, at_least: 0.6",
     "metric: changed_replies, baseline: b.jsonl, of: order, at_most: 0",
     "gates[0].of: changed_replies counts all replies"},
    {"metric: met_rate, of: order, at_least: 0.6", "metric: middle_gap, of: order, at_most: 5%",
     "gates[0].where.depth: middle_gap has its own depths"},
    {"at_least: 0.6, ", "", "gates[0]: needs at_least or at_most"},
    {"at_least: 0.6", "at_least: 60%, at_most: 50%", "gates[0]: at_least is above at_most"},
    {"at_least: 0.6", "at_least: 60",
     "gates[0].at_least: expected a share such as 2.5% (or 0.025)"},
    {"{depth: middle}", "{depth: 10%}",
     "gates[0].where.depth: no placement moves a constraint to 10%"},
    {"{depth: middle}", "{length: 700}", "gates[0].where.length: 700 is none of lengths.tokens"},
    {"{depth: middle}", "{model: gpt}", "gates[0].where.model: there is no model 'gpt'"},
    {"{depth: middle}", "{arm: short, depth: middle}", "the arm 'short' has no placements"},
    {"{depth: middle}", "{length: 512}", "gates[0].pool: what `where` fixes"},
    {"middle_against_ends", "middle_against_end", "did you mean 'middle_against_ends'?"},
    {"[start, middle, end]", "[middle, end]",
     "primary.contrast: no placement moves order over all "
     "depths that middle_against_ends compares"},
    {"of: order, contrast", "of: day, contrast", "primary.contrast: no placement moves day"},
    {"repeats: 20", "repeats: 20\nevidence: all",
     "evidence: expected off, summary or full, found 'all'"},
    {"repeats: 20", "repeats: 20\nonly: [arm=short]", "only: unknown key"},
    {"seed: 7", "seed: -7", "seed: expected a whole number from 0"},
    {"lacuna: 1", "lacuna: 2", "1:9: lacuna: expected 1, found '2'"},
};

static void parts_that_do_not_fit_are_named(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++) {
        struct err e = {0};
        struct experiment *x = NULL;
        int result = load_text(edited(misfits[i].from, misfits[i].to), NULL, &x, &e);
        if (misfits[i].expected == NULL) {
            ASSERT_OK(result, e);
            experiment_close(x);
            continue;
        }
        if (result == 0) fail_msg("'%s' loads", misfits[i].to);
        wrong += strstr(e.text, misfits[i].expected) == NULL || e.code != ERR_CONFIG;
        if (strstr(e.text, misfits[i].expected) == NULL)
            print_error("expected: %s\nfound:    %s\n", misfits[i].expected, e.text);
    }
    assert_int_equal(wrong, 0);
}

// B03: one meaning of length, and the four numbers when the reply does not fit behind it.
static void window_must_hold_prompt_and_reply(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x = NULL;
    ASSERT_FAILS(
        load_text(edited("context_tokens: 8192", "context_tokens: 2048"), NULL, &x, &e), e,
        ERR_CONFIG,
        "lengths.tokens[2]: length 2048 (chat template included) + generation.max_tokens 96 = "
        "2144, more than context_tokens 2048 of model 'smollm2'");
    ASSERT_OK(load_text(edited("context_tokens: 8192", "context_tokens: 2144"), NULL, &x, &e), e);
    experiment_close(x);
    ASSERT_FAILS(load_text(edited("max_tokens: 96", "max_tokens: 8192"), NULL, &x, &e), e,
                 ERR_CONFIG,
                 "short_tokens 64 (chat template included) + generation.max_tokens 8192 = "
                 "8256, more than context_tokens 8192");
}

static void in_system_needs_a_system_message(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x = NULL;
    const char *text = edited("depths: [start", "anchors: [in_system], depths: [start");
    ASSERT_OK(load_text(text, NULL, &x, &e), e);
    assert_int_equal(x->placements[0].place_count, 4);
    assert_int_equal(x->placements[0].places[3].anchor, PLACE_IN_SYSTEM);
    experiment_close(x);
    struct str s = str_from(text);
    size_t at = str_find(s, STR("role: system"), 0);
    text = arena_printf(test_arena, "%.*srole: user%s", (int)at, s.p,
                        s.p + at + strlen("role: system"));
    ASSERT_FAILS(load_text(text, NULL, &x, &e), e, ERR_CONFIG,
                 "placements[0].anchors: in_system needs a message with role: system");
}

static void overrides_land_in_resolved(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x = NULL;
    const char *set[] = {"generation.max_tokens=8", "models[0].context_tokens=4096",
                         "lengths.tokens=[256, 512]", "short_tokens=32",
                         "prompt.filler.kind=noise"};
    struct experiment_overrides o = {
        .set = set, .set_count = 5, .only = "repeat=3, depth=50%,length=512,repeat=0", .limit = 7};
    ASSERT_OK(load_text(sample_experiment, &o, &x, &e), e);
    assert_int_equal(x->generation.max_tokens, 8);
    assert_int_equal(x->models[0].context_tokens, 4096);
    assert_int_equal(x->length_count, 2);
    assert_int_equal(x->short_tokens, 32);
    assert_int_equal(x->filler.kind, FILLER_NOISE);
    assert_int_equal(x->limit, 7);
    assert_int_equal(x->only_count, 4);
    assert_true(str_equal_c(x->only[0], "depth=middle"));
    assert_true(str_equal_c(x->only[1], "length=512"));
    assert_true(str_equal_c(x->only[2], "repeat=0"));
    struct buf text = {0};
    json_compact(x->resolved, &text);
    assert_non_null(strstr(text.p, "\"only\":[\"depth=middle\",\"length=512\",\"repeat=0\","
                                   "\"repeat=3\"],\"limit\":7"));
    assert_non_null(strstr(text.p, "\"max_tokens\":8,"));
    buf_free(&text);
    experiment_close(x);
}

static void wrong_overrides_are_named(void **state) {
    (void)state;
    static const struct {
        const char *set, *only, *expected;
    } cases[] = {
        {"generation.max_token=8", NULL,
         "--set generation.max_token=8: generation.max_token: unknown key; did you mean "
         "'max_tokens'?"},
        {"generation.max_tokens=1e3", NULL,
         "--set generation.max_tokens=1e3: generation.max_tokens: expected a whole number"},
        {"models[1].context_tokens=9", NULL, "there is no item [1]"},
        {"models.context_tokens=9", NULL, "'context_tokens' is looked for in a list"},
        {"models[x]=9", NULL, "expected a path such as"},
        {"generation..samples=1", NULL, "expected a path such as"},
        {"generation.samples", NULL, "expected KEY=VALUE"},
        {"=3", NULL, "a key is missing before '='"},
        {"seed=[1", NULL, "--set seed=[1: "},
        {NULL, "depth=10%", "--only: no placement moves a constraint to depth '10%'"},
        {NULL, "depht=middle", "--only: unknown field 'depht', did you mean 'depth'?"},
        {NULL, "length", "--only: expected FIELD=VALUE"},
        {NULL, "length=700", "--only: '700' is none of lengths.tokens"},
        {NULL, "repeat=20", "--only: expected repeat=0 to 19"},
        {NULL, "sample=1", "--only: expected sample=0 to 0"},
        {NULL, "case=T", "--only: the experiment has no cases, so no 'T'"},
        {NULL, "model=x", "there is no model 'x'"},
        {NULL, "arm=shrot", "the experiment has no arm 'shrot'"},
        {NULL, "", "--only: expected FIELD=VALUE"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        struct experiment *x = NULL;
        struct experiment_overrides o = {.set = &cases[i].set,
                                         .set_count = cases[i].set != NULL,
                                         .only = cases[i].only,
                                         .limit = -1};
        ASSERT_FAILS(load_text(sample_experiment, &o, &x, &e), e, ERR_CONFIG, cases[i].expected);
    }
    struct err e = {0};
    struct experiment *x = NULL;
    struct experiment_overrides o = {.limit = 0};
    ASSERT_FAILS(load_text(sample_experiment, &o, &x, &e), e, ERR_CONFIG, "--limit");
    static const char *const twice[] = {"seed=1", "generation.max_tokens=8", "seed=2"};
    struct experiment_overrides again = {.set = twice, .set_count = 3, .limit = -1};
    ASSERT_FAILS(load_text(sample_experiment, &again, &x, &e), e, ERR_CONFIG,
                 "--set seed=2: this key is set twice (--set seed=1)");
}

static const char *compact(const json_t *value) {
    struct buf text = {0};
    json_compact(value, &text);
    const char *copy = str_to_c(test_arena, buf_str(&text));
    buf_free(&text);
    return copy;
}

// resolved.json, read again, is the same experiment.
static void resolved_is_whole(void **state) {
    (void)state;
    struct err e = {0};
    const char *binary = "\xFF\xFE raw {{filler}}";
    write_file("raw.txt", binary);
    const char *texts[] = {
        sample_experiment,
        edited("text: \"{{filler}}\\n\\nWrite a short reply.\"", "text_file: raw.txt"),
        edited("temperature: 0, samples: 1",
               "temperature: 0.7, top_p: 0.95, samples: 4, stop: [\"a\\n\"]"),
        edited("gates:\n", "evidence: off\ngates:\n"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct experiment *x = NULL, *y = NULL;
        struct experiment_overrides o = {.only = "arm=absent", .limit = 5};
        json_t *read;
        ASSERT_OK(load_text(texts[i], &o, &x, &e), e);
        const char *first = compact(x->resolved);
        ASSERT_OK(json_parse(str_from(first), "resolved.json", &read, &e), e);
        ASSERT_OK(experiment_from_json(read, "resolved.json", x->folder, test_arena, &y, &e), e);
        assert_string_equal(compact(y->resolved), first);
        assert_string_equal(y->models[0].path, x->models[0].path);
        assert_true(y->generation.temperature == x->generation.temperature);
        assert_int_equal(y->limit, 5);
        assert_int_equal(y->only_count, 1);
        assert_true(str_equal(x->messages[1].text, y->messages[1].text));
        if (i == 1) assert_true(str_equal_c(y->messages[1].text, binary));
        if (i == 2) assert_true(x->generation.temperature == 0.7 && x->generation.top_p == 0.95);
        json_decref(read);
        experiment_close(x);
        experiment_close(y);
    }
    json_t *broken;
    struct experiment *y;
    ASSERT_OK(json_parse(STR("{\"lacuna\":1,\"name\":\"x\",\"seed\":\"7\"}"), "r", &broken, &e), e);
    ASSERT_FAILS(experiment_from_json(broken, "resolved.json", ".", test_arena, &y, &e), e,
                 ERR_CONFIG, "resolved.json: seed: expected a whole number");
    json_decref(broken);
}

static const char *request_of(const char *text) {
    struct err e = {0};
    struct experiment *x = NULL;
    char *hex = arena_alloc(test_arena, HASH_HEX_SIZE);
    ASSERT_OK(load_text(text, NULL, &x, &e), e);
    ASSERT_OK(sample_request_sha256(x, hex, &e), e);
    experiment_close(x);
    return hex;
}

// The request knows contents and not paths, meanings and not spellings.
static void request_is_what_the_outcome_depends_on(void **state) {
    (void)state;
    write_file("m.gguf", "model one");
    write_file("copy.gguf", "model one");
    write_file("other.gguf", "model two");
    write_file("system.txt", "You are a careful assistant.");
    const char *base = request_of(sample_experiment);
    static const struct {
        const char *from, *to;
        bool equal;
    } cases[] = {
        {"m.gguf", "copy.gguf", true},
        {"m.gguf", "other.gguf", false},
        {"backend: auto", "backend: cpu", true},
        {"backend: auto", "backend: cuda", false},
        {"backend: auto", "numerics: f32", false},
        {"text: \"You are a careful assistant.\"", "text_file: system.txt", true},
        {"start, middle, end", "0%, 50, 100%", true},
        {"0.6", "60.0%", true},
        {"temperature: 0", "temperature: 0.0", true},
        {"repeats: 20", "repeats: 20\nshort_tokens: 64", true},
        {"repeats: 20", "repeats: 21", false},
        {"0.6", "0.61", false},
        {"seed: 7", "seed: 8", false},
        {"lacuna: 1\n", "# a comment\nlacuna: 1\n", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *hex = request_of(edited(cases[i].from, cases[i].to));
        if ((strcmp(hex, base) == 0) != cases[i].equal)
            fail_msg("'%s' for '%s': expected %s request", cases[i].to, cases[i].from,
                     cases[i].equal ? "the same" : "another");
    }
    struct err e = {0};
    struct experiment *x = NULL;
    char hex[HASH_HEX_SIZE];
    ASSERT_OK(load_text(edited("m.gguf", "gone.gguf"), NULL, &x, &e), e);
    assert_int_equal(sample_request_sha256(x, hex, &e), -1);
    assert_non_null(strstr(e.text, "gone.gguf"));
    experiment_close(x);
}

static void parts_of_the_identity_are_apart(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
        bool checks, analysis; // change
    } cases[] = {{"\\d{5}", "\\d{4}", true, false},
                 {"seed: 7", "seed: 8", false, false},
                 {"at_least: 0.6", "at_least: 0.5", false, true},
                 {"unscored: 20%", "unscored: 21%", false, true},
                 {"of: order, contrast", "of: all, contrast", false, true},
                 {"met: '[A-Z]", "ignore_case: true, met: '[A-Z]", true, false}};
    char base[2][HASH_HEX_SIZE], now[2][HASH_HEX_SIZE];
    for (size_t i = 0; i <= sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        struct experiment *x = NULL;
        const char *text = i == 0 ? sample_experiment : edited(cases[i - 1].from, cases[i - 1].to);
        ASSERT_OK(load_text(text, NULL, &x, &e), e);
        experiment_checks_sha256(x, now[0]);
        experiment_analysis_sha256(x, now[1]);
        if (i == 0) memcpy(base, now, sizeof base);
        assert_int_equal(strcmp(base[0], now[0]) != 0, i > 0 && cases[i - 1].checks);
        assert_int_equal(strcmp(base[1], now[1]) != 0, i > 0 && cases[i - 1].analysis);
        experiment_close(x);
    }
}

static void shipped_experiments_load(void **state) {
    (void)state;
    static const char *const names[] = {"three-constraints.yaml", "system-rule.yaml",
                                        "known-effect.yaml", "known-subjects.yaml"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct err e = {0};
        struct experiment *x = NULL;
        const char *path = arena_printf(test_arena, LACUNA_SOURCE_DIR "/configs/%s", names[i]);
        ASSERT_OK(experiment_load(path, NULL, test_arena, &x, &e), e);
        if (x->warning_count > 0) fail_msg("%s", x->warnings[0]);
        if (i == 1) assert_int_equal(x->repeats, 10); // all rows of the cases
        experiment_close(x);
    }
}

static void shipped_schema_is_the_programs(void **state) {
    (void)state;
    struct err e = {0};
    struct str shipped;
    ASSERT_OK(file_read(LACUNA_SOURCE_DIR "/configs/experiment.schema.json", 1 << 20, test_arena,
                        &shipped, &e),
              e);
    json_t *schema = experiment_schema();
    struct buf text = {0};
    json_pretty(schema, &text);
    buf_add_char(&text, '\n');
    if (!str_equal(shipped, buf_str(&text)))
        fail_msg("configs/experiment.schema.json is old; write it again with `lacuna schema`");
    buf_free(&text);
    json_decref(schema);
}

static void new_file_loads(void **state) {
    (void)state;
    struct err e = {0};
    struct experiment *x = NULL;
    struct buf text = {0};
    experiment_new("mine", &text);
    ASSERT_OK(load_text(text.p, NULL, &x, &e), e);
    assert_int_equal(x->warning_count, 0);
    assert_string_equal(x->name, "mine");
    // What it shows behind comment signs is the default: nothing else may be resolved without them.
    struct buf bare = {0};
    struct str s = buf_str(&text);
    for (size_t at = 0; at < s.n;) {
        size_t end = str_find(s, STR("\n"), at) + 1;
        if (!str_starts(str_trim(str_slice(s, at, end)), STR("#")))
            buf_add_str(&bare, str_slice(s, at, end));
        at = end;
    }
    struct experiment *y = NULL;
    ASSERT_OK(load_text(bare.p, NULL, &y, &e), e);
    assert_string_equal(compact(x->resolved), compact(y->resolved));
    buf_free(&bare);
    buf_free(&text);
    experiment_close(x);
    experiment_close(y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sample_becomes_data, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(numbers_are_read_exactly, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(parts_that_do_not_fit_are_named, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(window_must_hold_prompt_and_reply, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(in_system_needs_a_system_message, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(overrides_land_in_resolved, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(wrong_overrides_are_named, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(resolved_is_whole, test_arena_open, test_arena_close),
        cmocka_unit_test_setup_teardown(request_is_what_the_outcome_depends_on, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(parts_of_the_identity_are_apart, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(shipped_experiments_load, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(shipped_schema_is_the_programs, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(new_file_loads, test_arena_open, test_arena_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

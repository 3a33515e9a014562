// Evidence end to end: what is kept changes no reply, goes through every road that a reply takes,
// and is asked for of nobody who cannot give it.
#include "tests/support/fast_folder.h"
#include "tests/support/sample_run.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/rng.h"
#include "evals/evidence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define RUN "run x.yaml --set tolerate.unscored=100% " // its replies are random
#define ANSWER "{\"reply\": \"Order {{0}}.\", \"copy_after\": [\"The order number is \"]}"

static struct str out, said; // of the last program

static const char *below(const char *name) {
    return path_join(test_arena, fast_folder(), name);
}

static struct str slurp(const char *name) {
    return test_read(test_arena, below(name));
}

static void expect(int code, const char *arguments) {
    const char *command = arena_printf(test_arena, "cd %s && %s/lacuna %s > out 2> said",
                                       fast_folder(), LACUNA_BINARY_DIR, arguments);
    int status = system(command);
    assert_true(WIFEXITED(status));
    out = slurp("out");
    said = slurp("said");
    if (WEXITSTATUS(status) != code)
        fail_msg("%s: exit code %d, not %d\n%s%s", arguments, WEXITSTATUS(status), code, out.p,
                 said.p);
}

static bool holds(struct str text, const char *what) {
    return str_find(text, str_from(what), 0) != STR_NONE;
}

static int setup(void **state) {
    test_arena_open(state);
    sample_local_experiment(test_arena, fast_folder(), "x", 2);
    sample_experiment(test_arena, fast_folder(), "scripted", 2, "\"in_flight\": 4", ANSWER);
    expect(0, RUN "-o off --set evidence=off");
    expect(0, RUN "-o summary --threads 1");
    expect(0, RUN "-o full --set evidence=full --threads 2");
    return 0;
}

// The lines of a file as JSON, without the chain.
static json_t *lines_of(const char *name) {
    struct str text = slurp(name);
    json_t *list = json_array();
    struct err e = {0};
    for (size_t at = 0; at < text.n;) {
        size_t end = str_find(text, STR("\n"), at);
        json_t *line;
        ASSERT_OK(json_parse(str_slice(text, at, end), name, &line, &e), e);
        json_object_del(line, "previous");
        json_array_append_new(list, line);
        at = end + 1;
    }
    return list;
}

static void assert_same_lines(json_t *a, json_t *b) {
    assert_true(json_array_size(a) > 0);
    assert_true(json_equal(a, b));
    json_decref(a);
    json_decref(b);
}

static const char *word_of(const char *folder) {
    json_t *identity;
    struct err e = {0};
    const char *path = path_join(test_arena, below(folder), "identity.json");
    ASSERT_OK(json_read_file(path, 1 << 20, &identity, &e), e);
    const char *word =
        arena_strdup(test_arena, json_string_value(json_object_get(identity, "evidence")));
    json_decref(identity);
    return word;
}

// Off, summary and full: the ledgers differ in the chain alone, which begins with the identity.
static void what_is_kept_changes_no_reply(void **state) {
    (void)state;
    assert_same_lines(lines_of("off/trials.jsonl"), lines_of("summary/trials.jsonl"));
    assert_same_lines(lines_of("off/trials.jsonl"), lines_of("full/trials.jsonl"));
    assert_string_equal(word_of("off"), "off");
    assert_string_equal(word_of("summary"), "summary");
    assert_string_equal(word_of("full"), "full");
    assert_false(file_exists(below("off/evidence.jsonl")));
    expect(0, "verify off");
    expect(0, "verify summary");
    expect(0, "verify full");
    assert_true(holds(out, "evidence "));
}

// A summary is the full evidence with its heads left out.
static void summary_is_full_without_heads(void **state) {
    (void)state;
    json_t *full = lines_of("full/evidence.jsonl"), *line, *constraint;
    size_t i, k;
    json_array_foreach(full, i, line)
        json_array_foreach(json_object_get(line, "constraints"), k, constraint) {
        const json_t *layers = json_object_get(json_object_get(constraint, "all"), "reply_max");
        assert_int_equal(json_array_size(layers),
                         json_integer_value(json_object_get(line, "layers")));
        assert_int_equal(json_object_del(constraint, "all"), 0);
    }
    assert_same_lines(full, lines_of("summary/evidence.jsonl"));
}

static void shards_bring_their_evidence(void **state) {
    (void)state;
    expect(0, RUN "--only length=400 -o one");
    expect(0, RUN "--only length=560 -o two");
    expect(0, RUN "--only arm=short -o three");
    expect(0, "merge two three one -o merged");
    assert_equal_runs(below("summary"), below("merged"));
    expect(0, RUN "--only arm=short -o other --set evidence=full");
    expect(2, "merge two other one -o not-merged");
    assert_true(holds(said, "evidence"));
}

// Two rows that put the constraints at the same places have one prompt, which is computed once.
static void equal_prompts_share_it(void **state) {
    (void)state;
    expect(0,
           RUN "-o twice --set 'placements=[{id: a, move: [order], depths: [start], "
               "others: {day: 25%}}, {id: b, move: [day], depths: [25%], others: {order: start}}]' "
               "--set 'arms=[placed]'");
    json_t *lines = lines_of("twice/evidence.jsonl");
    assert_int_equal(json_array_size(lines), 8);
    for (size_t i = 0; i < 8; i += 2) {
        const json_t *a = json_array_get(lines, i), *b = json_array_get(lines, i + 1);
        assert_string_not_equal(json_string_value(json_object_get(a, "key")),
                                json_string_value(json_object_get(b, "key")));
        assert_true(
            json_equal(json_object_get(a, "constraints"), json_object_get(b, "constraints")));
    }
    json_decref(lines);
    expect(0, "verify twice");
}

// By default a model gives what it can; asked for by name it must be able to.
static void nobody_is_asked_who_cannot(void **state) {
    (void)state;
    expect(0, "run scripted.yaml -o scripted");
    assert_string_equal(word_of("scripted"), "off");
    assert_false(file_exists(below("scripted/evidence.jsonl")));
    expect(0, "verify scripted");
    expect(0, "plan scripted.yaml --set evidence=off");
    expect(2, "plan scripted.yaml --set evidence=summary");
    assert_true(holds(said, "evidence: summary: the model m (fixture) cannot tell where it looks"));
    expect(2, "run scripted.yaml -o never --set evidence=full");
    expect(0, RUN "-o mixed --set 'models=[{id: s, fixture: scripted.json, context_tokens: 4096}, "
                  "{id: m, path: x.gguf, context_tokens: 4096}]'");
    assert_string_equal(word_of("mixed"), "off,summary");
    expect(0, "verify mixed");
    json_t *mixed = lines_of("mixed/evidence.jsonl"), *summary = lines_of("summary/evidence.jsonl");
    assert_int_equal(json_array_size(mixed), json_array_size(summary));
    json_decref(mixed);
    json_decref(summary);
}

// The three ways to see stand side by side, and only full evidence has maps of heads.
static void reports_show_it(void **state) {
    (void)state;
    const char *title = "In the window, attended, used: m", *map = "<svg class=\"heads\"";
    assert_false(holds(slurp("off/report.html"), title));
    assert_true(holds(slurp("summary/report.html"), title));
    assert_true(holds(slurp("summary/report.md"), title));
    assert_true(holds(slurp("summary/report.md"), "Attention is evidence and not cause"));
    // a line a place for what moves, one for what stays
    struct str page = slurp("summary/report.html"), text = slurp("summary/report.md");
    assert_int_equal(str_count(text, STR("| order | 400 | order-moves@")), 3);
    assert_int_equal(str_count(text, STR("| day | 400 | order-moves")), 1);
    assert_true(holds(text, "| day | 400 | order-moves | yes |"));
    assert_true(holds(page, "<td class=\"word\">order-moves@start</td>"));
    assert_false(holds(slurp("summary/report.html"), map));
    struct str full = slurp("full/report.html");
    assert_true(holds(full, map));
    // one map a place, of two layers and four heads, for the constraint that moves
    assert_int_equal(str_count(full, STR("<g class=\"heads\" data-place=")), 3);
    assert_int_equal(str_count(full, STR("<title>layer ")), 3 * 2 * 4);
    struct str with = slurp("summary/results.csv"), without = slurp("off/results.csv");
    assert_true(holds(with, ",attention_prompt_ppm,attention_reply_ppm,"));
    assert_int_equal(str_count(with, STR("\r\n")), str_count(without, STR("\r\n")));
    json_t *lines = lines_of("summary/evidence.jsonl");
    const json_t *first =
        json_array_get(json_object_get(json_array_get(lines, 0), "constraints"), 0);
    const json_t *mean = json_object_get(first, "mean");
    char cells[64];
    snprintf(cells, sizeof cells, ",%lld,%lld,%lld,L",
             json_integer_value(json_object_get(mean, "prompt")),
             json_integer_value(json_object_get(mean, "reply")),
             json_integer_value(json_object_get(mean, "reply_max")));
    assert_true(holds(with, cells));
    json_decref(lines);
}

// ---- from a completion to what is kept ---------------------------------------------------------

enum { LAYERS = 3, HEADS = 7, ALL = LAYERS * HEADS };

static void assert_strongest(const struct record_attention *t, const double *by) {
    bool listed[ALL] = {false};
    assert_int_equal(t->strongest_count, RECORD_STRONGEST);
    for (int i = 0; i < t->strongest_count; i++) {
        const struct record_head *h = &t->strongest[i];
        listed[h->layer * HEADS + h->head] = true;
    }
    // None that is left out lies above the last of the list, or has its share and stands before it.
    const struct record_head *last = &t->strongest[RECORD_STRONGEST - 1];
    int at = last->layer * HEADS + last->head;
    for (int i = 0; i < ALL; i++)
        if (!listed[i]) assert_true(by[i] < by[at] || (by[i] == by[at] && i > at));
    for (int i = 1; i < RECORD_STRONGEST; i++) {
        int a = t->strongest[i - 1].layer * HEADS + t->strongest[i - 1].head;
        int b = t->strongest[i].layer * HEADS + t->strongest[i].head;
        assert_true(by[a] > by[b] || (by[a] == by[b] && a < b));
    }
}

static void shares_are_rounded_and_ranked(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct rng r = rng_open(seed, "test", "shares");
        double shares[3][ALL], sums[3] = {0};
        for (int rows = 0; rows < 3; rows++)
            for (int i = 0; i < ALL; i++) // few values, so that some are equal
                sums[rows] += shares[rows][i] = (double)rng_below(&r, 30) / 32;
        bool replied = seed % 3 != 0;
        struct provider_attention p = {.prompt = shares[0],
                                       .reply_mean = replied ? shares[1] : NULL,
                                       .reply_max = replied ? shares[2] : NULL,
                                       .prompt_tokens = 1.0 / 3,
                                       .reply_tokens = 0.0000005};
        struct provider_completion c = {
            .ok = true, .attention = &p, .layers = LAYERS, .heads = HEADS};
        struct record_span span = {.constraint = "order", .first_token = 3, .tokens = 4};
        struct record_trial t = {.spans = &span, .span_count = 1};
        struct experiment x = {.evidence = seed % 2 ? "full" : "summary"};
        const struct record_evidence *v = evidence_keep(&x, &t, &c, test_arena);
        const struct record_attention *kept = v->attention;
        assert_int_equal(v->attention_count, 1);
        assert_int_equal(kept->prompt_tokens, 333333);
        assert_int_equal(kept->reply_tokens, replied ? 1 : RECORD_NO_SHARE); // halves up
        for (int rows = 0; rows < 3; rows++) {
            bool there = rows == 0 || replied;
            int32_t mean = (int32_t)(sums[rows] / ALL * 1e6 + 0.5);
            assert_int_equal(kept->mean.of[rows], there ? mean : RECORD_NO_SHARE);
        }
        assert_true((kept->all != NULL) == (seed % 2 == 1));
        for (int i = 0; kept->all != NULL && i < ALL; i++)
            assert_int_equal(kept->all[i].of[ROWS_PROMPT], (int32_t)(shares[0][i] * 1e6 + 0.5));
        assert_strongest(kept, replied ? shares[1] : shares[0]);
        c.ok = false;
        assert_null(evidence_keep(&x, &t, &c, test_arena));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_changes_no_reply),
        cmocka_unit_test(summary_is_full_without_heads),
        cmocka_unit_test(shards_bring_their_evidence),
        cmocka_unit_test(equal_prompts_share_it),
        cmocka_unit_test(nobody_is_asked_who_cannot),
        cmocka_unit_test(reports_show_it),
        cmocka_unit_test(shares_are_rounded_and_ranked),
    };
    return cmocka_run_group_tests(tests, setup, test_arena_close);
}

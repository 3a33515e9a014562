// Random composite checks on random replies: logic against an evaluation of its own, and the
// promise of `settled`: no further text changes it.
#include "tests/support/support.h"

#include "engine/base/rng.h"
#include "evals/check_tree.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NESTED_MOST = 3, TREES = 6000, EXTENSIONS = 6 };

static struct rng rng;
static struct pattern_set *patterns;
static struct check_tools tools;

static int pick(int n) {
    return (int)rng_below(&rng, (uint64_t)n);
}

static int set_up(void **state) {
    (void)state;
    uint64_t seed = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    rng = rng_open(seed, "test", "checks");
    test_arena_open(state);
    patterns = pattern_set_open();
    tools = (struct check_tools){patterns, value_rules_open(patterns, test_arena),
                                 check_units_open(patterns, test_arena)};
    return 0;
}

static int tear_down(void **state) {
    pattern_set_close(patterns);
    return test_arena_close(state);
}

static struct str random_text(int most) {
    static const char letters[] = "aaabbcc1  .-\n,{}";
    int n = pick(most + 1);
    char *p = arena_alloc(test_arena, (size_t)n + 1);
    for (int i = 0; i < n; i++) p[i] = letters[pick(sizeof letters - 1)];
    return (struct str){p, (size_t)n};
}

static struct check_bounds random_bounds(int most) {
    struct check_bounds b = {.least = pick(most), .most = pick(most)};
    b.has_least = pick(3) > 0;
    b.has_most = !b.has_least || pick(3) == 0;
    return b;
}

// Patterns whose hold on the text's end is known to the product: no \b and the like.
static const char *const pattern_texts[] = {"a",      "b+c",        "a$",  "c\\z",
                                            "a(?!b)", "[.]\\s*\\z", "1|cc"};

static struct check_spec random_tree(int depth, bool pieces) {
    struct check_spec s = {.where = "check"};
    int parts = 0;
    static const enum check_verb inner[] = {CHECK_ALL, CHECK_ANY, CHECK_NOT, CHECK_COUNT};
    static const enum check_verb leaves[] = {CHECK_PATTERN,    CHECK_PATTERN,  CHECK_COUNT,
                                             CHECK_WORDS,      CHECK_LETTERS,  CHECK_LINES,
                                             CHECK_PARAGRAPHS, CHECK_SENTENCES};
    if (depth < NESTED_MOST && pick(3) > 0) {
        s.verb = pieces && pick(4) == 0 ? CHECK_LINE : inner[pick(4)];
        parts = s.verb == CHECK_NOT || s.verb == CHECK_LINE ? 1 : 1 + pick(3);
    } else {
        s.verb = leaves[pick(8)];
    }
    s.number = pick(2) == 0 ? 1 + pick(3) : -1 - pick(3);
    s.bounds = random_bounds(4);
    if (s.verb == CHECK_PATTERN || (s.verb == CHECK_COUNT && parts == 0))
        s.pattern = str_from(pattern_texts[pick(7)]);
    s.parts = arena_array(test_arena, (size_t)parts + 1, sizeof *s.parts);
    s.part_count = parts;
    for (int i = 0; i < parts; i++) s.parts[i] = random_tree(depth + 1, pieces);
    return s;
}

static struct check_outcome judge(const struct check_spec *s, struct str text, bool finished) {
    const struct check_tree *t;
    struct err e = {0};
    struct check_outcome out;
    ASSERT_OK(check_tree_compile(&tools, s, NULL, 0, "c", test_arena, &t, &e), e);
    check_tree_judge(t, text, finished, false, test_arena, NULL, NULL, &out);
    assert_int_not_equal(out.truth, CHECK_ERRED);
    return out;
}

static void dump(const struct check_spec *s, struct buf *out) {
    buf_printf(out, "%s(%.*s", check_verbs[s->verb], (int)s->pattern.n, s->pattern.p);
    if (s->verb == CHECK_LINE) buf_printf(out, "%d ", s->number);
    if (s->bounds.has_least) buf_printf(out, " >=%lld", (long long)s->bounds.least);
    if (s->bounds.has_most) buf_printf(out, " <=%lld", (long long)s->bounds.most);
    for (int i = 0; i < s->part_count; i++) dump(&s->parts[i], out);
    buf_add_c(out, ")");
}

static void what_is_settled_stays(void **state) {
    (void)state;
    int settled = 0;
    for (int i = 0; i < TREES; i++) {
        struct check_spec s = random_tree(0, true);
        struct str text = random_text(12);
        struct check_outcome cut = judge(&s, text, false);
        settled += cut.settled;
        assert_true(judge(&s, text, true).settled);
        for (int k = 0; k < EXTENSIONS && cut.settled; k++) {
            struct str more = k == 0 ? STR("") : random_text(8);
            char *joined = arena_printf(test_arena, STR_FMT STR_FMT, STR_ARG(text), STR_ARG(more));
            bool finished = k == 0 || pick(2) == 0;
            struct check_outcome later = judge(&s, str_from(joined), finished);
            if (later.truth == cut.truth && later.settled) continue;
            struct buf tree = {0};
            dump(&s, &tree);
            fail_msg("%s: \"" STR_FMT "\" is settled as %d, \"%s\" (%d) gives %d", tree.p,
                     STR_ARG(text), cut.truth, joined, finished, later.truth);
        }
    }
    // Not a promise that is kept by never giving it.
    assert_true(settled > TREES / 10 && settled < TREES);
}

// ---- logic, evaluated another way ----

static int words_of(struct str text) {
    int words = 0; // runs of letters and the digit; - and , between them as in check_units.h
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i], before = i > 0 ? text.p[i - 1] : ' ', two = i > 1 ? text.p[i - 2] : ' ';
        bool in = c == '1' || (c >= 'a' && c <= 'c');
        bool word = before == '1' || (before >= 'a' && before <= 'c');
        bool hyphen = before == '-' && (two == '1' || (two >= 'a' && two <= 'c'));
        bool number = (before == ',' || before == '.') && two == '1' && c == '1';
        words += in && !word && !hyphen && !number;
    }
    return words;
}

static int lines_of(struct str text) {
    int lines = 0;
    bool visible = false;
    for (size_t i = 0; i <= text.n; i++) {
        bool end = i == text.n || text.p[i] == '\n';
        lines += end && visible;
        visible = !end && (visible || text.p[i] != ' ');
    }
    return lines;
}

static int letters_of(struct str text) {
    int letters = 0;
    for (size_t i = 0; i < text.n; i++) letters += text.p[i] >= 'a' && text.p[i] <= 'c';
    return letters;
}

static bool within(const struct check_bounds *b, int n) {
    return (!b->has_least || n >= b->least) && (!b->has_most || n <= b->most);
}

static bool holds(const struct check_spec *s, struct str text) {
    int n = 0;
    for (int i = 0; i < s->part_count; i++) n += holds(&s->parts[i], text);
    switch (s->verb) {
    case CHECK_ALL: return n == s->part_count;
    case CHECK_ANY: return n > 0;
    case CHECK_NOT: return n == 0;
    case CHECK_COUNT: return within(&s->bounds, n);
    case CHECK_WORDS: return within(&s->bounds, words_of(text));
    case CHECK_LINES: return within(&s->bounds, lines_of(text));
    case CHECK_LETTERS: return within(&s->bounds, letters_of(text));
    default: return memchr(text.p, s->pattern.p[0], text.n) != NULL;
    }
}

// As random_tree, of what `holds` knows: patterns are single letters.
static void simplify(struct check_spec *s) {
    bool leaf = s->part_count == 0;
    if (s->verb == CHECK_SENTENCES || s->verb == CHECK_PARAGRAPHS) s->verb = CHECK_WORDS;
    if (leaf && s->verb == CHECK_COUNT) s->verb = CHECK_PATTERN;
    if (s->verb == CHECK_PATTERN) s->pattern = str_from(pick(2) == 0 ? "a" : "c");
    for (int i = 0; i < s->part_count; i++) simplify(&s->parts[i]);
}

static void logic_agrees_with_a_plain_evaluation(void **state) {
    (void)state;
    int held = 0;
    for (int i = 0; i < TREES; i++) {
        struct check_spec s = random_tree(0, false);
        simplify(&s);
        struct str text = random_text(14);
        bool expected = holds(&s, text);
        held += expected;
        if (expected == (judge(&s, text, true).truth == CHECK_HOLDS)) continue;
        struct buf tree = {0};
        dump(&s, &tree);
        fail_msg("%s on \"" STR_FMT "\": expected %d", tree.p, STR_ARG(text), expected);
    }
    assert_true(held > TREES / 5 && held < TREES * 4 / 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_settled_stays),
        cmocka_unit_test(logic_agrees_with_a_plain_evaluation),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

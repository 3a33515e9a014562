#include "evals/check_units.h"

#include <assert.h>

#define IDEOGRAPH "[\\p{Han}\\p{Hiragana}\\p{Katakana}]"
#define IN_WORD "(?:(?!" IDEOGRAPH ")[\\p{L}\\p{M}\\p{N}])"
#define CLOSERS "[\"'”’»)\\]*_]*"

static const char *const unit_patterns[] = {
    [UNIT_WORD] =
        IDEOGRAPH "|" IN_WORD "++(?:(?:['’ʼ‐‑-]|(?<=\\p{Nd})[.,:](?=\\p{Nd}))" IN_WORD "++)*+",
    [UNIT_SENTENCE] = "(?m)^[ \\t]*\\p{Nd}++[.)][ \\t](*SKIP)(*F)|"
                      "[\\p{L}\\p{N}][^\\n]*?(?:[.!?…]++" CLOSERS "(?=\\s|\\z)|"
                      "[。！？｡؟۔।॥]++[”’」』）)]*+|(?=\\n|\\z))",
    [UNIT_LINE] = "[^\\r\\n]*?[^\\s\\x1A][^\\r\\n]*+",
    [UNIT_PARAGRAPH] = "\\n[ \\t\\r]*+(?:\\n[ \\t\\r]*+)++",
    [UNIT_LETTER] = "\\p{L}",
};

struct check_units {
    const struct pattern *rules[UNIT_LETTER + 1], *visible; // from the first to the last visible
};

static const struct pattern *compile(struct pattern_set *patterns, const char *text) {
    const struct pattern *p;
    struct err e = {0};
    int failed =
        pattern_compile(patterns, str_from(text), (struct pattern_flags){0}, "unit", &p, &e);
    assert(!failed);
    (void)failed;
    return p;
}

struct check_units *check_units_open(struct pattern_set *patterns, struct arena *a) {
    struct check_units *u = arena_alloc(a, sizeof *u);
    for (int i = 0; i <= UNIT_LETTER; i++) u->rules[i] = compile(patterns, unit_patterns[i]);
    u->visible = compile(patterns,
                         "(?s)[^\\s\\x1A](?:.*[^\\s\\x1A])?+"); // a masked echo is as good as blank
    return u;
}

static const char *add_visible(const struct check_units *u, struct str text, size_t begin,
                               size_t end, struct ranges *out, struct arena *a) {
    size_t match[2];
    const char *code;
    enum pattern_result result =
        pattern_find(u->visible, str_slice(text, begin, end), 0, match, &code);
    if (result == PATTERN_ERROR) return code;
    if (result == PATTERN_FOUND)
        ranges_add(out, (const size_t[2]){begin + match[0], begin + match[1]}, a);
    return NULL;
}

const char *check_units_find(const struct check_units *u, enum check_unit unit,
                             const struct pattern *separator, struct str text, struct ranges *out,
                             struct arena *a) {
    if (unit != UNIT_PARAGRAPH) return search_pattern(u->rules[unit], text, 0, out, a);
    struct ranges cuts = {0};
    const char *error =
        search_pattern(separator != NULL ? separator : u->rules[UNIT_PARAGRAPH], text, 0, &cuts, a);
    size_t begin = 0;
    for (size_t i = 0; error == NULL && i < cuts.n; i++) {
        error = add_visible(u, text, begin, cuts.p[i][0], out, a);
        begin = cuts.p[i][1];
    }
    return error != NULL ? error : add_visible(u, text, begin, text.n, out, a);
}

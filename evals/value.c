#include "evals/value.h"

#include "evals/words.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { CLUSTER_MOST = 32, DECOMPOSED_MOST = VALUE_CLUSTER_POINTS };
_Static_assert(DECOMPOSED_MOST == CLUSTER_MOST * 18, "one point gives at most 18");

// ---- folding ----

static bool is_digit(uint32_t point) {
    return point >= '0' && point <= '9';
}

// Decimal digits stand in runs of ten from 0 to 9, so the place in the run is the value. The runs
// that touch each other (mathematical digits) are gone after NFKC.
static uint32_t fold_point(uint32_t point) {
    if (point < 0x80) return point;
    switch (point) {
    case 0x2018:
    case 0x2019:
    case 0x02BC: return '\'';
    case 0x201C:
    case 0x201D: return '"';
    case 0x2010:
    case 0x2011: return '-';
    default: break;
    }
    if (utf8proc_category((utf8proc_int32_t)point) != UTF8PROC_CATEGORY_ND) return point;
    uint32_t value = 0;
    while (value < 9 &&
           utf8proc_category((utf8proc_int32_t)(point - value - 1)) == UTF8PROC_CATEGORY_ND)
        value++;
    return '0' + value;
}

size_t value_cluster_end(struct str text, size_t at, bool *well_formed) {
    uint32_t point;
    size_t end = at + utf8_decode(text, at, &point);
    *well_formed = utf8_valid(str_slice(text, at, end));
    if (!*well_formed) return end;
    utf8proc_int32_t state = 0;
    for (int points = 1; end < text.n && points < CLUSTER_MOST; points++) {
        uint32_t following;
        size_t n = utf8_decode(text, end, &following);
        if (following == 0xFFFD ||
            utf8proc_grapheme_break_stateful((utf8proc_int32_t)point, (utf8proc_int32_t)following,
                                             &state))
            break;
        point = following;
        end += n;
    }
    return end;
}

void value_fold(struct str text, bool ignore_case, struct arena *a, struct value_text *out) {
    assert(text.n < UINT32_MAX / 2);
    utf8proc_option_t options =
        UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_COMPOSE | UTF8PROC_IGNORE;
    if (ignore_case) options |= UTF8PROC_CASEFOLD;
    // NFKC may lengthen a text; room is made as needed, the arena keeps the last array.
    size_t room = text.n + DECOMPOSED_MOST;
    *out = (struct value_text){arena_array(a, room, 4), arena_array(a, room, 4),
                               arena_array(a, room, 4), 0};
    for (size_t at = 0, end; at < text.n; at = end) {
        utf8proc_int32_t points[DECOMPOSED_MOST];
        utf8proc_ssize_t count = 1;
        bool well_formed = true;
        unsigned char c = (unsigned char)text.p[at];
        if (c < 0x80 && (at + 1 == text.n || (unsigned char)text.p[at + 1] < 0x80)) {
            end = at + 1; // ASCII beside ASCII is folded already
            points[0] = ignore_case && c >= 'A' && c <= 'Z' ? c + 32 : c;
        } else {
            end = value_cluster_end(text, at, &well_formed);
            points[0] = 0xFFFD;
            if (well_formed) {
                count = utf8proc_decompose((const utf8proc_uint8_t *)text.p + at,
                                           (utf8proc_ssize_t)(end - at), points, DECOMPOSED_MOST,
                                           options);
                assert(count >= 0 && count <= DECOMPOSED_MOST);
                if (count > 0) count = utf8proc_normalize_utf32(points, count, options);
            }
        }
        if (out->count + (size_t)count + (text.n - end) > room) {
            struct value_text old = *out;
            room = room * 2 + DECOMPOSED_MOST;
            *out = (struct value_text){arena_array(a, room, 4), arena_array(a, room, 4),
                                       arena_array(a, room, 4), old.count};
            memcpy(out->points, old.points, old.count * 4);
            memcpy(out->from, old.from, old.count * 4);
            memcpy(out->to, old.to, old.count * 4);
        }
        for (utf8proc_ssize_t i = 0; i < count; i++) {
            out->points[out->count] = fold_point((uint32_t)points[i]);
            out->from[out->count] = (uint32_t)at;
            out->to[out->count++] = (uint32_t)end;
        }
    }
}

// ---- classes ----

struct value_rules {
    const struct pattern *same_script, *free_script, *hangul;
};

struct value_rules *value_rules_open(struct pattern_set *patterns, struct arena *a) {
    struct value_rules *r = arena_alloc(a, sizeof *r);
    struct pattern_flags none = {0};
    struct err e = {0};
    int failed = pattern_compile(patterns, STR("\\A(*sr:[\\p{L}\\p{M}]{2})\\z"), none, "value",
                                 &r->same_script, &e);
    failed |= pattern_compile(
        patterns,
        STR("\\A[\\p{Han}\\p{Hiragana}\\p{Katakana}\\p{Bopomofo}\\p{Yi}\\p{Thai}\\p{Lao}\\p{Khmer}"
            "\\p{Myanmar}\\p{Tibetan}\\p{Balinese}\\p{Javanese}\\p{Tai_Tham}\\p{Tai_Le}"
            "\\p{New_Tai_Lue}\\p{Tai_Viet}\\x{30FC}]\\z"),
        none, "value", &r->free_script, &e);
    failed |= pattern_compile(patterns, STR("\\A\\p{Hangul}\\z"), none, "value", &r->hangul, &e);
    assert(!failed);
    (void)failed;
    return r;
}

static bool points_match(const struct pattern *p, uint32_t first, uint32_t second) {
    char text[8];
    size_t n = utf8_encode(first, text), match[2];
    if (second != 0) n += utf8_encode(second, text + n);
    const char *code;
    return pattern_find(p, (struct str){text, n}, 0, match, &code) == PATTERN_FOUND;
}

static bool is_letter(uint32_t point) {
    if (point < 0x80) return (point | 32) >= 'a' && (point | 32) <= 'z';
    if (point >= VALUE_ANY_DIGIT) return point == VALUE_ANY_CAPITAL;
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)point);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_ME; // letters, then marks
}

bool value_is_space(uint32_t point) {
    return point == ' ' || (point >= '\t' && point <= '\r') || point == 0x85 || point == 0x1680 ||
           point == 0x2028 || point == 0x2029;
}

static bool is_emphasis(uint32_t point) {
    return point == '*' || point == '_' || point == '`' || point == '~';
}

static bool is_sign(uint32_t point) {
    return point == '-' || point == '+' || point == 0x2212 || point == 0xB1 || point == 0x2013;
}

static bool is_separator(uint32_t point) {
    return (point < 0x80 && point != 0 && strchr(".,':/-_", (int)point) != NULL) || point == 0xB7 ||
           point == 0x2013 || point == 0x066B || point == 0x066C || point == 0x2044;
}

void value_compile(const struct value_rules *rules, const uint32_t *points, size_t count,
                   struct arena *a, struct value *out) {
    *out = (struct value){rules, arena_array(a, count + 1, 4), count, count > 0, false, false};
    memcpy(out->points, points, count * 4);
    for (size_t i = 0; i < count; i++)
        if (!is_digit(points[i]) && points[i] != VALUE_ANY_DIGIT) out->digits = false;
    if (count == 0) return;
    assert(!value_is_space(points[0]) && !value_is_space(points[count - 1]));
    uint32_t first = points[0], last = points[count - 1];
    out->left_free = first < VALUE_ANY_DIGIT && points_match(rules->free_script, first, 0);
    out->right_free = last < VALUE_ANY_DIGIT && (points_match(rules->free_script, last, 0) ||
                                                 points_match(rules->hangul, last, 0));
}

bool value_from_text(const struct value_rules *rules, struct str text, bool ignore_case,
                     struct arena *a, struct value *out) {
    struct value_text t;
    value_fold(text, ignore_case, a, &t);
    while (t.count > 0 && value_is_space(t.points[t.count - 1])) t.count--;
    while (t.count > 0 && value_is_space(t.points[0])) t.points++, t.count--;
    value_compile(rules, t.points, t.count, a, out);
    return t.count > 0;
}

// ---- edges ----

static uint32_t at_or_0(const struct value_text *t, size_t i) {
    return i < t->count ? t->points[i] : 0;
}

static size_t digit_run(const struct value_text *t, size_t at) {
    size_t n = 0;
    while (is_digit(at_or_0(t, at + n))) n++;
    return n;
}

static bool letter_edge(const struct value *v, uint32_t edge, uint32_t beyond) {
    if (edge < 0x80 && beyond < 0x80) return !is_letter(beyond);
    return !is_letter(beyond) || !points_match(v->rules->same_script, edge, beyond);
}

// `group`: how many digits the match begins with before its own first separator.
static bool digit_left_edge(const struct value_text *t, size_t begin, size_t group) {
    if (begin == 0) return true;
    uint32_t beyond = t->points[begin - 1], further = begin > 1 ? t->points[begin - 2] : 0;
    if (is_digit(beyond)) return false;
    if (is_separator(beyond) && is_digit(further)) return false;
    if (is_sign(beyond)) return is_letter(further);
    if (beyond == ' ' && is_digit(further) && group == 3) {
        size_t run = 0;
        while (run + 2 <= begin && is_digit(t->points[begin - 2 - run])) run++;
        return run > 3;
    }
    return true;
}

// Like digit_left_edge; *end moves behind a fraction of zeros where `fraction` allows one.
static bool digit_right_edge(const struct value_text *t, size_t *end, size_t group, bool fraction) {
    uint32_t beyond = at_or_0(t, *end);
    if (is_digit(beyond)) return false;
    if (beyond == ' ') return group > 3 || digit_run(t, *end + 1) != 3;
    if (!is_separator(beyond) || !is_digit(at_or_0(t, *end + 1))) return true;
    size_t run = digit_run(t, *end + 1);
    if (!fraction || (beyond != '.' && beyond != ',') || run > 2) return false;
    for (size_t i = 0; i < run; i++)
        if (t->points[*end + 1 + i] != '0') return false;
    *end += 1 + run;
    return !(is_separator(at_or_0(t, *end)) && is_digit(at_or_0(t, *end + 1)));
}

// ---- matching ----

static bool point_matches(uint32_t wanted, uint32_t point) {
    if (wanted == VALUE_ANY_DIGIT) return is_digit(point);
    if (wanted == VALUE_ANY_CAPITAL) return point >= 'A' && point <= 'Z';
    if (wanted == VALUE_ANY_HEX) return is_digit(point) || (point >= 'a' && point <= 'f');
    if (wanted == VALUE_ANY_ADJECTIVE || wanted == VALUE_ANY_NOUN)
        return point >= 'a' && point <= 'z'; // the rest of the word: see text_at
    return wanted == point;
}

// A separator of digit groups at `at`: its length in code points, 0 when there is none.
static size_t group_separator(const struct value_text *t, size_t at) {
    uint32_t p = at_or_0(t, at);
    if (p == '{' && at_or_0(t, at + 1) == ',' && at_or_0(t, at + 2) == '}') return 3;
    if (p == '\\' && at_or_0(t, at + 1) == ',') return 2;
    return p == ',' || p == '.' || p == '\'' || p == ' ' || p == '_' || p == 0x066C;
}

struct groups {
    size_t first, last, count, inner_most, inner_least;
    uint32_t separator;
};

// The digits of the value with or without separators between them; fills how they are grouped.
static bool digits_at(const struct value *v, const struct value_text *t, size_t at, size_t *end,
                      struct groups *g) {
    *g = (struct groups){.count = 1, .inner_least = 99};
    size_t group = 0;
    for (size_t i = 0; i < v->count; i++) {
        if (i > 0 && !is_digit(at_or_0(t, at))) {
            size_t n = group_separator(t, at);
            if (n == 0 || (g->count > 1 && t->points[at] != g->separator)) return false;
            g->separator = t->points[at];
            if (g->count++ == 1) {
                g->first = group;
            } else {
                if (group > g->inner_most) g->inner_most = group;
                if (group < g->inner_least) g->inner_least = group;
            }
            group = 0;
            at += n;
        }
        if (!point_matches(v->points[i], at_or_0(t, at))) return false;
        group++;
        at++;
    }
    g->last = group;
    if (g->count == 1) g->first = group;
    *end = at;
    if (g->count == 1) return true;
    bool western = g->first <= 3 && (g->count == 2 || (g->inner_least == 3 && g->inner_most == 3));
    bool indian = g->count > 2 && g->first <= 2 && g->inner_least == 2 && g->inner_most == 2;
    return g->last == 3 && (western || indian);
}

static bool text_at(const struct value *v, const struct value_text *t, size_t at, size_t *end) {
    for (size_t i = 0; i < v->count; i++) {
        if (value_is_space(v->points[i])) {
            if (i > 0 && value_is_space(v->points[i - 1])) continue;
            bool space = false;
            for (; value_is_space(at_or_0(t, at)) || is_emphasis(at_or_0(t, at)); at++)
                space |= value_is_space(t->points[at]);
            if (!space) return false;
        } else if (v->points[i] == VALUE_ANY_ADJECTIVE || v->points[i] == VALUE_ANY_NOUN) {
            size_t n =
                at < t->count
                    ? words_prefix(v->points[i] == VALUE_ANY_NOUN ? WORDS_NOUN : WORDS_ADJECTIVE,
                                   t->points + at, t->count - at)
                    : 0;
            if (n == 0) return false;
            at += n;
        } else if (!point_matches(v->points[i], at_or_0(t, at++))) {
            return false;
        }
    }
    *end = at;
    return true;
}

// Half a cluster is another character: "e" is not in "e with a circumflex".
static bool whole_clusters(const struct value_text *t, size_t begin, size_t end) {
    return (begin == 0 || t->from[begin] != t->from[begin - 1]) &&
           (end == t->count || t->from[end] != t->from[end - 1]);
}

static bool value_at(const struct value *v, const struct value_text *t, size_t at, size_t *end) {
    struct groups g = {.first = v->count, .last = v->count};
    if (v->digits ? !digits_at(v, t, at, end, &g) : !text_at(v, t, at, end)) return false;
    if (!whole_clusters(t, at, *end)) return false;
    uint32_t first = t->points[at], last = t->points[*end - 1];
    if (is_digit(first)) {
        size_t group = v->digits ? g.first : digit_run(t, at);
        if (!digit_left_edge(t, at, group)) return false;
    } else if (is_letter(first) && !v->left_free && at > 0) {
        if (!letter_edge(v, first, t->points[at - 1])) return false;
    }
    if (is_digit(last)) {
        size_t group = 1;
        while (group < *end - at && is_digit(t->points[*end - 1 - group])) group++;
        // A value grouped by its own spaces would go on with any further group of three.
        return digit_right_edge(t, end, v->digits ? g.last : group, v->digits);
    }
    return !is_letter(last) || v->right_free || letter_edge(v, last, at_or_0(t, *end));
}

bool value_find(const struct value *v, const struct value_text *t, size_t from, size_t match[2],
                size_t *next) {
    if (v->count == 0) return false;
    for (size_t at = from; at < t->count; at++) {
        size_t end;
        if (!point_matches(v->points[0], t->points[at]) || !value_at(v, t, at, &end)) continue;
        match[0] = t->from[at];
        match[1] = t->to[end - 1];
        *next = end;
        return true;
    }
    return false;
}

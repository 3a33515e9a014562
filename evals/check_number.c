#include "evals/check_number.h"

enum { WHOLE_MOST = 12, FRACTION_MOST = 6, GROUPS_MOST = 24 };

static bool is_digit(uint32_t p) {
    return p >= '0' && p <= '9';
}

static uint32_t at_or_0(const struct value_text *t, size_t i) {
    return i < t->count ? t->points[i] : 0;
}

static bool is_letter_or_digit(uint32_t p) {
    return is_digit(p) || (p | 32) - 'a' < 26u || p >= 0xC0;
}

static bool groups_with(uint32_t p) {
    return p == ',' || p == '.' || p == '\'' || p == '_' || p == ' ' || p == 0x066C;
}

// What ties digits together to one thing, number or not. A space does so only before a whole group.
static bool joins(const struct value_text *t, size_t at, size_t run) {
    uint32_t p = at_or_0(t, at);
    if (!is_digit(at_or_0(t, at + 1))) return false;
    if (p != ' ') return groups_with(p) || p == '/' || p == ':' || p == '-' || p == 0x066B;
    size_t n = 0;
    while (is_digit(at_or_0(t, at + 1 + n))) n++;
    return run <= 3 && n == 3;
}

struct spelling {
    uint64_t value[GROUPS_MOST]; // of each run of digits
    size_t digits[GROUPS_MOST];
    uint32_t mark[GROUPS_MOST]; // behind each run but the last
    int count;                  // of runs; 0: too many
    bool negative;
};

// The runs of digits from `at` on that belong together; *end: behind them.
static void spell(const struct value_text *t, size_t at, size_t *end, struct spelling *s) {
    *s = (struct spelling){0};
    for (;;) {
        size_t n = 0;
        uint64_t value = 0;
        for (; is_digit(at_or_0(t, at)); at++, n++)
            value = n < WHOLE_MOST ? 10 * value + (t->points[at] - '0') : value;
        if (s->count < GROUPS_MOST) {
            s->value[s->count] = value;
            s->digits[s->count] = n;
        }
        bool more = joins(t, at, n);
        if (more && s->count < GROUPS_MOST) s->mark[s->count] = t->points[at];
        s->count++;
        if (!more) break;
        at++;
    }
    *end = at;
    if (s->count > GROUPS_MOST) s->count = 0;
}

// The number of `runs` runs, grouped by threes, and a fraction behind them if there is a run left.
// False: this reading is none.
static bool read_as(const struct spelling *s, int runs, int64_t *out) {
    uint64_t whole = s->value[0];
    size_t digits = s->digits[0];
    if (runs > 1 && digits > 3) return false;
    for (int i = 1; i < runs; i++) {
        if (s->digits[i] != 3 || s->mark[i - 1] != s->mark[0] || !groups_with(s->mark[0]))
            return false;
        whole = digits + 3 <= WHOLE_MOST ? 1000 * whole + s->value[i] : whole;
        digits += 3;
    }
    if (digits > WHOLE_MOST || s->count - runs > 1) return false;
    uint64_t fraction = 0;
    if (s->count > runs) {
        uint32_t mark = s->mark[runs - 1];
        if (mark != '.' && mark != ',' && mark != 0x066B) return false;
        if (runs > 1 && mark == s->mark[0]) return false;
        if (s->digits[runs] > FRACTION_MOST) return false;
        fraction = s->value[runs];
        for (size_t i = s->digits[runs]; i < FRACTION_MOST; i++) fraction *= 10;
    }
    int64_t value = (int64_t)(whole * 1000000 + fraction);
    *out = s->negative ? -value : value;
    return true;
}

static bool is_minus(uint32_t p) {
    return p == '-' || p == 0x2212 || p == 0x2013;
}

static bool any_reading(const struct spelling *s, struct number_range range) {
    int64_t value;
    for (int runs = s->count; runs > 0 && runs >= s->count - 1; runs--)
        if (read_as(s, runs, &value) && value >= range.least && value <= range.most) return true;
    return false;
}

void numbers_find(const struct value_text *t, struct number_range range, struct ranges *out,
                  struct arena *a) {
    for (size_t at = 0, end; at < t->count; at = end) {
        end = at + 1;
        if (!is_digit(t->points[at])) continue;
        struct spelling s;
        spell(t, at, &end, &s);
        size_t begin = at;
        uint32_t before = at > 0 ? t->points[at - 1] : 0, further = at > 1 ? t->points[at - 2] : 0;
        if ((is_minus(before) || before == '+') && !is_letter_or_digit(further)) {
            s.negative = is_minus(before);
            begin--;
        }
        if (any_reading(&s, range))
            ranges_add(out, (const size_t[2]){t->from[begin], t->to[end - 1]}, a);
    }
}

bool number_read(struct str text, int64_t *millionths) {
    bool negative = text.n > 0 && text.p[0] == '-';
    size_t at = negative ? 1 : 0, digits = 0, fraction = 0;
    int64_t value = 0;
    bool point = false;
    for (; at < text.n; at++) {
        if (text.p[at] == '.' && !point && digits > 0) {
            point = true;
            continue;
        }
        if (!is_digit((unsigned char)text.p[at])) return false;
        if (point ? ++fraction > FRACTION_MOST : ++digits > WHOLE_MOST) return false;
        value = 10 * value + (text.p[at] - '0');
    }
    if (digits == 0 || (point && fraction == 0)) return false;
    for (; fraction < FRACTION_MOST; fraction++) value *= 10;
    *millionths = negative ? -value : value;
    return true;
}

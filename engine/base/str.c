#include "engine/base/str.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct str str_from(const char *text) {
    return (struct str){text == NULL ? "" : text, text == NULL ? 0 : strlen(text)};
}

bool str_equal(struct str a, struct str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool str_equal_c(struct str a, const char *b) {
    return str_equal(a, str_from(b));
}

bool str_starts(struct str s, struct str prefix) {
    return s.n >= prefix.n && str_equal((struct str){s.p, prefix.n}, prefix);
}

bool str_ends(struct str s, struct str suffix) {
    return s.n >= suffix.n && str_equal((struct str){s.p + s.n - suffix.n, suffix.n}, suffix);
}

struct str str_slice(struct str s, size_t begin, size_t end) {
    assert(begin <= end && end <= s.n);
    return (struct str){s.p + begin, end - begin};
}

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

struct str str_trim(struct str s) {
    size_t begin = 0, end = s.n;
    while (begin < end && is_space(s.p[begin])) begin++;
    while (end > begin && is_space(s.p[end - 1])) end--;
    return str_slice(s, begin, end);
}

struct str str_head(struct str s, size_t most) {
    if (s.n <= most) return s;
    size_t n = most;
    while (n > 0 && ((unsigned char)s.p[n] & 0xC0) == 0x80) n--;
    return str_slice(s, 0, n);
}

struct str str_copy(struct arena *a, struct str s) {
    return (struct str){arena_memdup(a, s.p, s.n), s.n};
}

char *str_to_c(struct arena *a, struct str s) {
    return arena_memdup(a, s.p, s.n);
}

size_t str_find(struct str s, struct str needle, size_t from) {
    if (from > s.n) return STR_NONE;
    if (needle.n == 0) return from;
    const char *p = memmem(s.p + from, s.n - from, needle.p, needle.n);
    return p == NULL ? STR_NONE : (size_t)(p - s.p);
}

size_t str_count(struct str s, struct str needle) {
    assert(needle.n > 0);
    size_t count = 0;
    for (size_t at = 0; (at = str_find(s, needle, at)) != STR_NONE; at += needle.n) count++;
    return count;
}

void buf_reserve(struct buf *b, size_t extra) {
    assert(extra <= SIZE_MAX / 4 && b->n <= SIZE_MAX / 4);
    size_t need = b->n + extra + 1;
    if (need <= b->capacity) return;
    size_t capacity = b->capacity < 64 ? 64 : b->capacity;
    while (capacity < need) capacity *= 2;
    char *p = realloc(b->p, capacity);
    if (p == NULL) mem_exhausted("a text buffer", capacity);
    b->p = p;
    b->capacity = capacity;
}

void buf_add(struct buf *b, const void *bytes, size_t n) {
    buf_reserve(b, n);
    if (n > 0) memcpy(b->p + b->n, bytes, n);
    b->n += n;
    b->p[b->n] = '\0';
}

void buf_add_str(struct buf *b, struct str s) {
    buf_add(b, s.p, s.n);
}

void buf_add_c(struct buf *b, const char *text) {
    buf_add(b, text, strlen(text));
}

void buf_add_char(struct buf *b, char c) {
    buf_add(b, &c, 1);
}

void buf_printf(struct buf *b, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(n >= 0);
    buf_reserve(b, (size_t)n);
    va_start(args, format);
    vsnprintf(b->p + b->n, (size_t)n + 1, format, args);
    va_end(args);
    b->n += (size_t)n;
}

void buf_clear(struct buf *b) {
    b->n = 0;
    if (b->p != NULL) b->p[0] = '\0';
}

void buf_free(struct buf *b) {
    free(b->p);
    *b = (struct buf){0};
}

struct str buf_take(struct buf *b, struct arena *a) {
    struct str taken = str_copy(a, buf_str(b));
    buf_free(b);
    return taken;
}

struct str buf_str(const struct buf *b) {
    return (struct str){b->p == NULL ? "" : b->p, b->n};
}

// Bounds of the first continuation byte by lead byte (Unicode 15, table 3-7).
static size_t sequence_length(unsigned char lead, unsigned char *low, unsigned char *high) {
    *low = 0x80;
    *high = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF) return 2;
    if (lead >= 0xE0 && lead <= 0xEF) {
        if (lead == 0xE0) *low = 0xA0;
        if (lead == 0xED) *high = 0x9F;
        return 3;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        if (lead == 0xF0) *low = 0x90;
        if (lead == 0xF4) *high = 0x8F;
        return 4;
    }
    return 0;
}

// Length of the sequence at s[at]; *good says whether it is well-formed.
static size_t utf8_scan(struct str s, size_t at, uint32_t *code_point, bool *good) {
    const unsigned char *p = (const unsigned char *)s.p + at;
    size_t left = s.n - at;
    *code_point = 0xFFFD;
    *good = false;
    if (p[0] < 0x80) {
        *code_point = p[0];
        *good = true;
        return 1;
    }
    unsigned char low, high;
    size_t length = sequence_length(p[0], &low, &high);
    if (length == 0) return 1;
    uint32_t value = p[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (i >= left || p[i] < low || p[i] > high) return i;
        value = value << 6 | (p[i] & 0x3Fu);
        low = 0x80;
        high = 0xBF;
    }
    *code_point = value;
    *good = true;
    return length;
}

size_t utf8_decode(struct str s, size_t at, uint32_t *code_point) {
    assert(at < s.n);
    bool good;
    return utf8_scan(s, at, code_point, &good);
}

size_t utf8_encode(uint32_t c, char out[4]) {
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) c = 0xFFFD;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

// Where the next byte beyond ASCII is, looked for eight at a time.
static size_t skip_ascii(struct str s, size_t at) {
    for (uint64_t eight; s.n - at >= sizeof eight; at += sizeof eight) {
        memcpy(&eight, s.p + at, sizeof eight);
        if ((eight & 0x8080808080808080u) != 0) break;
    }
    while (at < s.n && (unsigned char)s.p[at] < 0x80) at++;
    return at;
}

size_t utf8_first_bad(struct str s) {
    for (size_t at = 0; (at = skip_ascii(s, at)) < s.n;) {
        uint32_t c;
        bool good;
        size_t n = utf8_scan(s, at, &c, &good);
        if (!good) return at;
        at += n;
    }
    return s.n;
}

bool utf8_valid(struct str s) {
    return utf8_first_bad(s) == s.n;
}

// Optimal string alignment distance: swaps of neighbours, the commonest slip, count as one.
static size_t edit_distance(const char *a, const char *b) {
    enum { MOST = 48 };
    size_t n = strlen(a), m = strlen(b);
    if (n > MOST || m > MOST) return SIZE_MAX;
    size_t d[MOST + 1][MOST + 1];
    for (size_t i = 0; i <= n; i++) d[i][0] = i;
    for (size_t j = 0; j <= m; j++) d[0][j] = j;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) {
            size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

const char *str_nearest(const char *word, const char *const *candidates, size_t count) {
    size_t limit = strlen(word) / 3 + 1, best = limit + 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t distance = edit_distance(word, candidates[i]);
        if (distance < best) {
            best = distance;
            nearest = candidates[i];
        }
    }
    return nearest;
}

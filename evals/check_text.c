#include "evals/check_text.h"

#include <assert.h>
#include <string.h>
#include <utf8proc.h>

struct check_text check_text_whole(struct str answer, bool open, bool masked) {
    return (struct check_text){.text = answer, .open = open, .masked = masked};
}

struct check_text check_text_part(const struct check_text *t, size_t begin, size_t end) {
    struct check_text part = {.text = str_slice(t->text, begin, end),
                              .rewritten = t->rewritten,
                              .open = t->open && end == t->text.n,
                              .masked = t->masked};
    if (t->from == NULL) {
        part.base = t->base + begin;
    } else {
        part.from = t->from + begin;
        part.to = t->to + begin;
    }
    return part;
}

void check_text_range(const struct check_text *t, const size_t range[2], size_t answer[2]) {
    if (t->from == NULL) {
        answer[0] = t->base + range[0];
        answer[1] = t->base + range[1];
        return;
    }
    // An empty range stands where its neighbour stands.
    size_t n = t->text.n, last = range[1] > range[0] ? range[1] - 1 : range[0];
    answer[0] = range[0] < n ? t->from[range[0]] : n > 0 ? t->to[n - 1] : 0;
    answer[1] = range[1] == range[0] ? answer[0] : t->to[last];
}

const struct value_text *check_text_folded(struct check_text *t, bool ignore_case,
                                           struct arena *a) {
    if (!t->has_folded[ignore_case]) value_fold(t->text, ignore_case, a, &t->folded[ignore_case]);
    t->has_folded[ignore_case] = true;
    return &t->folded[ignore_case];
}

// ---- rewriting ----

// A text under construction, each byte with the range of the answer that it stands for.
struct writer {
    const struct check_text *source;
    struct arena *arena;
    char *p;
    uint32_t *from, *to;
    size_t n, room;
};

static struct writer writer_open(const struct check_text *source, struct arena *a) {
    struct writer w = {.source = source, .arena = a, .room = source->text.n + 64};
    w.p = arena_array(a, w.room + 1, 1);
    w.from = arena_array(a, w.room + 1, sizeof *w.from);
    w.to = arena_array(a, w.room + 1, sizeof *w.to);
    return w;
}

static void writer_grow(struct writer *w, size_t extra) {
    if (w->n + extra <= w->room) return;
    struct writer old = *w;
    w->room = 2 * w->room + extra;
    w->p = arena_array(w->arena, w->room + 1, 1);
    w->from = arena_array(w->arena, w->room + 1, sizeof *w->from);
    w->to = arena_array(w->arena, w->room + 1, sizeof *w->to);
    memcpy(w->p, old.p, old.n);
    memcpy(w->from, old.from, old.n * sizeof *w->from);
    memcpy(w->to, old.to, old.n * sizeof *w->to);
}

// `bytes` in place of [begin, end) of the source.
static void writer_add(struct writer *w, const char *bytes, size_t n, size_t begin, size_t end) {
    size_t answer[2];
    check_text_range(w->source, (const size_t[2]){begin, end}, answer);
    writer_grow(w, n);
    for (size_t i = 0; i < n; i++) {
        w->p[w->n] = bytes[i];
        w->from[w->n] = (uint32_t)answer[0];
        w->to[w->n++] = (uint32_t)answer[1];
    }
}

static struct check_text writer_close(const struct writer *w) {
    return (struct check_text){.text = {w->p, w->n},
                               .from = w->from,
                               .to = w->to,
                               .open = w->source->open,
                               .masked = w->source->masked};
}

static bool word_byte(struct str s, size_t i) {
    unsigned char c = i < s.n ? (unsigned char)s.p[i] : 0;
    return c >= 0x80 || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

// Behind the marks that begin a line: "### Title" and "> quoted".
static size_t line_marks_end(struct str s, size_t at) {
    size_t i = at;
    while (i < s.n && (s.p[i] == ' ' || s.p[i] == '>')) i++;
    bool quotes = memchr(s.p + at, '>', i - at) != NULL;
    size_t marks = i;
    while (marks < s.n && s.p[marks] == '#') marks++;
    if (marks > i && marks - i <= 6 && marks < s.n && s.p[marks] == ' ') return marks + 1;
    return quotes ? i : at;
}

// The next "](" and the next line break behind the place asked for: kept from one question to the
// next, which never goes back.
struct link_search {
    size_t close, line;
    size_t end; // behind the address; STR_NONE: there is none
};

static void search_on(struct link_search *l, struct str s, size_t at) {
    if (l->line <= at) l->line = str_find(s, STR("\n"), at);
    if (l->close > at) return;
    l->close = str_find(s, STR("]("), at);
    if (l->close == STR_NONE) return;
    size_t behind = l->close + 2;
    while (behind < s.n && s.p[behind] != ')' && s.p[behind] != '\n' && s.p[behind] != ' ')
        behind++;
    l->end = behind < s.n && s.p[behind] == ')' ? behind + 1 : STR_NONE;
}

// For "[text](address)" at `at`: where the text and the whole end.
static bool link_at(struct link_search *l, struct str s, size_t at, size_t *text_end, size_t *end) {
    search_on(l, s, at);
    if (l->close == STR_NONE || l->line < l->close || l->end == STR_NONE) return false;
    *text_end = l->close;
    *end = l->end;
    return true;
}

static bool is_mark(struct str s, size_t i) {
    char c = s.p[i];
    if (c == '*' || c == '`') return true;
    if (c == '~') return (i > 0 && s.p[i - 1] == '~') || (i + 1 < s.n && s.p[i + 1] == '~');
    return c == '_' && !((i > 0 && word_byte(s, i - 1)) && word_byte(s, i + 1));
}

static struct check_text strip_markdown(const struct check_text *t, struct arena *a) {
    struct writer w = writer_open(t, a);
    struct str s = t->text;
    size_t text_end = STR_NONE, link_end = 0; // of the link that we are inside of
    struct link_search links = {0};
    for (size_t i = 0; i < s.n;) {
        if (i == 0 || s.p[i - 1] == '\n') i = line_marks_end(s, i);
        if (i == text_end) {
            i = link_end;
            text_end = STR_NONE;
        } else if (i < s.n && text_end == STR_NONE && s.p[i] == '[' &&
                   link_at(&links, s, i, &text_end, &link_end)) {
            i++;
        } else if (i < s.n) {
            if (!is_mark(s, i)) writer_add(&w, s.p + i, 1, i, i + 1);
            i++;
        }
    }
    return writer_close(&w);
}

static struct check_text fold_points(const struct check_text *t, bool nfkc, bool fold_case,
                                     struct arena *a) {
    utf8proc_option_t options = UTF8PROC_STABLE;
    if (nfkc) options |= UTF8PROC_COMPAT | UTF8PROC_COMPOSE;
    if (fold_case) options |= UTF8PROC_CASEFOLD;
    if (!nfkc) options |= UTF8PROC_COMPOSE; // canonical composition takes back the decomposition
    struct writer w = writer_open(t, a);
    struct str s = t->text;
    for (size_t at = 0, end; at < s.n; at = end) {
        utf8proc_int32_t points[VALUE_CLUSTER_POINTS];
        bool well_formed;
        end = value_cluster_end(s, at, &well_formed);
        utf8proc_ssize_t count = -1;
        if (well_formed)
            count =
                utf8proc_decompose((const utf8proc_uint8_t *)s.p + at, (utf8proc_ssize_t)(end - at),
                                   points, VALUE_CLUSTER_POINTS, options);
        assert(count <= VALUE_CLUSTER_POINTS);
        if (count < 0) { // not text: stays as it is
            for (size_t i = at; i < end; i++) writer_add(&w, s.p + i, 1, i, i + 1);
            continue;
        }
        count = utf8proc_normalize_utf32(points, count, options);
        for (utf8proc_ssize_t i = 0; i < count; i++) {
            char bytes[4];
            size_t n = utf8_encode((uint32_t)points[i], bytes);
            writer_add(&w, bytes, n, at, end);
        }
    }
    return writer_close(&w);
}

static bool space_at(struct str s, size_t at, size_t *end) {
    uint32_t point;
    *end = at + utf8_decode(s, at, &point);
    return value_is_space(point) || point == 0xA0 || (point >= 0x2000 && point <= 0x200A) ||
           point == 0x202F || point == 0x205F || point == 0x3000;
}

static struct check_text fold_space(const struct check_text *t, struct arena *a) {
    struct writer w = writer_open(t, a);
    struct str s = t->text;
    for (size_t at = 0, end; at < s.n; at = end) {
        size_t begin = at;
        while (at < s.n && space_at(s, at, &end)) at = end;
        if (at == s.n) break;
        if (at > begin && w.n > 0) writer_add(&w, " ", 1, begin, at);
        space_at(s, at, &end);
        for (size_t i = at; i < end; i++) writer_add(&w, s.p + i, 1, at, end);
    }
    return writer_close(&w);
}

struct check_text check_text_rewrite(const struct check_text *t, unsigned rewriting,
                                     struct arena *a) {
    assert(t->text.n < UINT32_MAX);
    struct check_text out = *t;
    if (rewriting & CHECK_STRIP_MARKDOWN) out = strip_markdown(&out, a);
    if (rewriting & (CHECK_NFKC | CHECK_FOLD_CASE))
        out =
            fold_points(&out, (rewriting & CHECK_NFKC) != 0, (rewriting & CHECK_FOLD_CASE) != 0, a);
    if (rewriting & CHECK_FOLD_SPACE) out = fold_space(&out, a);
    out.rewritten = t->rewritten | rewriting;
    return out;
}

// Files: the user's own texts, split into sentences, paragraphs or whole documents. Whatever white
// space stands between two units of a file is kept: its line breaks as the tail of the first, the
// rest as the lead of the second.
#include "prompts/filler_impl.h"

#include "engine/base/file.h"

#include <string.h>
#include <utf8proc.h>

#define FILE_BYTES_MOST ((size_t)1 << 30)

struct filler_texts {
    struct arena *arena;
    enum filler_split split;
    struct str wrapper; // empty: none
    struct filler_item *units;
    size_t count;
};

struct files {
    const struct filler_texts *texts;
    uint32_t *order; // NULL: file order
};

static void texts_add(struct filler_texts *t, struct str lead, struct str text, struct str tail) {
    if (text.n == 0) return;
    t->units = arena_more(t->arena, t->units, t->count, sizeof *t->units);
    t->units[t->count++] = (struct filler_item){.lead = lead, .text = text, .tail = tail};
}

static bool is_space(uint32_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x3000 || c == 0xA0;
}

// The end of the white space that begins at `at`, and the end of its last line break (or `at`).
static size_t space_end(struct str s, size_t at, size_t *breaks_end, size_t *breaks) {
    *breaks_end = at;
    *breaks = 0;
    while (at < s.n) {
        uint32_t c;
        size_t n = utf8_decode(s, at, &c);
        if (!is_space(c)) break;
        at += n;
        if (c == '\n') {
            *breaks_end = at;
            ++*breaks;
        }
    }
    return at;
}

static bool is_closer(uint32_t c) {
    static const uint32_t closers[] = {'"',    '\'',   ')',    ']',    0xBB,   0x2019, 0x201D,
                                       0x300D, 0x300F, 0xFF09, 0x3011, 0x203A, '*',    '_'};
    for (size_t i = 0; i < sizeof closers / sizeof closers[0]; i++)
        if (closers[i] == c) return true;
    return false;
}

enum stop_sort { STOP_NONE, STOP_BEFORE_SPACE, STOP_ALWAYS };
static enum stop_sort stop_sort(uint32_t c) {
    switch (c) {
    case '.':
    case '!':
    case '?':
    case 0x0964: // danda
    case 0x061F: // Arabic question mark
        return STOP_BEFORE_SPACE;
    case 0x3002: // ideographic full stop
    case 0xFF01:
    case 0xFF1F: return STOP_ALWAYS;
    default: return STOP_NONE;
    }
}

// A sentence goes on when a small letter follows ("e.g. this", "... and so on").
static bool goes_on(struct str s, size_t at) {
    if (at >= s.n) return false;
    uint32_t c;
    utf8_decode(s, at, &c);
    return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LL;
}

// The end of the sentence that begins at `at`: behind its stops and closing quotes, or at a line
// end.
static size_t sentence_end(struct str s, size_t at) {
    while (at < s.n) {
        uint32_t c;
        size_t n = utf8_decode(s, at, &c);
        if (c == '\n' || (c == '\r' && at + 1 < s.n && s.p[at + 1] == '\n')) return at;
        at += n;
        enum stop_sort sort = stop_sort(c);
        if (sort == STOP_NONE) continue;
        while (at < s.n) {
            n = utf8_decode(s, at, &c);
            if (stop_sort(c) == STOP_NONE && !is_closer(c)) break;
            if (stop_sort(c) == STOP_ALWAYS) sort = STOP_ALWAYS;
            at += n;
        }
        size_t breaks_end, breaks, next = space_end(s, at, &breaks_end, &breaks);
        if (sort == STOP_ALWAYS || next == s.n || breaks > 0) return at;
        if (next > at && !goes_on(s, next)) return at;
    }
    return s.n;
}

// The end of the paragraph that begins at `at`: before white space that holds an empty line.
static size_t paragraph_end(struct str s, size_t at) {
    size_t breaks_end, breaks;
    while (at < s.n) {
        size_t next = space_end(s, at, &breaks_end, &breaks);
        if (breaks >= 2 || next == s.n) return at;
        if (next > at)
            at = next;
        else
            at++;
    }
    return at;
}

static struct str file_trim(struct str s) {
    if (str_starts(s, STR("\xEF\xBB\xBF"))) s = str_slice(s, 3, s.n);
    size_t breaks_end, breaks;
    s = str_slice(s, space_end(s, 0, &breaks_end, &breaks), s.n);
    return str_trim(s);
}

static void file_split(struct filler_texts *t, struct str s) {
    struct str lead = STR("");
    size_t at = 0;
    while (at < s.n) {
        size_t end = t->split == FILLER_SPLIT_SENTENCE    ? sentence_end(s, at)
                     : t->split == FILLER_SPLIT_PARAGRAPH ? paragraph_end(s, at)
                                                          : s.n;
        size_t breaks_end, breaks, next = space_end(s, end, &breaks_end, &breaks);
        // The last unit of a file stands apart from the next file.
        struct str tail = next == s.n ? STR("\n\n") : str_slice(s, end, breaks_end);
        texts_add(t, lead, str_slice(s, at, end), tail);
        lead = str_slice(s, breaks_end > end ? breaks_end : end, next);
        at = next;
    }
}

// A text that is named twice would come twice.
static int refuse_repeated(const char *const *paths, const struct str *texts, size_t last,
                           struct err *e) {
    for (size_t i = 0; i < last && texts[last].n > 0; i++)
        if (str_equal(texts[i], texts[last]))
            FAIL(e, ERR_CONFIG,
                 "prompt.filler.paths[%zu]: %s holds the same text as %s; name it once, nothing is "
                 "ever repeated",
                 last, paths[last], paths[i]);
    return 0;
}

int filler_texts_load(const char *const *paths, size_t count, enum filler_split split,
                      struct str wrapper, struct arena *a, struct filler_texts **out,
                      struct err *e) {
    struct filler_texts *t = arena_alloc(a, sizeof *t);
    t->arena = a;
    t->split = split;
    t->wrapper = wrapper;
    if (wrapper.n > 0 && str_count(wrapper, STR("{{text}}")) != 1)
        FAIL(e, ERR_CONFIG,
             "prompt.filler.wrapper holds {{text}} %zu times; it must hold it exactly once",
             str_count(wrapper, STR("{{text}}")));
    struct str *texts = arena_array(a, count, sizeof *texts);
    for (size_t i = 0; i < count; i++) {
        struct str s;
        TRY(file_read(paths[i], FILE_BYTES_MOST, a, &s, e));
        size_t bad = utf8_first_bad(s);
        if (bad < s.n)
            FAIL(e, ERR_CONFIG, "%s: byte %zu (0x%02X) is not UTF-8; convert the file to UTF-8",
                 paths[i], bad, (unsigned)(uint8_t)s.p[bad]);
        texts[i] = file_trim(s);
        TRY(refuse_repeated(paths, texts, i, e));
        file_split(t, texts[i]);
    }
    if (t->count == 0) FAIL(e, ERR_CONFIG, "prompt.filler.paths: the files hold no text");
    *out = t;
    return 0;
}

size_t filler_texts_units(const struct filler_texts *t) {
    return t->count;
}

static struct str wrap(const struct filler_texts *t, struct str text, size_t number) {
    struct buf b = {0};
    for (size_t i = 0; i < t->wrapper.n;) {
        struct str rest = str_slice(t->wrapper, i, t->wrapper.n);
        if (str_starts(rest, STR("{{text}}"))) {
            buf_add_str(&b, text);
            i += 8;
        } else if (str_starts(rest, STR("{{n}}"))) {
            buf_printf(&b, "%zu", number);
            i += 5;
        } else {
            buf_add_char(&b, t->wrapper.p[i++]);
        }
    }
    return buf_take(&b, t->arena);
}

static int files_next(struct filler *f, struct filler_item *out, bool *end, struct err *e) {
    (void)e;
    const struct files *s = f->state;
    const struct filler_texts *t = s->texts;
    if (f->count == t->count) {
        *end = true;
        return 0;
    }
    const struct filler_item *u = &t->units[s->order != NULL ? s->order[f->count] : f->count];
    out->text = u->text;
    out->tail = u->tail;
    // Out of order the space before a unit no longer fits what stands before it.
    if (s->order == NULL)
        out->lead = u->lead;
    else if (u->tail.n == 0 && f->tail.n > 0)
        out->tail = f->tail;
    if (s->order != NULL && f->count > 0 && f->units[f->count - 1]->tail.n > 0) out->lead = STR("");
    if (t->wrapper.n > 0) out->text = wrap(t, u->text, f->count + 1);
    return 0;
}

struct filler *filler_files_open(const struct filler_texts *texts, bool shuffle, bool spaced,
                                 struct rng rng, struct arena *a) {
    struct files *s = arena_alloc(a, sizeof *s);
    s->texts = texts;
    struct filler *f = filler_create(rng, a, s, files_next);
    if (texts->split == FILLER_SPLIT_SENTENCE)
        f->lead = spaced ? STR(" ") : STR("");
    else
        f->tail = STR("\n\n");
    if (shuffle) {
        s->order = arena_array(a, texts->count, sizeof *s->order);
        for (uint32_t i = 0; i < texts->count; i++) s->order[i] = i;
        rng_shuffle(&f->rng, s->order, (uint32_t)texts->count);
    }
    return f;
}

#include "engine/base/reasoning.h"

#include <string.h>

// Behind the code that begins at `at`, or `at` itself. A span that is never closed is no code; nor
// is such a fence, unless `to_the_end`. *fences: false once no closing fence follows.
static size_t skip_code(struct str s, size_t at, bool to_the_end, bool *fences) {
    bool line_start = at == 0 || s.p[at - 1] == '\n';
    if (s.p[at] != '`') return at;
    if (line_start && *fences && str_starts(str_slice(s, at, s.n), STR("```"))) {
        size_t end = str_find(s, STR("\n```"), at);
        *fences = end != STR_NONE;
        if (*fences) return end + 4;
        if (to_the_end) return s.n;
    }
    const char *mark = memchr(s.p + at + 1, '`', s.n - at - 1);
    if (mark == NULL || memchr(s.p + at, '\n', (size_t)(mark - s.p) - at) != NULL) return at;
    return (size_t)(mark - s.p) + 1;
}

// The next tag at or behind `from` that is not in code; STR_NONE: none. *pending: more text could
// put it into a code span, because its line has not ended.
static size_t find_tag(struct str s, struct str tag, size_t from, bool to_the_end, bool *pending) {
    size_t tick = STR_NONE; // the last one without a partner
    bool fences = true;
    for (size_t at = from; at < s.n;) {
        size_t behind = skip_code(s, at, to_the_end, &fences);
        if (behind == at && str_starts(str_slice(s, at, s.n), tag)) {
            *pending = tick != STR_NONE && memchr(s.p + tick, '\n', s.n - tick) == NULL;
            return at;
        }
        if (behind == at && s.p[at] == '`') tick = at;
        at = behind == at ? at + 1 : behind;
    }
    return STR_NONE;
}

// The block that is inside from `text` on.
static void find_end(const struct reasoning_tags *tags, struct str reply, size_t begin, size_t text,
                     struct reasoning_block *out) {
    size_t end = str_find(reply, tags->close, text);
    *out = (struct reasoning_block){.begin = begin,
                                    .end = end == STR_NONE ? reply.n : end + tags->close.n,
                                    .closed = end != STR_NONE};
}

bool reasoning_next(const struct reasoning_tags *tags, struct str reply, size_t *at,
                    struct reasoning_block *out) {
    if (tags->open.n == 0 || *at >= reply.n) return false;
    bool pending;
    size_t open = find_tag(reply, tags->open, *at, true, &pending);
    if (*at == 0 && tags->opened) {
        find_end(tags, reply, 0, 0, out);
    } else {
        // What the prompt opened is thinking, in which marks of code need not pair.
        size_t close = *at == 0 ? find_tag(reply, tags->close, 0, false, &pending) : STR_NONE;
        if (close != STR_NONE && (open == STR_NONE || close < open))
            *out = (struct reasoning_block){.end = close + tags->close.n, .closed = true};
        else if (open != STR_NONE)
            find_end(tags, reply, open, open + tags->open.n, out);
        else
            return false;
    }
    *at = out->end;
    return true;
}

bool reasoning_opened_by(const struct reasoning_tags *tags, struct str tail) {
    return tags->open.n > 0 && str_ends(str_trim(tail), str_trim(tags->open));
}

void reasoning_start(struct reasoning_meter *m, const struct reasoning_tags *tags) {
    *m = (struct reasoning_meter){.tags = tags, .inside = tags != NULL && tags->opened};
}

// The tag is looked for in what was not yet looked through.
static size_t find_new(struct reasoning_meter *m, struct str reply, struct str tag) {
    size_t found = str_find(reply, tag, m->searched);
    if (found == STR_NONE && reply.n >= tag.n && reply.n - tag.n + 1 > m->searched)
        m->searched = reply.n - tag.n + 1;
    return found;
}

bool reasoning_follow(struct reasoning_meter *m, struct str reply) {
    const struct reasoning_tags *tags = m->tags;
    if (tags == NULL || tags->open.n == 0) return false;
    if (m->inside) {
        size_t end = find_new(m, reply, tags->close);
        if (end == STR_NONE) return false;
        end += tags->close.n;
        *m = (struct reasoning_meter){.tags = tags, .at = end, .searched = end};
        return true;
    }
    m->spelled = m->spelled || find_new(m, reply, tags->open) != STR_NONE;
    if (!m->spelled) return false;
    bool pending;
    size_t begin = find_tag(reply, tags->open, m->at, true, &pending);
    if (begin == STR_NONE || pending) return false;
    m->inside = true;
    m->begin = begin;
    m->searched = begin + tags->open.n;
    return true;
}

#include "evals/thinking.h"

#include "evals/reply.h"

#include <string.h>

// Behind the code that begins at `at`, or `at` itself: a fenced block or a code span of one line.
// What is never closed is no code. *fences: false once no closing fence follows.
static size_t skip_code(struct str s, size_t at, bool *fences) {
    bool line_start = at == 0 || s.p[at - 1] == '\n';
    if (s.p[at] != '`') return at;
    if (line_start && *fences && str_starts(str_slice(s, at, s.n), STR("```"))) {
        size_t end = str_find(s, STR("\n```"), at);
        *fences = end != STR_NONE;
        if (*fences) return end + 4;
    }
    const char *mark = memchr(s.p + at + 1, '`', s.n - at - 1);
    if (mark == NULL || memchr(s.p + at, '\n', (size_t)(mark - s.p) - at) != NULL) return at;
    return (size_t)(mark - s.p) + 1;
}

// The next tag at or behind `from` that is not in code; STR_NONE: none.
static size_t find_tag(struct str s, struct str tag, size_t from) {
    bool fences = true;
    for (size_t at = from; at < s.n;) {
        size_t behind = skip_code(s, at, &fences);
        if (behind == at && str_starts(str_slice(s, at, s.n), tag)) return at;
        at = behind == at ? at + 1 : behind;
    }
    return STR_NONE;
}

static void keep_stretch(struct str reply, size_t begin, size_t end, size_t answer[2]) {
    if (reply_blank(str_slice(reply, begin, end))) return;
    answer[0] = begin;
    answer[1] = end;
}

void thinking_answer(struct str reply, struct str open, struct str close, size_t answer[2]) {
    answer[0] = open.n == 0 ? 0 : reply.n;
    answer[1] = reply.n;
    if (open.n == 0) return;
    size_t at = 0, first_open = find_tag(reply, open, 0), first_close = find_tag(reply, close, 0);
    // The prompt's template may have opened the block.
    if (first_close != STR_NONE && (first_open == STR_NONE || first_close < first_open))
        at = first_close + close.n;
    for (;;) {
        size_t begin = find_tag(reply, open, at);
        keep_stretch(reply, at, begin == STR_NONE ? reply.n : begin, answer);
        if (begin == STR_NONE) return;
        size_t end = str_find(reply, close, begin + open.n);
        if (end == STR_NONE) {
            answer[0] = answer[1] = reply.n;
            return;
        }
        at = end + close.n;
    }
}

#include "evals/check_search.h"

#include <string.h>

void ranges_add(struct ranges *r, const size_t match[2], struct arena *a) {
    r->p = arena_more(a, r->p, r->n, sizeof *r->p);
    memcpy(r->p[r->n++], match, sizeof *r->p);
}

struct str ranges_blank(struct str text, const struct ranges *r, char fill, struct arena *a) {
    if (r->n == 0) return text;
    char *copy = arena_memdup(a, text.p, text.n);
    for (size_t i = 0; i < r->n; i++) memset(copy + r->p[i][0], fill, r->p[i][1] - r->p[i][0]);
    return (struct str){copy, text.n};
}

const char *search_pattern(const struct pattern *p, struct str text, size_t from, struct ranges *r,
                           struct arena *a) {
    for (size_t at = from, match[2]; at <= text.n;) {
        const char *code;
        enum pattern_result result = pattern_find(p, text, at, match, &code);
        if (result == PATTERN_ERROR) return code;
        if (result == PATTERN_ABSENT) return NULL;
        ranges_add(r, match, a);
        at = match[1];
        if (match[1] > match[0]) continue;
        do at++; // behind an empty match: on at the next character
        while (at < text.n && ((unsigned char)text.p[at] & 0xC0) == 0x80);
    }
    return NULL;
}

void search_value(const struct value *v, const struct value_text *t, size_t from, struct ranges *r,
                  struct arena *a) {
    size_t at = 0, match[2];
    while (at < t->count && t->from[at] < from) at++;
    while (value_find(v, t, at, match, &at)) ranges_add(r, match, a);
}

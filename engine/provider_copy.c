#include "engine/provider_copy.h"

#include <stdio.h>
#include <string.h>

static struct str word_behind(struct str prompt, struct str marker) {
    size_t at = str_find(prompt, marker, 0);
    if (at == STR_NONE) return STR("");
    at += marker.n;
    size_t end = at;
    while (end < prompt.n && strchr(" \t\r\n", prompt.p[end]) == NULL) end++;
    while (end > at && strchr(".,;:!?", prompt.p[end - 1]) != NULL) end--;
    return str_slice(prompt, at, end);
}

// Another character of the same kind, never the same one.
static char other_char(char c, char first, int kinds, struct rng *draw) {
    int shift = 1 + (int)rng_below(draw, (uint64_t)(kinds - 1));
    return (char)(first + (c - first + shift) % kinds);
}

static void add_wrong(struct buf *out, struct str word, struct rng *draw) {
    for (size_t i = 0; i < word.n; i++) {
        char c = word.p[i];
        if (c >= '0' && c <= '9') c = other_char(c, '0', 10, draw);
        if (c >= 'a' && c <= 'z') c = other_char(c, 'a', 26, draw);
        if (c >= 'A' && c <= 'Z') c = other_char(c, 'A', 26, draw);
        buf_add_char(out, c);
    }
}

// The {{N}} or {{wrong N}} at the beginning of `rest`: its bytes, or 0.
static size_t mark_at(struct str rest, const struct copy_markers *m, int *which, bool *wrong) {
    if (!str_starts(rest, STR("{{"))) return 0;
    for (*which = 0; *which < m->count; ++*which) {
        char mark[32];
        for (int k = 0; k < 2; k++) {
            snprintf(mark, sizeof mark, k == 0 ? "{{%d}}" : "{{wrong %d}}", *which);
            *wrong = k == 1;
            if (str_starts(rest, str_from(mark))) return strlen(mark);
        }
    }
    return 0;
}

bool copy_wanted(struct str text, const struct copy_markers *m) {
    int which;
    bool wrong;
    for (size_t at = 0; at < text.n; at++)
        if (mark_at(str_slice(text, at, text.n), m, &which, &wrong) > 0) return true;
    return false;
}

struct str copy_text(struct str text, const struct copy_markers *m, struct str prompt,
                     struct rng *draw, struct arena *a) {
    struct buf out = {0};
    for (size_t at = 0; at < text.n;) {
        struct str rest = str_slice(text, at, text.n);
        int which;
        bool wrong;
        size_t mark = mark_at(rest, m, &which, &wrong);
        if (mark > 0) {
            struct str word = word_behind(prompt, m->markers[which]);
            if (wrong)
                add_wrong(&out, word, draw);
            else
                buf_add_str(&out, word);
            at += mark;
        } else if (str_starts(rest, STR("{{sample}}"))) {
            buf_printf(&out, "%llu", (unsigned long long)rng_below(draw, 10000));
            at += strlen("{{sample}}");
        } else {
            buf_add_char(&out, text.p[at++]);
        }
    }
    return buf_take(&out, a);
}

#include "evals/salience.h"

#include "evals/value.h"

#include <string.h>
#include <utf8proc.h>

size_t salience_first_digit(struct str text) {
    for (size_t at = 0; at < text.n;) {
        uint32_t c;
        size_t n = utf8_decode(text, at, &c);
        if (c < 0x80 ? c >= '0' && c <= '9'
                     : utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ND)
            return at;
        at += n;
    }
    return text.n;
}

static bool is_letter(uint32_t point) {
    switch (utf8proc_category((utf8proc_int32_t)point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC: return true;
    default: return false;
    }
}

static bool is_han(uint32_t point) {
    return (point >= 0x4E00 && point <= 0x9FFF) || (point >= 0x3400 && point <= 0x4DBF);
}

static bool is_function_word(struct str word) {
    static const char *const list[] = {
        "the",  "and",   "for",   "with",  "that",  "this",   "from",  "are",    "was",   "were",
        "has",  "have",  "had",   "not",   "but",   "you",    "your",  "all",    "any",   "its",
        "into", "than",  "then",  "there", "their", "they",   "them",  "these",  "those", "what",
        "when", "where", "which", "who",   "will",  "would",  "shall", "should", "can",   "could",
        "does", "did",   "about", "only",  "also",  "please", "write", "given",  "text",  "must",
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (str_equal_c(word, list[i])) return true;
    return false;
}

// The next word at or behind *at: points [*begin, *at). False at the end.
static bool next_word(const struct value_text *t, size_t *begin, size_t *at) {
    while (*at < t->count && !is_letter(t->points[*at])) ++*at;
    *begin = *at;
    if (*at == t->count) return false;
    if (is_han(t->points[*at])) {
        // Two neighbours; the second one begins the next pair.
        *at += 1 + (*at + 1 < t->count && is_han(t->points[*at + 1]));
        return true;
    }
    while (*at < t->count && is_letter(t->points[*at]) && !is_han(t->points[*at])) ++*at;
    return true;
}

static struct str word_text(const struct value_text *t, size_t begin, size_t end, struct arena *a) {
    char *p = arena_alloc(a, 4 * (end - begin) + 1);
    size_t n = 0;
    for (size_t i = begin; i < end; i++) n += utf8_encode(t->points[i], p + n);
    p[n] = '\0';
    return (struct str){p, n};
}

static bool says(const struct value_text *t, const uint32_t *word, size_t n) {
    size_t begin, at = 0;
    while (next_word(t, &begin, &at)) {
        if (at - begin == n && memcmp(t->points + begin, word, n * sizeof *word) == 0) return true;
        if (is_han(t->points[begin]) && at - begin == 2) at--;
    }
    return false;
}

int salience_shared_words(struct str text, struct str question, struct arena *a,
                          const char ***words) {
    struct value_text t, q;
    value_fold(text, true, a, &t);
    value_fold(question, true, a, &q);
    size_t begin, at = 0, count = 0;
    *words = NULL;
    while (next_word(&t, &begin, &at)) {
        size_t n = at - begin;
        bool han = is_han(t.points[begin]);
        if (han && n == 2) at--;
        if (n < (han ? 2 : 3) || !says(&q, t.points + begin, n)) continue;
        struct str word = word_text(&t, begin, begin + n, a);
        bool known = !han && is_function_word(word);
        for (size_t i = 0; i < count && !known; i++) known = str_equal_c(word, (*words)[i]);
        if (known) continue;
        *words = arena_more(a, (void *)*words, count, sizeof **words);
        (*words)[count++] = word.p;
    }
    return (int)count;
}

// Searching a reply: every match of a pattern or a value, and the places where they stand.
#ifndef LACUNA_EVALS_CHECK_SEARCH_H
#define LACUNA_EVALS_CHECK_SEARCH_H

#include "evals/pattern.h"
#include "evals/value.h"

// Byte ranges of a text, in an arena.
struct ranges {
    size_t (*p)[2];
    size_t n;
};
void ranges_add(struct ranges *r, const size_t match[2], struct arena *a);
// The text with every range filled by one character; the text itself where there is none.
struct str ranges_blank(struct str text, const struct ranges *r, char fill, struct arena *a);

// All matches of a pattern at or behind byte `from`, none inside another. An error's name, or NULL.
const char *search_pattern(const struct pattern *p, struct str text, size_t from, struct ranges *r,
                           struct arena *a);
// The same for a value in a folded text.
void search_value(const struct value *v, const struct value_text *t, size_t from, struct ranges *r,
                  struct arena *a);

#endif

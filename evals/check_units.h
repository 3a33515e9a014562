// Words, sentences, lines, paragraphs and letters of a text: what composite checks count and pick.
// The rules are fixed here, so that a count is the same for ever and in any language:
//
// - A letter is a code point of Unicode's general category L.
// - A word is a run of letters, marks and numbers (L, M, N). An apostrophe or a hyphen between two
// of
//   them belongs to it ("don't", "well-known"), and so does . , or : between two digits
//   ("1,234.5"). Each character of Han, Hiragana and Katakana is a word of its own, for these are
//   written without spaces; Thai, Lao, Khmer and Myanmar are not segmented: a run is one word.
// - A sentence begins at a letter or number and ends behind . ! ? or the ellipsis where white space
//   or the text's end follows (closing quotes and brackets between them belong to it), behind the
//   full-width and Arabic, Urdu and Devanagari marks anywhere, and at the end of a line. The number
//   of a list item ("1. ") is no sentence. Abbreviations are not known: "Dr. Ito came." counts two.
// - A line is what stands between line breaks, when it holds more than white space.
// - A paragraph is what stands between blank lines, or between matches of the separator, without
//   the white space at its ends, when there is more than that.
#ifndef LACUNA_EVALS_CHECK_UNITS_H
#define LACUNA_EVALS_CHECK_UNITS_H

#include "evals/check_search.h"

enum check_unit { UNIT_WORD, UNIT_SENTENCE, UNIT_LINE, UNIT_PARAGRAPH, UNIT_LETTER };

struct check_units; // compiled rules, owned by the pattern set's owner
struct check_units *check_units_open(struct pattern_set *patterns, struct arena *a);

// The units in order; `separator` parts paragraphs, NULL: blank lines. An error's name, or NULL.
const char *check_units_find(const struct check_units *u, enum check_unit unit,
                             const struct pattern *separator, struct str text, struct ranges *out,
                             struct arena *a);

#endif

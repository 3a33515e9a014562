// The `value` of a constraint: is this very value in the text, in whatever dress?
//
// Both sides are folded first, one grapheme cluster at a time: NFKC (Unicode UAX 15, by utf8proc),
// invisible characters dropped, decimal digits of any script as 0-9, typographic apostrophes,
// quotes and hyphens as the plain ones, and case where ignore_case is set (otherwise case must
// agree).
//
// Where a value may stand (DESIGN section 7):
// - An edge digit has no digit beyond it, no sign (+ or -, unless a letter or digit makes it a
// hyphen),
//   and no separator (. , ' : / - _ and the like) with a digit beyond that. A space counts as a
//   separator only where the whole would be one grouped number ("12 345" holds no 345).
// - An edge letter has no letter or mark of its own script beyond it. Scripts written without
// spaces
//   have no condition, and Hangul only one to the left, because Korean particles follow directly.
// - White space in the value stands for any white space, with or without markdown emphasis beside
// it.
// - A value of digits alone also matches grouped by three (or as 12,34,567), with one kind of
//   separator: comma, period, apostrophe, any space, underscore, "{,}" and "\,"; and with a
//   fraction of one or two zeros ("1234.0").
#ifndef LACUNA_EVALS_VALUE_H
#define LACUNA_EVALS_VALUE_H

#include "engine/base/arena.h"
#include "engine/base/str.h"
#include "evals/pattern.h"

#include <stdbool.h>

// A folded text: code points, each with the byte range of the cluster it came from.
struct value_text {
    uint32_t *points;
    uint32_t *from, *to; // texts of 4 GiB and more are refused by assert
    size_t count;
};
void value_fold(struct str text, bool ignore_case, struct arena *a, struct value_text *out);
bool value_is_space(uint32_t point);
// Where the grapheme cluster at byte `at` ends (clusters of very many marks are cut). Ill-formed
// bytes are a cluster of their own, *well_formed false.
size_t value_cluster_end(struct str text, size_t at, bool *well_formed);
#define VALUE_CLUSTER_POINTS 576 // code points that a cluster may become when it is decomposed

// Wildcards of a shape, outside Unicode.
#define VALUE_ANY_DIGIT 0x110000u
#define VALUE_ANY_CAPITAL 0x110001u   // A-Z
#define VALUE_ANY_HEX 0x110002u       // 0-9, a-f
#define VALUE_ANY_ADJECTIVE 0x110003u // a whole word of evals/words.h
#define VALUE_ANY_NOUN 0x110004u

struct value_rules; // compiled script rules, shared by all values of a check set
struct value_rules *value_rules_open(struct pattern_set *patterns, struct arena *a);

struct value {
    const struct value_rules *rules;
    uint32_t *points; // folded, wildcards included
    size_t count;
    bool digits;                // digits alone
    bool left_free, right_free; // no condition beyond this edge letter
};

// From folded text without white space at its ends; count 0 matches nothing.
void value_compile(const struct value_rules *rules, const uint32_t *points, size_t count,
                   struct arena *a, struct value *out);

// From a text as the experiment gives it; false when it holds nothing visible.
bool value_from_text(const struct value_rules *rules, struct str text, bool ignore_case,
                     struct arena *a, struct value *out);

// The first place at or behind code point `from`. *match: bytes of the original text; *next: where
// to go on behind it.
bool value_find(const struct value *v, const struct value_text *t, size_t from, size_t match[2],
                size_t *next);

#endif

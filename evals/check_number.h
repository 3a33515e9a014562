// Numbers in a text, for composite checks: `number: {equals: "1234.5", within: 0.5}`.
//
// Digits of any script (after NFKC), a sign directly before them unless a letter or digit makes it
// a hyphen, groups of three parted by one kind of separator (comma, period, apostrophe, underscore,
// any space), and a fraction behind a period or comma. A spelling that can be read in two ways
// (1.234) is read both ways. Digits that are joined to further ones by other marks
// (12/05/2024, 1.2.3, 10:30) are no number. Numbers of more than 12 digits before the point or 6
// behind it are passed over.
#ifndef LACUNA_EVALS_CHECK_NUMBER_H
#define LACUNA_EVALS_CHECK_NUMBER_H

#include "evals/check_search.h"

#include <stdint.h>

struct number_range {
    int64_t least, most; // millionths
};

// A number as an experiment gives it ("-12.5"): millionths. False when it is none.
bool number_read(struct str text, int64_t *millionths);
// All numbers of the folded text that lie in the range.
void numbers_find(const struct value_text *t, struct number_range range, struct ranges *out,
                  struct arena *a);

#endif

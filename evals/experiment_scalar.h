// Scalars of the experiment file, read exactly: no number passes through floating point, and what
// two YAML readers could take for different things is refused.
#ifndef LACUNA_EVALS_EXPERIMENT_SCALAR_H
#define LACUNA_EVALS_EXPERIMENT_SCALAR_H

#include "evals/experiment.h"

// All return 0, or -1 when the text is not of that form; none explains.
int scalar_integer(struct str text,
                   int64_t *out); // 0, 17, -3; no leading zero, sign +, point or exponent
// A decimal number such as 0.7 or 12: value x 10^places, exactly. More decimals than `places` are
// refused.
int scalar_decimal(struct str text, int places, int64_t *out);
int scalar_share(struct str text, int32_t *ppm); // "2.5%", or a plain 0.025; at most 100 %
int scalar_place(struct str text,
                 struct place *out); // as place_text writes it, and numbers in per cent

// What YAML 1.1 or 1.2 readers take a plain scalar for, if not text: "a number", "true or false",
// ... NULL: text to everybody.
const char *scalar_reads_as(struct str text);

// Canonical spellings: shortest decimals ("0.7", "2.5%").
void scalar_decimal_text(int64_t value, int places, char out[32]);
void scalar_share_text(int32_t ppm, char out[32]);

#endif

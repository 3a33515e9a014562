// Keys of two words, "amber-lantern", as variables of kind `words` draw them. The adjectives are
// none of the filler's (prompts/filler_pairs.c), so that no key stands in a filler by chance.
#ifndef LACUNA_EVALS_WORDS_H
#define LACUNA_EVALS_WORDS_H

#include "engine/base/rng.h"

#include <stddef.h>

enum words_part { WORDS_ADJECTIVE, WORDS_NOUN };

const char *words_draw(enum words_part part, struct rng *r); // static
// The length of the longest word of the list that these code points begin with; 0: none.
size_t words_prefix(enum words_part part, const uint32_t *points, size_t count);

#endif

// The closing unit: neutral words that make a prompt's length exact (DESIGN section 4.2).
//
// It has 1 to 64 tokens, is built for one tokenizer, and is a sentence of adverbs and the like
// wherever the count leaves room for one; very small counts fall back to a bare word or a mark.
#ifndef LACUNA_PROMPTS_CLOSING_H
#define LACUNA_PROMPTS_CLOSING_H

#include "prompts/count.h"

#define CLOSING_TOKENS_MOST 64
#define CLOSING_TOKENS_COMFORT 4 // from here on it reads as a sentence

struct closing_words; // static

// By BCP 47 tag; ERR_CONFIG naming the known languages otherwise.
int closing_find(const char *language, const struct closing_words **out, struct err *e);

// A text for which lead + text + tail has exactly `tokens` tokens, `frame` around its words; out->n
// is 0 when there is none. `before` is the text that it follows (or empty): without a lead the join
// to it has to be clean. The draws come from `rng`, a copy of the repeat's stream, so equal
// arguments give equal texts.
int closing_build(struct counter *c, const struct closing_words *words, struct rng rng,
                  struct str before, struct str lead, struct str tail, uint32_t tokens,
                  struct filler_frame frame, struct arena *a, struct str *out, struct err *e);

#endif

// Token counts of texts by one model's tokenizer, each text counted once; and a filler as that
// model sees it.
#ifndef LACUNA_PROMPTS_COUNT_H
#define LACUNA_PROMPTS_COUNT_H

#include "engine/provider.h"
#include "prompts/filler.h"

struct counter;
// The provider is borrowed. Without ids counts are the provider's estimates.
struct counter *counter_open(struct provider *p);
void counter_close(struct counter *c); // NULL is allowed
// Does the provider tell ids, exact or likely ones?
bool counter_has_ids(const struct counter *c);

// Tokens of a text that stands between others, control tokens off.
int counter_text(struct counter *c, struct str text, uint32_t *tokens, struct err *e);
// Tokens of lead + text + tail.
int counter_segment(struct counter *c, struct str lead, struct str text, struct str tail,
                    uint32_t *tokens, struct err *e);
// Whether a + b has just the ids of a followed by those of b.
int counter_clean(struct counter *c, struct str a, struct str b, bool *clean, struct err *e);

// A filler's units with their counts. Neighbours whose join is not clean for this tokenizer make
// one unit together, so that nothing is ever placed or ended where a token straddles. Counts are of
// lead + text + tail, as the unit stands inside the stream.
struct unit {
    struct str lead, text, tail;
    uint32_t tokens;
    uint64_t before; // tokens of all units before this one
    size_t from, to; // in filler_text()
};
struct units;
struct units *units_open(struct counter *c, struct filler *f, struct arena *a);
// *out is NULL behind the end of a finite stream. Borrowed until the arena ends.
int units_get(struct units *u, size_t i, const struct unit **out, struct err *e);
struct filler *units_filler(const struct units *u);
// Units taken so far and their tokens: all there is once units_get has given NULL.
uint64_t units_tokens(const struct units *u);

#endif

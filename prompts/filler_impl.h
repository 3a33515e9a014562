// What the kinds of filler share; private to prompts/filler*.c.
#ifndef LACUNA_PROMPTS_FILLER_IMPL_H
#define LACUNA_PROMPTS_FILLER_IMPL_H

#include "prompts/filler.h"

struct filler {
    // Draws the next unit (lead, text, tail); *end behind the last one of a finite stream.
    int (*next)(struct filler *f, struct filler_item *out, bool *end, struct err *e);
    void *state; // of the kind, in the arena
    struct arena *arena;
    struct rng rng;
    struct str lead, tail;
    struct filler_frame closing;
    struct filler_item **units;
    size_t count;
    bool ended;
    char *text; // all units joined; grows in the arena
    size_t text_bytes, text_capacity;
};

struct filler *filler_create(struct rng rng, struct arena *a, void *state,
                             int (*next)(struct filler *, struct filler_item *, bool *,
                                         struct err *));

// A set of 64-bit hashes of texts that have already been given out.
struct seen {
    uint64_t *slots;
    size_t count, capacity;
};
// Adds; false when it was there already.
bool seen_add(struct seen *s, struct str text, struct arena *a);

#endif

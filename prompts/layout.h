// Which units, constraints and closing unit stand in the slot, in which order, and how they join;
// private to prompts/.
#ifndef LACUNA_PROMPTS_LAYOUT_H
#define LACUNA_PROMPTS_LAYOUT_H

#include "prompts/prompt.h"

enum element_kind { ELEMENT_UNIT, ELEMENT_CLOSING, ELEMENT_INSERT };
struct element {
    enum element_kind kind;
    size_t index; // of the unit or insert
    const struct unit *unit;
    struct str lead, text, tail; // as they stand in this prompt
    uint32_t tokens;
    int32_t depth;  // real depth of an insert in the filler
    bool in_filler; // units, closing unit, inserts at a depth
};

struct layout {
    struct element *list;
    size_t count;
    size_t unit_count;
    uint32_t filler_tokens;
    int64_t tokens;    // of all elements
    int64_t shortfall; // tokens that stay unused by tolerance
    struct str closing;
    uint32_t closing_tokens; // of a conversation; else in the list
};

// What surrounds the slot.
struct surroundings {
    int64_t tokens;    // of everything outside the slot
    struct str before; // spaces that end the text before the slot; they belong to the first element
    struct str behind; // line breaks that begin the text behind it; they belong to the last one
};

// Fills the slot so that surroundings and elements have `want` tokens (with r->length < 0: so that
// the filler has r->filler_tokens). `a` takes everything.
int layout_make(struct counter *c, const struct prompt_request *r, const struct surroundings *s,
                int64_t want, struct arena *a, struct layout *out, struct err *e);

// A copy of it, texts included, whose elements stand in `a`.
const struct layout *layout_keep(const struct layout *l, struct arena *a);

#endif

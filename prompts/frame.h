// What stands around the slot: the rendered chat template and the messages; private to prompts/.
#ifndef LACUNA_PROMPTS_FRAME_H
#define LACUNA_PROMPTS_FRAME_H

#include "prompts/prompt.h"

struct frame {
    struct prompt_part *before, *behind; // the parts on both sides of the slot
    size_t before_count, behind_count;
    // in_system constraints stand inside one of those parts: its text from `system_from` on is
    // `system_texts`; system_part is NULL without them.
    struct prompt_part *system_part;
    size_t system_from;
    struct str *system_texts, *system_leads; // one per in_system insert, in order
    size_t system_count;
};

int frame_make(struct provider *p, const struct prompt_request *r, struct arena *a,
               struct frame *out, struct err *e);

// Renders the finished messages, `filler` in the slot, and compares with the parts.
int frame_verify(struct provider *p, const struct prompt_request *r, const struct frame *f,
                 struct str filler, const struct prompt_part *parts, size_t count,
                 struct arena *scratch, struct err *e);

#endif

// What stands around the slot: the rendered chat template and the messages; private to prompts/.
#ifndef LACUNA_PROMPTS_FRAME_H
#define LACUNA_PROMPTS_FRAME_H

#include "prompts/prompt.h"

#define FRAME_SLOT SIZE_MAX // frame_mark.insert of {{filler}}

// Something that goes into a message: a constraint that stands outside the filler, or the filler.
// A marker takes its room while the messages are rendered.
struct frame_mark {
    size_t insert;           // into the request's inserts, or FRAME_SLOT
    size_t message, at, end; // bytes [at, end) of that message's text give way to it
    int rank;                // order among equal places
    struct str lead, tail;   // its joins
    struct str marker;
    const struct prompt_part *part; // where it came to stand (not of the slot), and
    size_t from;                    // where its text begins in that part
};

struct frame {
    struct prompt_part *before, *behind; // the parts on both sides of the slot
    size_t before_count, behind_count;
    struct frame_mark *marks; // in the order of the rendered text
    size_t mark_count;
};

int frame_make(struct provider *p, const struct prompt_request *r, struct arena *a,
               struct frame *out, struct err *e);

// Renders the finished messages, `filler` in the slot, and compares with the parts. The hash is of
// these messages (prompt.h).
int frame_verify(struct provider *p, const struct prompt_request *r, const struct frame *f,
                 struct str filler, const struct prompt_part *parts, size_t count,
                 struct arena *scratch, char text_sha256[HASH_HEX_SIZE], struct err *e);

#endif

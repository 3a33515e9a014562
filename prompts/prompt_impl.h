// What the files that build a prompt share; private to prompts/.
#ifndef LACUNA_PROMPTS_PROMPT_IMPL_H
#define LACUNA_PROMPTS_PROMPT_IMPL_H

#include "prompts/conversation.h"
#include "prompts/frame.h"
#include "prompts/layout.h"

struct prompt_builder {
    struct provider *p;
    struct counter *counter;
    struct arena *scratch; // of one prompt
    size_t *ends;          // [ids] of it: the byte behind each token
};

// Frame and layout as parts, text and token count, with the ids where they are exact.
int prompt_join(struct prompt_builder *b, const struct frame *f, const struct layout *l,
                struct filler *filler, struct prompt *x, struct arena *a, struct err *e);
// With r->like and no r->chat: its texts in this frame.
int prompt_like_take(struct prompt_builder *b, const struct prompt_request *r,
                     const struct frame *f, struct layout *l, struct prompt *x, struct arena *a,
                     struct err *e);
// Depths and the filler's tokens as this model counts what another one laid out: ids that begin in
// the filler and belong to no span.
void prompt_like_depths(struct prompt_builder *b, const struct frame *f, const struct layout *l,
                        struct prompt *x);
// With r->chat: chooses exchanges and closing unit so that the whole has the length; *c is the
// request that was built, and *l keeps exchanges and closing unit for another model.
int prompt_chat_meet(struct prompt_builder *b, const struct prompt_request *r,
                     struct conversation *c, struct frame *f, struct layout *l, struct prompt *x,
                     struct arena *a, struct err *e);

#endif

// Filler of whole exchanges: the conversation that takes the place of the message with the role
// "chat".
//
// The request is turned into one without a slot: the turns stand among the messages; constraints at
// a depth are paragraphs of user turns (no turn of their own: templates want user and assistant to
// alternate, and some drop a system turn in the middle), and so is the closing unit, at the end of
// the conversation's last user turn. "start" is the beginning of its first one, "end" the beginning
// of the user message behind the conversation.
#ifndef LACUNA_PROMPTS_CONVERSATION_H
#define LACUNA_PROMPTS_CONVERSATION_H

#include "prompts/prompt.h"

// The exchanges of a chat filler as one model counts them.
struct chat_units *chat_units_open(struct provider *p, struct filler *f, struct arena *a);
struct filler *chat_units_filler(const struct chat_units *u);
// The most exchanges that have at most `room` tokens together, and those tokens.
int chat_units_fit(struct chat_units *u, int64_t room, size_t *units, int64_t *tokens,
                   struct err *e);
// Tokens of exchange i; 0 behind the last one.
int chat_units_tokens(struct chat_units *u, size_t i, uint32_t *tokens, struct err *e);

struct conversation {
    struct prompt_request request; // without a slot
    size_t *origin; // [insert of it]: the given one, or the given count for the closing unit
};

// The turns of the first `units` exchanges in place of the chat message; with a closing unit of
// `closing_tokens` unless `closing` is empty. `a` takes everything.
int conversation_make(const struct prompt_request *r, size_t units, struct str closing,
                      uint32_t closing_tokens, struct arena *a, struct conversation *out,
                      struct err *e);

#endif

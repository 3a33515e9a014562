// What the files that render chat templates share; private to engine/chat*.c.
#ifndef LACUNA_ENGINE_CHAT_IMPL_H
#define LACUNA_ENGINE_CHAT_IMPL_H

#include "engine/chat.h"

struct chat_pieces {
    struct provider_piece *items;
    size_t count;
    struct arena *arena;
};
// Empty texts are left out. `control`: written by the template.
void chat_piece(struct chat_pieces *p, struct str text, bool control);
void chat_control(struct chat_pieces *p, const char *text);

// White space at both ends dropped as Python's str.strip does.
struct str chat_trim(struct str s);

// Templates with a place for tools: the whole conversation up to the assistant's header. The first
// message brings the tools. A role that the template drops or misplaces is ERR_CONFIG.
int chat_qwen25(const struct provider_message *messages, size_t count, struct chat_pieces *p,
                struct err *e);
int chat_llama31(const struct provider_message *messages, size_t count, struct chat_pieces *p,
                 struct err *e);

#endif

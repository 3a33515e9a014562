// Conversations from files: JSON lines in the spelling of OpenAI's chat API.
//
// A turn is {"role", "content"}: role system, user, assistant or tool, content a text. An
// assistant's turn may hold "tool_calls" ([{"type": "function", "function": {"name",
// "arguments"}}], arguments an object or its JSON text) and then a content that is empty or null.
// "id", "tool_call_id" and "name" are known and not shown to the model, as no template does.
// Everything else is ERR_CONFIG naming file and line. A byte order mark and line ends with a
// carriage return are fine.
#ifndef LACUNA_PROMPTS_TURNS_H
#define LACUNA_PROMPTS_TURNS_H

#include "engine/provider.h"

struct turn {
    struct provider_message m;
    int line; // of its file
};

// One turn a line. All in the arena.
int turns_load(const char *path, struct arena *a, struct turn **out, size_t *count, struct err *e);

// Exchanges: a run of turns that begins with the user and ends with the assistant, in which the
// two alternate (tool results stand between an assistant's calls and its answer). A line is
// {"messages": [turns]} and holds one exchange; or it is a turn, and an exchange begins with each
// user's turn.
struct exchange {
    const struct turn *turns;
    size_t count;
    const char *path;
};
int exchanges_load(const char *const *paths, size_t path_count, struct arena *a,
                   struct exchange **out, size_t *count, struct err *e);

#endif

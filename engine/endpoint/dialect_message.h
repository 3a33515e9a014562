// What a message of a reply says, whole or put together from the deltas of a stream: text or a list
// of parts, reasoning under either of its names, a refusal, calls of tools. After OpenAI's API
// reference (chat.completion, chat.completion.chunk), Mistral's (content as text and thinking
// chunks) and vLLM's documentation of reasoning outputs.
#ifndef LACUNA_ENGINE_ENDPOINT_DIALECT_MESSAGE_H
#define LACUNA_ENGINE_ENDPOINT_DIALECT_MESSAGE_H

#include "engine/base/arena.h"
#include "engine/base/json.h"
#include "engine/base/str.h"

#include <stdbool.h>

#define DIALECT_CALLS_MOST 128

struct dialect_parts {
    struct buf text, reasoning, refusal;
    bool has_reasoning;
    json_t *calls; // [{"name", "arguments"}]; NULL: none
};
// A whole message, or the next delta. -1: its content or its calls have another shape.
int dialect_parts_add(struct dialect_parts *p, const json_t *message);
// What the reply says: the text, or the refusal where there is none, and behind it each call as
// <tool_call>{"name": ..., "arguments": {...}}</tool_call>. In the arena.
struct str dialect_parts_text(const struct dialect_parts *p, struct arena *a);
// The message as it would have come whole; the caller's.
json_t *dialect_parts_message(const struct dialect_parts *p);
void dialect_parts_free(struct dialect_parts *p);

#endif

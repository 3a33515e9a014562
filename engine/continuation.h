// A reply while it grows: ids, bytes, and the rules that end it (stop tokens, stop strings, the
// budgets of tokens). Memory is given once, before decoding.
#ifndef LACUNA_ENGINE_CONTINUATION_H
#define LACUNA_ENGINE_CONTINUATION_H

#include "engine/base/arena.h"
#include "engine/base/str.h"
#include "engine/provider.h"

// What the engine needs to know of a tokenizer.
struct continuation_vocabulary {
    struct str (*bytes)(const void *context, int32_t id);
    const void *context;
    uint32_t size;
    size_t longest_bytes; // of any id
    const int32_t *stops; // ids that end a turn
    size_t stop_count;
};

struct continuation {
    const struct continuation_vocabulary *vocabulary;
    const struct provider_generation *generation;
    struct reasoning_meter meter;
    size_t thought;     // tokens of closed blocks of reasoning
    size_t block_first; // while inside of one: its first token
    int tokens;         // sampled so far, without a stop token
    int32_t *ids;
    size_t *starts; // byte where each id begins
    size_t count;   // ids kept; fewer than `tokens` when a stop string cut some off
    char *text;
    size_t bytes;
    bool ended;
    enum provider_finish finish;
    int32_t stop_id; // -1: no token ended it
};

// `generation` (no stop string empty) and `vocabulary` are borrowed. Takes all memory from the
// arena.
void continuation_start(struct continuation *r, const struct continuation_vocabulary *vocabulary,
                        const struct provider_generation *generation, struct arena *a);

// The next sampled token. Sets `ended` and `finish`. A stop string counts wherever it stands, also
// across tokens; it and all text behind it are dropped, with the ids that begin there. With a
// budget of its own the reasoning ends in FINISH_REASONING where that is used up inside of a block,
// and the answer in FINISH_LENGTH where its own is.
void continuation_add(struct continuation *r, int32_t id);

// Tokens whose first byte lies in a block of reasoning of the whole text, tags included.
size_t continuation_reasoning_tokens(const struct continuation *r);

#endif

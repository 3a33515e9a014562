// A reply while it grows: ids, bytes, and the rules that end it (stop tokens, stop strings, the
// token limit). Memory is given once, before decoding.
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
    const struct str *stop; // stop strings, none empty
    int stop_count;
    int max_tokens;
    int tokens; // sampled so far, without a stop token
    int32_t *ids;
    size_t *starts; // byte where each id begins
    size_t count;   // ids kept; fewer than `tokens` when a stop string cut some off
    char *text;
    size_t bytes;
    bool ended;
    enum provider_finish finish;
    int32_t stop_id; // -1: no token ended it
};

// `stop` and `vocabulary` are borrowed. Takes all memory from the arena.
void continuation_start(struct continuation *r, const struct continuation_vocabulary *vocabulary,
                        const struct str *stop, int stop_count, int max_tokens, struct arena *a);

// The next sampled token. Sets `ended` and `finish`. A stop string counts wherever it stands, also
// across tokens; it and all text behind it are dropped, with the ids that begin there.
void continuation_add(struct continuation *r, int32_t id);

#endif

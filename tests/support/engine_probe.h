// An engine on a tiny model, and what it says row by row, as hashes of the logits' bits.
#ifndef LACUNA_TESTS_ENGINE_PROBE_H
#define LACUNA_TESTS_ENGINE_PROBE_H

#include "engine/session.h"
#include "tests/support/gguf_writer.h"

struct probe {
    struct arena *arena;
    struct model *model;
    struct session *session;
};

// Opens a model file; fails the test on error.
struct probe probe_open(const char *path, const struct session_options *o);
void probe_close(struct probe *p);

// A tiny model written to the test's folder, by name. Returns its path (static per name).
const char *probe_model(const char *name, const struct tiny_model_options *o);

// Seeded ids in 3 .. V-1, so that no control token is among them.
void probe_ids(uint64_t seed, uint32_t V, int32_t *ids, uint32_t count);

struct kv_sequence *probe_sequence(struct probe *p);

// Feeds ids[0..count) to the sequence in one call; hashes[i] gets the first 64 bits of the SHA-256
// of the logits behind id i (NULL: none are computed).
void probe_feed(struct probe *p, struct kv_sequence *s, const int32_t *ids, uint32_t count,
                uint64_t *hashes);

// The same, and what the last row gives to the ranges of `watch` (NULL: nothing is watched).
void probe_feed_watched(struct probe *p, struct kv_sequence *s, const int32_t *ids, uint32_t count,
                        const struct session_watch *watch, uint64_t *hashes);

// Several sequences in one call.
#define PROBE_PARTS 256 // at most
struct probe_part {
    struct kv_sequence *sequence;
    const int32_t *ids;
    uint32_t count;
    uint64_t *hashes;
};
int probe_feed_parts(struct probe *p, const struct probe_part *parts, uint32_t count,
                     struct err *e);

// How many of n hashes differ.
uint32_t probe_differences(const uint64_t *a, const uint64_t *b, uint32_t n);

#endif

// Byte-pair merging (Sennrich, Haddow and Birch, "Neural machine translation of rare words with
// subword units", ACL 2016): within one piece, the adjacent pair with the lowest rank is joined,
// the leftmost on ties, until no listed pair is left. Time is n log n in the length of the piece.
#ifndef LACUNA_ENGINE_BPE_H
#define LACUNA_ENGINE_BPE_H

#include "engine/base/arena.h"
#include "engine/base/err.h"

#include <stddef.h>
#include <stdint.h>

struct bpe; // the table of pairs; read-only once filled

// Room for `merges` pairs, in the arena.
struct bpe *bpe_create(struct arena *a, size_t merges);
// Pairs are added in the order of their rank; a pair that is listed again keeps its first rank.
// Ids are not negative.
void bpe_add(struct bpe *b, int32_t left, int32_t right, int32_t result);

// Working memory of one thread; zero-initialise, free with bpe_scratch_free.
struct bpe_scratch {
    void *p;
    size_t bytes;
};
void bpe_scratch_free(struct bpe_scratch *s);

// Joins ids[0..count) in place and returns how many are left. Fails only for more than 2^31 ids.
int bpe_merge(const struct bpe *b, int32_t *ids, size_t *count, struct bpe_scratch *s,
              struct err *e);

#endif

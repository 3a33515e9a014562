// Seeded random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011), a counter-based generator. The same draws on every platform.
//
// A stream is named: its key and upper counter half are the first 128 bits of
// SHA-256("lacuna-rng-1" 0x00 seed 0x00 scope 0x00 name), seed as 8 bytes little-endian. So a new
// stream never shifts the draws of another, and a draw can be repeated from its index alone.
#ifndef LACUNA_ENGINE_BASE_RNG_H
#define LACUNA_ENGINE_BASE_RNG_H

#include <stdint.h>

struct rng {
    uint32_t key[2];
    uint32_t stream[2]; // upper half of the counter
    uint64_t block;     // lower half: next block of four words
    uint32_t words[4];
    int used; // words of the current block already drawn
};

// One block of the generator itself, for known-answer tests.
void rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

// `scope` is the repeat or case ("repeat 3", "case T-17"), `name` what it is for ("filler").
struct rng rng_open(uint64_t seed, const char *scope, const char *name);
uint32_t rng_u32(struct rng *r);
uint64_t rng_u64(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n); // uniform in 0..n-1 without bias; n >= 1
double rng_unit(struct rng *r);                // uniform in [0, 1), 53 bits
void rng_shuffle(struct rng *r, uint32_t *order, uint32_t count); // Fisher-Yates

// A UUID of version 4 (RFC 9562): 122 drawn bits in 36 lower-case characters, and a NUL.
#define RNG_UUID_SIZE 37
void rng_uuid(struct rng *r, char out[RNG_UUID_SIZE]);

// The word pair (53 bits as a double in [0, 1)) number `index` of a stream, without state.
double rng_unit_at(const struct rng *stream, uint64_t index);

#endif

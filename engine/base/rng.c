#include "engine/base/rng.h"

#include "engine/base/hash.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(b >> 32) ^ c1 ^ k0, n2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static uint32_t read_u32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

struct rng rng_open(uint64_t seed, const char *scope, const char *name) {
    struct buf text = {0};
    buf_add(&text, "lacuna-rng-1", sizeof "lacuna-rng-1");
    for (int i = 0; i < 8; i++) buf_add_char(&text, (char)(seed >> (8 * i)));
    buf_add_char(&text, '\0');
    buf_add(&text, scope, strlen(scope) + 1);
    buf_add_c(&text, name);
    uint8_t digest[32];
    hash_raw(text.p, text.n, digest);
    buf_free(&text);
    struct rng r = {.key = {read_u32(digest), read_u32(digest + 4)},
                    .stream = {read_u32(digest + 8), read_u32(digest + 12)},
                    .used = 4};
    return r;
}

static void rng_block(const struct rng *r, uint64_t block, uint32_t out[4]) {
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), r->stream[0], r->stream[1]};
    rng_philox(counter, r->key, out);
}

uint32_t rng_u32(struct rng *r) {
    if (r->used == 4) {
        rng_block(r, r->block++, r->words);
        r->used = 0;
    }
    return r->words[r->used++];
}

uint64_t rng_u64(struct rng *r) {
    uint64_t low = rng_u32(r);
    return low | (uint64_t)rng_u32(r) << 32;
}

uint64_t rng_below(struct rng *r, uint64_t n) {
    assert(n >= 1);
    // The last, incomplete run of n values is rejected.
    uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t x;
    do x = rng_u64(r);
    while (x >= limit);
    return x % n;
}

double rng_unit(struct rng *r) {
    return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

void rng_shuffle(struct rng *r, uint32_t *order, uint32_t count) {
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = (uint32_t)rng_below(r, i), swap = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swap;
    }
}

void rng_uuid(struct rng *r, char out[RNG_UUID_SIZE]) {
    uint32_t a = rng_u32(r), b = rng_u32(r), c = rng_u32(r), d = rng_u32(r);
    snprintf(out, RNG_UUID_SIZE, "%08x-%04x-4%03x-%04x-%04x%08x", a, b >> 16, b & 0xFFF,
             0x8000 | (c >> 16 & 0x3FFF), c & 0xFFFF, d);
}

double rng_unit_at(const struct rng *stream, uint64_t index) {
    uint32_t words[4];
    rng_block(stream, index / 2, words);
    const uint32_t *pair = words + 2 * (index % 2);
    uint64_t x = (uint64_t)pair[0] | (uint64_t)pair[1] << 32;
    return (double)(x >> 11) * 0x1p-53;
}

// The key/value cache: reference-counted pages of 512 positions, all layers in a page, and a page
// table per sequence. All memory is taken when the pool is opened; nothing is allocated afterwards.
//
// A fork shares whole pages and copies the partial one. A page that is shared is never written: a
// sequence that continues inside one gets its own copy first.
#ifndef LACUNA_ENGINE_KV_H
#define LACUNA_ENGINE_KV_H

#include "engine/backend.h"

struct kv_sequence {
    uint32_t length;   // positions that hold a key
    uint32_t pages;    // entries of the table in use
    uint32_t *page;    // [pages_per_sequence] numbers of pages
    uint8_t **address; // [pages_per_sequence] their device addresses
    bool used;         // taken by kv_sequence_open
};

struct kv_pool {
    struct backend *backend;
    size_t page_bytes;
    uint32_t pages, sequences, pages_per_sequence;
    uint8_t *memory;      // device
    uint32_t *references; // [pages] sequences that hold the page
    uint32_t *free_pages; // a stack
    uint32_t free_count;
    struct kv_sequence *sequence; // [sequences]
    uint32_t *tables;
    uint8_t **addresses;
};

// `layer_bytes` x layers is a page. `positions` bounds one sequence.
int kv_open(struct backend *b, size_t layer_bytes, uint32_t layers, uint32_t pages,
            uint32_t sequences, uint32_t positions, struct kv_pool **out, struct err *e);
void kv_close(struct kv_pool *p); // NULL is allowed

// An empty sequence. Fails (ERR_MEMORY) when all are taken.
int kv_sequence_open(struct kv_pool *p, struct kv_sequence **out, struct err *e);
void kv_sequence_close(struct kv_pool *p, struct kv_sequence *s); // NULL is allowed

// A new sequence with the first `length` positions of another. Needs one free page when they end
// inside a page.
int kv_fork(struct kv_pool *p, const struct kv_sequence *from, uint32_t length,
            struct kv_sequence **out, struct err *e);
// Forgets positions >= length. What was there stays in the pages as it is; nothing reads it.
void kv_truncate(struct kv_pool *p, struct kv_sequence *s, uint32_t length);

// Makes room for positions s->length .. length - 1, in pages that nobody else holds. On failure
// (ERR_MEMORY) the sequence is as it was. The caller then writes and sets s->length.
int kv_reserve(struct kv_pool *p, struct kv_sequence *s, uint32_t length, struct err *e);
// Free pages that kv_reserve would take.
uint32_t kv_pages_needed(const struct kv_pool *p, const struct kv_sequence *s, uint32_t length);

uint64_t kv_bytes_used(const struct kv_pool *p);
uint32_t kv_pages_of(uint32_t positions); // rounded up

#endif

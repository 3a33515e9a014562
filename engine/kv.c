#include "engine/kv.h"

#include "engine/base/arena.h"

#include <assert.h>
#include <stdlib.h>

uint32_t kv_pages_of(uint32_t positions) {
    return positions / BACKEND_PAGE + (positions % BACKEND_PAGE != 0);
}

static void *table_alloc(size_t count, size_t size) {
    void *p = calloc(count > 0 ? count : 1, size);
    if (p == NULL) mem_exhausted("KV page tables", count * size);
    return p;
}

int kv_open(struct backend *b, size_t layer_bytes, uint32_t layers, uint32_t pages,
            uint32_t sequences, uint32_t positions, struct kv_pool **out, struct err *e) {
    struct kv_pool *p = table_alloc(1, sizeof *p);
    p->backend = b;
    p->page_bytes = layer_bytes * layers;
    p->pages = pages;
    p->sequences = sequences;
    p->pages_per_sequence = kv_pages_of(positions);
    void *memory;
    if (b->ops->alloc(b, p->page_bytes * pages, "KV cache", &memory, e) != 0) {
        free(p);
        return -1;
    }
    p->memory = memory;
    p->references = table_alloc(pages, sizeof *p->references);
    p->free_pages = table_alloc(pages, sizeof *p->free_pages);
    for (uint32_t i = 0; i < pages; i++) p->free_pages[i] = pages - 1 - i;
    p->free_count = pages;
    size_t entries = (size_t)sequences * p->pages_per_sequence;
    p->sequence = table_alloc(sequences, sizeof *p->sequence);
    p->tables = table_alloc(entries, sizeof *p->tables);
    p->addresses = table_alloc(entries, sizeof *p->addresses);
    for (uint32_t i = 0; i < sequences; i++) {
        p->sequence[i].page = p->tables + (size_t)i * p->pages_per_sequence;
        p->sequence[i].address = p->addresses + (size_t)i * p->pages_per_sequence;
    }
    *out = p;
    return 0;
}

void kv_close(struct kv_pool *p) {
    if (p == NULL) return;
    p->backend->ops->free(p->backend, p->memory);
    free(p->references);
    free(p->free_pages);
    free(p->sequence);
    free(p->tables);
    free(p->addresses);
    free(p);
}

static void page_set(struct kv_pool *p, struct kv_sequence *s, uint32_t index, uint32_t page) {
    s->page[index] = page;
    s->address[index] = p->memory + (size_t)page * p->page_bytes;
}

static uint32_t page_take(struct kv_pool *p) {
    assert(p->free_count > 0);
    uint32_t page = p->free_pages[--p->free_count];
    assert(p->references[page] == 0);
    p->references[page] = 1;
    return page;
}

static void page_drop(struct kv_pool *p, uint32_t page) {
    assert(p->references[page] > 0);
    if (--p->references[page] == 0) p->free_pages[p->free_count++] = page;
}

int kv_sequence_open(struct kv_pool *p, struct kv_sequence **out, struct err *e) {
    for (uint32_t i = 0; i < p->sequences; i++) {
        struct kv_sequence *s = &p->sequence[i];
        if (s->used) continue;
        s->used = true;
        s->length = 0;
        s->pages = 0;
        *out = s;
        return 0;
    }
    FAIL(e, ERR_MEMORY, "KV cache: all %u sequences are in use", p->sequences);
}

void kv_sequence_close(struct kv_pool *p, struct kv_sequence *s) {
    if (s == NULL) return;
    assert(s->used);
    kv_truncate(p, s, 0);
    s->used = false;
}

// Replaces a shared page of the sequence by its own copy.
static void page_make_own(struct kv_pool *p, struct kv_sequence *s, uint32_t index) {
    uint32_t shared = s->page[index];
    if (p->references[shared] == 1) return;
    const uint8_t *from = s->address[index];
    page_set(p, s, index, page_take(p));
    p->backend->ops->copy(p->backend, s->address[index], from, p->page_bytes);
    page_drop(p, shared);
}

int kv_fork(struct kv_pool *p, const struct kv_sequence *from, uint32_t length,
            struct kv_sequence **out, struct err *e) {
    assert(from->used && length <= from->length);
    bool partial = length % BACKEND_PAGE != 0;
    if (partial && p->free_count == 0)
        FAIL(e, ERR_MEMORY, "KV cache: all %u pages are in use, a fork needs one", p->pages);
    struct kv_sequence *s;
    TRY(kv_sequence_open(p, &s, e));
    // Pages beyond the last position (reserved, or left by a failed call) are not handed on.
    s->pages = kv_pages_of(length);
    s->length = length;
    for (uint32_t i = 0; i < s->pages; i++) {
        page_set(p, s, i, from->page[i]);
        p->references[from->page[i]]++;
    }
    if (partial) page_make_own(p, s, s->pages - 1);
    *out = s;
    return 0;
}

void kv_truncate(struct kv_pool *p, struct kv_sequence *s, uint32_t length) {
    assert(s->used && length <= s->length);
    uint32_t keep = kv_pages_of(length);
    while (s->pages > keep) page_drop(p, s->page[--s->pages]);
    s->length = length;
}

// Whether the page that position s->length falls into is held by others too.
static bool tail_is_shared(const struct kv_pool *p, const struct kv_sequence *s) {
    uint32_t index = s->length / BACKEND_PAGE;
    return index < s->pages && p->references[s->page[index]] > 1;
}

uint32_t kv_pages_needed(const struct kv_pool *p, const struct kv_sequence *s, uint32_t length) {
    if (length <= s->length) return 0;
    uint32_t pages = kv_pages_of(length);
    return (pages > s->pages ? pages - s->pages : 0) + (tail_is_shared(p, s) ? 1 : 0);
}

int kv_reserve(struct kv_pool *p, struct kv_sequence *s, uint32_t length, struct err *e) {
    assert(s->used && length >= s->length);
    assert(kv_pages_of(length) <= p->pages_per_sequence);
    if (length == s->length) return 0;
    uint32_t needed = kv_pages_needed(p, s, length);
    if (needed > p->free_count)
        FAIL(e, ERR_MEMORY,
             "KV cache: %u more pages are needed and %u of %u are free; give it more memory or "
             "fewer requests at once",
             needed, p->free_count, p->pages);
    if (tail_is_shared(p, s)) page_make_own(p, s, s->length / BACKEND_PAGE);
    while (s->pages < kv_pages_of(length)) {
        page_set(p, s, s->pages, page_take(p));
        s->pages++;
    }
    return 0;
}

uint64_t kv_bytes_used(const struct kv_pool *p) {
    return (uint64_t)(p->pages - p->free_count) * p->page_bytes;
}

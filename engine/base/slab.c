#include "engine/base/slab.h"

#include "engine/base/arena.h"

#include <assert.h>
#include <stdint.h>

#define BLOCK_BYTES ((size_t)64 << 20) // only what is used of it takes memory
#define ALIGNMENT 64

struct slab_block {
    struct slab_block *next;
    size_t bytes, used, live; // `live` buffers are not freed yet
};

// Stands before each buffer.
struct slab_header {
    struct slab_block *block;
};

static size_t aligned(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

int slab_alloc(struct slab *s, size_t bytes, const char *what, void **out, struct err *e) {
    *out = NULL;
    if (bytes > SIZE_MAX / 2)
        FAIL(e, ERR_MEMORY, "%s needs %zu bytes, more than an address space holds", what, bytes);
    size_t need = ALIGNMENT + aligned(bytes);
    struct slab_block *block = s->blocks;
    if (block == NULL || block->bytes - block->used < need) {
        size_t first = aligned(sizeof *block);
        size_t size = first + need < BLOCK_BYTES ? BLOCK_BYTES : first + need;
        void *memory;
        TRY(mem_alloc(size, what, &memory, e));
        block = memory;
        *block = (struct slab_block){.next = s->blocks, .bytes = size, .used = first};
        s->blocks = block;
    }
    uint8_t *p = (uint8_t *)block + block->used + ALIGNMENT;
    ((struct slab_header *)(void *)(p - ALIGNMENT))->block = block;
    block->used += need;
    block->live++;
    *out = p;
    return 0;
}

void slab_free(struct slab *s, void *p) {
    if (p == NULL) return;
    struct slab_block *block = ((struct slab_header *)(void *)((uint8_t *)p - ALIGNMENT))->block;
    assert(block->live > 0);
    if (--block->live > 0) return;
    struct slab_block **at = &s->blocks;
    while (*at != block) at = &(*at)->next;
    *at = block->next;
    mem_free(block);
}

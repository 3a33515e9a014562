#include "engine/base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK_BYTES (256u << 10)
#define ALIGNMENT 16u
#define HUGE_PAGE_BYTES (2u << 20)

struct block {
    struct block *next;
    size_t capacity, used;
    _Alignas(ALIGNMENT) char data[];
};

struct arena {
    const char *name;
    struct block *first, *current;
    size_t bytes;
};

void mem_exhausted(const char *what, size_t bytes) {
    fprintf(stderr, "lacuna: out of memory: %zu bytes for %s\n", bytes, what);
    abort();
}

static struct block *block_create(const char *name, size_t capacity) {
    struct block *b = malloc(sizeof *b + capacity);
    if (b == NULL) mem_exhausted(name, capacity);
    b->next = NULL;
    b->capacity = capacity;
    b->used = 0;
    return b;
}

struct arena *arena_create(const char *name) {
    struct arena *a = calloc(1, sizeof *a);
    if (a == NULL) mem_exhausted(name, sizeof *a);
    a->name = name;
    return a;
}

void arena_destroy(struct arena *a) {
    if (a == NULL) return;
    for (struct block *b = a->first; b != NULL;) {
        struct block *next = b->next;
        free(b);
        b = next;
    }
    free(a);
}

void arena_reset(struct arena *a) {
    for (struct block *b = a->first; b != NULL; b = b->next) b->used = 0;
    a->current = a->first;
    a->bytes = 0;
}

void *arena_alloc(struct arena *a, size_t bytes) {
    assert(bytes <= SIZE_MAX / 2);
    size_t need = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct block *b = a->current;
    while (b != NULL && b->capacity - b->used < need) b = b->next;
    if (b == NULL) {
        b = block_create(a->name, need > BLOCK_BYTES ? need : BLOCK_BYTES);
        // Behind the current block: what follows it is empty since the last reset, and stays
        // usable.
        if (a->current == NULL) {
            b->next = a->first;
            a->first = b;
        } else {
            b->next = a->current->next;
            a->current->next = b;
        }
    }
    // A large block that is full at once does not become current, so the rest of the old one is
    // used.
    if (a->current == NULL || need <= BLOCK_BYTES / 4 || b == a->current) a->current = b;
    void *p = b->data + b->used;
    b->used += need;
    a->bytes += need;
    memset(p, 0, need);
    return p;
}

void *arena_array(struct arena *a, size_t count, size_t size) {
    if (size != 0 && count > SIZE_MAX / 2 / size) mem_exhausted(a->name, SIZE_MAX);
    return arena_alloc(a, count * size);
}

// Room is made at 0, 1, 2, 4, ... elements.
void *arena_more(struct arena *a, void *list, size_t count, size_t size) {
    if ((count & (count - 1)) != 0) return list;
    void *larger = arena_array(a, count == 0 ? 1 : 2 * count, size);
    if (count > 0) memcpy(larger, list, count * size);
    return larger;
}

char *arena_memdup(struct arena *a, const void *bytes, size_t n) {
    char *p = arena_alloc(a, n + 1);
    if (n > 0) memcpy(p, bytes, n);
    return p;
}

char *arena_strdup(struct arena *a, const char *text) {
    return arena_memdup(a, text, strlen(text));
}

char *arena_printf(struct arena *a, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(n >= 0);
    char *p = arena_alloc(a, (size_t)n + 1);
    va_start(args, format);
    vsnprintf(p, (size_t)n + 1, format, args);
    va_end(args);
    return p;
}

size_t arena_bytes(const struct arena *a) {
    return a->bytes;
}

// The size stands in a header page-aligned before the buffer, because munmap needs it.
struct large {
    size_t mapped_bytes;
};
#define LARGE_HEADER 4096u

static void unmap(void *p, size_t bytes) {
    if (bytes == 0) return;
    int failed = munmap(p, bytes);
    assert(failed == 0);
    (void)failed;
}

int mem_alloc(size_t bytes, const char *what, void **out, struct err *e) {
    *out = NULL;
    if (bytes > SIZE_MAX / 2)
        FAIL(e, ERR_MEMORY, "%s needs %zu bytes, more than an address space holds", what, bytes);
    size_t total = (bytes + LARGE_HEADER + 4095) / 4096 * 4096;
    size_t slack = total >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : 0; // to start at a huge page
    uint8_t *p =
        mmap(NULL, total + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        FAIL(e, ERR_MEMORY, "%s needs %zu bytes (%.1f MiB) and the system does not give them", what,
             bytes, (double)bytes / 1048576.0);
    if (slack > 0) {
        size_t before = (HUGE_PAGE_BYTES - (uintptr_t)p % HUGE_PAGE_BYTES) % HUGE_PAGE_BYTES;
        unmap(p, before);
        p += before;
        unmap(p + total, slack - before);
        // Only advice: without huge pages everything works, somewhat slower.
        (void)madvise(p, total, MADV_HUGEPAGE);
    }
    ((struct large *)(void *)p)->mapped_bytes = total;
    *out = p + LARGE_HEADER;
    return 0;
}

void mem_free(void *p) {
    if (p == NULL) return;
    struct large *large = (struct large *)(void *)((char *)p - LARGE_HEADER);
    unmap(large, large->mapped_bytes);
}

int size_mul(uint64_t a, uint64_t b, uint64_t *out) {
    return __builtin_mul_overflow(a, b, out) ? -1 : 0;
}

int size_add(uint64_t a, uint64_t b, uint64_t *out) {
    return __builtin_add_overflow(a, b, out) ? -1 : 0;
}

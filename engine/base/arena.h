// Arenas: memory with a named lifetime (run, model, trial). Everything in an arena is freed at
// once.
//
// An arena never returns NULL: the small objects it is for do not fail on a machine that can run a
// model, and when they do the process ends with a message (abort). Buffers whose size comes from a
// file or from the user (weights, KV, mapped files) do not go through an arena: see mem_alloc.
// Not thread safe; one thread owns an arena.
#ifndef LACUNA_ENGINE_BASE_ARENA_H
#define LACUNA_ENGINE_BASE_ARENA_H

#include "engine/base/err.h"

#include <stddef.h>
#include <stdint.h>

struct arena;

// `name` is the lifetime ("run", "model", "trial"), static storage; it appears in messages.
struct arena *arena_create(const char *name);
void arena_destroy(struct arena *a); // NULL is allowed

// Drops everything allocated since creation, keeps the blocks for reuse.
void arena_reset(struct arena *a);

// Zeroed, aligned to 16 bytes. `arena_array` checks count x size for overflow.
void *arena_alloc(struct arena *a, size_t bytes);
void *arena_array(struct arena *a, size_t count, size_t size);
// A list that grows by one: the list itself while it has room behind its `count` elements, else a
// zeroed copy with twice the room (the old one stays in the arena). The room follows from the
// count, so a list must have grown by this alone, from NULL and 0.
void *arena_more(struct arena *a, void *list, size_t count, size_t size);
char *arena_strdup(struct arena *a, const char *text);
// Copies n bytes and adds a NUL behind them.
char *arena_memdup(struct arena *a, const void *bytes, size_t n);
__attribute__((format(printf, 2, 3))) char *arena_printf(struct arena *a, const char *format, ...);

size_t arena_bytes(const struct arena *a); // bytes handed out since creation or reset

// Large buffers: zeroed, aligned to 64 bytes, backed by huge pages where the system offers them.
// Fails with ERR_MEMORY naming `what` and the bytes. Freed with mem_free (NULL is allowed).
int mem_alloc(size_t bytes, const char *what, void **out, struct err *e);
void mem_free(void *p);

// Ends the process with "out of memory" (abort). For callers that grow a malloc'ed buffer.
_Noreturn void mem_exhausted(const char *what, size_t bytes);

// Arithmetic on sizes that come from files. Return 0, or -1 when the result does not fit.
int size_mul(uint64_t a, uint64_t b, uint64_t *out);
int size_add(uint64_t a, uint64_t b, uint64_t *out);

#endif

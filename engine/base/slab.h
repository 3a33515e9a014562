// Medium-sized buffers side by side in a few large mappings, which the system can back with huge
// pages. A matrix of a small model has less than one such page: in a mapping of its own it would
// lie on pages of 4 KiB, where prefetching stops and every page costs a translation (a decoding
// step over 0.2 to 1.8 MB matrices: 5 to 20 % slower).
#ifndef LACUNA_ENGINE_BASE_SLAB_H
#define LACUNA_ENGINE_BASE_SLAB_H

#include "engine/base/err.h"

#include <stddef.h>

// A mapping is given back when everything in it was freed. Not thread safe.
struct slab {
    struct slab_block *blocks; // newest first
};

#define SLAB_EMPTY ((struct slab){NULL})

// Zeroed, aligned to 64 bytes. Fails with ERR_MEMORY naming `what` and the bytes. Freed with
// slab_free of the same slab (NULL is allowed).
int slab_alloc(struct slab *s, size_t bytes, const char *what, void **out, struct err *e);
void slab_free(struct slab *s, void *p);

#endif

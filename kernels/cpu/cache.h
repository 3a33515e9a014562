// What a core has for itself.
#ifndef LACUNA_KERNELS_CPU_CACHE_H
#define LACUNA_KERNELS_CPU_CACHE_H

#include <stddef.h>

#define CPU_CACHE_BYTES_ASSUMED ((size_t)1 << 20) // where a system does not say

// Bytes of the second-level cache of one core.
size_t cpu_core_cache_bytes(void);

#endif

#include "kernels/cpu/cache.h"

#include <unistd.h>

size_t cpu_core_cache_bytes(void) {
    long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return bytes > 0 ? (size_t)bytes : CPU_CACHE_BYTES_ASSUMED;
}

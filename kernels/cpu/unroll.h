// Full unrolling of short loops with constant bounds, so that arrays of accumulators become
// registers: the same request in gcc's and clang's words.
#ifndef LACUNA_KERNELS_CPU_UNROLL_H
#define LACUNA_KERNELS_CPU_UNROLL_H

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

// Weights come from memory once when few rows meet them; asking early keeps more lines on their way
// than the processor's own prefetcher does. The bytes ahead are shared by the panels read at once.
#define PREFETCH_BYTES 8192
static inline void prefetch_panel(const void *p, int panels) {
    __builtin_prefetch((const char *)p + PREFETCH_BYTES / panels, 0, 3);
}

#define BLOCK static inline __attribute__((always_inline)) void

#endif

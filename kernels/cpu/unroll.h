// Full unrolling of short loops with constant bounds, so that arrays of accumulators become
// registers: the same request in gcc's and clang's words.
#ifndef LACUNA_KERNELS_CPU_UNROLL_H
#define LACUNA_KERNELS_CPU_UNROLL_H

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define BLOCK static inline __attribute__((always_inline)) void

#endif

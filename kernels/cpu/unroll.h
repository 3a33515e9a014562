// Full unrolling of short loops with constant bounds, so that arrays of accumulators become
// registers: the same request in gcc's and clang's words.
#ifndef LACUNA_KERNELS_CPU_UNROLL_H
#define LACUNA_KERNELS_CPU_UNROLL_H

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

// third[] = pointers to every third of `rows` rows: an offset in a register for each row is more
// than there are registers, and the empty instruction keeps gcc from making them nevertheless.
#define THIRD_ROWS(third, a, lda, rows)                                                            \
    UNROLL for (int r_ = 0; r_ < (rows); r_ += 3) {                                                \
        (third)[r_ / 3] = (a) + r_ * (lda);                                                        \
        __asm__("" : "+r"((third)[r_ / 3]));                                                       \
    }

#define BLOCK static inline __attribute__((always_inline)) void

#endif

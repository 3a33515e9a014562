// The floating-point environment of an op: subnormals are flushed to zero on the way in and out
// (FTZ and DAZ), rounding to nearest even. Each op sets it on each of its threads and restores what
// it found.
//
// Between enter and leave only functions marked ENV_WORK do arithmetic: a compiler may move
// floating-point code across a change of the control register, but not a call that it cannot see
// into.
//
// x86-64 is the supported platform. Elsewhere the plain C table is compiled without flushing; its
// bits then differ from `bf16-1` where a product or sum is subnormal, and nowhere else.
#ifndef LACUNA_KERNELS_CPU_ENV_H
#define LACUNA_KERNELS_CPU_ENV_H

#define ENV_WORK static __attribute__((noinline, noclone))
#ifdef __clang__
#undef ENV_WORK
#define ENV_WORK static __attribute__((noinline))
#endif

#if defined(__x86_64__)
#include <xmmintrin.h>

#define ENV_FLUSH 0x8040u // FTZ and DAZ
#define ENV_MASKS 0x1f80u // no exception traps, round to nearest

static inline unsigned env_enter(void) {
    unsigned saved = _mm_getcsr();
    _mm_setcsr(ENV_MASKS | ENV_FLUSH);
    return saved;
}

static inline void env_leave(unsigned saved) {
    _mm_setcsr(saved);
}
#else
static inline unsigned env_enter(void) {
    return 0;
}
static inline void env_leave(unsigned saved) {
    (void)saved;
}
#endif

#endif

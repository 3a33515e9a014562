// Which sanitizers watch the kernels. The emulator itself is built without the thread sanitizer
// (its switch of stacks must not be instrumented), so the build defines SIMT_TSAN for its files.
#ifndef LACUNA_KERNELS_SIMT_SANITIZERS_H
#define LACUNA_KERNELS_SIMT_SANITIZERS_H

#ifdef __SANITIZE_ADDRESS__
#define SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#endif
#endif

#ifdef SIMT_ASAN
#include <sanitizer/asan_interface.h>
#define SIMT_POISON(p, n) __asan_poison_memory_region((p), (n))
#define SIMT_UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define SIMT_POISON(p, n) ((void)(p), (void)(n))
#define SIMT_UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#endif

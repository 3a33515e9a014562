// See races.h.
#include "kernels/simt/races.h"

#ifdef SIMT_TSAN
#include <cstddef>

extern "C" {
void __tsan_acquire(void *object);
void __tsan_release(void *object);
}
#endif

namespace simt {

#ifdef SIMT_TSAN
enum { ROUNDS = 3, INDICES = 32, KINDS = 4 };

void *sync_object(sync_kind kind, unsigned long long block, unsigned index, unsigned round) {
    static char objects[1 << 20]; // only their addresses are used
    if (kind == SYNC_BLOCK_START || kind == SYNC_BLOCK_END) block = 0;
    size_t number = ((block * KINDS + kind) * INDICES + index) * ROUNDS + round % ROUNDS;
    return &objects[number * 8 % sizeof objects];
}
void sync_release(void *object) {
    __tsan_release(object);
}
void sync_acquire(void *object) {
    __tsan_acquire(object);
}
#else
void *sync_object(sync_kind, unsigned long long, unsigned, unsigned) {
    return nullptr;
}
void sync_release(void *) {}
void sync_acquire(void *) {}
#endif

} // namespace simt

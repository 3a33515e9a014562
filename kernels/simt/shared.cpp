// Shared memory. Every block finds it new: NaNs, and for the thread sanitizer pages without a past.
// A variable stands between gaps, dynamic memory ends at a guard page: the address sanitizer knows
// both, and without it a write into a gap is found when the block ends.
#include "kernels/simt/block.h"
#include "kernels/simt/report.h"
#include "kernels/simt/sanitizers.h"

#include <cstring>
#include <sys/mman.h>

namespace simt {

enum : size_t {
    DYNAMIC_MOST = 228 << 10,
    STATIC_MOST = 48 << 10,
    STATIC_ROOM = 256 << 10, // with gaps
    GAP = 64,
    GUARD = 4096,
    DYNAMIC_ALIGNMENT = 128,
};
enum { VARIABLES_MOST = 128, UNWRITTEN = 0xff };

struct placement {
    shared_variable *variable;
    unsigned char *at;
    size_t bytes;
};

static struct {
    unsigned char *dynamic_map, *dynamic, *static_map;
    size_t dynamic_bytes, limit_bytes;
    size_t static_bytes, static_room; // of variables; of them and their gaps
    unsigned variables;
    placement placed[VARIABLES_MOST];
} shared;

// The kernels' threads have no part in this: no sanitizer looks at it, no interceptor either.
__attribute__((no_sanitize("address", "undefined"))) static void fill(unsigned char *p, size_t n) {
    int byte = UNWRITTEN;
    __asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(byte) : "memory");
}

static unsigned char *map(size_t bytes) {
    void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) fail("no memory for the shared memory of blocks");
    return (unsigned char *)p;
}

static unsigned char *dynamic_end() {
    return shared.dynamic_map + DYNAMIC_MOST;
}

void shared_prepare(size_t dynamic_bytes, size_t limit_bytes) {
    if (shared.dynamic_map == nullptr) {
        shared.static_map = map(STATIC_ROOM);
        shared.dynamic_map = map(DYNAMIC_MOST + GUARD);
        mprotect(dynamic_end(), GUARD, PROT_NONE);
    }
    shared.dynamic_bytes = dynamic_bytes;
    shared.limit_bytes = limit_bytes;
    shared.dynamic = (unsigned char *)((uintptr_t)(dynamic_end() - dynamic_bytes) &
                                       ~(uintptr_t)(DYNAMIC_ALIGNMENT - 1));
    SIMT_POISON(shared.dynamic_map, DYNAMIC_MOST);
    SIMT_UNPOISON(shared.dynamic, dynamic_bytes);
}

#ifdef SIMT_TSAN
static void forget_past() {
    void *maps[] = {shared.dynamic_map, shared.static_map};
    size_t bytes[] = {DYNAMIC_MOST, STATIC_ROOM};
    for (int i = 0; i < 2; i++)
        if (mmap(maps[i], bytes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                 -1, 0) == MAP_FAILED)
            fail("no memory for the shared memory of blocks");
}
#else
static void forget_past() {}
#endif

void shared_renew() {
    forget_past();
    fill(shared.dynamic, (size_t)(dynamic_end() - shared.dynamic));
    for (unsigned i = 0; i < shared.variables; i++) shared.placed[i].variable->number = 0;
    shared.variables = 0;
    shared.static_bytes = shared.static_room = 0;
}

#ifdef SIMT_ASAN
void shared_check() {}
#else
static bool unwritten(const unsigned char *p, const unsigned char *end) {
    while (p < end && *p == UNWRITTEN) p++;
    return p == end;
}

void shared_check() {
    if (!unwritten(shared.dynamic + shared.dynamic_bytes, dynamic_end()))
        fail("a thread wrote past the end of dynamic shared memory (%zu bytes)",
             shared.dynamic_bytes);
    unsigned char *gap = shared.static_map;
    for (unsigned i = 0; i <= shared.variables; i++) {
        const placement *p = &shared.placed[i];
        bool last = i == shared.variables;
        if (!unwritten(gap, last ? shared.static_map + shared.static_room : p->at))
            fail("a thread wrote outside a shared variable (number %u of the kernel)", i);
        if (!last) gap = p->at + p->bytes;
    }
}
#endif

static void place(shared_variable *v, size_t bytes, size_t alignment) {
    shared.static_bytes += bytes;
    if (shared.static_bytes > STATIC_MOST)
        fail("static shared memory exceeds %zu bytes", (size_t)STATIC_MOST);
    if (shared.static_bytes + shared.dynamic_bytes > shared.limit_bytes)
        fail("static (%zu) and dynamic (%zu) shared memory exceed the %zu bytes of the launch",
             shared.static_bytes, shared.dynamic_bytes, shared.limit_bytes);
    if (shared.variables == VARIABLES_MOST) fail("more than %d shared variables", VARIABLES_MOST);
    if (alignment < 16) alignment = 16;
    size_t at = (shared.static_room + GAP + alignment - 1) & ~(alignment - 1);
    size_t end = at + bytes + GAP;
    if (end > STATIC_ROOM) fail("too many shared variables of odd sizes");
    unsigned char *p = shared.static_map + at;
    fill(shared.static_map + shared.static_room, end - shared.static_room);
    SIMT_POISON(shared.static_map + shared.static_room, end - shared.static_room);
    SIMT_UNPOISON(p, bytes);
    shared.static_room = end;
    shared.placed[shared.variables++] = placement{v, p, bytes};
    v->bytes = bytes;
    v->number = shared.variables;
}

void *shared_memory(shared_variable *v, size_t bytes, size_t alignment) {
    if (current == nullptr) fail("shared memory outside a kernel");
    if (v->number == 0) place(v, bytes, alignment);
    return shared.placed[v->number - 1].at;
}

void *dynamic_shared_memory() {
    if (current == nullptr) fail("shared memory outside a kernel");
    if (shared.dynamic_bytes == 0)
        fail("the kernel uses dynamic shared memory, but was launched with none");
    return shared.dynamic;
}

} // namespace simt

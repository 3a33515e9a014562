// Device and pinned memory, copies and fills. Device memory begins as NaNs. The address sanitizer
// sees its ends, and its whole as poisoned while host code runs; without it an allocation ends near
// a guard page, and what lies between is looked at after each kernel.
#include "kernels/simt/counts.h"
#include "kernels/simt/report.h"
#include "kernels/simt/runtime.h"
#include "kernels/simt/sanitizers.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>

namespace simt {

enum : size_t { ALIGNMENT = 256, PAGE = 4096 };
enum { UNWRITTEN = 0xff };

struct allocation {
    size_t bytes;
    unsigned char *map; // with the guard page, where there is one
    size_t map_bytes;
};
typedef std::map<uintptr_t, allocation> allocations; // by address
static allocations device, pinned;
static size_t device_bytes;

static size_t rounded_up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

// At the end of the program.
static void check_leaks() {
    if (!device.empty())
        fail("%zu bytes of device memory in %zu allocations were never freed", device_bytes,
             device.size());
}

#ifdef SIMT_ASAN
static unsigned char *obtain(size_t bytes, allocation *a) {
    void *p = nullptr;
    if (posix_memalign(&p, ALIGNMENT, bytes) != 0) return nullptr;
    memset(p, UNWRITTEN, bytes);
    *a = allocation{bytes, nullptr, 0};
    return (unsigned char *)p;
}
static void give_back(uintptr_t p, const allocation &) {
    free((void *)p);
}
void check_device_memory() {}
#else
static unsigned char *obtain(size_t bytes, allocation *a) {
    size_t room = rounded_up(bytes, ALIGNMENT), pages = rounded_up(room, PAGE);
    void *map =
        mmap(nullptr, pages + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return nullptr;
    unsigned char *end = (unsigned char *)map + pages;
    mprotect(end, PAGE, PROT_NONE);
    memset(map, UNWRITTEN, pages);
    *a = allocation{bytes, (unsigned char *)map, pages + PAGE};
    return end - room;
}
static void give_back(uintptr_t, const allocation &a) {
    munmap(a.map, a.map_bytes);
}

static bool unwritten(const unsigned char *p, const unsigned char *end) {
    while (p < end && *p == UNWRITTEN) p++;
    return p >= end;
}

void check_device_memory() {
    for (const auto &entry : device) {
        const unsigned char *p = (const unsigned char *)entry.first;
        size_t bytes = entry.second.bytes;
        if (!unwritten(p + bytes, p + rounded_up(bytes, ALIGNMENT)))
            fail("a kernel wrote past the end of an allocation of %zu bytes", bytes);
        if (!unwritten(std::max(p - ALIGNMENT, (const unsigned char *)entry.second.map), p))
            fail("a kernel wrote before an allocation of %zu bytes", bytes);
    }
}
#endif

// Kernels may launch nothing, so this never nests; a copy inside a graph is work of its own.
void with_device_open(const work &w) {
    for (const auto &entry : device) SIMT_UNPOISON((void *)entry.first, entry.second.bytes);
    w();
    for (const auto &entry : device) SIMT_POISON((void *)entry.first, entry.second.bytes);
}

// The allocation that holds p, or end().
static allocations::const_iterator find(const allocations &all, const void *p) {
    auto at = all.upper_bound((uintptr_t)p);
    if (at == all.begin()) return all.end();
    --at;
    return (uintptr_t)p < at->first + at->second.bytes ? at : all.end();
}

static bool holds(const allocations &all, const void *p) {
    return find(all, p) != all.end();
}

static bool fits(const void *p, size_t bytes) {
    auto at = find(device, p);
    return at == device.end() || (uintptr_t)p + bytes <= at->first + at->second.bytes;
}

bool device_holds(const void *p, size_t bytes) {
    return holds(device, p) && fits(p, bytes);
}

static bool copy_allowed(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    bool to_device = holds(device, to), from_device = holds(device, from);
    if (!fits(to, bytes) || !fits(from, bytes)) return false;
    switch (kind) {
    case cudaMemcpyHostToDevice: return to_device && !from_device;
    case cudaMemcpyDeviceToHost: return !to_device && from_device;
    case cudaMemcpyDeviceToDevice: return to_device && from_device;
    case cudaMemcpyHostToHost: return !to_device && !from_device;
    default: return true;
    }
}

} // namespace simt

size_t simt_device_bytes(void) {
    return simt::device_bytes;
}

using namespace simt;

extern "C" {

cudaError_t cudaMalloc(void **p, size_t bytes) {
    static const bool watched = atexit(check_leaks) == 0;
    (void)watched;
    *p = nullptr;
    if (forbidden_in_capture()) return refused(cudaErrorStreamCaptureUnsupported);
    if (bytes == 0) return cudaSuccess;
    counts.allocations++;
    size_t left = simt_get_options().memory_bytes - device_bytes;
    allocation a;
    unsigned char *memory = bytes <= left ? obtain(bytes, &a) : nullptr;
    if (memory == nullptr) return refused(cudaErrorMemoryAllocation);
    SIMT_POISON(memory, bytes);
    device[(uintptr_t)memory] = a;
    device_bytes += bytes;
    *p = memory;
    return cudaSuccess;
}

cudaError_t cudaFree(void *p) {
    if (p == nullptr) return cudaSuccess;
    if (forbidden_in_capture()) return refused(cudaErrorStreamCaptureUnsupported);
    drain_all();
    auto at = device.find((uintptr_t)p);
    if (at == device.end()) return refused(cudaErrorInvalidValue);
    SIMT_UNPOISON(p, at->second.bytes);
    device_bytes -= at->second.bytes;
    give_back(at->first, at->second);
    device.erase(at);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **p, size_t bytes) {
    counts.allocations++;
    *p = aligned_alloc(ALIGNMENT, rounded_up(bytes, ALIGNMENT));
    if (*p == nullptr) return refused(cudaErrorMemoryAllocation);
    pinned[(uintptr_t)*p] = allocation{bytes, nullptr, 0};
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned) {
    return cudaMallocHost(p, bytes);
}

cudaError_t cudaFreeHost(void *p) {
    if (p == nullptr) return cudaSuccess;
    drain_all();
    if (pinned.erase((uintptr_t)p) == 0) return refused(cudaErrorInvalidValue);
    free(p);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    if (bytes == 0) return cudaSuccess;
    if (!copy_allowed(to, from, bytes, kind)) return refused(cudaErrorInvalidValue);
    // Pageable memory goes through a staging buffer before the call returns.
    bool pageable = (!holds(device, to) && !holds(pinned, to)) ||
                    (!holds(device, from) && !holds(pinned, from));
    counts.pageable_copies += pageable;
    enqueue(stream, [=] { memcpy(to, from, bytes); });
    if (pageable && !stream_captures(stream)) drain(stream);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    if (forbidden_in_capture()) return refused(cudaErrorStreamCaptureUnsupported);
    cudaError_t e = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
    drain(nullptr);
    return e;
}

cudaError_t cudaMemsetAsync(void *p, int byte, size_t bytes, cudaStream_t stream) {
    if (bytes == 0) return cudaSuccess;
    if (!device_holds(p, bytes)) return refused(cudaErrorInvalidValue);
    enqueue(stream, [=] { memset(p, byte, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemset(void *p, int byte, size_t bytes) {
    return cudaMemsetAsync(p, byte, bytes, nullptr);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                               cudaMemcpyKind) {
    enqueue(nullptr, [=] { memcpy((char *)symbol + offset, from, bytes); });
    drain(nullptr);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    *total_bytes = simt_get_options().memory_bytes;
    *free_bytes = *total_bytes - device_bytes;
    return cudaSuccess;
}

} // extern "C"

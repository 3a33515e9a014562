// Settings and counters of the emulator, for tests. Host code that uses CUDA needs nothing of this:
// it includes NVIDIA's headers and links the emulator in place of cudart and cuBLAS.
//
// The emulator runs one thing at a time: host code calls it from one thread at a time.
#ifndef LACUNA_KERNELS_SIMT_SIMT_H
#define LACUNA_KERNELS_SIMT_SIMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct simt_options {
    // The order in which threads and blocks run is drawn from this; 0: always ascending.
    uint32_t seed;
    // What is put on a stream is done when the host waits for it, not at once: the latest moment
    // that CUDA allows, where a missing wait shows.
    bool lazy_streams;
    // 80 or 90: what the device says it is, and whose tensor-core arithmetic `mma` follows.
    int capability;
    size_t memory_bytes; // of the device
    // Whether the stand-in for cuBLASLt offers, among others, an algorithm that adds in the order
    // of the engine's own products.
    bool blas_in_order;
    int graphs_most; // executable graphs that the device has memory for
};

// At start: seed 1, streams at once, capability 90, 8 GiB, in order, 1000 graphs. To be set while
// no work is queued.
void simt_set_options(const struct simt_options *options);
struct simt_options simt_get_options(void);

// What is allocated of the device now: memory, executable graphs. And since the start: kernels that
// ran, warp collectives and switches between threads; allocations of device and of pinned memory;
// asynchronous copies from or to other memory of the host, which wait; launches of graphs.
size_t simt_device_bytes(void);
int simt_graphs(void);
struct simt_counts {
    uint64_t launches, collectives, switches, allocations, pageable_copies, graph_launches;
};
struct simt_counts simt_counted(void);

#ifdef __cplusplus
}
#endif

#endif

// What kernels call when they are compiled for the CPU. device.h puts CUDA's names on top.
#ifndef LACUNA_KERNELS_SIMT_CORE_H
#define LACUNA_KERNELS_SIMT_CORE_H

#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <type_traits>

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
enum { warpSize = 32 };

namespace simt {

// One place in the source. Two barriers on one line differ in the counter.
struct site {
    const char *what, *file;
    int line, counter;
};
#define SIMT_SITE(what) (simt::site{(what), __FILE__, __LINE__, __COUNTER__})

// Waits for all threads of the block; the number of them that voted.
int block_barrier(const site &at, bool vote);

// Waits until all live lanes of `mask` call the same collective, then runs `function` once for all
// of them. `in` and `out` belong to the calling lane.
typedef void collective_function(unsigned lanes, const void *const *in, void *const *out);
struct collective {
    collective_function *function;
    bool whole_warp;    // needs 32 lanes at one place in the program
    bool orders_memory; // lanes see what the others wrote before
};
void warp_collective(const site &at, const collective &c, unsigned mask, const void *in, void *out);

// A variable in shared memory; see shared.cpp.
struct shared_variable {
    size_t bytes;
    unsigned number; // among those of the running block; 0: not yet seen by it
};
void *shared_memory(shared_variable *v, size_t bytes, size_t alignment);
void *dynamic_shared_memory();

// Copies from global to shared memory: noted at issue, given back when the wait for them comes.
struct async_copy {
    void *to;
    const void *from;
    bool valid;
};
void copy_issue(const async_copy &c);
void copy_commit();
bool copy_take(int groups_left, async_copy *next); // false: nothing more is due

void launch(const char *kernel, const void *function, dim3 grid, dim3 block, size_t shared_bytes,
            cudaStream_t stream, std::function<void()> body);

// Arguments are taken by value when the launch is called, as CUDA does.
template <class... parameters, class... arguments>
void launch_kernel(const char *name, void (*kernel)(parameters...), dim3 grid, dim3 block,
                   size_t shared_bytes, cudaStream_t stream, arguments &&...given) {
    std::tuple<std::decay_t<parameters>...> taken(static_cast<std::decay_t<parameters>>(given)...);
    launch(name, (const void *)kernel, grid, block, shared_bytes, stream,
           [kernel, taken] { std::apply(kernel, taken); });
}

} // namespace simt

#endif

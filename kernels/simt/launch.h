// From the runtime to the scheduler.
#ifndef LACUNA_KERNELS_SIMT_LAUNCH_H
#define LACUNA_KERNELS_SIMT_LAUNCH_H

#include <vector_types.h>

#include <cstddef>
#include <functional>

namespace simt {

struct shared_sizes {
    size_t dynamic_bytes;
    size_t limit_bytes; // static and dynamic together
};

// Runs all blocks of the grid, to their end.
void run_kernel(const char *kernel, dim3 grid, dim3 block, const shared_sizes &shared,
                const std::function<void()> &body);

} // namespace simt

#endif

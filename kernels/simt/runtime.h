// The CUDA runtime on the CPU: what its parts know of each other. NVIDIA's cuda_runtime_api.h
// declares every function that the parts define, so their signatures are checked.
#ifndef LACUNA_KERNELS_SIMT_RUNTIME_H
#define LACUNA_KERNELS_SIMT_RUNTIME_H

#include <cuda_runtime_api.h>

#include <functional>

namespace simt {

typedef std::function<void()> work;

// Keeps the error for cudaGetLastError and returns it.
cudaError_t refused(cudaError_t error);

// Does the work now, when the stream's turn comes, or puts it into the graph that is captured.
void enqueue(cudaStream_t stream, work w);
void drain(cudaStream_t stream);
void drain_all();
bool stream_captures(cudaStream_t stream);
// For calls that must not happen while any stream captures: spoils those captures.
bool forbidden_in_capture();

// Kernels and copies may touch device memory, host code must not.
void with_device_open(const work &w);
// Writes past the ends of allocations, looked for after each kernel.
void check_device_memory();
bool device_holds(const void *p, size_t bytes); // all of it, in one allocation

// The 48 KiB that a kernel may use unless cudaFuncSetAttribute allowed it more.
size_t shared_limit_of(const void *function);
size_t shared_limit_most();

} // namespace simt

#endif

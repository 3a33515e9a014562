// The device itself: what it says of itself, errors, kernels' attributes and launches.
#include "kernels/simt/core.h"
#include "kernels/simt/launch.h"
#include "kernels/simt/runtime.h"
#include "kernels/simt/simt.h"

#include <cstdio>
#include <cstring>
#include <unordered_map>

namespace simt {

enum { VERSION = 13000, PROCESSORS = 4 };
enum : size_t { SHARED_BYTES = 48 << 10, RESERVED_SHARED_BYTES = 1 << 10 };

static cudaError_t last_error = cudaSuccess;
static std::unordered_map<const void *, size_t> shared_limits;

cudaError_t refused(cudaError_t error) {
    last_error = error;
    return error;
}

static size_t shared_bytes_of_processor() {
    return (size_t)(simt_get_options().capability >= 90 ? 228 : 164) << 10;
}

size_t shared_limit_most() {
    return shared_bytes_of_processor() - RESERVED_SHARED_BYTES;
}

size_t shared_limit_of(const void *function) {
    auto at = shared_limits.find(function);
    return at == shared_limits.end() ? (size_t)SHARED_BYTES : at->second;
}

static bool possible(dim3 grid, dim3 block) {
    bool some = grid.x && grid.y && grid.z && block.x && block.y && block.z;
    return some && grid.x <= 0x7fffffff && grid.y <= 65535 && grid.z <= 65535 && block.z <= 64 &&
           (size_t)block.x * block.y * block.z <= 1024;
}

void launch(const char *kernel, const void *function, dim3 grid, dim3 block, size_t shared_bytes,
            cudaStream_t stream, work body) {
    size_t limit = shared_limit_of(function);
    if (!possible(grid, block)) {
        refused(cudaErrorInvalidConfiguration);
    } else if (shared_bytes > limit) {
        refused(cudaErrorInvalidValue);
    } else {
        enqueue(stream, [=] {
            run_kernel(kernel, grid, block, shared_sizes{shared_bytes, limit}, body);
            check_device_memory();
        });
    }
}

static int attribute(cudaDeviceAttr which, int otherwise) {
    int capability = simt_get_options().capability;
    switch (which) {
    case cudaDevAttrMultiProcessorCount: return PROCESSORS;
    case cudaDevAttrComputeCapabilityMajor: return capability / 10;
    case cudaDevAttrComputeCapabilityMinor: return capability % 10;
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrMaxThreadsPerBlock: return 1024;
    case cudaDevAttrMaxSharedMemoryPerBlock: return SHARED_BYTES;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return (int)shared_limit_most();
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return (int)shared_bytes_of_processor();
    case cudaDevAttrReservedSharedMemoryPerBlock: return RESERVED_SHARED_BYTES;
    default: return otherwise;
    }
}

} // namespace simt

using namespace simt;

extern "C" {

cudaError_t cudaGetLastError(void) {
    cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

cudaError_t cudaPeekAtLastError(void) {
    return last_error;
}

const char *cudaGetErrorName(cudaError_t error) {
    switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
    default: return "an error that the emulator has no name for";
    }
}

const char *cudaGetErrorString(cudaError_t error) {
    return cudaGetErrorName(error);
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    return device == 0 ? cudaSuccess : refused(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    if (device != 0) return refused(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "emulated, capability %d.%d",
             simt_get_options().capability / 10, simt_get_options().capability % 10);
    p->major = attribute(cudaDevAttrComputeCapabilityMajor, 0);
    p->minor = attribute(cudaDevAttrComputeCapabilityMinor, 0);
    p->warpSize = 32;
    p->multiProcessorCount = PROCESSORS;
    p->maxThreadsPerBlock = 1024;
    p->totalGlobalMem = simt_get_options().memory_bytes;
    p->sharedMemPerBlock = SHARED_BYTES;
    p->sharedMemPerBlockOptin = shared_limit_most();
    p->sharedMemPerMultiprocessor = shared_bytes_of_processor();
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int device) {
    if (device != 0) return refused(cudaErrorInvalidDevice);
    *value = attribute(which, -1);
    return *value >= 0 ? cudaSuccess : refused(cudaErrorInvalidValue);
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute which, int value) {
    if (which != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || (size_t)value > shared_limit_most()) return refused(cudaErrorInvalidValue);
    shared_limits[function] = (size_t)value;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = VERSION;
    return cudaSuccess;
}

} // extern "C"

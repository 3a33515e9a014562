// Memory of the device for the tests of kernels. What fills it has arrived when a call returns: the
// kernels may run in streams that do not wait for it.
#ifndef LACUNA_TESTS_KERNELS_DEVICE_SUPPORT_H
#define LACUNA_TESTS_KERNELS_DEVICE_SUPPORT_H

#include "tests/kernels/ops_support.h"
#include "tests/support/simt.h"

// A copy of the bytes on the device.
static inline void *device_copy(const void *host, size_t bytes) {
    void *p;
    ASSERT_CUDA(cudaMalloc(&p, bytes));
    ASSERT_CUDA(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice));
    ASSERT_CUDA(cudaDeviceSynchronize());
    return p;
}

// Memory that holds NaNs: what is not written shows.
static inline void *device_blank(size_t bytes) {
    void *p;
    ASSERT_CUDA(cudaMalloc(&p, bytes));
    ASSERT_CUDA(cudaMemset(p, 0xff, bytes));
    ASSERT_CUDA(cudaDeviceSynchronize());
    return p;
}

// Takes the bytes back, into memory that the caller frees, and frees them on the device.
static inline void *device_take(void *device, size_t bytes) {
    void *host = ops_alloc(bytes);
    ASSERT_CUDA(cudaDeviceSynchronize());
    ASSERT_CUDA(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
    ASSERT_CUDA(cudaFree(device));
    return host;
}

// The kernels' stride of operand rows.
static inline uint32_t device_stride(uint32_t n) {
    return (n + 63) / 64 * 64;
}

#endif

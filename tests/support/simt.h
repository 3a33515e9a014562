// What test programs that run kernels share. They run them in the emulator, or, compiled with
// LACUNA_GPU, on a GPU.
#ifndef LACUNA_TESTS_SUPPORT_SIMT_H
#define LACUNA_TESTS_SUPPORT_SIMT_H

#ifndef LACUNA_GPU
#include "kernels/simt/simt.h"
#endif

#include <cuda_runtime_api.h>
#include <stdlib.h>

#define ASSERT_CUDA(call)                                                                          \
    do {                                                                                           \
        cudaError_t cuda_error = (call);                                                           \
        if (cuda_error != cudaSuccess)                                                             \
            fail_msg("%s:%d: %s: %s", __FILE__, __LINE__, #call, cudaGetErrorName(cuda_error));    \
    } while (0)

// The settings that the environment asks for: SIMT_SEED, SIMT_LAZY (0 or 1), SIMT_CAPABILITY (80 or
// 90). Any test must pass with each of them. Called first by every test program of kernels.
static inline void simt_from_environment(void) {
#ifndef LACUNA_GPU
    struct simt_options o = simt_get_options();
    const char *seed = getenv("SIMT_SEED"), *lazy = getenv("SIMT_LAZY");
    const char *capability = getenv("SIMT_CAPABILITY");
    if (seed != NULL) o.seed = (uint32_t)strtoul(seed, NULL, 10);
    if (lazy != NULL) o.lazy_streams = strtol(lazy, NULL, 10) != 0;
    if (capability != NULL) o.capability = (int)strtol(capability, NULL, 10);
    simt_set_options(&o);
#endif
}

#endif

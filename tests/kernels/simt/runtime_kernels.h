// The kernel of test_runtime.cu, as C sees it.
#ifndef LACUNA_TESTS_KERNELS_SIMT_RUNTIME_KERNELS_H
#define LACUNA_TESTS_KERNELS_SIMT_RUNTIME_KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

// Doubles the first blocks x threads values.
cudaError_t runtime_double(float *values, int blocks, int threads, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif

// The kernels of test_faults.cu, as C sees them.
#ifndef LACUNA_TESTS_KERNELS_SIMT_FAULT_KERNELS_H
#define LACUNA_TESTS_KERNELS_SIMT_FAULT_KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FAULT_COUNT = 64 };

// A kernel by its name: out[i] = in[FAULT_COUNT - 1 - i] if it were right.
cudaError_t fault_launch(const char *kernel, float *out, const float *in, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif

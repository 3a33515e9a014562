// The kernels of test_launch.cu, as C sees them.
#ifndef LACUNA_TESTS_KERNELS_SIMT_LAUNCH_KERNELS_H
#define LACUNA_TESTS_KERNELS_SIMT_LAUNCH_KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

// to[i] = bf16(from[i]), `to` as bits.
cudaError_t launch_round(void *to, const float *from, int count, cudaStream_t stream);
// to[i] = a[i] b[i].
cudaError_t launch_multiply(float *to, const float *a, const float *b, int count,
                            cudaStream_t stream);
// sums[block] of `width` values each, by shuffles and shared memory; width a multiple of 32.
cudaError_t launch_sums(float *sums, const float *from, int blocks, int width, cudaStream_t stream);
// lanes[i]: those of the warp whose value is that of lane i; of the first `some` lanes of each
// warp.
cudaError_t launch_match(unsigned *lanes, const int *values, int warps, int some,
                         cudaStream_t stream);
// Reverses each run of 64 values through dynamic shared memory.
cudaError_t launch_reverse(float *values, int runs, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif

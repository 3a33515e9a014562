// Operands that show how a matrix product adds: what two products do alike with all of these, they
// are taken to do alike with any.
#ifndef LACUNA_KERNELS_CUDA_PROBE_H
#define LACUNA_KERNELS_CUDA_PROBE_H

#include "kernels/cuda/ops.h"

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// bf16 operands x [rows][ld], +0 behind K; or those of the weights, which go with them.
cudaError_t probe_rows_launch(cudaStream_t stream, enum cuda_probe kind, uint32_t rows, uint32_t K,
                              uint32_t ld, uint16_t *x);
cudaError_t probe_weights_launch(cudaStream_t stream, enum cuda_probe kind, uint32_t N, uint32_t K,
                                 uint32_t ld, uint16_t *w);
// *different becomes 1 when a bit of the n words differs.
cudaError_t probe_compare_launch(cudaStream_t stream, const float *a, const float *b, size_t n,
                                 uint32_t *different);

#ifdef __cplusplus
}
#endif

#endif

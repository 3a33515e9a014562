// The launcher of sampling (kernels/sample.h).
#ifndef LACUNA_KERNELS_CUDA_SAMPLE_H
#define LACUNA_KERNELS_CUDA_SAMPLE_H

#include "kernels/draw.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sample_row {
    struct token_draw draw; // its temperature is above 0
    uint32_t row;
};

// For each of `count` rows (a list on the device) of z [][n]: chosen[row], which argmax_launch
// gave, becomes the drawn index; -1 stays. The workspace is aligned to 8 bytes.
size_t sample_workspace(uint32_t count, uint32_t n);
cudaError_t sample_launch(cudaStream_t stream, const float *z, uint32_t n,
                          const struct sample_row *rows, uint32_t count, void *workspace,
                          int32_t *chosen);

#ifdef __cplusplus
}
#endif

#endif

// Angles of the rotation: one thread for each pair of a row.
#include "kernels/angles.h"

#include "kernels/cuda/gpu.h"
#include "kernels/cuda/rows.h"

#define ANGLES_THREADS 128

static __global__ void __launch_bounds__(ANGLES_THREADS)
    angles_kernel(const double *frequencies, uint32_t pairs, const uint32_t *positions, uint32_t R,
                  float *cos_sin) {
    uint32_t i = blockIdx.x * ANGLES_THREADS + threadIdx.x;
    if (i >= R * pairs) return;
    double cosine, sine;
    angle_cos_sin((double)positions[i / pairs] * frequencies[i % pairs], &cosine, &sine);
    cos_sin[2 * (size_t)i] = (float)cosine;
    cos_sin[2 * (size_t)i + 1] = (float)sine;
}

cudaError_t angles_launch(cudaStream_t stream, const double *frequencies, uint32_t rotary,
                          const uint32_t *positions, uint32_t R, float *cos_sin) {
    uint32_t pairs = rotary / 2, blocks = (R * pairs + ANGLES_THREADS - 1) / ANGLES_THREADS;
    if (blocks == 0) return cudaSuccess;
    LAUNCH(angles_kernel, blocks, ANGLES_THREADS, 0, stream, frequencies, pairs, positions, R,
           cos_sin);
    return cudaGetLastError();
}

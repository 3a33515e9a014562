// Something for streams and graphs to run.
#include "kernels/cuda/gpu.h"
#include "tests/kernels/simt/runtime_kernels.h"

static __global__ void double_kernel(float *values) {
    values[blockIdx.x * blockDim.x + threadIdx.x] *= 2.0f;
}

cudaError_t runtime_double(float *values, int blocks, int threads, cudaStream_t stream) {
    LAUNCH(double_kernel, blocks, threads, 0, stream, values);
    return cudaGetLastError();
}

// Small kernels with all that a launch consists of; test_launch.c says what they must give.
#include "kernels/cuda/gpu.h"
#include "tests/kernels/simt/launch_kernels.h"

static __global__ void round_kernel(__nv_bfloat16 *to, const float *from, int count) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) to[i] = __float2bfloat16(from[i]);
}

static __global__ void multiply_kernel(float *to, const float *a, const float *b) {
    to[threadIdx.x] = a[threadIdx.x] * b[threadIdx.x];
}

static __global__ void sums_kernel(float *sums, const float *from, int width) {
    SHARED(float, of_warps, [32]);
    const int thread = (int)threadIdx.x;
    float v = from[(size_t)blockIdx.x * width + thread];
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
    if (thread % 32 == 0) of_warps[thread / 32] = v;
    __syncthreads();
    if (thread == 0) {
        float sum = 0.0f;
        for (int w = 0; w < width / 32; w++) sum += of_warps[w];
        sums[blockIdx.x] = sum;
    }
}

static __global__ void match_kernel(unsigned *lanes, const int *values, int some) {
    const int i = (int)threadIdx.x;
    lanes[i] = 0;
    if (i % 32 < some)
        lanes[i] = __match_any_sync(some == 32 ? 0xffffffffu : (1u << some) - 1, values[i]);
}

template <int width> static __global__ void reverse_kernel(float *values) {
    DYN_SHARED(float, run);
    float *mine = values + (size_t)blockIdx.x * width;
    run[threadIdx.x] = mine[threadIdx.x];
    __syncthreads();
    mine[threadIdx.x] = run[width - 1 - threadIdx.x];
}

cudaError_t launch_round(void *to, const float *from, int count, cudaStream_t stream) {
    LAUNCH(round_kernel, (count + 127) / 128, 128, 0, stream, (__nv_bfloat16 *)to, from, count);
    return cudaGetLastError();
}

cudaError_t launch_multiply(float *to, const float *a, const float *b, int count,
                            cudaStream_t stream) {
    LAUNCH(multiply_kernel, 1, count, 0, stream, to, a, b);
    return cudaGetLastError();
}

cudaError_t launch_sums(float *sums, const float *from, int blocks, int width,
                        cudaStream_t stream) {
    LAUNCH(sums_kernel, blocks, width, 0, stream, sums, from, width);
    return cudaGetLastError();
}

cudaError_t launch_match(unsigned *lanes, const int *values, int warps, int some,
                         cudaStream_t stream) {
    LAUNCH(match_kernel, 1, 32 * warps, 0, stream, lanes, values, some);
    return cudaGetLastError();
}

cudaError_t launch_reverse(float *values, int runs, cudaStream_t stream) {
    LAUNCH((reverse_kernel<64>), runs, 64, 64 * sizeof(float), stream, values);
    return cudaGetLastError();
}

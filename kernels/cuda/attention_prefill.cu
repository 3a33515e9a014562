// Attention of many rows: launch.
#include "kernels/cuda/attention_prefill.cuh"

template <int E, int WARPS, int STAGES>
static cudaError_t launch(cudaStream_t stream, const struct attention_call *c) {
    typedef prefill_shape<E, WARPS, STAGES> shape;
    size_t shared = sizeof(prefill_shared<shape>);
    cudaError_t failed =
        cudaFuncSetAttribute((const void *)attention_prefill<E, WARPS, STAGES>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (failed != cudaSuccess) return failed;
    dim3 grid((c->limits.rows + shape::rows - 1) / shape::rows, c->shape.H, c->limits.spans);
    LAUNCH((attention_prefill<E, WARPS, STAGES>), grid, dim3(shape::threads), shared, stream,
           attention_args_of(c));
    return cudaGetLastError();
}

// Blocks of 64 rows need more shared memory than some devices give to a block; 32 rows need no
// more.
static cudaError_t launch_256(cudaStream_t stream, const struct attention_call *c) {
    int device, most;
    cudaError_t failed = cudaGetDevice(&device);
    if (failed == cudaSuccess)
        failed = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (failed != cudaSuccess) return failed;
    bool fits = sizeof(prefill_shared<prefill_shape<256, 4, 3>>) <= (size_t)most;
    return fits && c->limits.rows > 32 ? launch<256, 4, 3>(stream, c)
                                       : launch<256, 2, 3>(stream, c);
}

cudaError_t attention_prefill_launch(cudaStream_t stream, const struct attention_call *c) {
    if (!attention_is_valid(c)) return cudaErrorInvalidValue;
    switch (c->shape.E) {
    case 64: return launch<64, 4, 4>(stream, c);
    case 80: return launch<80, 4, 4>(stream, c);
    case 96: return launch<96, 4, 4>(stream, c);
    case 128: return launch<128, 4, 4>(stream, c);
    default: return launch_256(stream, c);
    }
}

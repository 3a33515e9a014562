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

// Blocks of 16 MANY rows read keys less often, but need more shared memory than some devices give
// to a block; few rows leave most of such a block idle.
template <int E, int FEW, int MANY, int STAGES>
static cudaError_t launch_fitting(cudaStream_t stream, const struct attention_call *c) {
    int device, most;
    cudaError_t failed = cudaGetDevice(&device);
    if (failed == cudaSuccess)
        failed = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (failed != cudaSuccess) return failed;
    bool fits = sizeof(prefill_shared<prefill_shape<E, MANY, STAGES>>) <= (size_t)most;
    return fits && c->limits.rows > 16 * FEW ? launch<E, MANY, STAGES>(stream, c)
                                             : launch<E, FEW, STAGES>(stream, c);
}

cudaError_t attention_prefill_launch(cudaStream_t stream, const struct attention_call *c) {
    if (!attention_is_valid(c)) return cudaErrorInvalidValue;
    switch (c->shape.E) {
    case 32: return launch<32, 4, 4>(stream, c);
    case 64: return launch<64, 4, 4>(stream, c);
    case 80: return launch<80, 4, 4>(stream, c);
    case 96: return launch<96, 4, 4>(stream, c);
    case 128: return launch_fitting<128, 4, 8, 4>(stream, c);
    default: return launch_fitting<256, 2, 4, 3>(stream, c);
    }
}

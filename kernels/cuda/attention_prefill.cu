// Attention of many rows: launch.
#include "kernels/cuda/attention_prefill.cuh"

template <int E, int TILES, int WARPS, int STAGES>
static cudaError_t launch(cudaStream_t stream, const struct attention_call *c,
                          prefill_shape<E, TILES, WARPS, STAGES>) {
    typedef prefill_shape<E, TILES, WARPS, STAGES> shape;
    size_t shared = sizeof(prefill_shared<shape>);
    cudaError_t failed =
        cudaFuncSetAttribute((const void *)attention_prefill<E, TILES, WARPS, STAGES>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (failed != cudaSuccess) return failed;
    dim3 grid((c->limits.rows + shape::rows - 1) / shape::rows, c->shape.H, c->limits.spans);
    LAUNCH((attention_prefill<E, TILES, WARPS, STAGES>), grid, dim3(shape::threads), shared, stream,
           attention_args_of(c));
    return cudaGetLastError();
}

// The first of the shapes that the device has the shared memory for and the longest span fills by
// more than half; else the last one.
template <class shape>
static cudaError_t launch_first(cudaStream_t stream, const struct attention_call *c, size_t) {
    return launch(stream, c, shape());
}

template <class shape, class next, class... others>
static cudaError_t launch_first(cudaStream_t stream, const struct attention_call *c, size_t most) {
    if (sizeof(prefill_shared<shape>) <= most && c->limits.rows > shape::rows / 2)
        return launch(stream, c, shape());
    return launch_first<next, others...>(stream, c, most);
}

cudaError_t attention_prefill_launch(cudaStream_t stream, const struct attention_call *c) {
    if (!attention_is_valid(c)) return cudaErrorInvalidValue;
    int device, most;
    cudaError_t failed = cudaGetDevice(&device);
    if (failed == cudaSuccess)
        failed = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (failed != cudaSuccess) return failed;
    switch (c->shape.E) {
    case 32: return launch(stream, c, prefill_shape<32, 1, 4, 4>());
    case 64:
        return launch_first<prefill_shape<64, 2, 4, 4>, prefill_shape<64, 1, 4, 4>>(stream, c,
                                                                                    most);
    case 80:
        return launch_first<prefill_shape<80, 2, 4, 3>, prefill_shape<80, 1, 4, 4>>(stream, c,
                                                                                    most);
    case 96:
        return launch_first<prefill_shape<96, 2, 4, 2>, prefill_shape<96, 1, 4, 4>>(stream, c,
                                                                                    most);
    case 128:
        return launch_first<prefill_shape<128, 2, 8, 2>, prefill_shape<128, 1, 8, 4>,
                            prefill_shape<128, 1, 4, 4>>(stream, c, most);
    default:
        return launch_first<prefill_shape<256, 1, 4, 3>, prefill_shape<256, 1, 2, 3>>(stream, c,
                                                                                      most);
    }
}

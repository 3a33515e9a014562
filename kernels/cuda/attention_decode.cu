// Attention of few rows: workspace and launch.
#include "kernels/cuda/attention_decode.cuh"

static uint32_t parts(uint32_t n, uint32_t size) {
    return (n + size - 1) / size;
}

static size_t slots(const struct attention_shape *s, const struct attention_limits *l) {
    return (size_t)l->spans * l->rows * s->H;
}

size_t attention_decode_workspace(const struct attention_shape *s,
                                  const struct attention_limits *l) {
    size_t floats = (size_t)s->E + DECODE_SUMS + l->ranges;
    return slots(s, l) * parts(l->keys, ATTENTION_PAGE) * floats * sizeof(float);
}

template <int E> static cudaError_t launch(cudaStream_t stream, const struct attention_call *c) {
    struct attention_args a = attention_args_of(c);
    struct decode_workspace w = {};
    w.rows = c->limits.rows;
    w.blocks = parts(c->limits.keys, ATTENTION_PAGE);
    w.ranges = c->limits.ranges;
    w.o = (float *)c->workspace;
    w.sums = w.o + slots(&c->shape, &c->limits) * w.blocks * E;
    size_t shared = sizeof(decode_shared<E>);
    cudaError_t failed = cudaFuncSetAttribute((const void *)attention_decode<E>,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (failed != cudaSuccess) return failed;
    dim3 grid(w.blocks, a.G * parts(w.rows * a.group, DECODE_ROWS), c->limits.spans);
    LAUNCH(attention_decode<E>, grid, dim3(DECODE_THREADS), shared, stream, a, w);
    failed = cudaGetLastError();
    if (failed != cudaSuccess) return failed;
    LAUNCH(attention_combine<E>, dim3(w.rows * a.H, c->limits.spans), dim3(parts(E, 32) * 32), 0,
           stream, a, w);
    return cudaGetLastError();
}

cudaError_t attention_decode_launch(cudaStream_t stream, const struct attention_call *c) {
    if (!attention_is_valid(c) || c->workspace == NULL || (uintptr_t)c->workspace % 16 != 0)
        return cudaErrorInvalidValue;
    switch (c->shape.E) {
    case 32: return launch<32>(stream, c);
    case 64: return launch<64>(stream, c);
    case 80: return launch<80>(stream, c);
    case 96: return launch<96>(stream, c);
    case 128: return launch<128>(stream, c);
    default: return launch<256>(stream, c);
    }
}

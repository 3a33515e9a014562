#include "kernels/cuda/kv.h"

#include "kernels/cuda/gpu.h"

#define KV_THREADS 128
#define KV_CHUNK 8 // elements of 16 bytes

// The span that holds a row.
static __device__ const attention_span *span_of(const attention_span *spans, uint32_t count,
                                                uint32_t row) {
    uint32_t low = 0, high = count;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (spans[middle].first_row <= row)
            low = middle;
        else
            high = middle;
    }
    return &spans[low];
}

static __device__ __forceinline__ bool is_finite_pair(uint32_t pair) {
    return (pair & 0x7f80u) != 0x7f80u && (pair & 0x7f800000u) != 0x7f800000u;
}

// A block takes a row: first the keys of all heads, then the values.
static __global__ void __launch_bounds__(KV_THREADS) kv_append_kernel(kv_call c) {
    uint32_t row = blockIdx.x;
    const attention_span *span = span_of(c.spans, c.span_count, row);
    uint32_t position = span->first_position + (row - span->first_row);
    uint8_t *page = const_cast<uint8_t *>(span->pages[position / ATTENTION_PAGE]) + c.page_offset;
    uint32_t chunks = c.G * c.E / KV_CHUNK; // of the keys
    size_t head = (size_t)ATTENTION_PAGE * c.E;
    for (uint32_t i = threadIdx.x; i < 2 * chunks; i += KV_THREADS) {
        bool value = i >= chunks;
        uint32_t element = (value ? i - chunks : i) * KV_CHUNK;
        const uint16_t *from = (const uint16_t *)(value ? c.v : c.k) + (size_t)row * c.ld + element;
        uint4 words = *(const uint4 *)from;
        bool finite = is_finite_pair(words.x) && is_finite_pair(words.y) &&
                      is_finite_pair(words.z) && is_finite_pair(words.w);
        if (!finite) atomicMin(c.bad_row, row);
        uint16_t *to = (uint16_t *)page + (value ? c.G * head : 0) + element / c.E * head +
                       (size_t)(position % ATTENTION_PAGE) * c.E + element % c.E;
        *(uint4 *)to = words;
    }
}

cudaError_t kv_append_launch(cudaStream_t stream, const struct kv_call *c) {
    if (c->E % KV_CHUNK != 0 || c->ld % KV_CHUNK != 0 || c->page_offset % 16 != 0 || c->rows == 0)
        return cudaErrorInvalidValue;
    LAUNCH(kv_append_kernel, c->rows, KV_THREADS, 0, stream, *c);
    return cudaGetLastError();
}

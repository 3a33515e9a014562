// Writing keys and values to their pages (layout: kernels/cuda/attention.h).
#ifndef LACUNA_KERNELS_CUDA_KV_H
#define LACUNA_KERNELS_CUDA_KV_H

#include "kernels/cuda/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kv_call {
    uint32_t G, E;      // E a multiple of 8
    size_t page_offset; // bytes, a multiple of 16
    const struct attention_span
        *spans; // device; together they hold the rows 0 .. rows-1, ascending
    uint32_t span_count, rows;
    const void *k, *v; // bf16 [rows][ld], heads of E elements
    uint32_t ld;       // in elements, a multiple of 8
    uint32_t *bad_row; // device; becomes the least row with a value that is not finite, if that is
                       // less than what it holds
};

cudaError_t kv_append_launch(cudaStream_t stream, const struct kv_call *call);

#ifdef __cplusplus
}
#endif

#endif

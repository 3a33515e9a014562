// Attention over KV pages on the GPU (NUMERICS.md, CUDA).
//
// Two kernels give the same bits: `prefill` for many rows of a sequence, `decode` for few rows over
// many keys, which also sums the shares of watched rows. Which one serves a span is a matter of
// speed; a row's bits depend on its query, its keys and their absolute positions alone.
//
// A page holds ATTENTION_PAGE positions; one layer of it stands at `page_offset`:
// K [G][ATTENTION_PAGE][E] bf16, then V of the same shape. Slots that no row of a call sees may
// hold anything, NaNs too.
#ifndef LACUNA_KERNELS_CUDA_ATTENTION_H
#define LACUNA_KERNELS_CUDA_ATTENTION_H

#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATTENTION_PAGE 512 // positions of a KV page = keys of an absolute block
#define ATTENTION_UNWATCHED UINT32_MAX

// Head sizes that have kernels: 32, 64, 80, 96, 128, 256.
bool attention_supports(uint32_t E);

struct attention_shape {
    uint32_t H, G, E;      // H a multiple of G
    double scale, softcap; // softcap 0: none
    uint32_t window;       // 0: full; else query i sees keys i-window+1 .. i
    size_t page_offset;    // bytes, a multiple of 16
};

// Consecutive rows of one sequence that attend together. In device memory, with all it points to.
struct attention_span {
    uint32_t first_row; // in q and out
    uint32_t rows;      // 0: the span is skipped
    uint32_t first_position;
    uint32_t watch;              // index among the call's watches, or ATTENTION_UNWATCHED
    const uint8_t *const *pages; // the sequence's pages, aligned to 16 bytes
};

// Ranges of keys whose share of the attention is wanted, for some rows of a span: the sum of the
// unrounded weights over a range's visible keys by that over all visible keys. In device memory,
// with all it points to. Watching changes no bit of the output.
struct attention_key_range {
    uint32_t first, end; // absolute positions [first, end); may lie anywhere
};
struct attention_watch {
    const struct attention_key_range *ranges;
    uint32_t count;
    uint32_t first_row, rows; // the rows that are watched, counted within the span
    float *shares;            // [rows][H][count]; +0 for a range without a visible key
};

// What the host knows of the spans: bounds, from which grids and the workspace are made. Spans may
// change on the device from launch to launch (a graph) as long as the bounds hold.
struct attention_limits {
    uint32_t spans;
    uint32_t rows;   // most rows of one span
    uint32_t keys;   // first_position + rows is at most this, in every span
    uint32_t ranges; // most ranges of one watch; 0: nothing is watched
};

struct attention_call {
    struct attention_shape shape;
    struct attention_limits limits;
    const struct attention_span *spans;    // device, [limits.spans]
    const struct attention_watch *watches; // device; not read when limits.ranges is 0
    const void *q;                         // bf16 [rows][ldq], heads of E elements
    uint32_t ldq;                          // in elements, a multiple of 8
    void *out;                             // bf16 [rows][ldout]
    uint32_t ldout;                        // in elements, a multiple of 8
    void *workspace;                       // of `decode`, aligned to 16 bytes
    uint32_t *bad_row; // device; becomes the least row with a score that is not finite, if that is
                       // less than what it holds: set it to UINT32_MAX before
};

// out[r][h][E] for each row of each span, over all keys at positions <= its own (and inside the
// window). Queued on the stream; cudaErrorInvalidValue for a call that breaks the rules above.
// `prefill` watches nothing: rows that are watched belong into spans of a `decode` call.
cudaError_t attention_prefill_launch(cudaStream_t stream, const struct attention_call *call);
cudaError_t attention_decode_launch(cudaStream_t stream, const struct attention_call *call);

// Bytes of workspace that a `decode` call of this shape and these limits needs:
// about spans x rows x H x E x 4 for each block of 512 keys.
size_t attention_decode_workspace(const struct attention_shape *shape,
                                  const struct attention_limits *limits);

#ifdef __cplusplus
}
#endif

#endif

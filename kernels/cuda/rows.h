// Launchers of the GPU's small kernels: rows of activations and stored weights. Bits of all of them
// are those of `bf16-1` (NUMERICS.md).
//
// Shape letters: kernels/cpu/ops.h. Pointers are to device memory unless a comment says otherwise.
// Operands are bf16, their rows `ldout` elements apart; a row is written whole, +0 behind its last
// element. Launches are queued on the stream.
#ifndef LACUNA_KERNELS_CUDA_ROWS_H
#define LACUNA_KERNELS_CUDA_ROWS_H

#include "kernels/quant.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

// Rows of a matrix as they stand in the model file.
struct stored_rows {
    enum tensor_type type;
    uint32_t rows, K;
    size_t row_bytes;
    const uint8_t *data;
};

// x[r] = fp32 row ids[r].
cudaError_t embed_launch(cudaStream_t stream, const struct stored_rows *rows, const int32_t *ids,
                         uint32_t R, float *x);

// to[n] = bf16 row n, `ld` elements apart. *bad becomes 1 when an element is not finite.
cudaError_t unpack_launch(cudaStream_t stream, const struct stored_rows *rows, void *to,
                          uint32_t ld, uint32_t *bad);

// to[i] = from[rows[i]], rows of `row_words` 32-bit words.
cudaError_t gather_launch(cudaStream_t stream, const void *from, uint32_t row_words,
                          const uint32_t *rows, uint32_t count, void *to);

cudaError_t rmsnorm_launch(cudaStream_t stream, const float *x, uint32_t R, uint32_t D,
                           const float *weight, float epsilon, void *out, uint32_t ldout);
// cos_sin[r][rotary/2][2] of positions[r]; `frequencies` [rotary/2] by cpu_rope_frequencies.
cudaError_t angles_launch(cudaStream_t stream, const double *frequencies, uint32_t rotary,
                          const uint32_t *positions, uint32_t R, float *cos_sin);
cudaError_t rope_launch(cudaStream_t stream, const float *x, uint32_t ldx, uint32_t R,
                        uint32_t heads, uint32_t E, uint32_t rotary, bool neighbours,
                        const float *cos_sin, void *out, uint32_t ldout);
cudaError_t round_launch(cudaStream_t stream, const float *x, uint32_t ldx, uint32_t R, uint32_t n,
                         void *out, uint32_t ldout);
cudaError_t gate_launch(cudaStream_t stream, bool gelu, const float *gate_up, uint32_t ld,
                        uint32_t R, uint32_t F, void *out, uint32_t ldout);

// Row by row: index of the largest of n, the lowest on a tie, -1 when one is not finite. The
// workspace is aligned to 8 bytes.
size_t argmax_workspace(uint32_t R, uint32_t n);
cudaError_t argmax_launch(cudaStream_t stream, const float *z, uint32_t R, uint32_t n,
                          void *workspace, int32_t *out);
cudaError_t log_sum_exp_launch(cudaStream_t stream, const float *z, uint32_t R, uint32_t n,
                               float *out);

#ifdef __cplusplus
}
#endif

#endif

// Matrix products by cuBLASLt, which is looked for when the program runs: without it the own
// kernels serve all. Which of its algorithms may be used is decided in kernels/cuda/admit.h.
#ifndef LACUNA_KERNELS_CUDA_LT_H
#define LACUNA_KERNELS_CUDA_LT_H

#include "kernels/cuda/ops.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LT_CANDIDATES 16
#define LT_OUTPUTS 8
#define LT_WORKSPACE_BYTES ((size_t)32 << 20) // of algorithms that may have one

struct lt; // the library, and a handle of it

// y = x W^T of kernels/cuda/gemm.h with neither bias nor residual: ldx and ldw are K up to a
// multiple of GEMM_ROW_ALIGNMENT, ldy is N, N is a multiple of LT_OUTPUTS, and y is aligned to 16
// bytes.
struct lt_shape {
    uint32_t rows, N, K;
};

struct lt_product; // a shape and an algorithm, ready to run

// Version of the library, 130100 for 13.1.0; 0: there is none.
uint64_t lt_installed(void);
// False with `why` filled: there is no such library.
bool lt_open(struct lt **out, char why[256]);
void lt_close(struct lt *lt); // NULL is allowed
uint64_t lt_version(const struct lt *lt);

// What the library offers, first what it thinks fastest: of one sum per output and without
// workspace, or of `any` kind. Returns how many.
int lt_candidates(struct lt *lt, const struct lt_shape *shape, bool any,
                  struct cuda_algorithm out[LT_CANDIDATES]);

// NULL: the library does not take the algorithm for this shape.
struct lt_product *lt_product_open(struct lt *lt, const struct lt_shape *shape,
                                   const struct cuda_algorithm *algorithm);
void lt_product_close(struct lt_product *p); // NULL is allowed
// `workspace` of LT_WORKSPACE_BYTES, or NULL.
cudaError_t lt_product_run(const struct lt_product *p, cudaStream_t stream, const void *x,
                           const void *w, float *y, void *workspace);

#ifdef __cplusplus
}
#endif

#endif

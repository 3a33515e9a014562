// Matrix products of any number of rows, by the own kernels or by what was admitted in their place.
#ifndef LACUNA_KERNELS_CUDA_PRODUCTS_H
#define LACUNA_KERNELS_CUDA_PRODUCTS_H

#include "kernels/cuda/ops.h"
#include "kernels/cuda/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

// Device memory of products in passes of so many rows.
uint64_t products_bytes(uint32_t rows);

int products_open(struct cuda_device *d, enum cuda_products which, uint64_t *version,
                  char why[256]);
void products_close(struct cuda_device *d);
void products_choose(struct cuda_device *d, struct cuda_choice *c);
bool products_recall(struct cuda_device *d, const struct cuda_choice *c);

// gemm_launch, and the same bits.
cudaError_t products_launch(struct cuda_device *d, const struct gemm_call *call);

#ifdef __cplusplus
}
#endif

#endif

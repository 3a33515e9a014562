// Which algorithms of cuBLASLt may stand in for the own kernels: those that give the same bits. The
// library says little of how it adds, and some say "no split of K" and split it, so each is run on
// probes that show it (kernels/cuda/probe.h) and compared with the own kernels in every bit. Of
// those that are equal the fastest is taken, if it is faster than the own kernels.
//
// This is done for fixed numbers of rows, never for that of a call: else the choice, and what the
// library makes of it, would hang on how many rows happen to come together.
#ifndef LACUNA_KERNELS_CUDA_ADMIT_H
#define LACUNA_KERNELS_CUDA_ADMIT_H

#include "kernels/cuda/ops.h"
#include "kernels/cuda/lt.h"

#ifdef __cplusplus
extern "C" {
#endif

// Fills c but for its shape. Waits. Without memory for the probes the own kernels serve.
void admit_choose(struct cuda_device *d, struct lt *lt, struct cuda_choice *c);

// Whether an algorithm that was admitted before still gives the own kernels' bits. Waits.
bool admit_holds(struct cuda_device *d, struct lt *lt, const struct cuda_choice *c);

#ifdef __cplusplus
}
#endif

#endif

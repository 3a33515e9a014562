// The arithmetic of tensor cores on one 16x8x16 tile, bit for bit as it was measured on hardware by
// MMA-Sim (arXiv 2511.10909).
//
// One step adds `terms` products to c at once: each of the terms + 1 values is written over the
// largest exponent among them (of a product: the sum of its factors' exponents, its significand
// lies in [0, 4)), cut towards zero to `bits` fractional bits, and added exactly; the sum is cut
// towards zero to fp32. Subnormal numbers count in full, zeros take part with the least exponent,
// a sum of zero is +0. Capability 9.0: one step of 16 with 25 bits; 8.x: two steps of 8 with 24.
#ifndef LACUNA_KERNELS_SIMT_MMA_H
#define LACUNA_KERNELS_SIMT_MMA_H

#include <stdint.h>

namespace simt {

struct mma_tile {
    uint16_t a[16][16], b[16][8]; // bf16, [row][k] and [k][column]
    float c[16][8];               // in: the addend; out: the result
};
void mma_multiply(mma_tile *t, int capability);

} // namespace simt

#endif

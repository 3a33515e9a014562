// What sampling does with one logit, on the CPU and, compiled by nvcc, on the GPU (NUMERICS.md,
// "Choice of a token"): logits in descending order, ties by ascending id; weights
// exp((z - first) / temperature), summed in that order; top_p x total ends the head that is kept
// ("nucleus", Holtzman et al. 2020), u x the head's sum is what the running sum of the chosen token
// is the first to exceed.
//
// The sums of the head are the first of those of the whole order. The chosen token always is one of
// the head: u <= 1 - 2^-53, so that its product with the head's sum lies below that sum.
#ifndef LACUNA_KERNELS_SAMPLE_H
#define LACUNA_KERNELS_SAMPLE_H

#include "kernels/draw.h"
#include "kernels/exp.h"

// Ascending keys are descending logits. Both zeros, and subnormals as in every op, are one value.
NUM_FUNCTION uint32_t sample_key(float z) {
    uint32_t bits = num_bits(z);
    if ((bits & 0x7f800000u) == 0) bits = 0;
    return (bits & 0x80000000u) != 0 ? bits : bits ^ 0x7fffffffu;
}

NUM_FUNCTION float sample_logit(uint32_t key) {
    return num_float((key & 0x80000000u) != 0 ? key : key ^ 0x7fffffffu);
}

// The last key that may count. A weight below 2^-54 moves no sum, for all sums are 1 or more; so
// its token is never chosen. exp(-38) < 2^-54.8, and a float below the one nearest to y lies below
// y: 38 temperatures below `first`, and one for the rounding of y to a double.
NUM_FUNCTION uint32_t sample_last_key(float first, double temperature) {
    return sample_key((float)((double)first - 39.0 * temperature));
}

// Of a logit whose key is not behind the last one.
NUM_FUNCTION double sample_weight(uint32_t key, float first, double temperature) {
    return exp_of(((double)sample_logit(key) - (double)first) / temperature);
}

#endif

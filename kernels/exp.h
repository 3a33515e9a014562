// exp in double by the program's own polynomial, for sampling weights and the frequencies of the
// rotation; the same on the CPU and, compiled by nvcc, on the GPU: no operation fuses, each is
// rounded by IEEE 754.
#ifndef LACUNA_KERNELS_EXP_H
#define LACUNA_KERNELS_EXP_H

#include "kernels/numerics.h"

#define EXP_ROUND 0x1.8p52 // adding and subtracting it rounds to an integer, ties to even
#define EXP_LOG2_E 0x1.71547652b82fep+0
#define EXP_LN_2_HIGH 0x1.62e42feep-1 // 32 bits, so that n times it is exact
#define EXP_LN_2_LOW 0x1.a39ef35793c76p-33

// exp(r) for |r| <= 0.35: 1/k! for k = 0 .. 14; the Taylor polynomial leaves errors below 1e-17.
NUM_FUNCTION double exp_reduced(double r) {
    double p = 0x1.93974a8c07c9dp-37;
    p = p * r + 0x1.6124613a86d09p-33;
    p = p * r + 0x1.1eed8eff8d898p-29;
    p = p * r + 0x1.ae64567f544e4p-26;
    p = p * r + 0x1.27e4fb7789f5cp-22;
    p = p * r + 0x1.71de3a556c734p-19;
    p = p * r + 0x1.a01a01a01a01ap-16;
    p = p * r + 0x1.a01a01a01a01ap-13;
    p = p * r + 0x1.6c16c16c16c17p-10;
    p = p * r + 0x1.1111111111111p-7;
    p = p * r + 0x1.5555555555555p-5;
    p = p * r + 0x1.5555555555555p-3;
    p = p * r + 0x1p-1;
    p = p * r + 0x1p+0;
    return p * r + 0x1p+0;
}

// The double of these bits.
NUM_FUNCTION double exp_double(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

NUM_FUNCTION uint64_t exp_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// exp(x) for -700 <= x <= 0, within 2.5 x 2^-53 of it; exp(0) = 1.
NUM_FUNCTION double exp_of(double x) {
    double shifted = x * EXP_LOG2_E + EXP_ROUND, n = shifted - EXP_ROUND;
    double r = (x - n * EXP_LN_2_HIGH) - n * EXP_LN_2_LOW;
    return exp_reduced(r) * exp_double((exp_bits(shifted) + 1023) << 52); // the low bits are n's
}

#endif

// Cosine and sine of the rotation's angles, in double and by the program's own polynomials, the
// same on the CPU and, compiled by nvcc, on the GPU: no operation fuses, each is rounded by IEEE
// 754.
#ifndef LACUNA_KERNELS_ANGLES_H
#define LACUNA_KERNELS_ANGLES_H

#include "kernels/numerics.h"

#define ANGLE_ROUND 0x1.8p52 // adding and subtracting it rounds to an integer, ties to even

// sin r = r - r z (S3 - z (S5 - ...)), cos r = 1 - z (C2 - z (C4 - ...)) with z = r^2: 1/k!
#define ANGLE_C2 0x1p-1
#define ANGLE_S3 0x1.5555555555555p-3
#define ANGLE_C4 0x1.5555555555555p-5
#define ANGLE_S5 0x1.1111111111111p-7
#define ANGLE_C6 0x1.6c16c16c16c17p-10
#define ANGLE_S7 0x1.a01a01a01a01ap-13
#define ANGLE_C8 0x1.a01a01a01a01ap-16
#define ANGLE_S9 0x1.71de3a556c734p-19
#define ANGLE_C10 0x1.27e4fb7789f5cp-22
#define ANGLE_S11 0x1.ae64567f544e4p-26
#define ANGLE_C12 0x1.1eed8eff8d898p-29
#define ANGLE_S13 0x1.6124613a86d09p-33
#define ANGLE_C14 0x1.93974a8c07c9dp-37
#define ANGLE_S15 0x1.ae7f3e733b81fp-41
#define ANGLE_C16 0x1.ae7f3e733b81fp-45
#define ANGLE_S17 0x1.952c77030ad4ap-49
#define ANGLE_C18 0x1.6827863b97d97p-53

NUM_FUNCTION double angle_sine_tail(double z) {
    double s = ANGLE_S17;
    s = ANGLE_S15 - s * z;
    s = ANGLE_S13 - s * z;
    s = ANGLE_S11 - s * z;
    s = ANGLE_S9 - s * z;
    s = ANGLE_S7 - s * z;
    s = ANGLE_S5 - s * z;
    return ANGLE_S3 - s * z;
}

NUM_FUNCTION double angle_cosine_tail(double z) {
    double c = ANGLE_C18;
    c = ANGLE_C16 - c * z;
    c = ANGLE_C14 - c * z;
    c = ANGLE_C12 - c * z;
    c = ANGLE_C10 - c * z;
    c = ANGLE_C8 - c * z;
    c = ANGLE_C6 - c * z;
    c = ANGLE_C4 - c * z;
    return ANGLE_C2 - c * z;
}

// cos and sin of x, 0 <= x < 2^33: x = n pi/2 + r with pi/2 in pieces of 21 bits, so that n times a
// piece is exact and the subtractions lose nothing but the last rounding.
NUM_FUNCTION void angle_cos_sin(double x, double *cosine, double *sine) {
    double n = (x * 0x1.45f306dc9c883p-1 + ANGLE_ROUND) - ANGLE_ROUND;
    double r = x - n * 0x1.921fbp+0;
    r = r - n * 0x1.5110ap-22;
    r = r - n * 0x1.4611ap-42;
    r = r - n * 0x1.898cc51701b84p-64;
    double z = r * r;
    double sin_r = r - r * (z * angle_sine_tail(z)), cos_r = 1.0 - z * angle_cosine_tail(z);
    uint32_t quarter = (uint32_t)((uint64_t)n % 4);
    *cosine = quarter == 0 ? cos_r : quarter == 1 ? -sin_r : quarter == 2 ? -cos_r : sin_r;
    *sine = quarter == 0 ? sin_r : quarter == 1 ? cos_r : quarter == 2 ? -sin_r : -cos_r;
}

#endif

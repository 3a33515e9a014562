// Double-precision functions of the program's own: angles of the rotation and sampling weights. No
// fused operations, so every processor gives the same bits.
#include "kernels/angles.h"
#include "kernels/cpu/ops.h"

#include <assert.h>
#include <string.h>

// 1/k! for k = 0 .. 14; the Taylor polynomial on the reduced range leaves errors below 1e-17.
static const double inverse_factorial[] = {
    0x1p+0,
    0x1p+0,
    0x1p-1,
    0x1.5555555555555p-3,
    0x1.5555555555555p-5,
    0x1.1111111111111p-7,
    0x1.6c16c16c16c17p-10,
    0x1.a01a01a01a01ap-13,
    0x1.a01a01a01a01ap-16,
    0x1.71de3a556c734p-19,
    0x1.27e4fb7789f5cp-22,
    0x1.ae64567f544e4p-26,
    0x1.1eed8eff8d898p-29,
    0x1.6124613a86d09p-33,
    0x1.93974a8c07c9dp-37,
};

#define LN_2 0x1.62e42fefa39efp-1
#define LN_2_HIGH 0x1.62e42feep-1 // 32 bits, so that n times it is exact
#define LN_2_LOW 0x1.a39ef35793c76p-33
#define LOG2_E 0x1.71547652b82fep+0
#define ROUND 0x1.8p52 // adding and subtracting it rounds to an integer, ties to even

static double power_of_two(int64_t n) {
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// exp(r) for |r| <= 0.35.
static double exp_reduced(double r) {
    double p = inverse_factorial[14];
    for (int k = 13; k >= 0; k--) p = p * r + inverse_factorial[k];
    return p;
}

double cpu_exp(double x) {
    if (x < -708.0) return 0.0;
    assert(x <= 709.0);
    double n = (x * LOG2_E + ROUND) - ROUND;
    double r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    // Two factors: n may be 1023 or 1024 at the upper end.
    int64_t half = (int64_t)n / 2;
    return exp_reduced(r) * power_of_two(half) * power_of_two((int64_t)n - half);
}

// 2^x for |x| < 1000.
static double exp2_double(double x) {
    double n = (x + ROUND) - ROUND;
    return exp_reduced((x - n) * LN_2) * power_of_two((int64_t)n);
}

// log2 of a normal x > 0: x = 2^e m, m in [1, 2) brought to [sqrt(1/2), sqrt(2)); then
// ln m = 2 (s + s^3/3 + s^5/5 + ...), s = (m - 1) / (m + 1), |s| <= 0.172.
static double log2_double(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t e = (int64_t)(bits >> 52) - 1023;
    double m = x * power_of_two(-e);
    if (m > 0x1.6a09e667f3bcdp+0) {
        m = m * 0.5;
        e++;
    }
    double s = (m - 1.0) / (m + 1.0), z = s * s, sum = 0.0;
    for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / (double)k) * z;
    double ln = 2.0 * s + 2.0 * s * sum;
    return (double)e + ln * LOG2_E;
}

static double frequency_of(double log2_base, uint32_t rotary, const float *factor, uint32_t i) {
    double frequency = exp2_double(-2.0 * (double)i / (double)rotary * log2_base);
    return factor != NULL ? frequency / (double)factor[i] : frequency;
}

void cpu_rope_frequencies(double base, uint32_t rotary, const float *factor, double *frequency) {
    assert(base > 0 && rotary % 2 == 0);
    double log2_base = log2_double(base);
    for (uint32_t i = 0; i < rotary / 2; i++)
        frequency[i] = frequency_of(log2_base, rotary, factor, i);
}

void cpu_rope_angles(double base, uint32_t rotary, const float *factor, uint32_t position,
                     float *cos_sin) {
    assert(base > 0 && rotary % 2 == 0);
    double log2_base = log2_double(base);
    for (uint32_t i = 0; i < rotary / 2; i++) {
        double cosine, sine;
        angle_cos_sin((double)position * frequency_of(log2_base, rotary, factor, i), &cosine,
                      &sine);
        cos_sin[2 * i] = (float)cosine;
        cos_sin[2 * i + 1] = (float)sine;
    }
}

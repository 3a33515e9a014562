// Angles of the rotation by the program's own functions in double. No fused operations, so every
// processor gives the same bits.
#include "kernels/angles.h"
#include "kernels/cpu/ops.h"
#include "kernels/exp.h"

#include <assert.h>

#define LN_2 0x1.62e42fefa39efp-1

static double power_of_two(int64_t n) {
    return exp_double((uint64_t)(n + 1023) << 52);
}

// 2^x for |x| < 1000.
static double exp2_double(double x) {
    double n = (x + EXP_ROUND) - EXP_ROUND;
    return exp_reduced((x - n) * LN_2) * power_of_two((int64_t)n);
}

// log2 of a normal x > 0: x = 2^e m, m in [1, 2) brought to [sqrt(1/2), sqrt(2)); then
// ln m = 2 (s + s^3/3 + s^5/5 + ...), s = (m - 1) / (m + 1), |s| <= 0.172.
static double log2_double(double x) {
    int64_t e = (int64_t)(exp_bits(x) >> 52) - 1023;
    double m = x * power_of_two(-e);
    if (m > 0x1.6a09e667f3bcdp+0) {
        m = m * 0.5;
        e++;
    }
    double s = (m - 1.0) / (m + 1.0), z = s * s, sum = 0.0;
    for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / (double)k) * z;
    double ln = 2.0 * s + 2.0 * s * sum;
    return (double)e + ln * EXP_LOG2_E;
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

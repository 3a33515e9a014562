#include "engine/rope.h"

#include <assert.h>

static double power(double x, uint32_t n) {
    double product = 1;
    for (; n; n >>= 1, x *= x)
        if (n & 1) product *= x;
    return product;
}

// The n-th root of x >= 1 by Newton's method. It begins above the root, from where the method falls
// towards it steadily; when a step no longer falls, rounding has been reached.
static double root(double x, uint32_t n) {
    double r = 1 + (x - 1) / n;
    for (;;) {
        double next = r * (1 - (1 - x / power(r, n)) / n);
        if (!(next < r)) return r;
        r = next;
    }
}

void rope_frequencies(double base, uint32_t rotary, double *out) {
    assert(base > 1 && rotary >= 2);
    uint32_t pairs = rotary / 2;
    double step = root(base, pairs);
    for (uint32_t i = 0; i < pairs; i++) out[i] = 1 / power(step, i);
}

void rope_factors_linear(double factor, uint32_t rotary, float *out) {
    for (uint32_t i = 0; i < rotary / 2; i++) out[i] = (float)factor;
}

void rope_factors_llama3(const struct rope_llama3 *rule, double base, uint32_t rotary, float *out) {
    const double two_pi = 6.283185307179586476925286766559;
    assert(base > 1 && rule->high > rule->low && rotary >= 2);
    double step = root(base, rotary / 2);
    for (uint32_t i = 0; i < rotary / 2; i++) {
        double turns = rule->original / (two_pi * power(step, i)); // original / wavelength
        double s = (turns - rule->low) / (rule->high - rule->low);
        double kept = turns > rule->high  ? 1
                      : turns < rule->low ? 1 / rule->factor
                                          : (1 - s) / rule->factor + s;
        out[i] = (float)(1 / kept);
    }
}

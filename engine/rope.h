// Factors by which a model's scaling divides the rotation's frequencies base^(-2i/d), for pairs
// i = 0 .. rotary/2-1. The angles themselves are cpu_rope_angles' work. IEEE arithmetic and own
// roots only, so that the factors are equal on every platform.
#ifndef LACUNA_ENGINE_ROPE_H
#define LACUNA_ENGINE_ROPE_H

#include <stdint.h>

// base^(-2i/rotary) for each pair, within 1e-13 relative. base > 1.
void rope_frequencies(double base, uint32_t rotary, double *out);

// Positions are stretched evenly (Chen et al. 2023, "Extending context window ... via positional
// interpolation"): every frequency is divided by `factor`.
void rope_factors_linear(double factor, uint32_t rotary, float *out);

// Llama 3.1's rule: wavelengths (2 pi / frequency) below original/high keep their frequency, those
// above original/low are divided by `factor`, and between the two a blend is used, with
// s = (original/wavelength - low) / (high - low): frequency x ((1 - s)/factor + s).
struct rope_llama3 {
    double factor, low, high, original; // original: context in tokens before the extension
};
void rope_factors_llama3(const struct rope_llama3 *rule, double base, uint32_t rotary, float *out);

#endif

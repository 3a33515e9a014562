// A token drawn from a row of logits (kernels/sample.h). One thread; FTZ and DAZ as they are.
#ifndef LACUNA_KERNELS_CPU_SAMPLE_H
#define LACUNA_KERNELS_CPU_SAMPLE_H

#include "kernels/draw.h"

#include <stddef.h>
#include <stdint.h>

// Working memory for rows of n logits, aligned to 8 bytes.
size_t cpu_sample_bytes(uint32_t n);

// n finite logits, of which z[largest] is one of the largest; a temperature above 0.
uint32_t cpu_sample(const float *z, uint32_t n, uint32_t largest, const struct token_draw *draw,
                    void *memory);

#endif

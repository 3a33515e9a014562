// What the machine can do at most, measured: the yardstick of `lacuna bench`.
#ifndef LACUNA_KERNELS_CPU_CEILING_H
#define LACUNA_KERNELS_CPU_CEILING_H

#include "kernels/cpu/ops.h"

// Multiply-adds a second (x2 = FLOP/s) that `threads` threads reach on registers alone, with the
// instruction that the table's matrix product is made of. 0: this table has no measure.
double cpu_ceiling_fma_per_s(const struct cpu_ops *table, int threads);

// Bytes a second that `threads` threads read from `bytes` of memory (a multiple of 64, aligned).
double cpu_ceiling_read_per_s(const void *memory, size_t bytes, int threads);

#endif

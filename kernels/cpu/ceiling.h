// What the machine can do at most, measured: the yardsticks of `lacuna bench`. A measurement is
// short, so that it can be taken again beside every other one; of several tries the best counts,
// because whatever else runs can only take away.
#ifndef LACUNA_KERNELS_CPU_CEILING_H
#define LACUNA_KERNELS_CPU_CEILING_H

#include "kernels/cpu/ops.h"
#include "kernels/cpu/team.h"

// Multiply-adds a second (x2 = FLOP/s) that `threads` threads of the team reach on registers alone,
// with the instruction that the table's matrix product is made of. 0: this table has no measure.
double cpu_ceiling_fma_per_s(const struct cpu_ops *table, struct team *team, int threads);

// Bytes a second that `threads` threads read from `bytes` of memory (aligned to 64), each its own
// part, the best of the ways below: which one serves a processor's prefetchers best is not known
// beforehand. 0 when there is less than a cache line for each thread.
double cpu_ceiling_read_per_s(const void *memory, size_t bytes, struct team *team, int threads);

// Reads every word once by way 0 .. CPU_READ_WAYS - 1, in several streams, as matrix products read
// panels side by side, and with or without prefetching. Returns all 8-byte words combined by
// exclusive or. `bytes` is a multiple of 64.
#define CPU_READ_WAYS 8
uint64_t cpu_ceiling_read(int way, const void *memory, size_t bytes);

#endif

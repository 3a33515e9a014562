// The op tables that are compiled in, and what kernels/cpu/find.c asks before it hands one out.
#ifndef LACUNA_KERNELS_CPU_TABLES_H
#define LACUNA_KERNELS_CPU_TABLES_H

#include "kernels/cpu/ops.h"

extern const struct cpu_ops cpu_ops_c, cpu_ops_c_f32;
#if defined(__x86_64__)
extern const struct cpu_ops cpu_ops_avx2, cpu_ops_avx2_f32, cpu_ops_avx512f, cpu_ops_avx512_bf16;
#endif

// Runs both tables on the same random inputs, subnormal and huge ones among them. NULL when all
// results are equal bit for bit, else what differs. The processor must be able to run both.
const char *cpu_probe(const struct cpu_ops *table, const struct cpu_ops *c);

// Seconds of a small matrix product. Which instructions are fastest differs between processors that
// have all of them (vdpbf16ps has twice the rate of fp32 FMA on some, half of it on others); which
// table is taken changes no bit.
double cpu_probe_seconds(const struct cpu_ops *table);

#endif

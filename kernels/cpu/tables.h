// The op tables that are compiled in; kernels/cpu/find.c chooses among them.
#ifndef LACUNA_KERNELS_CPU_TABLES_H
#define LACUNA_KERNELS_CPU_TABLES_H

#include "kernels/cpu/ops.h"

extern const struct cpu_ops cpu_ops_c, cpu_ops_c_f32;
#if defined(__x86_64__)
extern const struct cpu_ops cpu_ops_avx2, cpu_ops_avx2_f32, cpu_ops_avx512f, cpu_ops_avx512_bf16;
#endif

#endif

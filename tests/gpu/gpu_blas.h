// cuBLASLt's speed, where the machine has the library: it is too large to be carried.
#ifndef LACUNA_TESTS_GPU_BLAS_H
#define LACUNA_TESTS_GPU_BLAS_H

// Of products of large square matrices in bf16 with fp32 sums, whatever algorithm it takes; 0, and
// why, when it is not there or fails.
double gpu_blas_flop_per_s(char why[256]);

#endif

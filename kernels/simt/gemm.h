// Matrix products behind the cuBLASLt stand-in, in the emulated tensor cores' arithmetic.
#ifndef LACUNA_KERNELS_SIMT_GEMM_H
#define LACUNA_KERNELS_SIMT_GEMM_H

#include <stddef.h>
#include <stdint.h>

namespace simt {

// How the products of one element are added.
enum summation {
    SUM_SPLIT,  // two halves of k apart, and the library says so
    SUM_SLICED, // even and odd blocks of 16 apart, of which the library says nothing
    SUM_CHAIN,  // blocks of 16 in ascending order: the engine's own
    SUM_SHORT,  // the same, but the last bits of a normal result are zeros
    SUMMATIONS
};

struct matrix { // column after column, `stride` elements apart
    const uint16_t *values;
    size_t columns, stride;
    bool k_contiguous; // its columns run along k
};

// d = alpha a b + beta c, a m x k, b k x n; c and d are fp32 or bf16, m rows.
struct gemm {
    size_t m, n, k;
    struct matrix a, b;
    const void *c;
    void *d;
    size_t c_stride, d_stride;
    bool fp32;
    float alpha, beta;
    enum summation order;
};
void gemm_run(const gemm *g);

} // namespace simt

#endif

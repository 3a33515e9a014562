// The fragments of mma.m16n8k16 and ldmatrix: which lane holds which elements (PTX manual).
#include "kernels/simt/matrix.h"
#include "kernels/simt/block.h"
#include "kernels/simt/mma.h"
#include "kernels/simt/report.h"
#include "kernels/simt/simt.h"

namespace simt {

// Lane l of the warp: row l / 4 and column pair l % 4 of an 8x8 quarter. The quarters of A stand in
// the order (rows 0-7, columns 0-7), (8-15, 0-7), (0-7, 8-15), (8-15, 8-15).
static void multiply(unsigned, const void *const *in, void *const *) {
    mma_tile t;
    for (int lane = 0; lane < WARP; lane++) {
        const mma_lane *m = (const mma_lane *)in[lane];
        int row = lane / 4, column = lane % 4 * 2;
        for (int q = 0; q < 4; q++) {
            uint16_t *a = &t.a[row + q % 2 * 8][column + q / 2 * 8];
            a[0] = (uint16_t)m->a[q];
            a[1] = (uint16_t)(m->a[q] >> 16);
        }
        for (int q = 0; q < 2; q++) {
            t.b[column + q * 8][row] = (uint16_t)m->b[q];
            t.b[column + q * 8 + 1][row] = (uint16_t)(m->b[q] >> 16);
        }
        for (int q = 0; q < 4; q++) t.c[row + q / 2 * 8][column + q % 2] = m->c[q];
    }
    mma_multiply(&t, simt_get_options().capability);
    for (int lane = 0; lane < WARP; lane++) {
        float *c = ((const mma_lane *)in[lane])->c;
        for (int q = 0; q < 4; q++) c[q] = t.c[lane / 4 + q / 2 * 8][lane % 4 * 2 + q % 2];
    }
}

void mma_of_warp(const site &at, const mma_lane *lane) {
    warp_collective(at, {multiply, true, false}, ALL_LANES, lane, nullptr);
}

template <bool transposed>
static void hand_out_addresses(unsigned, const void *const *in, void *const *out) {
    for (int lane = 0; lane < WARP; lane++)
        for (int i = 0; i < 4; i++)
            for (int e = 0; e < 2; e++) {
                int row = lane / 4, column = lane % 4 * 2 + e;
                if (transposed) std::swap(row, column);
                ((ldmatrix_lane *)out[lane])->element[i][e] =
                    (const uint16_t *)in[8 * i + row] + column;
            }
}

void ldmatrix_addresses(const site &at, bool transposed, const void *row, ldmatrix_lane *lane) {
    if ((uintptr_t)row % 16 != 0)
        fail("%s at %s:%d: the address of a row is not 16-byte aligned", at.what, at.file, at.line);
    collective_function *function =
        transposed ? hand_out_addresses<true> : hand_out_addresses<false>;
    warp_collective(at, {function, true, false}, ALL_LANES, row, lane);
}

} // namespace simt

// See gemm.h. Operands are looked at once, at the door, and packed with zeros up to whole tiles.
#include "kernels/simt/gemm.h"
#include "kernels/simt/mma.h"
#include "kernels/simt/report.h"
#include "kernels/simt/runtime.h"
#include "kernels/simt/simt.h"

#include <cuda_bf16.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace simt {

enum : size_t { TILE_M = 16, TILE_N = 8, TILE_K = 16 };

// Rows with k side by side.
struct packed {
    size_t width;
    std::vector<uint16_t> values;
    const uint16_t *row(size_t i) const {
        return &values[i * width];
    }
};

static size_t whole(size_t n, size_t tile) {
    return (n + tile - 1) / tile * tile;
}

static void check_operand(const void *p, size_t columns, size_t rows, size_t stride,
                          size_t element) {
    if (columns > 0 && !device_holds(p, ((columns - 1) * stride + rows) * element))
        fail("a matrix of %zu x %zu at %p is not wholly in device memory", rows, columns, p);
}

static packed pack(const matrix &x, size_t rows, size_t k, size_t tile) {
    packed p = {whole(k, TILE_K), {}};
    p.values.resize(whole(rows, tile) * p.width);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < k; j++)
            p.values[i * p.width + j] =
                x.values[x.k_contiguous ? i * x.stride + j : j * x.stride + i];
    return p;
}

// tile += the blocks of 16 from `first` to `end`, every `step`-th.
static void chain(mma_tile *t, const packed &a, const packed &b, size_t row, size_t column,
                  size_t first, size_t end, size_t step) {
    int capability = simt_get_options().capability;
    memset(t->c, 0, sizeof t->c);
    for (size_t k = first * TILE_K; k < end * TILE_K; k += step * TILE_K) {
        for (size_t i = 0; i < TILE_M; i++) memcpy(t->a[i], a.row(row + i) + k, sizeof t->a[i]);
        for (size_t j = 0; j < TILE_N; j++)
            for (size_t i = 0; i < TILE_K; i++) t->b[i][j] = b.row(column + j)[k + i];
        mma_multiply(t, capability);
    }
}

static void sum_tile(mma_tile *t, const gemm *g, const packed &a, const packed &b, size_t row,
                     size_t column) {
    size_t blocks = a.width / TILE_K, half = (blocks + 1) / 2;
    mma_tile second;
    switch (g->order) {
    case SUM_SPLIT:
        chain(t, a, b, row, column, 0, half, 1);
        chain(&second, a, b, row, column, half, blocks, 1);
        break;
    case SUM_SLICED:
        chain(t, a, b, row, column, 0, blocks, 2);
        chain(&second, a, b, row, column, 1, blocks, 2);
        break;
    default: chain(t, a, b, row, column, 0, blocks, 1); return;
    }
    for (size_t i = 0; i < TILE_M; i++)
        for (size_t j = 0; j < TILE_N; j++) t->c[i][j] += second.c[i][j];
}

static float read(const void *p, bool fp32, size_t i) {
    return fp32 ? ((const float *)p)[i] : __bfloat162float(((const __nv_bfloat16 *)p)[i]);
}

static float shortened(float x) {
    uint32_t bits;
    if (!std::isnormal(x)) return x;
    memcpy(&bits, &x, sizeof bits);
    bits &= ~0xfu;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void store_tile(const mma_tile *t, const gemm *g, size_t row, size_t column) {
    for (size_t i = row; i < std::min(row + TILE_M, g->m); i++)
        for (size_t j = column; j < std::min(column + TILE_N, g->n); j++) {
            float x = g->alpha * t->c[i - row][j - column];
            if (g->order == SUM_SHORT) x = shortened(x);
            if (g->beta != 0.0f) x += g->beta * read(g->c, g->fp32, j * g->c_stride + i);
            size_t at = j * g->d_stride + i;
            if (g->fp32)
                ((float *)g->d)[at] = x;
            else
                ((__nv_bfloat16 *)g->d)[at] = __float2bfloat16(x);
        }
}

void gemm_run(const gemm *g) {
    size_t element = g->fp32 ? sizeof(float) : sizeof(uint16_t);
    check_operand(g->a.values, g->a.columns, g->a.k_contiguous ? g->k : g->m, g->a.stride, 2);
    check_operand(g->b.values, g->b.columns, g->b.k_contiguous ? g->k : g->n, g->b.stride, 2);
    check_operand(g->d, g->n, g->m, g->d_stride, element);
    if (g->beta != 0.0f) check_operand(g->c, g->n, g->m, g->c_stride, element);
    packed a = pack(g->a, g->m, g->k, TILE_M), b = pack(g->b, g->n, g->k, TILE_N);
    for (size_t row = 0; row < g->m; row += TILE_M)
        for (size_t column = 0; column < g->n; column += TILE_N) {
            mma_tile t;
            sum_tile(&t, g, a, b, row, column);
            store_tile(&t, g, row, column);
        }
}

} // namespace simt

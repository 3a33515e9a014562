// What the kernels of matrix products share: operands on their way in, sums on their way out.
#ifndef LACUNA_KERNELS_CUDA_GEMM_OPERANDS_CUH
#define LACUNA_KERNELS_CUDA_GEMM_OPERANDS_CUH

#include "kernels/cuda/tile.cuh"

struct gemm_operands {
    const uint16_t *x, *w;
    uint32_t ldx, ldw, R, N;
    uint32_t depth; // K up to the next multiple of 16
};

struct gemm_result {
    float *y;
    uint32_t ldy, R, N;
    const float *bias;
    bool add;
    bool pairs; // two neighbouring outputs may be written at once
};

// ROWS rows of CHUNKS chunks each from (first, k) of a matrix of `rows` rows and `depth` elements a
// row; zeros beyond its edges.
template <int ROWS, int CHUNKS, int THREADS>
static __device__ __forceinline__ void gemm_load_rows(uint16_t *tile, const uint16_t *from,
                                                      uint32_t ld, uint32_t first, uint32_t rows,
                                                      uint32_t k, uint32_t depth) {
    static_assert(THREADS % CHUNKS == 0 && ROWS * CHUNKS % THREADS == 0, "whole rounds");
    const int chunk = (int)threadIdx.x % CHUNKS, start = (int)threadIdx.x / CHUNKS;
    const bool inside = k + chunk * TILE_CHUNK < depth;
    const uint16_t *source = from + (size_t)(first + start) * ld + k + chunk * TILE_CHUNK;
#pragma unroll
    for (int i = 0; i < ROWS * CHUNKS / THREADS; i++) {
        int row = start + i * (THREADS / CHUNKS);
        bool valid = inside && first + row < rows;
        cp_async16(tile_at<CHUNKS>(tile, row, chunk), valid ? source : from, valid);
        source += (size_t)(THREADS / CHUNKS) * ld;
    }
}

static __device__ __forceinline__ void gemm_store(const struct gemm_result &r, uint32_t row,
                                                  uint32_t output, float y) {
    if (row >= r.R || output >= r.N) return;
    float *at = r.y + (size_t)row * r.ldy + output;
    if (r.bias != NULL) y += r.bias[output];
    if (r.add) y += *at;
    *at = y;
}

// Outputs `output`, which is even, and the next one.
static __device__ __forceinline__ void gemm_store_pair(const struct gemm_result &r, uint32_t row,
                                                       uint32_t output, float y0, float y1) {
    if (!r.pairs) {
        gemm_store(r, row, output, y0);
        gemm_store(r, row, output + 1, y1);
        return;
    }
    if (row >= r.R || output >= r.N) return;
    float2 *at = (float2 *)(r.y + (size_t)row * r.ldy + output), y = make_float2(y0, y1);
    if (r.bias != NULL) y = make_float2(y.x + r.bias[output], y.y + r.bias[output + 1]);
    if (r.add) {
        float2 residual = *at;
        y = make_float2(y.x + residual.x, y.y + residual.y);
    }
    *at = y;
}

#endif

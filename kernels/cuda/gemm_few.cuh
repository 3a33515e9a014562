// Matrix products of few rows, where reading the weights is the work. Weights are the operand of 16
// rows: each warp computes 16 outputs of all rows of x, and the stages on their way keep the memory
// busy.
#ifndef LACUNA_KERNELS_CUDA_GEMM_FEW_CUH
#define LACUNA_KERNELS_CUDA_GEMM_FEW_CUH

#include "kernels/cuda/gemm_operands.cuh"

template <int ROWS, int WARPS, int STAGES> struct gemm_few_shape {
    static constexpr int threads = 32 * WARPS, rows = ROWS, outputs = 16 * WARPS;
    static constexpr int chunks = 16, depth = chunks * TILE_CHUNK; // of k in a stage
    static constexpr int stages = STAGES;
    static constexpr int w_elements = outputs * depth, stage_elements = (outputs + rows) * depth;
    static constexpr size_t shared_bytes = sizeof(uint16_t) * stages * stage_elements;
};

template <class shape>
static __device__ __forceinline__ void gemm_few_load(const struct gemm_operands &o,
                                                     uint16_t *shared, uint32_t stage) {
    uint16_t *w = shared + stage % shape::stages * shape::stage_elements;
    uint32_t k = stage * shape::depth;
    gemm_load_rows<shape::outputs, shape::chunks, shape::threads>(
        w, o.w, o.ldw, blockIdx.x * shape::outputs, o.N, k, o.depth);
    gemm_load_rows<shape::rows, shape::chunks, shape::threads>(w + shape::w_elements, o.x, o.ldx, 0,
                                                               o.R, k, o.depth);
}

template <int ROWS, int WARPS, int STAGES>
__global__ void __launch_bounds__(32 * WARPS)
    gemm_few(struct gemm_operands o, struct gemm_result result) {
    typedef gemm_few_shape<ROWS, WARPS, STAGES> shape;
    DYN_SHARED(uint16_t, shared);
    const int lane = (int)threadIdx.x % 32, n = (int)threadIdx.x / 32 * 16;
    const uint32_t stages = (o.depth + shape::depth - 1) / shape::depth;
    float y[ROWS / 8][4] = {};
#pragma unroll
    for (uint32_t s = 0; s < STAGES - 1; s++) {
        if (s < stages) gemm_few_load<shape>(o, shared, s);
        cp_async_commit();
    }
    for (uint32_t s = 0; s < stages; s++) {
        cp_async_wait(STAGES - 2);
        __syncthreads(); // the stage is here, and nobody reads the one before it any more
        uint32_t next = s + STAGES - 1;
        if (next < stages) gemm_few_load<shape>(o, shared, next);
        cp_async_commit();
        uint16_t *w = shared + s % STAGES * shape::stage_elements, *x = w + shape::w_elements;
#pragma unroll
        for (int chunk = 0; chunk < shape::chunks; chunk += 2) {
            if (s * shape::depth + chunk * TILE_CHUNK >= o.depth) break;
            uint32_t a[4], b[4];
            tile_load_a<shape::chunks>(a, w, n, chunk, lane);
#pragma unroll
            for (int j = 0; j < ROWS / 8; j += 2) {
                tile_load_b<shape::chunks>(b, x, j * 8, chunk, lane);
                tile_multiply(y[j], y[j + 1], a, b);
            }
        }
    }
    cp_async_wait(0);
    uint32_t output = blockIdx.x * shape::outputs + n + lane / 4, row = lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < ROWS / 8; j++) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            gemm_store(result, row + j * 8 + i % 2, output + i / 2 * 8, y[j][i]);
    }
}

#endif

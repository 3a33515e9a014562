// Matrix products of many rows. A block computes 64 WARPS_M rows by 64 WARPS_N outputs, each warp
// 64 by 64 of them: so every fragment that is read from shared memory serves four or more products.
#ifndef LACUNA_KERNELS_CUDA_GEMM_MANY_CUH
#define LACUNA_KERNELS_CUDA_GEMM_MANY_CUH

#include "kernels/cuda/gemm_operands.cuh"

template <int WARPS_M, int WARPS_N> struct gemm_many_shape {
    static constexpr int threads = 32 * WARPS_M * WARPS_N;
    static constexpr int rows = 64 * WARPS_M, outputs = 64 * WARPS_N;
    static constexpr int chunks = 4, depth = chunks * TILE_CHUNK; // of k in a stage
    static constexpr int stages = 4;
    static constexpr int x_elements = rows * depth, stage_elements = (rows + outputs) * depth;
    static constexpr size_t shared_bytes = sizeof(uint16_t) * stages * stage_elements;
};

template <class shape>
static __device__ __forceinline__ void gemm_many_load(const struct gemm_operands &o,
                                                      uint16_t *shared, uint32_t stage) {
    uint16_t *x = shared + stage % shape::stages * shape::stage_elements;
    uint32_t k = stage * shape::depth;
    gemm_load_rows<shape::rows, shape::chunks, shape::threads>(
        x, o.x, o.ldx, blockIdx.x * shape::rows, o.R, k, o.depth);
    gemm_load_rows<shape::outputs, shape::chunks, shape::threads>(
        x + shape::x_elements, o.w, o.ldw, blockIdx.y * shape::outputs, o.N, k, o.depth);
}

// 16 of k, from `chunk` of a stage.
template <class shape>
static __device__ __forceinline__ void gemm_many_step(float (&y)[4][8][4], uint16_t *x, int m,
                                                      int n, int chunk, int lane) {
    uint16_t *w = x + shape::x_elements;
    uint32_t a[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++) tile_load_a<shape::chunks>(a[i], x, m + i * 16, chunk, lane);
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
        uint32_t b[4];
        tile_load_b<shape::chunks>(b, w, n + j * 8, chunk, lane);
#pragma unroll
        for (int i = 0; i < 4; i++) tile_multiply(y[i][j], y[i][j + 1], a[i], b);
    }
}

template <int WARPS_M, int WARPS_N>
__global__ void __launch_bounds__(gemm_many_shape<WARPS_M, WARPS_N>::threads)
    gemm_many(struct gemm_operands o, struct gemm_result result) {
    typedef gemm_many_shape<WARPS_M, WARPS_N> shape;
    DYN_SHARED(uint16_t, shared);
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int m = warp / WARPS_N * 64, n = warp % WARPS_N * 64;
    const uint32_t stages = (o.depth + shape::depth - 1) / shape::depth;
    float y[4][8][4] = {};
#pragma unroll
    for (uint32_t s = 0; s < shape::stages - 1; s++) {
        if (s < stages) gemm_many_load<shape>(o, shared, s);
        cp_async_commit();
    }
    for (uint32_t s = 0; s < stages; s++) {
        cp_async_wait(shape::stages - 2);
        __syncthreads(); // the stage is here, and nobody reads the one before it any more
        uint32_t next = s + shape::stages - 1;
        if (next < stages) gemm_many_load<shape>(o, shared, next);
        cp_async_commit();
        uint16_t *x = shared + s % shape::stages * shape::stage_elements;
#pragma unroll
        for (int chunk = 0; chunk < shape::chunks; chunk += 2)
            if (s * shape::depth + chunk * TILE_CHUNK < o.depth)
                gemm_many_step<shape>(y, x, m, n, chunk, lane);
    }
    cp_async_wait(0);
    uint32_t row = blockIdx.x * shape::rows + m + lane / 4;
    uint32_t output = blockIdx.y * shape::outputs + n + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            gemm_store_pair(result, row + i * 16, output + j * 8, y[i][j][0], y[i][j][1]);
            gemm_store_pair(result, row + i * 16 + 8, output + j * 8, y[i][j][2], y[i][j][3]);
        }
    }
}

#endif

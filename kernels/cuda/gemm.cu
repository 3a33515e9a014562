// Which kernel serves a matrix product. They give the same bits, so the choice may look at whatever
// makes a product fast.
#include "kernels/cuda/gemm.h"

#include "kernels/cuda/gemm_few.cuh"
#include "kernels/cuda/gemm_many.cuh"

#define GEMM_BLOCKS_WANTED 128 // about one for each multiprocessor

static uint32_t parts(uint32_t n, uint32_t size) {
    return (n + size - 1) / size;
}

template <int ROWS, int WARPS, int STAGES>
static cudaError_t launch_few(cudaStream_t stream, const struct gemm_operands &o,
                              const struct gemm_result &r) {
    typedef gemm_few_shape<ROWS, WARPS, STAGES> shape;
    cudaError_t failed =
        cudaFuncSetAttribute((const void *)gemm_few<ROWS, WARPS, STAGES>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, shape::shared_bytes);
    if (failed != cudaSuccess) return failed;
    LAUNCH((gemm_few<ROWS, WARPS, STAGES>), dim3(parts(o.N, shape::outputs)), dim3(shape::threads),
           shape::shared_bytes, stream, o, r);
    return cudaGetLastError();
}

template <int WARPS_M, int WARPS_N>
static cudaError_t launch_many(cudaStream_t stream, const struct gemm_operands &o,
                               const struct gemm_result &r) {
    typedef gemm_many_shape<WARPS_M, WARPS_N> shape;
    cudaError_t failed =
        cudaFuncSetAttribute((const void *)gemm_many<WARPS_M, WARPS_N>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, shape::shared_bytes);
    if (failed != cudaSuccess) return failed;
    dim3 grid(parts(o.R, shape::rows), parts(o.N, shape::outputs));
    LAUNCH((gemm_many<WARPS_M, WARPS_N>), grid, dim3(shape::threads), shape::shared_bytes, stream,
           o, r);
    return cudaGetLastError();
}

static bool is_aligned(const void *p, size_t bytes) {
    return p != NULL && (uintptr_t)p % bytes == 0;
}

static bool is_valid(const struct gemm_call *c) {
    return c->R > 0 && c->N > 0 && c->K > 0 && c->ldx >= c->K && c->ldw >= c->K && c->ldy >= c->N &&
           c->ldx % GEMM_ROW_ALIGNMENT == 0 && c->ldw % GEMM_ROW_ALIGNMENT == 0 &&
           is_aligned(c->x, 16) && is_aligned(c->w, 16) && is_aligned(c->y, 8);
}

cudaError_t gemm_launch(cudaStream_t stream, const struct gemm_call *c) {
    if (!is_valid(c)) return cudaErrorInvalidValue;
    struct gemm_operands o = {
        (const uint16_t *)c->x, (const uint16_t *)c->w, c->ldx, c->ldw, c->R, c->N,
        parts(c->K, 16) * 16};
    struct gemm_result r = {
        c->y, c->ldy, c->R, c->N, c->bias, c->add, c->ldy % 2 == 0 && c->N % 2 == 0};
    if (c->R <= 16) return launch_few<16, 2, 6>(stream, o, r);
    bool wide = parts(c->N, 64) >= GEMM_BLOCKS_WANTED;
    if (c->R <= 32)
        return wide ? launch_few<32, 4, 4>(stream, o, r) : launch_few<32, 2, 6>(stream, o, r);
    if (c->R <= 64)
        return wide ? launch_few<64, 4, 3>(stream, o, r) : launch_few<64, 2, 4>(stream, o, r);
    if (parts(c->R, 128) * parts(c->N, 256) >= GEMM_BLOCKS_WANTED)
        return launch_many<2, 4>(stream, o, r);
    if (parts(c->R, 128) * parts(c->N, 128) >= GEMM_BLOCKS_WANTED)
        return launch_many<2, 2>(stream, o, r);
    return launch_many<1, 2>(stream, o, r);
}

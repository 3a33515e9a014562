// CUDA's names for the CPU. cuda/gpu.h includes this where nvcc does not compile. Types, vector
// constructors and the conversions of bf16 and half come from NVIDIA's headers, which have a host
// path; here stands what those leave to the device compiler.
#ifndef LACUNA_KERNELS_SIMT_DEVICE_H
#define LACUNA_KERNELS_SIMT_DEVICE_H

#include <cuda_runtime_api.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/simt/core.h"
#include "kernels/simt/device_arithmetic.h"
#include "kernels/simt/device_atomics.h"
#include "kernels/simt/matrix.h"
#include "kernels/simt/warp.h"

// A static would be one variable for all blocks and all launches.
#undef __shared__
#define __shared__ shared_memory_only_through_SHARED_and_DYN_SHARED
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __grid_constant__
#define __grid_constant__

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                     \
    simt::launch_kernel(#kernel, kernel, (grid), (block), (shared_bytes), (stream), __VA_ARGS__)
#define DYN_SHARED(type, name)                                                                     \
    type *const name = reinterpret_cast<type *>(simt::dynamic_shared_memory())
#define SHARED(type, name, dimensions)                                                             \
    static simt::shared_variable name##_variable;                                                  \
    typedef type name##_type dimensions;                                                           \
    name##_type &name = *reinterpret_cast<name##_type *>(                                          \
        simt::shared_memory(&name##_variable, sizeof(name##_type), alignof(name##_type)))

#define __syncthreads() ((void)simt::block_barrier(SIMT_SITE("__syncthreads"), false))
#define __syncthreads_count(vote)                                                                  \
    simt::block_barrier(SIMT_SITE("__syncthreads_count"), (vote) ? true : false)
#define __syncthreads_or(vote)                                                                     \
    (simt::block_barrier(SIMT_SITE("__syncthreads_or"), (vote) ? true : false) != 0)
#define __syncthreads_and(vote)                                                                    \
    (simt::block_barrier(SIMT_SITE("__syncthreads_and"), (vote) ? false : true) == 0)

#define mma_bf16_16816(c, a, b) simt::mma_bf16(SIMT_SITE("mma.m16n8k16"), (c), (a), (b))
#define ldmatrix_x4(r, row) simt::ldmatrix(SIMT_SITE("ldmatrix.x4"), false, (r), (row))
#define ldmatrix_x4_trans(r, row) simt::ldmatrix(SIMT_SITE("ldmatrix.x4.trans"), true, (r), (row))
inline float gpu_exp2_approx(float x) {
    return simt::exp2_approximated(x);
}
inline int gpu_opaque(int x) {
    return x;
}
#define cp_async16(to, from, valid) simt::copy_begin((to), (from), (valid))
#define cp_async_commit() simt::copy_commit()
#define cp_async_wait(left) simt::copy_end(left)

#endif

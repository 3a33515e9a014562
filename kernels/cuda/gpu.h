// The one header that kernels include. The same source is compiled by nvcc for a GPU and by a C++
// compiler for the emulator (kernels/simt): what differs between the two stands here and nowhere
// else. PTX is written only in this file, and each wrapper has a twin in kernels/simt/device.h.
//
// Rules that keep a kernel testable: shared memory through SHARED and DYN_SHARED; launches through
// LAUNCH; no thread leaves before a barrier or a warp collective that others reach; __syncwarp
// between shared writes and the reads of other lanes; no waiting for other blocks.
#ifndef LACUNA_KERNELS_CUDA_GPU_H
#define LACUNA_KERNELS_CUDA_GPU_H

#include <stdint.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// A template kernel is put in parentheses: LAUNCH((kernel<64>), ...).
#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                     \
    (kernel)<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)

// The dynamic shared memory of the launch, 128-byte aligned, as a `type *name`.
#define DYN_SHARED(type, name)                                                                     \
    extern __shared__ __align__(128) unsigned char gpu_dynamic_shared[];                           \
    type *const name = reinterpret_cast<type *>(gpu_dynamic_shared)

// SHARED(float, tile, [4][64]); SHARED(int, flag, );
#define SHARED(type, name, dimensions) __shared__ type name dimensions

static __device__ __forceinline__ uint32_t gpu_shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

// c += a b for a 16x16 (row major) and b 16x8 (column major), in the fragments of the PTX manual's
// mma.m16n8k16. All 32 lanes of the warp call it together.
static __device__ __forceinline__ void mma_bf16_16816(float (&c)[4], const uint32_t (&a)[4],
                                                      const uint32_t (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Four 8x8 matrices of 16-bit elements: lane 8 i + r gives the address of row r of matrix i,
// 16-byte aligned, in shared memory. Register i of a lane gets its two elements of matrix i.
static __device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(gpu_shared_address(row))
                 : "memory");
}
static __device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(gpu_shared_address(row))
                 : "memory");
}

// 2^x, at most 2 units in the last place from what it rounds to (PTX ISA 9.1, ex2): below 2^-126
// +0, of a NaN a NaN. Bits differ between devices: only for what does not depend on them.
static __device__ __forceinline__ float gpu_exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// x, of which the compiler does not know that it is: what is computed from it in a loop is computed
// there each time, where it would else be kept in registers that are needed.
static __device__ __forceinline__ int gpu_opaque(int x) {
    asm volatile("" : "+r"(x));
    return x;
}

// Copies 16 bytes from global to shared memory behind the thread's back; zeros when not `valid`.
// The bytes may be read after the cp_async_wait that covers the copy's group, by this thread; by
// others after a barrier behind it.
static __device__ __forceinline__ void cp_async16(void *to, const void *from, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(gpu_shared_address(to)),
                 "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
}
static __device__ __forceinline__ void cp_async_commit() {
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}
// Waits until at most `left` (a constant) of the committed groups are under way.
#define cp_async_wait(left) asm volatile("cp.async.wait_group %0;\n" ::"n"(left) : "memory")

#else
#include "kernels/simt/device.h"
#endif

#endif

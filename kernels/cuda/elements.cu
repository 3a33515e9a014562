// Ops that take each element of a row by itself: rotation, rounding, gates, gathering rows.
#include "kernels/cuda/gpu.h"
#include "kernels/cuda/rows.h"
#include "kernels/numerics.h"

#define ELEMENTS_THREADS 256

// Thread i of a row's share of the grid takes element i.
struct row_place {
    uint32_t row, i;
};

static __device__ __forceinline__ row_place place_of(uint32_t blocks_per_row) {
    return {blockIdx.x / blocks_per_row,
            blockIdx.x % blocks_per_row * ELEMENTS_THREADS + threadIdx.x};
}

static uint32_t blocks_of(uint32_t n) {
    return (n + ELEMENTS_THREADS - 1) / ELEMENTS_THREADS;
}

static __global__ void __launch_bounds__(ELEMENTS_THREADS)
    round_kernel(const float *x, uint32_t ldx, uint32_t n, uint32_t blocks, uint16_t *out,
                 uint32_t ldout) {
    row_place at = place_of(blocks);
    if (at.i >= ldout) return;
    out[(size_t)at.row * ldout + at.i] = at.i < n ? num_bf16(x[(size_t)at.row * ldx + at.i]) : 0;
}

cudaError_t round_launch(cudaStream_t stream, const float *x, uint32_t ldx, uint32_t R, uint32_t n,
                         void *out, uint32_t ldout) {
    uint32_t blocks = blocks_of(ldout);
    LAUNCH(round_kernel, R * blocks, ELEMENTS_THREADS, 0, stream, x, ldx, n, blocks,
           (uint16_t *)out, ldout);
    return cudaGetLastError();
}

struct rotation {
    uint32_t E, rotary, width; // width = heads E
    bool neighbours;
    const float *cos_sin; // [R][rotary/2][2]
};

// Element i of a head after rotation: a cos - b sin or b cos + a sin, each product rounded.
static __device__ __forceinline__ float rotated(const float *head, uint32_t i, const float *cos_sin,
                                                const rotation &r) {
    if (i >= r.rotary) return head[i];
    uint32_t pairs = r.rotary / 2;
    uint32_t pair = r.neighbours ? i / 2 : i % pairs;
    bool second = r.neighbours ? i % 2 != 0 : i >= pairs;
    uint32_t a = r.neighbours ? 2 * pair : pair, b = r.neighbours ? a + 1 : pair + pairs;
    float cosine = cos_sin[2 * pair], sine = cos_sin[2 * pair + 1];
    return second ? head[b] * cosine + head[a] * sine : head[a] * cosine - head[b] * sine;
}

static __global__ void __launch_bounds__(ELEMENTS_THREADS)
    rope_kernel(const float *x, uint32_t ldx, rotation r, uint32_t blocks, uint16_t *out,
                uint32_t ldout) {
    row_place at = place_of(blocks);
    if (at.i >= ldout) return;
    const float *head = x + (size_t)at.row * ldx + at.i / r.E * r.E;
    const float *cos_sin = r.cos_sin + (size_t)at.row * r.rotary;
    out[(size_t)at.row * ldout + at.i] =
        at.i < r.width ? num_bf16(rotated(head, at.i % r.E, cos_sin, r)) : 0;
}

cudaError_t rope_launch(cudaStream_t stream, const float *x, uint32_t ldx, uint32_t R,
                        uint32_t heads, uint32_t E, uint32_t rotary, bool neighbours,
                        const float *cos_sin, void *out, uint32_t ldout) {
    uint32_t blocks = blocks_of(ldout);
    rotation r = {E, rotary, heads * E, neighbours, cos_sin};
    LAUNCH(rope_kernel, R * blocks, ELEMENTS_THREADS, 0, stream, x, ldx, r, blocks, (uint16_t *)out,
           ldout);
    return cudaGetLastError();
}

static __global__ void __launch_bounds__(ELEMENTS_THREADS)
    gate_kernel(const float *gate_up, uint32_t ld, uint32_t F, bool gelu, uint32_t blocks,
                uint16_t *out, uint32_t ldout) {
    row_place at = place_of(blocks);
    if (at.i >= ldout) return;
    float value = 0.0f;
    if (at.i < F) {
        const float *g = gate_up + (size_t)at.row * ld + at.i;
        value = gelu ? num_gelu_gate(g[0], g[F]) : num_silu_gate(g[0], g[F]);
    }
    out[(size_t)at.row * ldout + at.i] = num_bf16(value);
}

cudaError_t gate_launch(cudaStream_t stream, bool gelu, const float *gate_up, uint32_t ld,
                        uint32_t R, uint32_t F, void *out, uint32_t ldout) {
    uint32_t blocks = blocks_of(ldout);
    LAUNCH(gate_kernel, R * blocks, ELEMENTS_THREADS, 0, stream, gate_up, ld, F, gelu, blocks,
           (uint16_t *)out, ldout);
    return cudaGetLastError();
}

static __global__ void __launch_bounds__(ELEMENTS_THREADS)
    gather_kernel(const uint32_t *from, uint32_t words, const uint32_t *rows, uint32_t blocks,
                  uint32_t *to) {
    row_place at = place_of(blocks);
    if (at.i >= words) return;
    to[(size_t)at.row * words + at.i] = from[(size_t)rows[at.row] * words + at.i];
}

cudaError_t gather_launch(cudaStream_t stream, const void *from, uint32_t row_words,
                          const uint32_t *rows, uint32_t count, void *to) {
    uint32_t blocks = blocks_of(row_words);
    LAUNCH(gather_kernel, count * blocks, ELEMENTS_THREADS, 0, stream, (const uint32_t *)from,
           row_words, rows, blocks, (uint32_t *)to);
    return cudaGetLastError();
}

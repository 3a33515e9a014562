// One way to reverse a row of values in shared memory, right and with one fault each.
#include "kernels/cuda/gpu.h"
#include "tests/kernels/simt/fault_kernels.h"

#include <string.h>

enum { N = FAULT_COUNT, ALL = -1 };

static __global__ void right(float *out, const float *in) {
    SHARED(float, row, [N]);
    const int i = (int)threadIdx.x;
    row[i] = in[i];
    __syncthreads();
    out[i] = row[N - 1 - i];
}

static __global__ void no_barrier(float *out, const float *in) {
    SHARED(float, row, [N]);
    const int i = (int)threadIdx.x;
    row[i] = in[i];
    out[i] = row[N - 1 - i];
}

static __global__ void two_barriers(float *out, const float *in) {
    SHARED(float, row, [N]);
    const int i = (int)threadIdx.x;
    row[i] = in[i];
    if (i < 32) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    out[i] = row[N - 1 - i];
}

static __global__ void left_before_barrier(float *out, const float *in) {
    SHARED(float, row, [N]);
    const int i = (int)threadIdx.x;
    row[i] = in[i];
    if (i == 5) return;
    __syncthreads();
    out[i] = row[N - 1 - i];
}

// One warp waits for the other, which waits for the block.
static __global__ void deadlock(float *out, const float *in) {
    const int i = (int)threadIdx.x;
    if (i % 32 < 16) __syncwarp();
    __syncthreads();
    out[i] = in[N - 1 - i];
}

// Written in rows of 9, read in rows of 8.
static __global__ void wrong_stride(float *out, const float *in) {
    SHARED(float, rows, [8 * 9]);
    const int i = (int)threadIdx.x, back = N - 1 - i;
    rows[i / 8 * 9 + i % 8] = in[i];
    __syncthreads();
    out[i] = rows[back / 8 * 8 + back % 8];
}

static __global__ void past_shared(float *out, const float *in) {
    SHARED(float, row, [N]);
    const int i = (int)threadIdx.x;
    float *shifted = row + 1; // off by one
    shifted[i] = in[i];
    __syncthreads();
    out[i] = shifted[N - 1 - i];
}

static __global__ void past_dynamic(float *out, const float *in) {
    DYN_SHARED(float, row);
    const int i = (int)threadIdx.x;
    row[i + 1] = in[i];
    __syncthreads();
    out[i] = row[N - i];
}

static __global__ void past_global(float *out, const float *in) {
    const int i = (int)threadIdx.x;
    out[i] = in[N - 1 - i];
    if (i == N - 1) out[i + 1] = 0.0f;
}

static __global__ void before_global(float *out, const float *in) {
    const int i = (int)threadIdx.x;
    out[i] = in[N - 1 - i];
    if (i == 0) out[0] += in[-8] * 0.0f;
}

static __global__ void null_pointer(float *out, const float *in) {
    const int i = (int)threadIdx.x;
    // The compiler cannot know that this is 0.
    if (i == 7) out = reinterpret_cast<float *>((uintptr_t)blockIdx.y) - i;
    out[i] = in[N - 1 - i];
}

// Copies 16 bytes a thread in two groups of half a row.
static __device__ void begin_copies(float *row, const float *in) {
    const int i = (int)threadIdx.x;
    if (i < N / 8) cp_async16(row + 4 * i, in + 4 * i, true);
    cp_async_commit();
    if (i < N / 8) cp_async16(row + N / 2 + 4 * i, in + N / 2 + 4 * i, true);
    cp_async_commit();
}

static __global__ void copies(float *out, const float *in) {
    DYN_SHARED(float, row);
    begin_copies(row, in);
    cp_async_wait(0);
    __syncthreads();
    out[threadIdx.x] = row[N - 1 - threadIdx.x];
}

static __global__ void copies_never_waited(float *out, const float *in) {
    DYN_SHARED(float, row);
    begin_copies(row, in);
    __syncthreads();
    out[threadIdx.x] = row[N - 1 - threadIdx.x];
}

static __global__ void copies_waited_late(float *out, const float *in) {
    DYN_SHARED(float, row);
    begin_copies(row, in);
    cp_async_wait(1); // one group too few
    __syncthreads();
    out[threadIdx.x] = row[N - 1 - threadIdx.x];
    cp_async_wait(0);
}

// The thread waited for its own copies, not for those of others.
static __global__ void copies_without_barrier(float *out, const float *in) {
    DYN_SHARED(float, row);
    begin_copies(row, in);
    cp_async_wait(0);
    out[threadIdx.x] = row[N - 1 - threadIdx.x];
}

static __global__ void copies_misaligned(float *out, const float *in) {
    DYN_SHARED(float, row);
    if (threadIdx.x == 3) cp_async16(row, in + 1, true);
    cp_async_commit();
    cp_async_wait(0);
    out[threadIdx.x] = in[N - 1 - threadIdx.x];
}

static __device__ float other_warp(const float *in) {
    return in[N - 1 - (threadIdx.x ^ 31)];
}

static __global__ void shuffles(float *out, const float *in) {
    out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, other_warp(in), 31);
}

static __global__ void shuffle_from_outside(float *out, const float *in) {
    const int i = (int)threadIdx.x;
    float v = other_warp(in);
    if (i % 32 < 16) v = __shfl_xor_sync(0x0000ffffu, v, 31);
    out[i] = v;
}

static __global__ void shuffle_with_exited(float *out, const float *in) {
    const int i = (int)threadIdx.x;
    out[i] = in[N - 1 - i];
    if (i == 9) return;
    out[i] = __shfl_xor_sync(0xffffffffu, other_warp(in), 31);
}

static __global__ void shuffles_of_two_kinds(float *out, const float *in) {
    const int i = (int)threadIdx.x;
    float v = other_warp(in);
    if (i < 16)
        v = __shfl_xor_sync(0xffffffffu, v, 31);
    else
        v = __shfl_sync(0xffffffffu, v, i % 32 ^ 31);
    out[i] = v;
}

static __global__ void warps_in_step(float *out, const float *in) {
    SHARED(float, row, [N]);
    const int i = (int)threadIdx.x;
    row[i] = other_warp(in);
    __syncwarp();
    out[i] = row[i ^ 31];
}

static __global__ void no_syncwarp(float *out, const float *in) {
    SHARED(float, row, [N]);
    const int i = (int)threadIdx.x;
    row[i] = other_warp(in);
    out[i] = row[i ^ 31];
}

static __global__ void reads_unwritten(float *out, const float *in) {
    const int i = (int)threadIdx.x;
    out[i] = in[N - 1 - i] + 0.0f * out[i];
}

// Each block adds to one word.
static __global__ void blocks_add(float *out, const float *in) {
    const int i = (int)threadIdx.x;
    if (blockIdx.x == 0) out[i] = in[N - 1 - i];
    if (i == 0) atomicAdd(&out[N], 1.0f);
}

static __global__ void blocks_race(float *out, const float *in) {
    const int i = (int)threadIdx.x;
    if (blockIdx.x == 0) out[i] = in[N - 1 - i];
    if (i == 0) out[N] += 1.0f;
}

// Every block writes its part; the last to arrive reads those of the others.
template <bool ordered> static __global__ void merge(float *out, const float *in) {
    SHARED(bool, last, );
    const int i = (int)threadIdx.x, blocks = (int)gridDim.x;
    float *parts = out + 2 * N;
    parts[blockIdx.x * N + i] = in[N - 1 - i] / (float)blocks;
    if (ordered) {
        __threadfence();
        __syncthreads();
    }
    if (i == 0) last = atomicAdd((unsigned *)(out + N), 1u) == 0xffffffffu + (unsigned)blocks - 1;
    __syncthreads();
    if (!last) return;
    float sum = 0.0f;
    for (int b = 0; b < blocks; b++) sum += parts[b * N + i];
    out[i] = sum;
}

// One step of a radix sort by one warp, which puts the odd places last and then the values of each
// half where they belong: places of equal digits are given out by the first lane that has the
// digit, when the others have read where the last ones ended.
template <bool ordered> static __global__ void scatter(float *out, const float *in) {
    SHARED(int, next, [2]);
    SHARED(float, row, [2 * N]);
    const int i = (int)threadIdx.x;
    if (i < 2) next[i] = i * N / 2;
    __syncthreads();
    for (int first = 0; first < N && i < 32; first += 32) {
        const int digit = i % 2;
        const unsigned same = __match_any_sync(0xffffffffu, digit);
        const int before = __popc(same & ((1u << i) - 1)), at = next[digit];
        if (ordered) __syncwarp();
        if (before == 0) next[digit] = at + __popc(same);
        __syncwarp();
        row[at + before] = in[first + i];
    }
    __syncthreads();
    const int from = N - 1 - i;
    out[i] = row[from % 2 * (N / 2) + from / 2];
}

struct entry {
    const char *name;
    void (*kernel)(float *, const float *);
    int blocks;
};
#define ENTRY(kernel)                                                                              \
    { #kernel, kernel, 1 }
static const struct entry entries[] = {
    ENTRY(right),
    ENTRY(no_barrier),
    ENTRY(two_barriers),
    ENTRY(left_before_barrier),
    ENTRY(deadlock),
    ENTRY(wrong_stride),
    ENTRY(past_shared),
    ENTRY(past_dynamic),
    ENTRY(past_global),
    ENTRY(before_global),
    ENTRY(null_pointer),
    ENTRY(copies),
    ENTRY(copies_never_waited),
    ENTRY(copies_waited_late),
    ENTRY(copies_without_barrier),
    ENTRY(copies_misaligned),
    ENTRY(shuffles),
    ENTRY(shuffle_from_outside),
    ENTRY(shuffle_with_exited),
    ENTRY(shuffles_of_two_kinds),
    ENTRY(warps_in_step),
    ENTRY(no_syncwarp),
    ENTRY(reads_unwritten),
    {"blocks_add", blocks_add, 8},
    {"blocks_race", blocks_race, 8},
    {"merge", merge<true>, 8},
    {"merge_unordered", merge<false>, 8},
    {"scatter", scatter<true>, 1},
    {"scatter_unordered", scatter<false>, 1},
};

cudaError_t fault_launch(const char *kernel, float *out, const float *in, cudaStream_t stream) {
    for (const struct entry &e : entries)
        if (strcmp(e.name, kernel) == 0) {
            LAUNCH(e.kernel, e.blocks, N, N * sizeof(float), stream, out, in);
            return cudaGetLastError();
        }
    return cudaErrorInvalidDeviceFunction;
}

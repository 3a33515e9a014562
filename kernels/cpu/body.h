// What the bodies of all op tables share. A table is one source file (ops_c.c, ops_avx2.c, ...)
// that defines
//   BODY_F32     1 for the numerics `f32`, else 0
//   BODY_EXPAND  1 when its tile takes bf16 rows expanded to fp32, else 0
//   TILE_ROWS    most rows of one register block
//   WIDE_*       where products of many rows have a block of their own (body_wide.h)
// its lanes and `tile` (below), and then includes the bodies. Equal sources under IEEE arithmetic
// give equal bits; only `tile` is written per instruction set.
#ifndef LACUNA_KERNELS_CPU_BODY_H
#define LACUNA_KERNELS_CPU_BODY_H

#include "kernels/cpu/env.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/shape.h"
#include "kernels/cpu/team.h"

#include <assert.h>
#include <string.h>

#if BODY_F32
#define OPERAND float
#else
#define OPERAND uint16_t
#endif

// Elements of a row as `tile` reads it.
#if BODY_F32 || BODY_EXPAND
#define ELEMENT float
#else
#define ELEMENT uint16_t
#endif

// c[r][0 .. 16 panels) = chain of row r of `a` with each output of the panels, from +0. `depth` is
// the inner size in elements, even for bf16-1. Panel p starts at b + p * panel_elements. 1 <= rows
// <= TILE_ROWS.
static void tile(const ELEMENT *a, size_t lda, uint32_t rows, const OPERAND *b,
                 size_t panel_elements, uint32_t panels, uint32_t depth, float *c, size_t ldc);

// Weights come from memory once when few rows meet them; asking early keeps more lines on their way
// than the processor's own prefetcher does. For each line that a tile reads it asks for the one at
// `next`, `step` bytes further each time, and for the same in each of its panels.
struct ahead {
    const char *next;
    uint32_t step;
};
#define AHEAD_BYTES 8192 // within a tile's own panels, shared by those that it reads at once

static inline void prefetch_ahead(struct ahead ahead, size_t panel_bytes) {
    __builtin_prefetch(ahead.next + panel_bytes, 0, 3);
}

// The same, asking ahead elsewhere than in its own panels: other rows are still to meet these.
static void tile_ahead(const ELEMENT *a, size_t lda, uint32_t rows, const OPERAND *b,
                       size_t panel_elements, uint32_t panels, uint32_t depth,
                       const struct ahead *elsewhere, float *c, size_t ldc);

// Lanes rounded to an operand's precision, still fp32.
static inline struct lanes operand_round(struct lanes x) {
#if BODY_F32
    return x;
#else
    return lanes_round_bf16(x);
#endif
}

// The same where every lane lies in [2^-126, 2^100].
static inline struct lanes operand_round_normal(struct lanes x) {
#if BODY_F32
    return x;
#else
    return lanes_round_bf16_normal(x);
#endif
}

static inline void operand_store(OPERAND *out, struct lanes x) {
#if BODY_F32
    lanes_store(out, x);
#else
    lanes_store_bf16(out, lanes_round_bf16(x));
#endif
}

static inline void operand_store_n(OPERAND *out, struct lanes x, size_t n) {
#if BODY_F32
    lanes_store_n(out, x, n);
#else
    lanes_store_bf16_n(out, lanes_round_bf16(x), n);
#endif
}

// The pad of an odd row: rows are taken in pairs.
static inline void operand_pad(OPERAND *row, uint32_t n) {
    if (n % 2 != 0) row[n] = 0;
}

static inline bool operand_finite(OPERAND x) {
#if BODY_F32
    return (num_bits(x) & 0x7f800000u) != 0x7f800000u;
#else
    return (x & 0x7f80u) != 0x7f80u;
#endif
}

static inline OPERAND operand_of(float x) {
#if BODY_F32
    return x;
#else
    return num_bf16(x);
#endif
}

// Rounded lanes as elements of a row for `tile`.
static inline void element_store(ELEMENT *out, struct lanes x) {
#if BODY_F32 || BODY_EXPAND
    lanes_store(out, x);
#else
    lanes_store_bf16(out, x);
#endif
}

// Lanes a and b in [2^-126, 2^100], rounded, as 32 elements. Returns sum + a + b of what was
// stored.
static inline struct lanes element_store_added(ELEMENT *out, struct lanes a, struct lanes b,
                                               struct lanes sum) {
#if !BODY_F32 && !BODY_EXPAND && defined(LANES_STORE_BF16_ADDED)
    return lanes_store_bf16_added(out, a, b, sum);
#else
    a = operand_round_normal(a);
    b = operand_round_normal(b);
    element_store(out, a);
    element_store(out + NUM_LANES, b);
    return lanes_add(lanes_add(sum, a), b);
#endif
}

static inline float element_value(ELEMENT x) {
#if BODY_F32 || BODY_EXPAND
    return x;
#else
    return num_from_bf16(x);
#endif
}

// n operands as fp32. Reads n operands, writes n numbers.
static inline void operand_expand(float *out, const OPERAND *row, uint32_t n) {
#if BODY_F32
    memcpy(out, row, n * sizeof *row);
#else
    uint32_t i = 0;
    for (; i + NUM_LANES <= n; i += NUM_LANES) lanes_store(out + i, lanes_load_bf16(row + i));
    for (; i < n; i++) out[i] = num_from_bf16(row[i]);
#endif
}

// n operands as elements. Reads n operands, writes n elements.
static inline void element_copy(ELEMENT *out, const OPERAND *row, uint32_t n) {
#if BODY_EXPAND
    operand_expand(out, row, n);
#else
    memcpy(out, row, n * sizeof *row);
#endif
}

static inline float operand_value(OPERAND x) {
#if BODY_F32
    return x;
#else
    return num_from_bf16(x);
#endif
}

static inline uint8_t *pool_slice(const struct cpu_pool *pool, int thread) {
    return (uint8_t *)pool->scratch + (size_t)thread * pool->slice_bytes;
}

// Threads for a call of this much work (multiply-adds or the like): waking one costs microseconds.
static inline int pool_threads(const struct cpu_pool *pool, uint64_t work) {
    uint64_t useful = work / SHAPE_THREAD_WORK + 1;
    return useful < (uint64_t)pool->threads ? (int)useful : pool->threads;
}

#endif

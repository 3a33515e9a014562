// Block sizes and layouts that the op tables share. Sizes decide speed and scratch, never bits.
#ifndef LACUNA_KERNELS_CPU_SHAPE_H
#define LACUNA_KERNELS_CPU_SHAPE_H

#include "kernels/cpu/cache.h"
#include "kernels/cpu/ops.h"

#define SHAPE_TILE_ROWS_MAX 12                    // of all tables' TILE_ROWS
#define SHAPE_GROUP_PANELS 8                      // panels between two visits of a row block
#define SHAPE_BAND_ROWS 48                        // rows that meet a group of panels in turn
#define SHAPE_CHUNK_ROWS 96                       // rows of one thread's piece of a matrix product
#define SHAPE_WIDE_FROM 48                        // rows worth expanding the panels for
#define SHAPE_WIDE_ROWS 512                       // most rows expanded at once
#define SHAPE_WIDE_PANELS 24                      // most panels of such a piece
#define SHAPE_WIDE_LDC (25 * CPU_PANEL)           // rows of chains must not share cache sets
#define SHAPE_WIDE_DEPTH_MAX 640                  // of all tables' WIDE_DEPTH
#define SHAPE_WIDE_PART 1024                      // most inner elements of expanded rows
#define SHAPE_WIDE_FLOATS (512 * 656)             // of all rows that are expanded at once
#define SHAPE_WIDE_OUTPUTS_MAX 32                 // of all tables' WIDE_PANELS, in outputs
#define SHAPE_QUERY_ROWS 96                       // (token, head) rows that attend together
#define SHAPE_SCORE_STRIDE (CPU_PAGE + CPU_PANEL) // rows of scores must not share cache sets
#define SHAPE_EXPANDED_DEPTH 128                  // elements of panels expanded to fp32 at a time
#define SHAPE_EXPANDED_FLOATS (2 * SHAPE_EXPANDED_DEPTH * CPU_PANEL) // of two panels
#define SHAPE_THREAD_WORK 32768                                      // multiply-adds worth a thread

static inline size_t shape_operand_bytes(enum cpu_numerics numerics) {
    return numerics == CPU_F32 ? sizeof(float) : sizeof(uint16_t);
}

// Inner size of a panel in elements.
static inline uint32_t shape_depth(enum cpu_numerics numerics, uint32_t K) {
    return numerics == CPU_F32 ? K : (K + 1) / 2 * 2;
}

static inline uint32_t shape_panels(uint32_t N) {
    return (N + CPU_PANEL - 1) / CPU_PANEL;
}

static inline uint32_t shape_band_rows(uint32_t rows) {
    return rows < SHAPE_BAND_ROWS ? rows : SHAPE_BAND_ROWS;
}

static inline uint32_t shape_wide_rows(uint32_t rows) {
    return rows < SHAPE_WIDE_ROWS ? rows : SHAPE_WIDE_ROWS;
}

// Scratch for the products of many rows, for all tables' WIDE_*.
static inline size_t shape_wide_bytes(uint32_t rows) {
    if (rows < SHAPE_WIDE_FROM) return 0;
    return sizeof(float) *
           (SHAPE_WIDE_FLOATS + (size_t)SHAPE_WIDE_DEPTH_MAX * SHAPE_WIDE_OUTPUTS_MAX +
            (size_t)shape_wide_rows(rows) * SHAPE_WIDE_LDC);
}

static inline size_t shape_cache_bytes(const struct cpu_pool *pool) {
    return pool->cache_bytes > 0 ? pool->cache_bytes : CPU_CACHE_BYTES_ASSUMED;
}

// Panels that half of a core's cache holds, at least one group of them: the rest is for the rows.
static inline uint32_t shape_cached_panels(const struct cpu_pool *pool, size_t panel_bytes) {
    size_t panels = shape_cache_bytes(pool) / 2 / panel_bytes;
    if (panels < SHAPE_GROUP_PANELS) return SHAPE_GROUP_PANELS;
    return panels < UINT32_MAX ? (uint32_t)panels : UINT32_MAX;
}

// Floats from one expanded row of `depth` elements to the next: rows must not share cache sets.
static inline uint32_t shape_wide_stride(uint32_t depth) {
    uint32_t stride = (depth / CPU_PANEL + 2) * CPU_PANEL;
    return stride % 256 == 0 ? stride + CPU_PANEL : stride;
}

// Expanded rows that two thirds of a core's cache hold.
static inline uint32_t shape_cached_rows(const struct cpu_pool *pool, uint32_t stride) {
    size_t floats = shape_cache_bytes(pool) / 3 * 2 / sizeof(float);
    size_t rows = (floats < SHAPE_WIDE_FLOATS ? floats : SHAPE_WIDE_FLOATS) / stride;
    if (rows < SHAPE_WIDE_FROM) return SHAPE_WIDE_FROM;
    return rows < SHAPE_WIDE_ROWS ? (uint32_t)rows : SHAPE_WIDE_ROWS;
}

static inline size_t shape_aligned(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

#endif

// Matrix products of many rows by body_block.h. Included after it where the table defines
//   WIDE_DEPTH   inner elements of one pass, even
//
// Rows and panels are expanded to fp32 once for a piece of the outputs:
//
//   for each part of the inner size, at most WIDE_DEPTH: rows -> s.a (second-level cache)
//     for each WIDE_PANELS panels: panels -> s.b (first-level cache, where WIDE_DEPTH is small)
//       for each TILE_ROWS rows: block_rows_of
//
// Between two parts the chains rest in s.c as fp32, which is exact.
#include "kernels/cpu/body.h"

#define WIDE_STRIDE (WIDE_DEPTH + CPU_PANEL) // of expanded rows: they must not share cache sets
#define WIDE_ROW_BYTES (WIDE_STRIDE * sizeof(float))
#define WIDE_OUTPUTS (WIDE_PANELS * CPU_PANEL)

struct wide_slice {
    float *a; // [SHAPE_WIDE_ROWS][WIDE_STRIDE] rows, natural order
    float *b; // [WIDE_DEPTH][WIDE_OUTPUTS] panels in the order of the chain: 1, 0, 3, 2, ...
    float *c; // [SHAPE_WIDE_ROWS][SHAPE_WIDE_LDC] chains
    uint32_t held_row, held_end, held_from; // what `a` holds: rows, and the part of the inner size
};

static struct wide_slice wide_slice_of(uint8_t *p, uint32_t rows) {
    struct wide_slice s = {0};
    s.a = (float *)p;
    p += (size_t)rows * WIDE_STRIDE * sizeof(float);
    s.b = (float *)p;
    p += (size_t)WIDE_DEPTH * WIDE_OUTPUTS * sizeof(float);
    s.c = (float *)p;
    return s;
}

#define WIDE_CASE(rows)                                                                            \
    case rows:                                                                                     \
        if (first)                                                                                 \
            block_rows_of(a, WIDE_STRIDE, rows, b, WIDE_PANELS, depth, false, c, ldc);             \
        else                                                                                       \
            block_rows_of(a, WIDE_STRIDE, rows, b, WIDE_PANELS, depth, true, c, ldc);              \
        break

static void wide_rows(const float *a, uint32_t rows, const float *b, uint32_t depth, bool first,
                      float *c, size_t ldc) {
    switch (rows) {
        WIDE_CASE(1);
        WIDE_CASE(2);
        WIDE_CASE(3);
        WIDE_CASE(4);
        WIDE_CASE(5);
        WIDE_CASE(6);
#if TILE_ROWS == 12
        WIDE_CASE(7);
        WIDE_CASE(8);
        WIDE_CASE(9);
        WIDE_CASE(10);
        WIDE_CASE(11);
        WIDE_CASE(12);
#endif
    default: assert(false);
    }
}

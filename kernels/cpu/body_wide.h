// Matrix products of many rows by body_block.h. Included after it where the table defines
//   WIDE_DEPTH   inner elements of one panel block, even
//
// Rows are expanded to fp32 once for all pieces of the outputs that a thread takes of them, panels
// once for all of these rows:
//
//   for each part of the inner size, at most SHAPE_WIDE_DEPTH: rows -> s.a (second-level cache)
//     for each WIDE_PANELS panels
//       for each WIDE_DEPTH of the part: panels -> s.b (first-level cache, where that is small)
//         for each TILE_ROWS rows: block_rows_of
//
// Where a chain is not done it rests in s.c as fp32, which is exact.
#include "kernels/cpu/body.h"

#define WIDE_OUTPUTS (WIDE_PANELS * CPU_PANEL)

struct wide_slice {
    float *a; // [rows][shape_wide_stride] rows, natural order
    float *b; // [WIDE_DEPTH][WIDE_OUTPUTS] panels in the order of the chain: 1, 0, 3, 2, ...
    float *c; // chains
    uint32_t held_row, held_end, held_from; // what `a` holds: rows, and the part of the inner size
};

static struct wide_slice wide_slice_of(uint8_t *p) {
    struct wide_slice s = {0};
    s.a = (float *)p;
    p += SHAPE_WIDE_FLOATS * sizeof(float);
    s.b = (float *)p;
    p += (size_t)WIDE_DEPTH * WIDE_OUTPUTS * sizeof(float);
    s.c = (float *)p;
    return s;
}

#define WIDE_CASE(rows)                                                                            \
    case rows:                                                                                     \
        if (first)                                                                                 \
            block_rows_of(a, lda, rows, b, WIDE_PANELS, depth, false, c, ldc);                     \
        else                                                                                       \
            block_rows_of(a, lda, rows, b, WIDE_PANELS, depth, true, c, ldc);                      \
        break

static void wide_rows(const float *a, size_t lda, uint32_t rows, const float *b, uint32_t depth,
                      bool first, float *c, size_t ldc) {
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

// `tile` as a choice among register blocks, for tables whose `block` takes rows and panels as
// constants. Few rows take many panels at once, so that there are always enough independent chains.
#include "kernels/cpu/body.h"

#define TILE_BLOCKS(rows, panels_at_once)                                                          \
    for (; p + (panels_at_once) <= panels; p += (panels_at_once))                                  \
    block(a, lda, rows, b + p * panel_elements, panel_elements, panels_at_once, depth,             \
          tile_asks(elsewhere, b, p * panel_elements, panels_at_once), c + (size_t)p * CPU_PANEL,  \
          ldc)

// Register blocks for this many rows, from `wide` panels at once down to one.
#define TILE_CASE(rows, wide)                                                                      \
    case rows:                                                                                     \
        if ((wide) == 8) TILE_BLOCKS(rows, 8);                                                     \
        if ((wide) >= 4) TILE_BLOCKS(rows, 4);                                                     \
        if ((wide) >= 2) TILE_BLOCKS(rows, 2);                                                     \
        TILE_BLOCKS(rows, 1);                                                                      \
        break

static inline struct ahead tile_asks(const struct ahead *elsewhere, const OPERAND *b, size_t first,
                                     uint32_t panels_at_once) {
    struct ahead own = {(const char *)b + AHEAD_BYTES / panels_at_once, 64};
    if (elsewhere != NULL) own = *elsewhere;
    own.next += first * sizeof *b;
    return own;
}

static void tile_ahead(const ELEMENT *a, size_t lda, uint32_t rows, const OPERAND *b,
                       size_t panel_elements, uint32_t panels, uint32_t depth,
                       const struct ahead *elsewhere, float *c, size_t ldc) {
    uint32_t p = 0;
    switch (rows) {
#if TILE_ROWS == 12
        TILE_CASE(1, 8);
        TILE_CASE(2, 8);
        TILE_CASE(3, 8);
        TILE_CASE(4, 4);
        TILE_CASE(5, 4);
        TILE_CASE(6, 4);
        TILE_CASE(7, 2);
        TILE_CASE(8, 2);
        TILE_CASE(9, 2);
        TILE_CASE(10, 2);
        TILE_CASE(11, 2);
        TILE_CASE(12, 2);
#else
        TILE_CASE(1, 4);
        TILE_CASE(2, 2);
        TILE_CASE(3, 2);
        TILE_CASE(4, 1);
        TILE_CASE(5, 1);
        TILE_CASE(6, 1);
#endif
    default: assert(false);
    }
}

static void tile(const ELEMENT *a, size_t lda, uint32_t rows, const OPERAND *b,
                 size_t panel_elements, uint32_t panels, uint32_t depth, float *c, size_t ldc) {
    tile_ahead(a, lda, rows, b, panel_elements, panels, depth, NULL, c, ldc);
}

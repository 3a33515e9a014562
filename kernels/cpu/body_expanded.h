// Many rows of attention by body_block.h; the chains are those of `tile`. Included by each table,
// after body_unit.h.
#include "kernels/cpu/body.h"

#ifdef WIDE_PANELS

// What is expanded at a time: elements [first, first + depth) of some panels.
struct expanded_piece {
    uint32_t panel, panels, first, depth;
};

static inline struct expanded_piece expanded_piece_of(uint32_t panels, uint32_t depth,
                                                      uint32_t number) {
    uint32_t per_panel = (depth + SHAPE_EXPANDED_DEPTH - 1) / SHAPE_EXPANDED_DEPTH;
    struct expanded_piece piece = {.panel = number / per_panel * WIDE_PANELS,
                                   .first = number % per_panel * SHAPE_EXPANDED_DEPTH};
    uint32_t left = depth - piece.first;
    piece.panels = panels - piece.panel < WIDE_PANELS ? panels - piece.panel : WIDE_PANELS;
    piece.depth = left < SHAPE_EXPANDED_DEPTH ? left : SHAPE_EXPANDED_DEPTH;
    return piece;
}

ENV_WORK void expanded_block_most(const float *a, size_t lda, const float *b, uint32_t depth,
                                  bool resume, float *c, size_t ldc) {
    block_rows_of(a, lda, TILE_ROWS, b, WIDE_PANELS, depth, resume, c, ldc);
}

ENV_WORK void expanded_block_one(const float *a, size_t lda, const float *b, uint32_t depth,
                                 bool resume, float *c, size_t ldc) {
    block_rows_of(a, lda, TILE_ROWS, b, 1, depth, resume, c, ldc);
}

// Like tile, for all rows of a unit that fill blocks of TILE_ROWS; returns how many these are.
// `room` for an expanded piece stays in the first-level cache while the rows pass.
static inline __attribute__((always_inline)) uint32_t
expanded_tile(const float *a, size_t lda, uint32_t rows, const uint16_t *b, size_t panel_elements,
              uint32_t panels, uint32_t depth, float *c, size_t ldc, float *room) {
    uint32_t blocks = rows / TILE_ROWS;
    if (blocks < 2 || depth == 0) return 0; // not worth the expansion
    struct expanded_piece next = expanded_piece_of(panels, depth, 0), piece;
    for (uint32_t number = 0; next.panel < panels; number++) {
        piece = next;
        next = expanded_piece_of(panels, depth, number + 1);
        block_expand(room, b + piece.panel * panel_elements, panel_elements, piece.panels,
                     piece.panels, piece.first, piece.depth);
        for (uint32_t i = 0; i < blocks; i++) {
            size_t r = (size_t)i * TILE_ROWS;
            const float *row = a + r * lda + piece.first;
            float *out = c + r * ldc + (size_t)piece.panel * CPU_PANEL;
            if (next.panel < panels)
                block_prefetch(b + next.panel * panel_elements, panel_elements, next.panels,
                               next.first, next.depth / 2 * i / blocks,
                               next.depth / 2 * (i + 1) / blocks);
            if (piece.panels == WIDE_PANELS)
                expanded_block_most(row, lda, room, piece.depth, piece.first > 0, out, ldc);
            else
                expanded_block_one(row, lda, room, piece.depth, piece.first > 0, out, ldc);
        }
    }
    return blocks * TILE_ROWS;
}

#else

// Rows that are taken as they are stored, and plain C, have nothing to gain.
static inline uint32_t expanded_tile(const ELEMENT *a, size_t lda, uint32_t rows, const OPERAND *b,
                                     size_t panel_elements, uint32_t panels, uint32_t depth,
                                     float *c, size_t ldc, float *room) {
    (void)a, (void)lda, (void)rows, (void)b, (void)panel_elements, (void)panels, (void)depth;
    (void)c, (void)ldc, (void)room;
    return 0;
}

#endif

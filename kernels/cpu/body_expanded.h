// Many rows of attention against panels that are expanded to fp32 once for all of them, where
// `tile` takes every pair apart again for each block of rows. The chains are those of `tile`.
// Included by each table, after body_unit.h.
#include "kernels/cpu/body.h"
#include "kernels/cpu/unroll.h"

#ifdef WIDE_PANELS

// What is expanded at a time: the pairs of elements [first, first + 2 pairs) of some panels.
struct expanded_piece {
    uint32_t panel, panels, first, pairs;
};

static inline struct expanded_piece expanded_piece_of(uint32_t panels, uint32_t depth,
                                                      uint32_t number) {
    uint32_t per_panel = (depth + SHAPE_EXPANDED_DEPTH - 1) / SHAPE_EXPANDED_DEPTH;
    struct expanded_piece piece = {.panel = number / per_panel * WIDE_PANELS,
                                   .first = number % per_panel * SHAPE_EXPANDED_DEPTH};
    uint32_t left = depth - piece.first;
    piece.panels = panels - piece.panel < WIDE_PANELS ? panels - piece.panel : WIDE_PANELS;
    piece.pairs = (left < SHAPE_EXPANDED_DEPTH ? left : SHAPE_EXPANDED_DEPTH) / 2;
    return piece;
}

// As fp32, of each pair the second element first, as the chain takes them.
static inline void expanded_fill(const struct expanded_piece *piece, const uint16_t *b,
                                 size_t panel_elements, float *to) {
    for (uint32_t p = 0; p < piece->panels; p++) {
        const uint16_t *pair =
            b + (piece->panel + p) * panel_elements + (size_t)piece->first * CPU_PANEL;
        const uint16_t *end = pair + (size_t)piece->pairs * 2 * CPU_PANEL;
        for (; pair < end; pair += 2 * CPU_PANEL, to += 2 * CPU_PANEL) {
            struct lanes even, odd;
            lanes_split_bf16(pair, &even, &odd);
            lanes_store(to, odd);
            lanes_store(to + CPU_PANEL, even);
        }
    }
}

// Asks for part `part` of `parts` of a piece, while rows meet the one before.
static inline void expanded_prefetch(const struct expanded_piece *piece, const uint16_t *b,
                                     size_t panel_elements, uint32_t part, uint32_t parts) {
    uint32_t start = piece->pairs * part / parts, end = piece->pairs * (part + 1) / parts;
    for (uint32_t p = 0; p < piece->panels; p++) {
        const uint16_t *pair =
            b + (piece->panel + p) * panel_elements + (size_t)piece->first * CPU_PANEL;
        for (uint32_t i = start; i < end; i++) __builtin_prefetch(pair + (size_t)i * 2 * CPU_PANEL);
    }
}

// c[r][0 .. 16 panels) = the chains of TILE_ROWS rows over `pairs`, from what c holds when they are
// resumed, else from +0. `panels` is a constant after inlining.
BLOCK expanded_block(const float *a, size_t lda, const float *b, int panels, uint32_t pairs,
                     bool resume, float *c, size_t ldc) {
    struct lanes acc[TILE_ROWS][WIDE_PANELS];
    size_t panel = (size_t)pairs * 2 * CPU_PANEL;
    UNROLL for (int r = 0; r < TILE_ROWS; r++) {
        UNROLL for (int p = 0; p < panels; p++) acc[r][p] =
            resume ? lanes_load(c + r * ldc + p * CPU_PANEL) : lanes_set(0.0f);
    }
    for (const float *end = b + panel; b < end; a += 2, b += 2 * CPU_PANEL) {
        UNROLL for (int half = 0; half < 2; half++) {
            struct lanes w[WIDE_PANELS];
            UNROLL for (int p = 0; p < panels; p++) w[p] =
                lanes_load(b + (size_t)p * panel + half * CPU_PANEL);
            UNROLL for (int r = 0; r < TILE_ROWS; r++) {
                struct lanes x = lanes_set(a[r * lda + 1 - half]);
                UNROLL for (int p = 0; p < panels; p++) acc[r][p] = lanes_fma(x, w[p], acc[r][p]);
            }
            // Keeps gcc from mixing the halves, for which there are not enough registers.
            __asm__ volatile("" ::: "memory");
        }
    }
    UNROLL for (int r = 0; r < TILE_ROWS; r++) {
        UNROLL for (int p = 0; p < panels; p++) lanes_store(c + r * ldc + p * CPU_PANEL, acc[r][p]);
    }
}

ENV_WORK void expanded_block_most(const float *a, size_t lda, const float *b, uint32_t pairs,
                                  bool resume, float *c, size_t ldc) {
    expanded_block(a, lda, b, WIDE_PANELS, pairs, resume, c, ldc);
}

ENV_WORK void expanded_block_one(const float *a, size_t lda, const float *b, uint32_t pairs,
                                 bool resume, float *c, size_t ldc) {
    expanded_block(a, lda, b, 1, pairs, resume, c, ldc);
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
        expanded_fill(&piece, b, panel_elements, room);
        for (uint32_t i = 0; i < blocks; i++) {
            size_t r = (size_t)i * TILE_ROWS;
            const float *row = a + r * lda + piece.first;
            float *out = c + r * ldc + (size_t)piece.panel * CPU_PANEL;
            if (next.panel < panels) expanded_prefetch(&next, b, panel_elements, i, blocks);
            if (piece.panels == WIDE_PANELS)
                expanded_block_most(row, lda, room, piece.pairs, piece.first > 0, out, ldc);
            else
                expanded_block_one(row, lda, room, piece.pairs, piece.first > 0, out, ldc);
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

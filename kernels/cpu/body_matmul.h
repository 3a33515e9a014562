// Matrix products: packing, unpacking of stored weights, the walk over tiles. Included by each
// table.
#include "kernels/cpu/body.h"

#define MATMUL_NUMERICS (BODY_F32 ? CPU_F32 : CPU_BF16_1)

// Puts row `lane` of a panel in place. Returns false when an element is not finite as an operand.
static inline bool pack_lane(const float *row, uint32_t lane, uint32_t K, OPERAND *panel) {
    bool finite = true;
    uint32_t depth = shape_depth(MATMUL_NUMERICS, K);
    for (uint32_t i = 0; i < depth; i++) {
        OPERAND w = i < K ? operand_of(row[i]) : 0;
        finite &= operand_finite(w);
#if BODY_F32
        panel[(size_t)i * CPU_PANEL + lane] = w;
#else
        panel[(size_t)(i / 2) * 2 * CPU_PANEL + 2 * lane + i % 2] = w;
#endif
    }
    return finite;
}

static int pack_row(const float *row, uint32_t n, uint32_t K, void *panels) {
    size_t panel_elements = (size_t)shape_depth(MATMUL_NUMERICS, K) * CPU_PANEL;
    OPERAND *panel = (OPERAND *)panels + n / CPU_PANEL * panel_elements;
    return pack_lane(row, n % CPU_PANEL, K, panel) ? 0 : -1;
}

struct matmul_call {
    const OPERAND *x;
    uint32_t ldx, R, depth;
    const struct cpu_matrix *w;
    const float *bias;
    bool add;
    float *y;
    uint32_t ldy;
    uint32_t chunk_rows, chunk_panels, row_chunks; // how the outputs are split
};

// Parts of a thread's slice.
struct matmul_slice {
    float *c;        // [TILE_ROWS][SHAPE_GROUP_PANELS * 16]
    ELEMENT *a;      // [TILE_ROWS][depth] when rows are expanded
    float *row;      // [K] one dequantized row
    OPERAND *panels; // [SHAPE_GROUP_PANELS] unpacked panels of stored weights
};

static struct matmul_slice matmul_slice_of(const struct cpu_pool *pool, uint32_t K, uint32_t depth,
                                           bool stored) {
    uint8_t *start = pool_slice(pool, omp_get_thread_num()), *p = start;
    struct matmul_slice s;
    s.c = (float *)p;
    p += (size_t)TILE_ROWS * SHAPE_GROUP_PANELS * CPU_PANEL * sizeof(float);
    s.a = (ELEMENT *)p;
    p += shape_aligned((size_t)TILE_ROWS * depth * sizeof(ELEMENT));
    s.row = (float *)p;
    if (stored) p += shape_aligned((size_t)K * sizeof(float));
    s.panels = (OPERAND *)p;
    if (stored) p += (size_t)SHAPE_GROUP_PANELS * CPU_PANEL * depth * sizeof(OPERAND);
    assert((size_t)(p - start) <= pool->slice_bytes);
    return s;
}

// Unpacks panels [first, first + count) of stored weights; outputs beyond N are +0.
static void matmul_unpack(const struct cpu_matrix *w, uint32_t first, uint32_t count,
                          uint32_t depth, const struct matmul_slice *s) {
    uint32_t start = first * CPU_PANEL, end = start + count * CPU_PANEL;
    if (end > w->N)
        memset(s->panels + (size_t)(count - 1) * CPU_PANEL * depth, 0,
               (size_t)CPU_PANEL * depth * sizeof(OPERAND));
    uint32_t part_start = 0;
    for (int p = 0; p < w->parts; p++) {
        const struct cpu_matrix_part *part = &w->part[p];
        const struct tensor_format *format = tensor_format_of(part->type);
        assert(format != NULL && w->K % format->block == 0);
        size_t row_bytes = (size_t)w->K / format->block * format->block_bytes;
        uint32_t part_end = part_start + part->rows;
        uint32_t n = start > part_start ? start : part_start;
        for (; n < end && n < part_end; n++) {
            const uint8_t *source = (const uint8_t *)part->data + (n - part_start) * row_bytes;
            tensor_dequantize(part->type, source, w->K, s->row);
            uint32_t local = n - start;
            (void)pack_lane(s->row, local % CPU_PANEL, w->K,
                            s->panels + (size_t)(local / CPU_PANEL) * CPU_PANEL * depth);
        }
        part_start = part_end;
    }
}

// Writes a block of finished chains to y, with bias and residual.
static inline void matmul_finish(const struct matmul_call *m, const float *c, uint32_t row,
                                 uint32_t rows, uint32_t n0, uint32_t outputs) {
    for (uint32_t r = 0; r < rows; r++) {
        const float *from = c + (size_t)r * SHAPE_GROUP_PANELS * CPU_PANEL;
        float *y = m->y + (size_t)(row + r) * m->ldy + n0;
        uint32_t n = 0;
        for (; n + NUM_LANES <= outputs; n += NUM_LANES) {
            struct lanes v = lanes_load(from + n);
            if (m->bias != NULL) v = lanes_add(v, lanes_load(m->bias + n0 + n));
            if (m->add) v = lanes_add(lanes_load(y + n), v);
            lanes_store(y + n, v);
        }
        for (; n < outputs; n++) {
            float v = from[n];
            if (m->bias != NULL) v = v + m->bias[n0 + n];
            y[n] = m->add ? y[n] + v : v;
        }
    }
}

// The rows of one register block: `count` rows are split as evenly as TILE_ROWS allows.
static inline uint32_t block_rows(uint32_t count, uint32_t done) {
    uint32_t left = count - done, blocks = (left + TILE_ROWS - 1) / TILE_ROWS;
    return (left + blocks - 1) / blocks;
}

static inline const ELEMENT *matmul_rows(const struct matmul_call *m, const struct matmul_slice *s,
                                         uint32_t row, uint32_t rows, size_t *lda) {
#if BODY_EXPAND
    for (uint32_t r = 0; r < rows; r++)
        element_copy(s->a + (size_t)r * m->depth, m->x + (size_t)(row + r) * m->ldx, m->depth);
    *lda = m->depth;
    return s->a;
#else
    (void)s;
    (void)rows;
    *lda = m->ldx;
    return m->x + (size_t)row * m->ldx;
#endif
}

// Rows [row, row_end) times panels [panel, panel_end), which lie at `weights`.
ENV_WORK void matmul_piece(const struct matmul_call *m, const struct matmul_slice *s, uint32_t row,
                           uint32_t row_end, uint32_t panel, uint32_t panel_end,
                           const OPERAND *weights) {
    size_t panel_elements = (size_t)m->depth * CPU_PANEL, lda;
    uint32_t count = row_end - row;
    for (uint32_t done = 0, rows; done < count; done += rows) {
        rows = block_rows(count, done);
        const ELEMENT *a = matmul_rows(m, s, row + done, rows, &lda);
        for (uint32_t p = panel; p < panel_end; p += SHAPE_GROUP_PANELS) {
            uint32_t group =
                panel_end - p < SHAPE_GROUP_PANELS ? panel_end - p : SHAPE_GROUP_PANELS;
            tile(a, lda, rows, weights + (p - panel) * panel_elements, panel_elements, group,
                 m->depth, s->c, SHAPE_GROUP_PANELS * CPU_PANEL);
            uint32_t n0 = p * CPU_PANEL, left = m->w->N - n0;
            matmul_finish(m, s->c, row + done, rows, n0,
                          left < group * CPU_PANEL ? left : group * CPU_PANEL);
        }
    }
}

static void matmul_chunk(const struct matmul_call *m, const struct matmul_slice *s,
                         uint32_t chunk) {
    uint32_t row = chunk % m->row_chunks * m->chunk_rows;
    uint32_t row_end = row + m->chunk_rows < m->R ? row + m->chunk_rows : m->R;
    uint32_t panel = chunk / m->row_chunks * m->chunk_panels, all = shape_panels(m->w->N);
    uint32_t panel_end = panel + m->chunk_panels < all ? panel + m->chunk_panels : all;
    if (m->w->panels != NULL) {
        const OPERAND *weights =
            (const OPERAND *)m->w->panels + (size_t)panel * m->depth * CPU_PANEL;
        unsigned saved = env_enter();
        matmul_piece(m, s, row, row_end, panel, panel_end, weights);
        env_leave(saved);
        return;
    }
    for (uint32_t p = panel; p < panel_end; p += SHAPE_GROUP_PANELS) {
        uint32_t end = p + SHAPE_GROUP_PANELS < panel_end ? p + SHAPE_GROUP_PANELS : panel_end;
        unsigned saved = env_enter_plain();
        matmul_unpack(m->w, p, end - p, m->depth, s);
        (void)env_enter();
        matmul_piece(m, s, row, row_end, p, end, s->panels);
        env_leave(saved);
    }
}

// Splits the outputs: few rows share the panels evenly among the threads; many rows are cut into
// pieces whose panels stay in the second-level cache while the rows pass.
static void matmul_split(struct matmul_call *m, int threads) {
    uint32_t panels = shape_panels(m->w->N), n = (uint32_t)threads;
    bool stored = m->w->panels == NULL;
    m->chunk_rows = stored || m->R < SHAPE_CHUNK_ROWS ? m->R : SHAPE_CHUNK_ROWS;
    m->row_chunks = (m->R + m->chunk_rows - 1) / m->chunk_rows;
    uint32_t pieces = m->R <= TILE_ROWS ? n : (4 * n + m->row_chunks - 1) / m->row_chunks;
    uint32_t chunk = (panels + pieces - 1) / pieces;
    uint32_t fits =
        (uint32_t)(SHAPE_CHUNK_BYTES / ((size_t)m->depth * CPU_PANEL * sizeof(OPERAND)));
    fits = fits < SHAPE_GROUP_PANELS ? SHAPE_GROUP_PANELS : fits;
    if (m->R > TILE_ROWS) {
        chunk = chunk < fits ? chunk : fits;
        chunk = (chunk + 1) / 2 * 2;
    }
    m->chunk_panels = chunk;
}

static void matmul(const struct cpu_pool *pool, const void *x, uint32_t ldx, uint32_t R,
                   const struct cpu_matrix *w, const float *bias, bool add, float *y,
                   uint32_t ldy) {
    struct matmul_call m = {.x = x,
                            .ldx = ldx,
                            .R = R,
                            .w = w,
                            .bias = bias,
                            .add = add,
                            .y = y,
                            .ldy = ldy,
                            .depth = shape_depth(MATMUL_NUMERICS, w->K)};
    if (R == 0 || w->N == 0) return;
    assert(BODY_F32 || (ldx % 2 == 0 && ldx >= m.depth));
    int threads = pool_threads(pool, (uint64_t)R * w->N * w->K);
    matmul_split(&m, threads);
    uint32_t panel_chunks = (shape_panels(w->N) + m.chunk_panels - 1) / m.chunk_panels;
    uint32_t chunks = panel_chunks * m.row_chunks;
#pragma omp parallel num_threads(threads)
    {
        struct matmul_slice s = matmul_slice_of(pool, w->K, m.depth, w->panels == NULL);
#pragma omp for schedule(dynamic)
        for (uint32_t chunk = 0; chunk < chunks; chunk++) matmul_chunk(&m, &s, chunk);
    }
}

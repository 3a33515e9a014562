// Matrix products: packing and the walk over tiles. Included by each table.
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
    // How the outputs are split: row_chunks times panel_chunks pieces, in units of `unit` panels.
    uint32_t row_chunks, panel_chunks, unit;
    uint32_t wide_rows;               // most rows expanded at once by wide_part; 0: not by it
    uint32_t wide_parts, wide_stride; // of the inner size; of expanded rows, in floats
    bool direct;                      // compact weights are not unpacked to memory
};

// A piece of the outputs.
struct matmul_piece {
    uint32_t row, row_end, panel, panel_end;
};

// Parts of a thread's slice.
struct matmul_slice {
    float *c;        // [TILE_ROWS][SHAPE_GROUP_PANELS * 16]
    ELEMENT *a;      // [SHAPE_BAND_ROWS][depth] when rows are expanded
    float *few;      // the same room: rows for compact_tile
    OPERAND *panels; // [SHAPE_GROUP_PANELS] unpacked from compact weights
#ifdef WIDE_PANELS
    struct wide_slice wide;
#endif
};

static struct matmul_slice matmul_slice_of(const struct cpu_pool *pool, const struct matmul_call *m,
                                           int thread) {
    uint32_t depth = m->depth;
    bool compact = m->w->panels == NULL;
    uint8_t *start = pool_slice(pool, thread), *p = start;
    struct matmul_slice s;
    s.c = (float *)p;
    p += (size_t)TILE_ROWS * SHAPE_GROUP_PANELS * CPU_PANEL * sizeof(float);
    s.a = (ELEMENT *)p;
    s.few = (float *)p;
    p += shape_aligned((size_t)shape_band_rows(m->R) * depth * sizeof(float));
    s.panels = (OPERAND *)p;
    if (compact) p += (size_t)SHAPE_GROUP_PANELS * CPU_PANEL * depth * sizeof(OPERAND);
#ifdef WIDE_PANELS
    s.wide = wide_slice_of(p);
#endif
    assert((size_t)(p - start) <= pool->slice_bytes);
    return s;
}

// Panels [first, first + count) as operands, unpacked into scratch when they are compact: then at
// most SHAPE_GROUP_PANELS.
static inline const OPERAND *matmul_panels(const struct matmul_call *m,
                                           const struct matmul_slice *s, uint32_t first,
                                           uint32_t count) {
    if (m->w->panels != NULL)
        return (const OPERAND *)m->w->panels + (size_t)first * m->depth * CPU_PANEL;
    compact_unpack(m->w, first, count, s->panels);
    return s->panels;
}

// Writes a block of finished chains to y, with bias and residual. Outputs beyond N are dropped.
static inline void matmul_finish(const struct matmul_call *m, const float *c, size_t ldc,
                                 uint32_t row, uint32_t rows, uint32_t panel, uint32_t panels) {
    uint32_t n0 = panel * CPU_PANEL, left = m->w->N - n0;
    uint32_t outputs = left < panels * CPU_PANEL ? left : panels * CPU_PANEL;
    for (uint32_t r = 0; r < rows; r++) {
        const float *from = c + r * ldc;
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

// The outputs of a block are written when its chains are done: their lines are asked for before.
static inline void matmul_prefetch_outputs(const struct matmul_call *m, uint32_t row, uint32_t rows,
                                           uint32_t panel, uint32_t panels) {
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t p = 0; p < panels; p++)
            __builtin_prefetch(m->y + (size_t)(row + r) * m->ldy + (panel + p) * CPU_PANEL, 1, 3);
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

// Rows [row, row + rows), at most SHAPE_BAND_ROWS, times the piece's panels, group by group. While
// several register blocks of rows meet a group, each asks memory for its part of the next one.
static inline void matmul_band(const struct matmul_call *m, const struct matmul_slice *s,
                               const struct matmul_piece *piece, const OPERAND *weights,
                               uint32_t row, uint32_t rows) {
    size_t panel_elements = (size_t)m->depth * CPU_PANEL,
           panel_bytes = panel_elements * sizeof *weights;
    const size_t ldc = SHAPE_GROUP_PANELS * CPU_PANEL;
    size_t lda;
    const ELEMENT *a = matmul_rows(m, s, row, rows, &lda);
    uint32_t blocks = (rows + TILE_ROWS - 1) / TILE_ROWS;
    uint32_t most = blocks == 1 ? SHAPE_GROUP_PANELS : 2;
    for (uint32_t p = piece->panel; p < piece->panel_end; p += most) {
        uint32_t left = piece->panel_end - p, group = left < most ? left : most;
        const OPERAND *b = weights + (p - piece->panel) * panel_elements;
        struct ahead next = {(const char *)b + group * panel_bytes, 64 / blocks};
        for (uint32_t done = 0, n; done < rows; done += n) {
            n = block_rows(rows, done);
            if (blocks > 1) matmul_prefetch_outputs(m, row + done, n, p, group);
            tile_ahead(a + done * lda, lda, n, b, panel_elements, group, m->depth,
                       blocks == 1 ? NULL : &next, s->c, ldc);
            next.next += panel_bytes / blocks;
            matmul_finish(m, s->c, ldc, row + done, n, p, group);
        }
    }
}

// The piece's rows times its panels, which lie at `weights`.
ENV_WORK void matmul_tiles(const struct matmul_call *m, const struct matmul_slice *s,
                           const struct matmul_piece *piece, const OPERAND *weights) {
    for (uint32_t row = piece->row, rows; row < piece->row_end; row += rows) {
        rows = piece->row_end - row < SHAPE_BAND_ROWS ? piece->row_end - row : SHAPE_BAND_ROWS;
        matmul_band(m, s, piece, weights, row, rows);
    }
}

// All rows, which are few, times a piece's panels of compact weights.
ENV_WORK void matmul_direct(const struct matmul_call *m, const struct matmul_slice *s,
                            const struct matmul_piece *piece) {
    const size_t ldc = SHAPE_GROUP_PANELS * CPU_PANEL;
    for (uint32_t r = 0; r < m->R; r++)
        operand_expand(s->few + (size_t)r * m->depth, m->x + (size_t)r * m->ldx, m->depth);
    for (int i = 0; i < m->w->runs; i++) {
        const struct cpu_run *run = &m->w->run[i];
        uint32_t run_end = run->first_panel + run->panels;
        uint32_t p = piece->panel > run->first_panel ? piece->panel : run->first_panel;
        uint32_t end = piece->panel_end < run_end ? piece->panel_end : run_end;
        for (uint32_t group; p < end; p += group) {
            group = end - p < SHAPE_GROUP_PANELS ? end - p : SHAPE_GROUP_PANELS;
            compact_tile(s->few, m->depth, m->R, run,
                         m->w->compact + run->start + (p - run->first_panel) * run->panel_bytes,
                         group, m->depth, s->c, ldc);
            matmul_finish(m, s->c, ldc, 0, m->R, p, group);
        }
    }
}

#ifdef WIDE_PANELS

// Elements [from, from + depth) of the piece's rows as fp32, unless they are there already.
static inline void wide_expand_rows(const struct matmul_call *m, struct wide_slice *s,
                                    const struct matmul_piece *piece, uint32_t from,
                                    uint32_t depth) {
    if (s->held_row == piece->row && s->held_end == piece->row_end && s->held_from == from) return;
    for (uint32_t r = piece->row; r < piece->row_end; r++)
        element_copy(s->a + (size_t)(r - piece->row) * m->wide_stride,
                     m->x + (size_t)r * m->ldx + from, depth);
    s->held_row = piece->row;
    s->held_end = piece->row_end;
    s->held_from = from;
}

// A panel block: elements [from, to) of WIDE_PANELS panels, or fewer at a piece's end.
struct wide_block {
    const OPERAND *b; // where the first panel begins
    uint32_t panel, panels, from, to;
};

// Block `number` of a part [from, to) of the inner size; panels beyond the piece's end: 0.
static inline struct wide_block wide_block_of(const struct matmul_call *m,
                                              const struct matmul_piece *piece,
                                              const OPERAND *weights, uint32_t from, uint32_t to,
                                              uint32_t number) {
    uint32_t blocks = (to - from + WIDE_DEPTH - 1) / WIDE_DEPTH, pairs = (to - from) / 2;
    uint32_t at = number / blocks * WIDE_PANELS, i = number % blocks;
    uint32_t left = piece->panel_end - piece->panel;
    left = at < left ? left - at : 0;
    return (struct wide_block){
        .b = weights + (size_t)at * m->depth * CPU_PANEL,
        .panel = piece->panel + at,
        .panels = left < WIDE_PANELS ? left : WIDE_PANELS,
        .from = from + (uint32_t)((uint64_t)i * pairs / blocks) * 2,
        .to = from + (uint32_t)((uint64_t)(i + 1) * pairs / blocks) * 2,
    };
}

// One part of the inner size, [from, to), of all rows and panels of a piece.
static inline void wide_part(const struct matmul_call *m, struct wide_slice *s,
                             const struct matmul_piece *piece, const OPERAND *weights,
                             uint32_t from, uint32_t to) {
    uint32_t count = piece->row_end - piece->row;
    size_t panel_elements = (size_t)m->depth * CPU_PANEL;
    // Chains that go on in the next part all need room, others only until the panel is done.
    bool whole = from == 0 && to == m->depth;
    size_t ldc = whole ? WIDE_OUTPUTS : SHAPE_WIDE_LDC;
    wide_expand_rows(m, s, piece, from, to - from);
    struct wide_block next = wide_block_of(m, piece, weights, from, to, 0), k;
    for (uint32_t number = 1; next.panels > 0; number++) {
        k = next;
        next = wide_block_of(m, piece, weights, from, to, number);
        uint32_t depth = k.to - k.from, ahead = (next.to - next.from) / 2;
        bool first = k.from == 0, last = k.to == m->depth;
        float *chains = whole ? s->c : s->c + (size_t)(k.panel - piece->panel) * CPU_PANEL;
        block_expand(s->b, k.b, panel_elements, k.panels, WIDE_PANELS, k.from, depth);
        for (uint32_t done = 0, rows; done < count; done += rows) {
            rows = block_rows(count, done);
            float *c = first && last ? s->c : chains + (size_t)done * ldc;
            if (last) matmul_prefetch_outputs(m, piece->row + done, rows, k.panel, k.panels);
            block_prefetch(next.b, panel_elements, next.panels, next.from, ahead * done / count,
                           ahead * (done + rows) / count);
            wide_rows(s->a + (size_t)done * m->wide_stride + (k.from - from), m->wide_stride, rows,
                      s->b, depth, first, c, ldc);
            if (last) matmul_finish(m, c, ldc, piece->row + done, rows, k.panel, k.panels);
        }
    }
}

ENV_WORK void wide_tiles(const struct matmul_call *m, struct wide_slice *s,
                         const struct matmul_piece *piece, const OPERAND *weights) {
    uint32_t parts = m->wide_parts, pairs = m->depth / 2;
    for (uint32_t i = 0; i < parts; i++)
        wide_part(m, s, piece, weights, (uint32_t)((uint64_t)i * pairs / parts) * 2,
                  (uint32_t)((uint64_t)(i + 1) * pairs / parts) * 2);
}

static void matmul_work(const struct matmul_call *m, struct matmul_slice *s,
                        const struct matmul_piece *piece, const OPERAND *weights) {
    if (m->wide_rows == 0) {
        matmul_tiles(m, s, piece, weights);
        return;
    }
    struct matmul_piece part = *piece;
    for (; part.row < piece->row_end; part.row = part.row_end) {
        uint32_t left = piece->row_end - part.row;
        part.row_end = part.row + (left < m->wide_rows ? left : m->wide_rows);
        wide_tiles(m, &s->wide, &part, weights);
    }
}

#else

static void matmul_work(const struct matmul_call *m, struct matmul_slice *s,
                        const struct matmul_piece *piece, const OPERAND *weights) {
    matmul_tiles(m, s, piece, weights);
}

#endif

static inline uint32_t matmul_units(const struct matmul_call *m) {
    return (shape_panels(m->w->N) + m->unit - 1) / m->unit;
}

static void matmul_chunk(const struct matmul_call *m, struct matmul_slice *s, uint32_t chunk) {
    // Rows that were expanded serve neighbours; otherwise what neighbours share is their panels.
    uint32_t row = m->wide_rows > 0 ? chunk / m->panel_chunks : chunk % m->row_chunks;
    uint32_t column = m->wide_rows > 0 ? chunk % m->panel_chunks : chunk / m->row_chunks;
    uint32_t units = matmul_units(m), panels = shape_panels(m->w->N);
    struct matmul_piece piece = {
        .row = (uint32_t)((uint64_t)row * m->R / m->row_chunks),
        .row_end = (uint32_t)((uint64_t)(row + 1) * m->R / m->row_chunks),
        .panel = (uint32_t)((uint64_t)column * units / m->panel_chunks) * m->unit,
        .panel_end = (uint32_t)((uint64_t)(column + 1) * units / m->panel_chunks) * m->unit,
    };
    if (piece.panel_end > panels) piece.panel_end = panels;
    if (m->direct) {
        unsigned saved = env_enter();
        matmul_direct(m, s, &piece);
        env_leave(saved);
        return;
    }
    uint32_t end = piece.panel_end, step = m->w->panels != NULL ? panels : SHAPE_GROUP_PANELS;
    for (; piece.panel < end; piece.panel = piece.panel_end) {
        piece.panel_end = end - piece.panel < step ? end : piece.panel + step;
        unsigned saved = env_enter();
        const OPERAND *weights = matmul_panels(m, s, piece.panel, piece.panel_end - piece.panel);
        matmul_work(m, s, &piece, weights);
        env_leave(saved);
    }
}

static inline uint32_t matmul_ceil(uint64_t a, uint64_t b) {
    return (uint32_t)((a + b - 1) / b);
}

// Splits the outputs. Few rows share the panels evenly among the threads. Many rows are cut into
// pieces that stay in the second-level cache, as many as keep all threads busy to the end.
static void matmul_split(struct matmul_call *m, const struct cpu_pool *pool, int threads) {
    uint32_t n = (uint32_t)threads, panels = shape_panels(m->w->N);
    bool compact = m->w->panels == NULL;
    m->direct = m->w->compact != NULL && m->R <= COMPACT_ROWS &&
                (compact || m->R <= m->w->few_rows) &&
                compact_sign_hidden(m->x, m->ldx, m->R, m->w->K);
    m->row_chunks = 1;
    m->unit = 1;
    if (m->R <= TILE_ROWS) {
        m->panel_chunks = panels < n ? panels : n;
        return;
    }
    m->unit = 2;
#ifdef WIDE_PANELS
    if (m->R >= SHAPE_WIDE_FROM) {
        m->wide_parts = matmul_ceil(m->depth, SHAPE_WIDE_PART);
        m->wide_stride = shape_wide_stride(matmul_ceil(m->depth, m->wide_parts));
        m->wide_rows = shape_cached_rows(pool, m->wide_stride);
        m->unit = WIDE_PANELS;
    }
#endif
    uint32_t units = matmul_units(m), most;
    if (m->R <= SHAPE_BAND_ROWS && !compact) {
        m->panel_chunks = units < n ? units : n;
        return;
    }
    if (m->wide_rows > 0) {
        if (!compact) m->row_chunks = matmul_ceil(m->R, m->wide_rows);
        most = SHAPE_WIDE_PANELS / m->unit;
    } else {
        if (!compact) m->row_chunks = matmul_ceil(m->R, SHAPE_CHUNK_ROWS);
        size_t panel_bytes = (size_t)m->depth * CPU_PANEL * sizeof(OPERAND);
        most = shape_cached_panels(pool, panel_bytes) / m->unit;
    }
    m->panel_chunks = matmul_ceil(units, most);
    while (m->panel_chunks < units && m->row_chunks * m->panel_chunks % n != 0) m->panel_chunks++;
}

struct matmul_chunks {
    const struct matmul_call *m;
    const struct cpu_pool *pool;
    uint32_t count;
    _Atomic uint32_t next;
};

// Pieces shared among threads as they come; one each needs no agreement.
static void matmul_part(void *work, int thread, int n) {
    struct matmul_chunks *w = work;
    struct matmul_slice s = matmul_slice_of(w->pool, w->m, thread);
    if (w->count == (uint32_t)n) {
        matmul_chunk(w->m, &s, (uint32_t)thread);
        return;
    }
    for (uint32_t chunk; (chunk = atomic_fetch_add(&w->next, 1)) < w->count;)
        matmul_chunk(w->m, &s, chunk);
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
    matmul_split(&m, pool, threads);
    struct matmul_chunks work = {.m = &m, .pool = pool, .count = m.row_chunks * m.panel_chunks};
    team_run(pool->team, threads, matmul_part, &work);
}

// The CPU as a backend: a thin layer over the op tables of kernels/cpu/ops.h.
#include "engine/backend.h"

#include "engine/base/arena.h"
#include "engine/base/slab.h"
#include "kernels/cpu/cache.h"
#include "kernels/cpu/ceiling.h"
#include "kernels/cpu/compact.h"
#include "kernels/cpu/ops.h"

#include <assert.h>
#include <math.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct backend_matrix {
    struct cpu_matrix w;
    void *panels, *compact;   // owned, or NULL
    struct backend_part rows; // of BACKEND_ROWS
};

struct backend_cpu {
    struct backend base;
    const struct cpu_ops *table;
    struct cpu_pool pool;
    struct cpu_pool serial; // the same with one thread, for calls too small to share
    uint32_t rows;          // most of a pass
    const struct backend_pass *pass;
    struct cpu_spans {
        struct cpu_span *span; // room for one per row
        struct cpu_watch *watch;
        uint32_t count;
    } all, wanted; // of the pass
    bool faulty;   // this pass, by `fault`
    struct backend_fault fault;
    struct slab panels, compact; // of all matrices; one form of a matrix may be freed alone
};

static struct backend_cpu *cpu_of(struct backend *b) {
    return (struct backend_cpu *)b;
}

// Waking threads costs some microseconds, on a busy machine much more. The number of threads never
// changes a bit, so small calls go without. `work` is in multiply-adds.
static const struct cpu_pool *pool_for(const struct backend_cpu *c, uint64_t work) {
    return work < 256 * 1024 ? &c->serial : &c->pool;
}

// Row ops: some 16 operations an element.
static const struct cpu_pool *pool_for_rows(const struct backend_cpu *c, uint32_t R, uint32_t n) {
    return pool_for(c, 16 * (uint64_t)R * n);
}

static const struct cpu_pool *pool_for_spans(const struct backend_cpu *c, const struct cpu_spans *s,
                                             const struct backend_attention *a) {
    uint64_t keys = 0;
    for (uint32_t i = 0; i < s->count; i++)
        keys += (uint64_t)s->span[i].rows * (s->span[i].first_position + s->span[i].rows);
    return pool_for(c, 2 * keys * a->H * a->E);
}

static void spans_open(struct cpu_spans *s, uint32_t rows) {
    s->span = calloc(rows, sizeof *s->span);
    s->watch = calloc(rows, sizeof *s->watch);
    if (s->span == NULL || s->watch == NULL)
        mem_exhausted("spans", rows * (sizeof *s->span + sizeof *s->watch));
}

static void spans_close(struct cpu_spans *s) {
    free(s->span);
    free(s->watch);
}

static void cpu_close(struct backend *b) {
    struct backend_cpu *c = cpu_of(b);
    assert(c->panels.blocks == NULL && c->compact.blocks == NULL);
    mem_free(c->pool.scratch);
    team_close(c->pool.team);
    spans_close(&c->all);
    spans_close(&c->wanted);
    free(c);
}

static size_t slice_bytes_of(const struct backend_cpu *c, const struct backend_limits *l) {
    size_t bytes = cpu_slice_bytes(c->table->numerics, l->rows, l->K, l->N, l->H, l->G, l->E);
    return (bytes + 63) / 64 * 64;
}

static uint64_t cpu_scratch_bytes(struct backend *b, const struct backend_limits *limits) {
    return (uint64_t)slice_bytes_of(cpu_of(b), limits) * (uint64_t)b->threads;
}

static int cpu_prepare(struct backend *b, const struct backend_limits *limits, struct err *e) {
    struct backend_cpu *c = cpu_of(b);
    assert(c->pool.scratch == NULL);
    c->pool.slice_bytes = slice_bytes_of(c, limits);
    TRY(mem_alloc(c->pool.slice_bytes * (size_t)b->threads, "working memory of the CPU ops",
                  &c->pool.scratch, e));
    c->serial = c->pool;
    c->serial.threads = 1;
    c->rows = limits->rows;
    spans_open(&c->all, limits->rows);
    spans_open(&c->wanted, limits->rows);
    return 0;
}

// The number behind `label` in a small text file of the system, or `otherwise`.
static uint64_t system_number(const char *path, const char *label, uint64_t otherwise) {
    FILE *f = fopen(path, "re");
    if (f == NULL) return otherwise;
    char line[256];
    uint64_t found = otherwise;
    while (fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, label, strlen(label)) != 0) continue;
        unsigned long long value;
        if (sscanf(line + strlen(label), "%llu", &value) == 1) found = value;
        break;
    }
    fclose(f);
    return found;
}

static int cpu_memory_free_bytes(struct backend *b, uint64_t *out, struct err *e) {
    (void)b;
    uint64_t kib = system_number("/proc/meminfo", "MemAvailable:", 0);
    if (kib == 0)
        FAIL(e, ERR_IO,
             "/proc/meminfo: no MemAvailable, so free memory is unknown; set memory_bytes");
    *out = kib * 1024;
    // A container may have less than its machine (cgroup v2).
    uint64_t limit = system_number("/sys/fs/cgroup/memory.max", "", UINT64_MAX);
    if (limit != UINT64_MAX) {
        uint64_t used = system_number("/sys/fs/cgroup/memory.stat", "anon ", 0);
        uint64_t left = limit > used ? limit - used : 0;
        if (left < *out) *out = left;
    }
    return 0;
}

static int cpu_alloc(struct backend *b, size_t bytes, const char *what, void **out, struct err *e) {
    (void)b;
    return mem_alloc(bytes, what, out, e);
}

static void cpu_free(struct backend *b, void *memory) {
    (void)b;
    mem_free(memory);
}

static void cpu_copy(struct backend *b, void *to, const void *from, size_t bytes) {
    (void)b;
    memcpy(to, from, bytes);
}

static void cpu_sync(struct backend *b) {
    (void)b; // every op of the CPU is done when it returns
}

static uint32_t rows_of(const struct backend_part *parts, int count) {
    uint64_t rows = 0;
    for (int i = 0; i < count; i++) rows += parts[i].rows;
    assert(rows <= UINT32_MAX);
    return (uint32_t)rows;
}

static uint64_t panel_bytes(const struct backend *b, uint32_t N, uint32_t K) {
    uint64_t panels = ((uint64_t)N + CPU_PANEL - 1) / CPU_PANEL;
    uint64_t k = b->operand_bytes == 2 ? ((uint64_t)K + 1) / 2 * 2 : K;
    return panels * k * CPU_PANEL * b->operand_bytes;
}

// The compact layout of a matrix, or its N and K alone with 0 bytes when a part has none.
static size_t compact_plan(const struct backend_part *parts, int count, uint32_t K,
                           struct cpu_compact_part compact[BACKEND_PARTS], struct cpu_matrix *w) {
    for (int i = 0; i < count; i++)
        compact[i] = (struct cpu_compact_part){parts[i].type, parts[i].rows, parts[i].data};
    size_t bytes = cpu_compact_plan(compact, count, K, w);
    if (bytes == 0) *w = (struct cpu_matrix){.N = rows_of(parts, count), .K = K};
    return bytes;
}

static bool wants_panels(enum backend_storage storage, size_t compact_bytes) {
    return storage == BACKEND_UNPACKED || storage == BACKEND_BOTH ||
           (storage == BACKEND_STORED && compact_bytes == 0);
}

static bool wants_compact(enum backend_storage storage) {
    return storage == BACKEND_STORED || storage == BACKEND_BOTH;
}

static uint64_t cpu_matrix_bytes(struct backend *b, const struct backend_part *parts, int count,
                                 uint32_t K, enum backend_storage storage) {
    struct cpu_compact_part compact[BACKEND_PARTS];
    struct cpu_matrix w;
    size_t bytes = compact_plan(parts, count, K, compact, &w);
    uint64_t panels = wants_panels(storage, bytes) ? panel_bytes(b, w.N, K) : 0;
    return (wants_compact(storage) ? bytes : 0) + panels; // BACKEND_ROWS: in the mapped file
}

static size_t part_row_bytes(const struct backend_part *p, uint32_t K) {
    const struct tensor_format *f = tensor_format_of(p->type);
    assert(f != NULL && K % f->block == 0);
    return (size_t)(K / f->block) * f->block_bytes;
}

static int loaders(const struct backend_cpu *c, uint32_t rows, uint32_t K) {
    return (uint64_t)rows * K < 256 * 1024 ? 1 : c->base.threads;
}

struct read_work {
    const struct backend_cpu *c;
    const struct backend_part *p;
    uint32_t K, first;
    float *rows; // [threads][K]
    void *panels;
    atomic_bool bad;
};

static void read_rows(void *work, int thread, int threads) {
    struct read_work *w = work;
    size_t row_bytes = part_row_bytes(w->p, w->K);
    float *row = w->rows + (size_t)thread * w->K;
    uint32_t from, to;
    bool bad = false;
    team_part(w->p->rows, thread, threads, &from, &to);
    for (uint32_t n = from; n < to; n++) {
        tensor_dequantize(w->p->type, (const uint8_t *)w->p->data + n * row_bytes, w->K, row);
        if (w->panels != NULL)
            bad |= w->c->table->pack_row(row, w->first + n, w->K, w->panels) != 0;
        else
            for (uint32_t i = 0; i < w->K; i++) bad |= !isfinite(row[i]);
    }
    if (bad) w->bad = true;
}

// Goes through one part's rows, which begin at output `first`, and fills them in where there are
// panels. Rows are independent, so the order in which threads take them does not matter. Returns
// false when a value is not finite.
static bool read_part(const struct backend_cpu *c, const struct backend_part *p, uint32_t K,
                      uint32_t first, float *rows, void *panels) {
    struct read_work work = {c, p, K, first, rows, panels, false};
    team_run(c->pool.team, loaders(c, p->rows, K), read_rows, &work);
    return !work.bad;
}

// Both return the number of a part that is not finite, or -1.
static int load_rows(const struct backend_cpu *c, const struct backend_part *parts, int count,
                     uint32_t K, void *panels) {
    float *rows = malloc(sizeof(float) * K * (size_t)c->base.threads);
    if (rows == NULL) mem_exhausted("weight rows", sizeof(float) * K);
    uint32_t first = 0;
    int bad = -1;
    for (int i = 0; i < count && bad < 0; i++) {
        if (!read_part(c, &parts[i], K, first, rows, panels)) bad = i;
        first += parts[i].rows;
    }
    free(rows);
    return bad;
}

struct compact_work {
    const struct cpu_compact_part *parts;
    int count;
    const struct cpu_matrix *w;
    void *memory;
    _Atomic uint32_t bad; // lowest part with a value that is not finite
};

static void compact_panels(void *work, int thread, int threads) {
    struct compact_work *w = work;
    uint32_t from, to;
    team_part((w->w->N + CPU_PANEL - 1) / CPU_PANEL, thread, threads, &from, &to);
    for (uint32_t p = from; p < to; p++) {
        int part = cpu_compact_pack(w->w, w->parts, w->count, p, w->memory);
        if (part >= 0) team_report(&w->bad, (uint32_t)part);
    }
}

static int load_compact(const struct backend_cpu *c, const struct cpu_compact_part *parts,
                        int count, const struct cpu_matrix *w, void *memory) {
    struct compact_work work = {parts, count, w, memory, UINT32_MAX};
    team_run(c->pool.team, loaders(c, w->N, w->K), compact_panels, &work);
    return work.bad == UINT32_MAX ? -1 : (int)work.bad;
}

static void cpu_matrix_free(struct backend *b, struct backend_matrix *m) {
    if (m == NULL) return;
    slab_free(&cpu_of(b)->panels, m->panels);
    slab_free(&cpu_of(b)->compact, m->compact);
    free(m);
}

static int cpu_matrix_load(struct backend *b, const struct backend_part *parts, int count,
                           uint32_t K, enum backend_storage storage, struct backend_matrix **out,
                           struct err *e) {
    struct backend_cpu *c = cpu_of(b);
    assert(count >= 1 && count <= BACKEND_PARTS && count <= CPU_RUNS);
    struct backend_matrix *m = calloc(1, sizeof *m);
    if (m == NULL) mem_exhausted("weights", sizeof *m);
    struct cpu_compact_part compact[BACKEND_PARTS];
    size_t bytes = compact_plan(parts, count, K, compact, &m->w);
    bool panels = wants_panels(storage, bytes);
    if (!wants_compact(storage)) bytes = 0;
    if ((panels &&
         slab_alloc(&c->panels, panel_bytes(b, m->w.N, K), "weights", &m->panels, e) != 0) ||
        (bytes != 0 && slab_alloc(&c->compact, bytes, "stored weights", &m->compact, e) != 0)) {
        cpu_matrix_free(b, m);
        return -1;
    }
    m->rows = parts[0];
    m->w.panels = m->panels;
    m->w.compact = m->compact;
    int bad = bytes != 0 ? load_compact(c, compact, count, &m->w, m->compact) : -1;
    if (bad < 0 && (panels || bytes == 0)) bad = load_rows(c, parts, count, K, m->panels);
    if (bad >= 0) {
        cpu_matrix_free(b, m);
        FAIL(e, ERR_MODEL,
             "tensor " STR_FMT ": holds a NaN or an infinity; the model file is damaged or was "
             "converted wrongly",
             STR_ARG(parts[bad].name));
    }
    *out = m;
    return 0;
}

static void cpu_matrix_few_rows(struct backend *b, struct backend_matrix *m, uint32_t rows) {
    (void)b;
    m->w.few_rows = rows;
}

static void cpu_matrix_unpacked_only(struct backend *b, struct backend_matrix *m) {
    if (m->panels == NULL) return;
    slab_free(&cpu_of(b)->compact, m->compact);
    m->compact = NULL;
    m->w.compact = NULL;
}

static size_t cpu_kv_layer_bytes(struct backend *b, uint32_t G, uint32_t E) {
    return 2 * cpu_kv_bytes(cpu_of(b)->table->numerics, G, E);
}

_Static_assert(sizeof(struct cpu_key_range) == sizeof(struct backend_key_range) &&
                   offsetof(struct cpu_key_range, end) == offsetof(struct backend_key_range, end),
               "ranges pass from the backend to its ops as they are");

static const struct cpu_watch *watch_of(struct cpu_spans *s, const struct backend_watch *watch) {
    if (watch == NULL) return NULL;
    struct cpu_watch *to = &s->watch[s->count];
    *to = (struct cpu_watch){.ranges = (const struct cpu_key_range *)watch->ranges,
                             .count = watch->count,
                             .first_row = watch->row,
                             .rows = 1};
    return to;
}

static void spans_set(struct cpu_spans *s, const struct backend_span *spans, uint32_t count) {
    for (s->count = 0; s->count < count; s->count++) {
        const struct backend_span *from = &spans[s->count];
        s->span[s->count] = (struct cpu_span){.first_row = from->first_row,
                                              .rows = from->rows,
                                              .first_position = from->first_position,
                                              .pages = from->pages,
                                              .watch = watch_of(s, from->watch)};
    }
}

static void cpu_begin(struct backend *b, const struct backend_pass *pass) {
    struct backend_cpu *c = cpu_of(b);
    assert(pass->span_count <= c->rows && pass->wanted_span_count <= c->rows);
    c->pass = pass;
    c->faulty = false;
    spans_set(&c->all, pass->spans, pass->span_count);
    spans_set(&c->wanted, pass->wanted_spans, pass->wanted_span_count);
}

static void cpu_play(struct backend *b, void (*work)(void *context), void *context) {
    (void)b;
    work(context);
}

static bool cpu_fault(struct backend *b, struct backend_fault *out) {
    *out = cpu_of(b)->fault;
    return cpu_of(b)->faulty;
}

// Ops come in the order of layers and kinds, so the first fault is the one to tell.
static void fault_set(struct backend_cpu *c, enum backend_fault_kind kind, uint32_t layer,
                      uint32_t row) {
    if (!c->faulty) c->fault = (struct backend_fault){kind, layer, row, NULL};
    c->faulty = true;
}

static void cpu_embed(struct backend *b, const struct backend_matrix *rows, float *x) {
    const struct backend_pass *pass = cpu_of(b)->pass;
    const struct backend_part *p = &rows->rows;
    uint32_t K = rows->w.K;
    size_t row_bytes = part_row_bytes(p, K);
    for (uint32_t r = 0; r < pass->rows; r++) {
        int32_t id = pass->ids[r];
        assert(id >= 0 && (uint32_t)id < p->rows);
        tensor_dequantize(p->type, (const uint8_t *)p->data + (size_t)id * row_bytes, K,
                          x + (size_t)r * K);
    }
}

static void cpu_angles(struct backend *b, const struct backend_rotation *r, float *cos_sin) {
    const struct backend_pass *pass = cpu_of(b)->pass;
    for (uint32_t i = 0; i < pass->rows; i++)
        cpu_rope_angles(r->base, r->rotary, r->factors, pass->positions[i],
                        cos_sin + (size_t)i * r->rotary);
}

static void cpu_gather(struct backend *b, const void *from, size_t row_bytes, void *to) {
    const struct backend_pass *pass = cpu_of(b)->pass;
    for (uint32_t i = 0; i < pass->wanted_count; i++)
        memcpy((uint8_t *)to + i * row_bytes, (const uint8_t *)from + pass->wanted[i] * row_bytes,
               row_bytes);
}

static void cpu_rmsnorm(struct backend *b, const float *x, uint32_t R, uint32_t D,
                        const float *weight, float epsilon, void *out, uint32_t ldout) {
    struct backend_cpu *c = cpu_of(b);
    c->table->rmsnorm(pool_for_rows(c, R, D), x, R, D, weight, epsilon, out, ldout);
}

static void cpu_matmul(struct backend *b, const void *x, uint32_t ldx, uint32_t R,
                       const struct backend_matrix *w, const float *bias, bool add, float *y,
                       uint32_t ldy) {
    struct backend_cpu *c = cpu_of(b);
    c->table->matmul(pool_for(c, (uint64_t)R * w->w.N * w->w.K), x, ldx, R, &w->w, bias, add, y,
                     ldy);
}

static void cpu_rope(struct backend *b, const float *x, uint32_t ldx, uint32_t R, uint32_t heads,
                     uint32_t E, uint32_t rotary, bool neighbours, const float *cos_sin, void *out,
                     uint32_t ldout) {
    struct backend_cpu *c = cpu_of(b);
    c->table->rope(pool_for_rows(c, R, heads * E), x, ldx, R, heads, E, rotary,
                   neighbours ? CPU_PAIR_NEIGHBOURS : CPU_PAIR_HALVES, cos_sin, out, ldout);
}

static void cpu_round(struct backend *b, const float *x, uint32_t ldx, uint32_t R, uint32_t n,
                      void *out, uint32_t ldout) {
    struct backend_cpu *c = cpu_of(b);
    c->table->round(pool_for_rows(c, R, n), x, ldx, R, n, out, ldout);
}

static struct cpu_attention attention_of(const struct backend_attention *a) {
    return (struct cpu_attention){.H = a->H,
                                  .G = a->G,
                                  .E = a->E,
                                  .scale = a->scale,
                                  .softcap = a->softcap,
                                  .window = a->window,
                                  .page_offset = a->page_offset};
}

static void cpu_kv_append(struct backend *b, const struct backend_attention *a, const void *k,
                          const void *v, uint32_t ld) {
    struct backend_cpu *c = cpu_of(b);
    struct cpu_attention attention = attention_of(a);
    uint32_t bad;
    if (c->table->kv_append(pool_for(c, (uint64_t)c->pass->rows * a->G * a->E * 32), c->all.span,
                            c->all.count, &attention, k, v, ld, &bad) != 0)
        fault_set(c, BACKEND_FAULT_KV, a->layer, bad);
}

// Where the watched rows of this layer put their shares.
static void aim_watches(struct cpu_spans *s, const struct backend_span *spans, size_t offset) {
    for (uint32_t i = 0; i < s->count; i++)
        if (spans[i].watch != NULL) s->watch[i].shares = spans[i].watch->shares + offset;
}

static void cpu_attend(struct backend *b, const struct backend_attention *a, bool wanted,
                       const void *q, uint32_t ldq, void *out, uint32_t ldout) {
    struct backend_cpu *c = cpu_of(b);
    struct cpu_attention attention = attention_of(a);
    struct cpu_spans *s = wanted ? &c->wanted : &c->all;
    uint32_t bad;
    aim_watches(s, wanted ? c->pass->wanted_spans : c->pass->spans,
                a->layer * c->pass->shares_stride);
    if (c->table->attention(pool_for_spans(c, s, a), s->span, s->count, &attention, q, ldq, out,
                            ldout, &bad) != 0)
        fault_set(c, BACKEND_FAULT_SCORE, a->layer, bad);
}

static void cpu_gate_op(struct backend *b, bool gelu, const float *gate_up, uint32_t ld, uint32_t R,
                        uint32_t F, void *out, uint32_t ldout) {
    struct backend_cpu *c = cpu_of(b);
    c->table->gate(pool_for_rows(c, R, F), gelu ? CPU_GATE_GELU_TANH : CPU_GATE_SILU, gate_up, ld,
                   R, F, out, ldout);
}

static void cpu_draw(struct backend *b, const float *z, uint32_t R, uint32_t n,
                     const struct token_draw *draws, int64_t *out) {
    cpu_draw_rows(cpu_of(b)->table, &cpu_of(b)->pool, z, R, n, draws, out);
}

static void cpu_log_sum_exp(struct backend *b, const float *z, uint32_t R, uint32_t n, float *out) {
    for (uint32_t r = 0; r < R; r++) out[r] = cpu_of(b)->table->log_sum_exp(z + (size_t)r * n, n);
}

static void cpu_ceilings(struct backend *b, const void *memory, size_t bytes,
                         struct backend_ceilings *out) {
    *out = (struct backend_ceilings){
        .flop_per_s = 2 * cpu_ceiling_fma_per_s(cpu_of(b)->table, cpu_of(b)->pool.team, b->threads),
        .read_bytes_per_s = cpu_ceiling_read_per_s(memory, bytes, cpu_of(b)->pool.team, b->threads),
        .near_bytes = cpu_core_cache_bytes() * (size_t)b->threads,
    };
}

// There is one kernel for each op.
static void cpu_expect(struct backend *b, const struct backend_shape *shapes, int count) {
    (void)b, (void)shapes, (void)count;
}

static const struct backend_ops CPU_OPS = {
    .close = cpu_close,
    .scratch_bytes = cpu_scratch_bytes,
    .prepare = cpu_prepare,
    .memory_free_bytes = cpu_memory_free_bytes,
    .expect = cpu_expect,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_copy,
    .download = cpu_copy,
    .copy = cpu_copy,
    .sync = cpu_sync,
    .matrix_load = cpu_matrix_load,
    .matrix_free = cpu_matrix_free,
    .matrix_few_rows = cpu_matrix_few_rows,
    .matrix_unpacked_only = cpu_matrix_unpacked_only,
    .matrix_bytes = cpu_matrix_bytes,
    .kv_layer_bytes = cpu_kv_layer_bytes,
    .begin = cpu_begin,
    .play = cpu_play,
    .embed = cpu_embed,
    .angles = cpu_angles,
    .gather = cpu_gather,
    .rmsnorm = cpu_rmsnorm,
    .matmul = cpu_matmul,
    .rope = cpu_rope,
    .round = cpu_round,
    .kv_append = cpu_kv_append,
    .attention = cpu_attend,
    .gate = cpu_gate_op,
    .draw = cpu_draw,
    .log_sum_exp = cpu_log_sum_exp,
    .fault = cpu_fault,
    .ceilings = cpu_ceilings,
};

int backend_cpu_open(const struct backend_options *options, struct backend **out, struct err *e) {
    const char *numerics = options->numerics != NULL ? options->numerics : "bf16-1";
    enum cpu_numerics kind;
    if (strcmp(numerics, "bf16-1") == 0) {
        kind = CPU_BF16_1;
        numerics = "bf16-1";
    } else if (strcmp(numerics, "f32") == 0) {
        kind = CPU_F32;
        numerics = "f32";
    } else {
        FAIL(e, ERR_CONFIG, "numerics '%s' is not known to the cpu backend: it is bf16-1 or f32",
             numerics);
    }
    const char *why = "";
    const struct cpu_ops *table = cpu_ops_find(kind, options->op_table, &why);
    if (table == NULL)
        FAIL(e, ERR_PROVIDER, "cpu backend: op table '%s' cannot serve numerics %s: %s",
             options->op_table != NULL ? options->op_table : "auto", numerics, why);
    int threads = options->threads > 0 ? options->threads : team_processors();
    if (threads > TEAM_THREADS_MAX) threads = TEAM_THREADS_MAX;
    struct team *team = team_open(threads);
    if (team == NULL)
        FAIL(e, ERR_PROVIDER,
             "cpu backend: %d threads cannot be started: %s; ask for fewer with --threads", threads,
             strerror(errno));
    struct backend_cpu *c = calloc(1, sizeof *c);
    if (c == NULL) mem_exhausted("backend", sizeof *c);
    c->table = table;
    c->pool.threads = threads;
    c->pool.team = team;
    c->pool.cache_bytes = cpu_core_cache_bytes();
    c->base = (struct backend){
        .ops = &CPU_OPS,
        .name = "cpu",
        .numerics = kind == CPU_F32 ? "f32" : "bf16-1",
        .op_table = table->name,
        .note = "",
        .operand_bytes = table->operand_bytes,
        .row_alignment = 2,
        .pass_rows = 512,
        .threads = threads,
    };
    *out = &c->base;
    return 0;
}

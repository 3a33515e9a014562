// The GPU as a backend: a thin layer over the table of kernels/cuda/ops.h, which a plug-in has.
#include "engine/backend.h"

#include "engine/backend_plugin.h"
#include "engine/backend_products.h"
#include "engine/base/arena.h"
#include "engine/base/log.h"
#include "kernels/cpu/ops.h"
#include "kernels/cuda/ops.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(CUDA_PAGE == BACKEND_PAGE, "pages of the engine are those of the kernels");

// One of the two forms; BACKEND_ROWS has its rows as the file has them.
struct backend_matrix {
    uint32_t N, K, ld;
    void *unpacked; // bf16 [N][ld], or NULL
    struct cuda_stored stored[BACKEND_PARTS];
    int stored_count; // 0: unpacked
};

struct backend_cuda {
    struct backend base;
    const struct cuda_ops *table;
    struct cuda_device *device;
    struct backend_device facts;
    struct backend_products *products;
    struct backend_limits limits;
    const struct backend_pass *pass;
    double *frequencies; // host, of the rotation
    struct cuda_span *spans, *wanted_spans;
    struct cuda_watch *watches, *wanted_watches;
};

static struct backend_cuda *cuda_of(struct backend *b) {
    return (struct backend_cuda *)b;
}

static void cuda_close(struct backend *b) {
    struct backend_cuda *c = cuda_of(b);
    backend_products_close(c->products);
    c->table->close(c->device);
    free(c->frequencies);
    free(c->spans);
    free(c->wanted_spans);
    free(c->watches);
    free(c->wanted_watches);
    free(c);
}

static int check_device(struct backend_cuda *c, struct err *e) {
    const char *failure = c->table->failure(c->device);
    if (failure != NULL) FAIL(e, ERR_PROVIDER, "cuda backend: %s: %s", c->facts.name, failure);
    return 0;
}

static struct cuda_limits limits_of(const struct backend_limits *l) {
    return (struct cuda_limits){.rows = l->rows,
                                .H = l->H,
                                .G = l->G,
                                .E = l->E,
                                .L = l->L,
                                .sequences = l->sequences,
                                .positions = l->positions,
                                .ranges = l->ranges,
                                .outputs = l->N};
}

static uint64_t cuda_scratch_bytes(struct backend *b, const struct backend_limits *limits) {
    struct cuda_limits l = limits_of(limits);
    return cuda_of(b)->table->scratch_bytes(&l);
}

static void *host_array(size_t count, size_t size) {
    void *p = calloc(count > 0 ? count : 1, size);
    if (p == NULL) mem_exhausted("lists of a pass", count * size);
    return p;
}

static int cuda_prepare(struct backend *b, const struct backend_limits *limits, struct err *e) {
    struct backend_cuda *c = cuda_of(b);
    struct cuda_limits l = limits_of(limits);
    assert(c->table->supports_head(l.E)); // backend_cuda_open
    c->limits = *limits;
    c->frequencies = host_array(l.E, sizeof *c->frequencies);
    c->spans = host_array(l.rows, sizeof *c->spans);
    c->wanted_spans = host_array(l.rows, sizeof *c->wanted_spans);
    c->watches = host_array(l.rows, sizeof *c->watches);
    c->wanted_watches = host_array(l.rows, sizeof *c->wanted_watches);
    if (c->table->prepare(c->device, &l) != 0) return check_device(c, e);
    return 0;
}

static int cuda_memory_free_bytes(struct backend *b, uint64_t *out, struct err *e) {
    struct backend_cuda *c = cuda_of(b);
    if (c->table->memory_free(c->device, out) != 0) return check_device(c, e);
    return 0;
}

static void cuda_expect(struct backend *b, const struct backend_shape *shapes, int count) {
    struct backend_cuda *c = cuda_of(b);
    backend_products_expect(c->products, shapes, count, c->limits.rows);
}

static int cuda_alloc(struct backend *b, size_t bytes, const char *what, void **out,
                      struct err *e) {
    struct backend_cuda *c = cuda_of(b);
    if (c->table->alloc(c->device, bytes, out) == 0) return 0;
    TRY(check_device(c, e));
    FAIL(e, ERR_MEMORY, "cuda backend: no %zu bytes of device memory for %s", bytes, what);
}

static void cuda_free(struct backend *b, void *memory) {
    cuda_of(b)->table->release(cuda_of(b)->device, memory);
}

static void cuda_upload(struct backend *b, void *to, const void *host, size_t bytes) {
    cuda_of(b)->table->upload(cuda_of(b)->device, to, host, bytes);
}

static void cuda_download(struct backend *b, void *host, const void *from, size_t bytes) {
    cuda_of(b)->table->download(cuda_of(b)->device, host, from, bytes);
}

static void cuda_copy(struct backend *b, void *to, const void *from, size_t bytes) {
    cuda_of(b)->table->copy(cuda_of(b)->device, to, from, bytes);
}

static void cuda_sync(struct backend *b) {
    cuda_of(b)->table->sync(cuda_of(b)->device);
}

// ---- weights -----------------------------------------------------------------------------------

static size_t row_bytes_of(const struct backend_part *p, uint32_t K) {
    const struct tensor_format *f = tensor_format_of(p->type);
    assert(f != NULL && K % f->block == 0);
    return (size_t)(K / f->block) * f->block_bytes;
}

static uint32_t rows_of(const struct backend_part *parts, int count) {
    uint64_t rows = 0;
    for (int i = 0; i < count; i++) rows += parts[i].rows;
    assert(rows <= UINT32_MAX);
    return (uint32_t)rows;
}

static bool keeps_stored(const struct backend_part *parts, int count,
                         enum backend_storage storage) {
    if (storage != BACKEND_STORED) return storage == BACKEND_ROWS;
    for (int i = 0; i < count; i++)
        if (tensor_format_of(parts[i].type)->group == 0) return false;
    return true;
}

static uint64_t cuda_matrix_bytes(struct backend *b, const struct backend_part *parts, int count,
                                  uint32_t K, enum backend_storage storage) {
    if (!keeps_stored(parts, count, storage))
        return (uint64_t)rows_of(parts, count) * backend_row_stride(b, K) * b->operand_bytes;
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += (uint64_t)parts[i].rows * row_bytes_of(&parts[i], K);
    return bytes;
}

static void cuda_matrix_free(struct backend *b, struct backend_matrix *m) {
    if (m == NULL) return;
    cuda_free(b, m->unpacked);
    for (int i = 0; i < m->stored_count; i++) cuda_free(b, (void *)m->stored[i].data);
    free(m);
}

static struct cuda_stored stored_of(const struct backend_part *p, uint32_t K) {
    return (struct cuda_stored){
        .type = p->type, .rows = p->rows, .K = K, .row_bytes = row_bytes_of(p, K), .data = p->data};
}

// The part's rows as the file has them.
static int load_stored(struct backend *b, const struct backend_part *p, struct backend_matrix *m,
                       struct err *e) {
    struct cuda_stored s = stored_of(p, m->K);
    void *memory;
    TRY(cuda_alloc(b, s.rows * s.row_bytes, "stored weights", &memory, e));
    cuda_upload(b, memory, p->data, s.rows * s.row_bytes);
    s.data = memory;
    m->stored[m->stored_count++] = s;
    return 0;
}

static int fail_not_finite(const struct backend_part *p, struct err *e) {
    FAIL(e, ERR_MODEL,
         "tensor " STR_FMT ": holds a NaN or an infinity; the model file is damaged or was "
         "converted wrongly",
         STR_ARG(p->name));
}

// Unpacks a part, into the matrix or, of what stays stored, only to see whether it is finite.
static int load_part(struct backend_cuda *c, const struct backend_part *p, uint32_t first,
                     struct backend_matrix *m, struct err *e) {
    struct cuda_stored s = stored_of(p, m->K);
    uint16_t *to = (uint16_t *)m->unpacked + (size_t)first * m->ld;
    bool finite = c->table->unpack(c->device, &s, m->unpacked != NULL ? to : NULL, m->ld);
    TRY(check_device(c, e));
    return finite ? 0 : fail_not_finite(p, e);
}

static int load_parts(struct backend *b, const struct backend_part *parts, int count,
                      enum backend_storage storage, struct backend_matrix *m, struct err *e) {
    bool stored = keeps_stored(parts, count, storage);
    if (!stored)
        TRY(cuda_alloc(b, (size_t)m->N * m->ld * b->operand_bytes, "weights", &m->unpacked, e));
    for (int i = 0, first = 0; i < count; first += (int)parts[i++].rows) {
        TRY(load_part(cuda_of(b), &parts[i], (uint32_t)first, m, e));
        if (stored) TRY(load_stored(b, &parts[i], m, e));
    }
    return check_device(cuda_of(b), e);
}

static int cuda_matrix_load(struct backend *b, const struct backend_part *parts, int count,
                            uint32_t K, enum backend_storage storage, struct backend_matrix **out,
                            struct err *e) {
    assert(count >= 1 && count <= BACKEND_PARTS);
    struct backend_matrix *m = host_array(1, sizeof *m);
    m->N = rows_of(parts, count);
    m->K = K;
    m->ld = backend_row_stride(b, K);
    if (load_parts(b, parts, count, storage, m, e) != 0) {
        cuda_matrix_free(b, m);
        return -1;
    }
    *out = m;
    return 0;
}

// There is one form of a matrix, whatever is asked for.
static void cuda_matrix_few_rows(struct backend *b, struct backend_matrix *m, uint32_t rows) {
    (void)b, (void)m, (void)rows;
}

static void cuda_matrix_unpacked_only(struct backend *b, struct backend_matrix *m) {
    (void)b, (void)m;
}

static size_t cuda_kv_layer_bytes(struct backend *b, uint32_t G, uint32_t E) {
    return (size_t)2 * G * BACKEND_PAGE * E * b->operand_bytes;
}

static void cuda_matmul(struct backend *b, const void *x, uint32_t ldx, uint32_t R,
                        const struct backend_matrix *w, const float *bias, bool add, float *y,
                        uint32_t ldy) {
    struct backend_cuda *c = cuda_of(b);
    if (w->stored_count == 0) {
        c->table->matmul(c->device, x, ldx, R, w->unpacked, w->ld, w->N, w->K, bias, add, y, ldy);
        return;
    }
    for (int i = 0; i < w->stored_count; i++) {
        const struct cuda_stored *s = &w->stored[i];
        c->table->matmul_stored(c->device, x, ldx, R, s, bias, add, y, ldy);
        y += s->rows;
        if (bias != NULL) bias += s->rows;
    }
}

// ---- a pass ------------------------------------------------------------------------------------

_Static_assert(sizeof(struct cuda_key_range) == sizeof(struct backend_key_range) &&
                   offsetof(struct cuda_key_range, end) == offsetof(struct backend_key_range, end),
               "ranges pass from the backend to its ops as they are");

static void set_spans(const struct backend_span *from, uint32_t count, struct cuda_span *to,
                      struct cuda_watch *watches) {
    for (uint32_t i = 0; i < count; i++) {
        const struct backend_watch *watch = from[i].watch;
        to[i] = (struct cuda_span){.first_row = from[i].first_row,
                                   .rows = from[i].rows,
                                   .first_position = from[i].first_position,
                                   .pages = from[i].pages};
        if (watch == NULL) continue;
        assert(watch->row == from[i].rows - 1);
        watches[i] = (struct cuda_watch){.ranges = (const struct cuda_key_range *)watch->ranges,
                                         .count = watch->count,
                                         .shares = watch->shares};
        to[i].watch = &watches[i];
    }
}

static void cuda_begin(struct backend *b, const struct backend_pass *pass) {
    struct backend_cuda *c = cuda_of(b);
    assert(pass->rows <= c->limits.rows);
    c->pass = pass;
    set_spans(pass->spans, pass->span_count, c->spans, c->watches);
    set_spans(pass->wanted_spans, pass->wanted_span_count, c->wanted_spans, c->wanted_watches);
    struct cuda_pass p = {.rows = pass->rows,
                          .ids = pass->ids,
                          .positions = pass->positions,
                          .spans = c->spans,
                          .wanted_spans = c->wanted_spans,
                          .span_count = pass->span_count,
                          .wanted_span_count = pass->wanted_span_count,
                          .wanted = pass->wanted,
                          .wanted_count = pass->wanted_count,
                          .shares_stride = pass->shares_stride};
    c->table->begin(c->device, &p);
}

static void cuda_play(struct backend *b, void (*work)(void *context), void *context) {
    struct backend_cuda *c = cuda_of(b);
    const char *why = c->table->play(c->device, work, context);
    if (why != NULL) log_warn("decoding goes on without CUDA graphs, more slowly: %s", why);
}

static void cuda_embed(struct backend *b, const struct backend_matrix *rows, float *x) {
    struct backend_cuda *c = cuda_of(b);
    assert(rows->stored_count == 1);
    c->table->embed(c->device, &rows->stored[0], x);
}

static void cuda_angles(struct backend *b, const struct backend_rotation *r, float *cos_sin) {
    struct backend_cuda *c = cuda_of(b);
    assert(r->rotary <= c->limits.E);
    cpu_rope_frequencies(r->base, r->rotary, r->factors, c->frequencies);
    c->table->angles(c->device, c->frequencies, r->rotary, cos_sin);
}

static void cuda_gather(struct backend *b, const void *from, size_t row_bytes, void *to) {
    cuda_of(b)->table->gather(cuda_of(b)->device, from, row_bytes, to);
}

static void cuda_rmsnorm(struct backend *b, const float *x, uint32_t R, uint32_t D,
                         const float *weight, float epsilon, void *out, uint32_t ldout) {
    cuda_of(b)->table->rmsnorm(cuda_of(b)->device, x, R, D, weight, epsilon, out, ldout);
}

static void cuda_rope(struct backend *b, const float *x, uint32_t ldx, uint32_t R, uint32_t heads,
                      uint32_t E, uint32_t rotary, bool neighbours, const float *cos_sin, void *out,
                      uint32_t ldout) {
    cuda_of(b)->table->rope(cuda_of(b)->device, x, ldx, R, heads, E, rotary, neighbours, cos_sin,
                            out, ldout);
}

static void cuda_round(struct backend *b, const float *x, uint32_t ldx, uint32_t R, uint32_t n,
                       void *out, uint32_t ldout) {
    cuda_of(b)->table->round(cuda_of(b)->device, x, ldx, R, n, out, ldout);
}

static void cuda_gate(struct backend *b, bool gelu, const float *gate_up, uint32_t ld, uint32_t R,
                      uint32_t F, void *out, uint32_t ldout) {
    cuda_of(b)->table->gate(cuda_of(b)->device, gelu, gate_up, ld, R, F, out, ldout);
}

static struct cuda_attention attention_of(const struct backend_attention *a) {
    return (struct cuda_attention){.layer = a->layer,
                                   .H = a->H,
                                   .G = a->G,
                                   .E = a->E,
                                   .scale = a->scale,
                                   .softcap = a->softcap,
                                   .window = a->window,
                                   .page_offset = a->page_offset};
}

static void cuda_kv_append(struct backend *b, const struct backend_attention *a, const void *k,
                           const void *v, uint32_t ld) {
    struct cuda_attention attention = attention_of(a);
    cuda_of(b)->table->kv_append(cuda_of(b)->device, &attention, k, v, ld);
}

static void cuda_attend(struct backend *b, const struct backend_attention *a, bool wanted,
                        const void *q, uint32_t ldq, void *out, uint32_t ldout) {
    struct cuda_attention attention = attention_of(a);
    cuda_of(b)->table->attention(cuda_of(b)->device, &attention, wanted, q, ldq, out, ldout);
}

static uint32_t result_rows(uint32_t left) {
    return left < CUDA_RESULT_ROWS ? left : CUDA_RESULT_ROWS;
}

static void cuda_draw(struct backend *b, const float *z, uint32_t R, uint32_t n,
                      const struct token_draw *draws, int64_t *out) {
    int32_t some[CUDA_RESULT_ROWS];
    for (uint32_t done = 0; done < R;) {
        uint32_t count = result_rows(R - done);
        memset(some, 0xff, sizeof some); // -1 when the device has failed
        cuda_of(b)->table->draw(cuda_of(b)->device, z + (size_t)done * n, count, n, draws + done,
                                some);
        for (uint32_t i = 0; i < count; i++) out[done++] = some[i];
    }
}

static void cuda_log_sum_exp(struct backend *b, const float *z, uint32_t R, uint32_t n,
                             float *out) {
    for (uint32_t done = 0, count; done < R; done += count) {
        count = result_rows(R - done);
        cuda_of(b)->table->log_sum_exp(cuda_of(b)->device, z + (size_t)done * n, count, n,
                                       out + done);
    }
}

static bool cuda_fault(struct backend *b, struct backend_fault *out) {
    struct backend_cuda *c = cuda_of(b);
    static const enum backend_fault_kind kinds[] = {
        [CUDA_FAULT_KV] = BACKEND_FAULT_KV, [CUDA_FAULT_SCORE] = BACKEND_FAULT_SCORE};
    enum cuda_fault_kind kind = CUDA_FAULT_KV;
    *out = (struct backend_fault){.kind = BACKEND_FAULT_DEVICE};
    bool faulty = c->table->fault(c->device, &kind, &out->layer, &out->row);
    out->text = c->table->failure(c->device);
    if (out->text == NULL) out->kind = kinds[kind];
    return faulty || out->text != NULL;
}

static void cuda_ceilings(struct backend *b, const void *memory, size_t bytes,
                          struct backend_ceilings *out) {
    (void)memory, (void)bytes; // its caches are small beside any model
    cuda_of(b)->table->ceilings(cuda_of(b)->device, &out->flop_per_s, &out->read_bytes_per_s,
                                &out->near_bytes);
}

static const struct backend_ops CUDA_OPS = {
    .close = cuda_close,
    .scratch_bytes = cuda_scratch_bytes,
    .prepare = cuda_prepare,
    .memory_free_bytes = cuda_memory_free_bytes,
    .expect = cuda_expect,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .download = cuda_download,
    .copy = cuda_copy,
    .sync = cuda_sync,
    .matrix_load = cuda_matrix_load,
    .matrix_free = cuda_matrix_free,
    .matrix_few_rows = cuda_matrix_few_rows,
    .matrix_unpacked_only = cuda_matrix_unpacked_only,
    .matrix_bytes = cuda_matrix_bytes,
    .kv_layer_bytes = cuda_kv_layer_bytes,
    .begin = cuda_begin,
    .play = cuda_play,
    .embed = cuda_embed,
    .angles = cuda_angles,
    .gather = cuda_gather,
    .rmsnorm = cuda_rmsnorm,
    .matmul = cuda_matmul,
    .rope = cuda_rope,
    .round = cuda_round,
    .kv_append = cuda_kv_append,
    .attention = cuda_attend,
    .gate = cuda_gate,
    .draw = cuda_draw,
    .log_sum_exp = cuda_log_sum_exp,
    .fault = cuda_fault,
    .ceilings = cuda_ceilings,
};

// ---- opening -----------------------------------------------------------------------------------

static int check_numerics(const char *numerics, struct err *e) {
    if (numerics == NULL || strcmp(numerics, "bf16-1") == 0) return 0;
    FAIL(e, ERR_CONFIG, "cuda backend: numerics '%s' are for the cpu; a GPU computes with bf16",
         numerics);
}

// The driver's own version, which CUDA does not tell: "NVRM version: NVIDIA UNIX x86_64 Kernel
// Module  580.65.06  Sun ...".
static void read_driver_name(char *out, size_t size) {
    char line[256] = "";
    FILE *f = fopen("/proc/driver/nvidia/version", "re");
    if (f != NULL && fgets(line, sizeof line, f) == NULL) line[0] = '\0';
    if (f != NULL) fclose(f);
    out[0] = '\0';
    for (const char *p = line; *p != '\0'; p += strcspn(p, " \n"), p += strspn(p, " \n")) {
        size_t digits = strspn(p, "0123456789."), word = strcspn(p, " \n");
        if (digits != word || memchr(p, '.', word) == NULL) continue;
        snprintf(out, size, "%.*s", (int)word, p);
        return;
    }
}

int backend_cuda_open(const struct backend_options *options, struct backend **out, struct err *e) {
    TRY(check_numerics(options->numerics, e));
    const struct cuda_ops *table;
    if (backend_plugin_table(&table, e) != 0) return err_prefix(e, "cuda backend");
    char why[256];
    struct cuda_device *device;
    struct cuda_facts facts;
    if (table->open(&device, &facts, why) != 0) FAIL(e, ERR_PROVIDER, "cuda backend: %s", why);
    if (options->E != 0 && !table->supports_head(options->E)) {
        table->close(device);
        FAIL(e, ERR_MODEL, "cuda backend: there is no attention kernel for heads of %u elements",
             options->E);
    }
    struct backend_cuda *c = host_array(1, sizeof *c);
    c->table = table;
    c->device = device;
    if (options->no_graphs) table->use_graphs(device, false);
    c->facts = (struct backend_device){.capability = facts.capability,
                                       .driver = facts.driver,
                                       .runtime = facts.runtime,
                                       .cublaslt = facts.cublaslt,
                                       .memory_bytes = facts.memory_bytes};
    snprintf(c->facts.name, sizeof c->facts.name, "%s", facts.name);
    read_driver_name(c->facts.driver_name, sizeof c->facts.driver_name);
    c->base = (struct backend){
        .ops = &CUDA_OPS,
        .name = "cuda",
        .numerics = facts.capability >= 90 ? "cuda-sm90-1" : "cuda-sm80-1",
        .op_table = table->name,
        .device = &c->facts,
        .operand_bytes = sizeof(uint16_t),
        .row_alignment = CUDA_ROW_ALIGNMENT,
        .pass_rows = 4096,
        .threads = 1,
    };
    struct backend_products_setup products = {table, device, &c->facts, options->products,
                                              options->cache};
    if (backend_products_open(&products, &c->products, e) != 0) {
        cuda_close(&c->base);
        return err_prefix(e, "cuda backend");
    }
    c->base.products = c->products;
    *out = &c->base;
    return 0;
}

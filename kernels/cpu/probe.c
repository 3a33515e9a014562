// The start-up probe: a table is used only when it gives the plain C table's bits on this
// processor.
#include "kernels/cpu/shape.h"
#include "kernels/cpu/tables.h"
#include "kernels/numerics.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROWS = 13, // with SHAPE_TILE_ROWS_MAX 12: full blocks and part ones
    INNER = 66,
    OUTPUTS = 16 * 9 + 5,
    HEADS = 3,
    HEAD = 20,
    KEYS = ROWS,
    FLOATS = OUTPUTS * INNER,
};

// Working memory and results of one table, in one block.
struct probe {
    struct cpu_pool pool;
    char operands[ROWS * INNER * sizeof(float)];
    char panels[(OUTPUTS + CPU_PANEL) * INNER * sizeof(float)];
    float product[4][ROWS * OUTPUTS]; // of 1, 3, 6 and all rows
    char norm[ROWS * INNER * sizeof(float)], gates[2][ROWS * INNER * sizeof(float)];
    char attended[ROWS * HEADS * HEAD * sizeof(float)];
    char turned[2][ROWS * INNER * sizeof(float)];
    float log_sum;
};

// xorshift64* (Vigna 2016): the engine's random streams are not for this folder.
static uint32_t probe_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * 0x2545f4914f6cdd1du) >> 32);
}

// Ordinary numbers; if `wild`, one in eight has an exponent from subnormal to 2^40.
static void probe_fill(float *x, size_t n, bool wild) {
    uint64_t state = 0x6c6163756e61u;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = probe_random(&state), kind = probe_random(&state);
        uint32_t exponent = wild && kind % 8 == 0 ? (kind >> 8) % 168 : 120 + (kind >> 8) % 8;
        x[i] = num_float((bits & 0x807fffffu) | exponent << 23);
    }
}

static void probe_products(const struct cpu_ops *ops, struct probe *p, const float *x) {
    const uint32_t rows[] = {1, 3, 6, ROWS};
    struct cpu_matrix w = {.N = OUTPUTS, .K = INNER, .panels = p->panels};
    for (uint32_t n = 0; n < OUTPUTS; n++)
        (void)ops->pack_row(x + (size_t)n * INNER, n, INNER, p->panels);
    ops->round(&p->pool, x, INNER, ROWS, INNER, p->operands, INNER);
    for (int i = 0; i < 4; i++)
        ops->matmul(&p->pool, p->operands, INNER, rows[i], &w, NULL, false, p->product[i], OUTPUTS);
}

static void probe_attention(const struct cpu_ops *ops, struct probe *p, const float *x,
                            char *page) {
    uint8_t *pages[] = {(uint8_t *)page};
    struct cpu_span span = {.rows = KEYS, .pages = pages};
    struct cpu_attention a = {.H = HEADS, .G = 1, .E = HEAD, .scale = 0.25, .window = KEYS - 2};
    uint32_t bad, width = HEADS * HEAD;
    ops->round(&p->pool, x, width, KEYS, width, p->operands, width);
    (void)ops->kv_append(&p->pool, &span, 1, &a, p->operands, p->operands, width, &bad);
    (void)ops->attention(&p->pool, &span, 1, &a, p->operands, width, p->attended, width, &bad);
}

static void probe_rows(const struct cpu_ops *ops, struct probe *p, const float *x) {
    ops->rmsnorm(&p->pool, x, ROWS, INNER - 1, x + 7, 1e-5f, p->norm, INNER);
    ops->gate(&p->pool, CPU_GATE_SILU, x, INNER, ROWS, INNER / 2, p->gates[0], INNER);
    ops->gate(&p->pool, CPU_GATE_GELU_TANH, x, INNER, ROWS, INNER / 2, p->gates[1], INNER);
    ops->rope(&p->pool, x, INNER, ROWS, 1, INNER, INNER - 2, CPU_PAIR_HALVES, x + 9, p->turned[0],
              INNER);
    ops->rope(&p->pool, x, INNER, ROWS, 1, INNER, INNER - 2, CPU_PAIR_NEIGHBOURS, x + 9,
              p->turned[1], INNER);
    p->log_sum = ops->log_sum_exp(x, FLOATS);
}

static struct probe *probe_run(const struct cpu_ops *ops, const float *ordinary,
                               const float *wild) {
    size_t slice = cpu_slice_bytes(ops->numerics, ROWS, INNER, OUTPUTS, HEADS, 1, HEAD);
    struct probe *p = calloc(1, sizeof *p);
    char *page = calloc(2, cpu_kv_bytes(ops->numerics, 1, HEAD));
    void *scratch = aligned_alloc(64, slice);
    bool enough = p != NULL && page != NULL && scratch != NULL;
    if (enough) {
        p->pool = (struct cpu_pool){.threads = 1, .slice_bytes = slice, .scratch = scratch};
        probe_products(ops, p, wild);
        probe_rows(ops, p, ordinary);
        probe_attention(ops, p, ordinary, page);
        memset(&p->pool, 0, sizeof p->pool);
    }
    free(page);
    free(scratch);
    if (enough) return p;
    free(p);
    return NULL;
}

static const char *probe_compare(const struct probe *a, const struct probe *b) {
    if (memcmp(a->panels, b->panels, sizeof a->panels) != 0)
        return "probe differs from the C table: packed weights";
    if (memcmp(a->product, b->product, sizeof a->product) != 0)
        return "probe differs from the C table: matrix product";
    if (memcmp(a->norm, b->norm, sizeof a->norm) != 0)
        return "probe differs from the C table: norm";
    if (memcmp(a->gates, b->gates, sizeof a->gates) != 0)
        return "probe differs from the C table: gate";
    if (memcmp(a->turned, b->turned, sizeof a->turned) != 0)
        return "probe differs from the C table: rotation";
    if (memcmp(a->attended, b->attended, sizeof a->attended) != 0)
        return "probe differs from the C table: attention";
    if (memcmp(a, b, sizeof *a) != 0) return "probe differs from the C table";
    return NULL;
}

const char *cpu_probe(const struct cpu_ops *table, const struct cpu_ops *c) {
    const char *why = "not enough memory for the probe";
    float *x = malloc(2 * FLOATS * sizeof *x);
    struct probe *a = NULL, *b = NULL;
    if (x != NULL) {
        probe_fill(x, FLOATS, false);
        probe_fill(x + FLOATS, FLOATS, true);
        a = probe_run(table, x, x + FLOATS);
        b = probe_run(c, x, x + FLOATS);
    }
    if (a != NULL && b != NULL) why = probe_compare(a, b);
    free(a);
    free(b);
    free(x);
    return why;
}

static double seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double cpu_probe_seconds(const struct cpu_ops *table) {
    enum { TIMED_ROWS = 24, TIMED_K = 256, TIMED_N = 256, RUNS = 8 };
    size_t slice = cpu_slice_bytes(table->numerics, TIMED_ROWS, TIMED_K, TIMED_N, 1, 1, 16);
    size_t panels = (size_t)TIMED_N * TIMED_K * table->operand_bytes;
    size_t x = (size_t)TIMED_ROWS * TIMED_K * table->operand_bytes;
    size_t y = (size_t)TIMED_ROWS * TIMED_N * sizeof(float);
    char *memory = aligned_alloc(64, slice + panels + x + y);
    if (memory == NULL) return 0;
    memset(memory, 0, slice + panels + x + y);
    struct cpu_pool pool = {.threads = 1, .slice_bytes = slice, .scratch = memory};
    struct cpu_matrix w = {.N = TIMED_N, .K = TIMED_K, .panels = memory + slice};
    double best = 1e9;
    for (int run = 0; run < RUNS; run++) { // the first warms up; the fastest is the least disturbed
        double start = seconds();
        table->matmul(&pool, memory + slice + panels, TIMED_K, TIMED_ROWS, &w, NULL, false,
                      (float *)(memory + slice + panels + x), TIMED_N);
        double took = seconds() - start;
        best = took < best ? took : best;
    }
    free(memory);
    return best;
}

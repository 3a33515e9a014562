// Every op of every table against the plain C table of its numerics, bit for bit: random shapes,
// most of them at the edges of blocks (kernels/cpu/shape.h), and values of all kinds: subnormal,
// -0, huge, and such that overflow. 1 to 8 threads.
#include "tests/kernels/attention_support.h"

#include "kernels/cpu/shape.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { PRODUCTS = 25, ROW_OPS = 15, SEQUENCES = 4, WORK_MOST = 2000000 };
#else
enum { PRODUCTS = 120, ROW_OPS = 60, SEQUENCES = 14, WORK_MOST = 8000000 };
#endif

// All usable tables but the plain ones.
#define EACH_FAST_TABLE(ops)                                                                       \
    int count_;                                                                                    \
    const struct cpu_ops *const *tables_ = cpu_ops_all(&count_), *ops;                             \
    for (int t_ = 0; t_ < count_ && (ops = tables_[t_]) != NULL; t_++)                             \
        if (ops->name[0] != 'c' && cpu_ops_find(ops->numerics, ops->name, NULL) != NULL)

static const struct cpu_ops *plain(enum cpu_numerics numerics) {
    return cpu_ops_find(numerics, numerics == CPU_F32 ? "c-f32" : "c", NULL);
}

// A table that the processor could run but that fails its start-up probe is passed over, by users
// and by tests alike: nowhere else would that be seen.
static void test_probes(void **state) {
    (void)state;
    int count;
    const struct cpu_ops *const *tables = cpu_ops_all(&count);
    for (int i = 0; i < count; i++) {
        const char *why = NULL;
        if (cpu_ops_find(tables[i]->numerics, tables[i]->name, &why) != NULL) continue;
        if (strstr(why, "processor") == NULL) fail_msg("%s: %s", tables[i]->name, why);
    }
}

// ---- values and shapes -------------------------------------------------------------------------

enum values { ORDINARY, WILD, OVERFLOWING, KINDS };

static float *values_make(struct rng *r, size_t n, enum values kind) {
    float *x = ops_floats(r, n, kind != ORDINARY);
    for (size_t i = 0; kind == OVERFLOWING && i < n; i++)
        if (ops_below(r, 64) == 0) x[i] = ldexpf(ops_normal(r), 60 + (int)ops_below(r, 66));
    return x;
}

// At an edge, one beside it, or anywhere up to it.
static uint32_t near(struct rng *r, const uint32_t *edges, size_t count) {
    uint32_t edge = edges[rng_below(r, count)];
    switch (ops_below(r, 4)) {
    case 0: return 1 + ops_below(r, edge);
    case 1: return edge > 1 ? edge - 1 : 1;
    case 2: return edge + 1;
    default: return edge;
    }
}
#define NEAR(r, edges) near((r), (edges), sizeof(edges) / sizeof *(edges))

static const uint32_t row_edges[] = {1,
                                     4,
                                     6,
                                     SHAPE_TILE_ROWS_MAX,
                                     24,
                                     SHAPE_WIDE_FROM,
                                     SHAPE_CHUNK_ROWS,
                                     2 * SHAPE_CHUNK_ROWS,
                                     SHAPE_WIDE_ROWS};
static const uint32_t depth_edges[] = {
    1, 2, 16, 32, 256, 320, 512, SHAPE_WIDE_DEPTH_MAX, SHAPE_WIDE_PART, 1280, 2000};
static const uint32_t output_edges[] = {1,
                                        CPU_PANEL,
                                        SHAPE_WIDE_OUTPUTS_MAX,
                                        SHAPE_GROUP_PANELS *CPU_PANEL,
                                        SHAPE_WIDE_PANELS *CPU_PANEL,
                                        SHAPE_WIDE_LDC,
                                        2 * SHAPE_WIDE_PANELS *CPU_PANEL};

// What is not a number has no bits that anybody may rely on; all else has.
static void assert_same_floats(const float *a, const float *b, size_t n, const char *name,
                               const char *what) {
    for (size_t i = 0; i < n; i++)
        if (num_bits(a[i]) != num_bits(b[i]) && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("%s, %s: element %zu is %08x (%g), not %08x (%g)", name, what, i,
                     num_bits(b[i]), (double)b[i], num_bits(a[i]), (double)a[i]);
}

static void assert_same_operands(const struct cpu_ops *ops, const void *a, const void *b, size_t n,
                                 const char *what) {
    for (size_t i = 0; i < n; i++) {
        float x = ops_value(ops, a, i), y = ops_value(ops, b, i);
        assert_same_floats(&x, &y, 1, ops->name, what);
    }
}

// ---- matrix products ---------------------------------------------------------------------------

struct product {
    uint32_t R, K, N, ldx, ldy;
    const float *bias, *before;
    bool add;
};

static float *multiply(const struct cpu_ops *ops, const struct cpu_pool *pool,
                       const struct product *p, const void *x, const struct cpu_matrix *w) {
    size_t bytes = (size_t)p->R * p->ldy * sizeof(float);
    float *y = ops_alloc(bytes);
    memcpy(y, p->before, bytes);
    ops->matmul(pool, x, p->ldx, p->R, w, p->bias, p->add, y, p->ldy);
    return y;
}

static void compare_product(struct rng *r, const struct product *p, const float *x,
                            const float *w) {
    struct cpu_pool one = ops_pool(1), many = ops_pool(1 + (int)ops_below(r, 8));
    many.cache_bytes = (size_t)(64 << 10) << ops_below(r, 8);
    for (enum cpu_numerics numerics = CPU_BF16_1; numerics <= CPU_F32; numerics++) {
        const struct cpu_ops *c = plain(numerics);
        void *operands = ops_operands(c, x, p->R, p->K, p->ldx);
        struct cpu_matrix packed = ops_pack(c, w, p->N, p->K);
        float *right = multiply(c, &one, p, operands, &packed);
        EACH_FAST_TABLE(ops) {
            if (ops->numerics != numerics) continue;
            char what[160];
            snprintf(what, sizeof what, "R %u K %u N %u, %d threads", p->R, p->K, p->N,
                     many.threads);
            struct cpu_matrix own = ops_pack(ops, w, p->N, p->K);
            size_t bytes = ops_panel_bytes(ops, p->N, p->K);
            ops_assert_same(packed.panels, own.panels, bytes, "%s packs N %u K %u", ops->name, p->N,
                            p->K);
            float *y = multiply(ops, &many, p, operands, &own);
            assert_same_floats(right, y, (size_t)p->R * p->ldy, ops->name, what);
            free(y);
            free((void *)own.panels);
        }
        free(right);
        free((void *)packed.panels);
        free(operands);
    }
    ops_pool_close(&one);
    ops_pool_close(&many);
}

static void test_products(void **state) {
    (void)state;
    struct rng r = rng_open(71, "tables", "products");
    for (int round = 0; round < PRODUCTS; round++) {
        struct product p = {.add = ops_below(&r, 2)};
        do {
            p.R = NEAR(&r, row_edges);
            p.K = NEAR(&r, depth_edges);
            p.N = NEAR(&r, output_edges);
        } while ((uint64_t)p.R * p.K * p.N > WORK_MOST);
        p.ldx = (p.K + 1) / 2 * 2 + 2 * ops_below(&r, 3);
        p.ldy = p.N + ops_below(&r, 5);
        enum values kind = (enum values)(round % KINDS);
        float *x = values_make(&r, (size_t)p.R * p.K, kind);
        float *w = values_make(&r, (size_t)p.N * p.K, kind == OVERFLOWING ? WILD : kind);
        float *bias = values_make(&r, p.N, kind);
        float *before = values_make(&r, (size_t)p.R * p.ldy, kind);
        p.bias = ops_below(&r, 2) ? bias : NULL;
        p.before = before;
        compare_product(&r, &p, x, w);
        free(before);
        free(bias);
        free(w);
        free(x);
    }
}

// ---- row ops -----------------------------------------------------------------------------------

struct rows {
    uint32_t R, n, ldx, ldout;
    const float *x, *weight, *angles;
    uint32_t heads, E, rotary;
    int which;
};
enum { NORM, ROUND, ROPE_HALVES, ROPE_NEIGHBOURS, SILU, GELU, ROW_OP_KINDS };
static const char *const row_op_names[] = {"norm", "round", "rope halves", "rope neighbours",
                                           "silu", "gelu"};

static void *run_rows(const struct cpu_ops *ops, const struct cpu_pool *pool,
                      const struct rows *w) {
    size_t bytes = (size_t)w->R * w->ldout * ops->operand_bytes;
    void *out = ops_alloc(bytes);
    memset(out, 0, bytes);
    enum cpu_pairing pairing = w->which == ROPE_HALVES ? CPU_PAIR_HALVES : CPU_PAIR_NEIGHBOURS;
    enum cpu_gate gate = w->which == SILU ? CPU_GATE_SILU : CPU_GATE_GELU_TANH;
    switch (w->which) {
    case NORM: ops->rmsnorm(pool, w->x, w->R, w->n, w->weight, 1e-5f, out, w->ldout); break;
    case ROUND: ops->round(pool, w->x, w->ldx, w->R, w->n, out, w->ldout); break;
    case SILU:
    case GELU: ops->gate(pool, gate, w->x, w->ldx, w->R, w->n, out, w->ldout); break;
    default:
        ops->rope(pool, w->x, w->ldx, w->R, w->heads, w->E, w->rotary, pairing, w->angles, out,
                  w->ldout);
    }
    return out;
}

static void compare_rows(struct rng *r, const struct rows *w) {
    struct cpu_pool one = ops_pool(1), many = ops_pool(1 + (int)ops_below(r, 8));
    for (enum cpu_numerics numerics = CPU_BF16_1; numerics <= CPU_F32; numerics++) {
        void *right = run_rows(plain(numerics), &one, w);
        EACH_FAST_TABLE(ops) {
            if (ops->numerics != numerics) continue;
            char what[160];
            snprintf(what, sizeof what, "%s, R %u n %u E %u rotary %u, %d threads",
                     row_op_names[w->which], w->R, w->n, w->E, w->rotary, many.threads);
            void *out = run_rows(ops, &many, w);
            assert_same_operands(ops, right, out, (size_t)w->R * w->ldout, what);
            free(out);
        }
        free(right);
    }
    ops_pool_close(&one);
    ops_pool_close(&many);
}

static void test_row_ops(void **state) {
    (void)state;
    static const uint32_t widths[] = {1, 2, 8, 16, 17, 32, 64, 576, 1536};
    static const uint32_t heights[] = {1, 2, 16, 40};
    struct rng r = rng_open(72, "tables", "rows");
    for (int round = 0; round < ROW_OPS * ROW_OP_KINDS; round++) {
        struct rows w = {
            .which = round % ROW_OP_KINDS, .R = NEAR(&r, heights), .n = NEAR(&r, widths)};
        w.heads = 1 + ops_below(&r, 4);
        w.E = 2 * (1 + ops_below(&r, 64));
        w.rotary = 2 * (1 + ops_below(&r, w.E / 2));
        bool turns = w.which == ROPE_HALVES || w.which == ROPE_NEIGHBOURS;
        bool gates = w.which == SILU || w.which == GELU;
        if (turns) w.n = w.heads * w.E;
        w.ldx = (gates ? 2 : 1) * w.n + (w.which == NORM ? 0 : ops_below(&r, 4));
        w.ldout = (w.n + 1) / 2 * 2 + 2 * ops_below(&r, 2);
        enum values kind = (enum values)(round / ROW_OP_KINDS % KINDS);
        float *x = values_make(&r, (size_t)w.R * w.ldx, kind), *weight = ops_floats(&r, w.n, false);
        float *angles = ops_alloc((size_t)w.R * w.rotary * sizeof *angles);
        for (uint32_t t = 0; t < w.R; t++)
            cpu_rope_angles(1e5, w.rotary, NULL, rng_u32(&r) % 200000,
                            angles + (size_t)t * w.rotary);
        w.x = x;
        w.weight = weight;
        w.angles = angles;
        compare_rows(&r, &w);
        free(angles);
        free(weight);
        free(x);
    }
}

static void test_logits(void **state) {
    (void)state;
    static const uint32_t widths[] = {1, 16, 32, 320, 4096};
    struct rng r = rng_open(73, "tables", "logits");
    for (int round = 0; round < 4 * ROW_OPS; round++) {
        uint32_t n = NEAR(&r, widths);
        float *z = values_make(&r, n, (enum values)(round % KINDS));
        for (enum cpu_numerics numerics = CPU_BF16_1; numerics <= CPU_F32; numerics++) {
            const struct cpu_ops *c = plain(numerics);
            float sum = c->log_sum_exp(z, n);
            int64_t best = c->argmax(z, n);
            EACH_FAST_TABLE(ops) {
                if (ops->numerics != numerics) continue;
                float y = ops->log_sum_exp(z, n);
                assert_same_floats(&sum, &y, 1, ops->name, "log-sum-exp");
                assert_int_equal(ops->argmax(z, n), best);
            }
        }
        free(z);
    }
}

// ---- attention ---------------------------------------------------------------------------------

// Keys and values of every kind; queries stay small enough for finite scores.
static void season(struct rng *r, enum cpu_numerics numerics, float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t kind = ops_below(r, 40);
        if (kind == 0) x[i] = -0.0f;
        if (kind == 1) x[i] = num_float(rng_u32(r) & 0x807f0000u);
        if (kind == 2) x[i] = ldexpf(ops_normal(r), -120);
        if (kind == 3) x[i] = ldexpf(ops_normal(r), 30);
        if (numerics == CPU_BF16_1) x[i] = ops_round_reference(x[i]);
    }
}

struct step {
    uint32_t from, to;
};

// Feeds a sequence in these steps. Returns operands [length][H][E].
static char *attend(const struct cpu_ops *ops, const struct cpu_pool *pool,
                    const struct sequence *s, const struct step *steps, int count) {
    struct pages p = pages_make(ops, &s->a, s->length);
    size_t width = (size_t)s->a.H * s->a.E * ops->operand_bytes;
    char *out = ops_alloc((size_t)s->length * width);
    for (int i = 0; i < count; i++) {
        void *part = sequence_step(ops, pool, s, &p, steps[i].from, steps[i].to);
        memcpy(out + steps[i].from * width, part, (steps[i].to - steps[i].from) * width);
        free(part);
    }
    pages_free(&p);
    return out;
}

static int random_steps(struct rng *r, uint32_t length, struct step *steps, int most) {
    static const uint32_t ends[] = {1, 16, SHAPE_QUERY_ROWS, CPU_PAGE, CPU_PAGE + CPU_PANEL};
    int count = 0;
    for (uint32_t at = 0; at < length; count++) {
        uint32_t n = count + 1 < most ? NEAR(r, ends) : length;
        steps[count] = (struct step){at, n < length - at ? at + n : length};
        at = steps[count].to;
    }
    return count;
}

static void test_attention(void **state) {
    (void)state;
    static const uint32_t lengths[] = {1, 16, SHAPE_QUERY_ROWS, 200, CPU_PAGE, 2 * CPU_PAGE};
    static const uint32_t sizes[] = {16, 18, 32, 64, 80, 128, 256};
    static const uint32_t windows[] = {0, 0, 1, 7, 511, 512, 513};
    struct rng r = rng_open(74, "tables", "attention");
    for (int round = 0; round < SEQUENCES; round++) {
        uint32_t G = 1 + ops_below(&r, 2), E = sizes[ops_below(&r, 7)];
        struct cpu_attention a = {.G = G, .H = G * (1 + ops_below(&r, 3)), .E = E};
        a.scale = 1.0 / sqrt(E);
        a.window = windows[ops_below(&r, 7)];
        a.softcap = ops_below(&r, 3) == 0 ? 30 : 0;
        uint32_t length = NEAR(&r, lengths);
        struct step steps[40], whole = {0, length};
        int count = random_steps(&r, length, steps, 40);
        struct cpu_pool one = ops_pool(1), many = ops_pool(1 + (int)ops_below(&r, 8));
        for (enum cpu_numerics numerics = CPU_BF16_1; numerics <= CPU_F32; numerics++) {
            const struct cpu_ops *c = plain(numerics);
            struct sequence s = sequence_make(c, &r, a, length, 1.0f);
            season(&r, numerics, s.k, (size_t)length * G * E);
            season(&r, numerics, s.v, (size_t)length * G * E);
            char *right = attend(c, &one, &s, &whole, 1);
            EACH_FAST_TABLE(ops) {
                if (ops->numerics != numerics) continue;
                char *out = attend(ops, &many, &s, steps, count);
                ops_assert_same(right, out, (size_t)length * a.H * E * ops->operand_bytes,
                                "%s: length %u H %u G %u E %u window %u softcap %g, %d threads, %d "
                                "steps",
                                ops->name, length, a.H, G, E, a.window, a.softcap, many.threads,
                                count);
                free(out);
            }
            free(right);
            sequence_free(&s);
        }
        ops_pool_close(&one);
        ops_pool_close(&many);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probes), cmocka_unit_test(test_products),
        cmocka_unit_test(test_row_ops), cmocka_unit_test(test_logits),
        cmocka_unit_test(test_attention)};
    return cmocka_run_group_tests_name("tables", tests, NULL, NULL);
}

// Compact weights of every quantized format and op table: the codes give the bits of the format's
// formula, and products over them those over unpacked panels, for shapes around every edge of runs,
// panels and row blocks, for scales from zero to the largest, and where zeros show their sign.
#include "kernels/cpu/compact.h"
#include "tests/kernels/ops_support.h"

static const enum tensor_type TYPES[] = {TENSOR_Q4_0, TENSOR_Q4_1, TENSOR_Q5_0, TENSOR_Q5_1,
                                         TENSOR_Q8_0, TENSOR_Q4_K, TENSOR_Q5_K, TENSOR_Q6_K};
#define TYPE_COUNT (sizeof TYPES / sizeof *TYPES)

// Halves of a block's header: subnormal, zero of either sign, ordinary, the largest; never of an
// exponent of all ones.
static uint16_t random_half(struct rng *r) {
    uint32_t bits = rng_u32(r), kind = ops_below(r, 8);
    if (kind == 0) return (uint16_t)(bits & 0x83ffu);
    if (kind == 1) return (uint16_t)(bits & 0x8000u);
    if (kind == 2) return (uint16_t)((bits & 0x83ffu) | 0x7800u);
    if (kind == 3) return (uint16_t)(0x2c00u | (bits & 0x8060u)); // few bits: ties of the rounding
    return (uint16_t)((bits & 0x83ffu) | (8 + ops_below(r, 8)) << 10);
}

// Where the halves of a block stand, -1: no second one.
static void half_places(enum tensor_type type, int *first, int *second) {
    *first = type == TENSOR_Q6_K ? 208 : 0;
    bool two =
        type == TENSOR_Q4_1 || type == TENSOR_Q5_1 || type == TENSOR_Q4_K || type == TENSOR_Q5_K;
    *second = two ? 2 : -1;
}

static uint8_t *random_rows(struct rng *r, enum tensor_type type, uint32_t rows, uint32_t K) {
    const struct tensor_format *f = tensor_format_of(type);
    size_t blocks = (size_t)rows * K / f->block;
    uint8_t *data = ops_alloc(blocks * f->block_bytes);
    int place[2];
    half_places(type, &place[0], &place[1]);
    for (size_t i = 0; i < blocks; i++) {
        uint8_t *block = data + i * f->block_bytes;
        for (uint32_t j = 0; j < f->block_bytes; j++) block[j] = (uint8_t)rng_u32(r);
        for (int j = 0; j < 2 && place[j] >= 0; j++) {
            uint16_t half = random_half(r);
            memcpy(block + place[j], &half, sizeof half);
        }
    }
    return data;
}

// The header's promise: one fused multiply-add gives the bits of the formula, no value is
// subnormal, all are multiples of 2^-24.
static void test_codes_give_the_formula(void **state) {
    (void)state;
    struct rng r = rng_open(41, "compact", "codes");
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        const struct tensor_format *f = tensor_format_of(TYPES[t]);
        uint8_t *data = random_rows(&r, TYPES[t], 600, f->block);
        for (int i = 0; i < 600; i++) {
            struct tensor_block b;
            float y[TENSOR_BLOCK_MAX];
            tensor_block_read(TYPES[t], data + (size_t)i * f->block_bytes, &b);
            tensor_dequantize(TYPES[t], data + (size_t)i * f->block_bytes, f->block, y);
            for (uint32_t k = 0; k < f->block; k++) {
                float offset = f->offsets ? b.offset[k / f->group] : -0.0f;
                float w = fmaf(b.scale[k / f->group], b.code[k], offset);
                int least = f->least_code, most = least + (1 << f->code_bits) - 1;
                if (num_bits(w) != num_bits(y[k]) || b.code[k] < least || b.code[k] > most)
                    fail_msg("%s: code %d is %a, the formula gives %a", f->name, b.code[k],
                             (double)w, (double)y[k]);
                double steps = (double)y[k] * 0x1p24;
                assert_true(steps == nearbyint(steps) && fabsf(y[k]) < 0x1p30f);
            }
        }
        free(data);
    }
}

struct stack {
    uint32_t K;
    int count;
    struct cpu_compact_part part[CPU_RUNS];
    struct cpu_matrix w; // compact
    float *rows;         // dequantized
    bool wild;
};

static struct stack stack_make(struct rng *r, uint32_t K, int count, const enum tensor_type *types,
                               const uint32_t *rows) {
    struct stack s = {.K = K, .count = count};
    for (int i = 0; i < count; i++)
        s.part[i] = (struct cpu_compact_part){
            .type = types[i], .rows = rows[i], .data = random_rows(r, types[i], rows[i], K)};
    size_t bytes = cpu_compact_plan(s.part, count, K, &s.w);
    assert_true(bytes > 0);
    uint8_t *memory = ops_alloc(bytes);
    for (uint32_t p = 0; p < (s.w.N + CPU_PANEL - 1) / CPU_PANEL; p++)
        assert_int_equal(cpu_compact_pack(&s.w, s.part, count, p, memory), -1);
    s.w.compact = memory;
    s.rows = ops_alloc((size_t)s.w.N * K * sizeof *s.rows);
    uint32_t n = 0;
    for (int i = 0; i < count; n += rows[i++])
        tensor_dequantize(types[i], s.part[i].data, (size_t)rows[i] * K, s.rows + (size_t)n * K);
    return s;
}

static void stack_free(struct stack *s) {
    for (int i = 0; i < s->count; i++) free((void *)s->part[i].data);
    free((void *)s->w.compact);
    free(s->rows);
}

// The tables that this processor has. Looking costs a probe each, so it is done once.
static int usable(const struct cpu_ops **out) {
    static const struct cpu_ops *found[8];
    static int count;
    if (count == 0) {
        int all;
        const struct cpu_ops *const *tables = cpu_ops_all(&all);
        assert_true(all <= 8);
        for (int t = 0; t < all; t++)
            if (cpu_ops_find(tables[t]->numerics, tables[t]->name, NULL) != NULL)
                found[count++] = tables[t];
    }
    memcpy(out, found, sizeof found);
    return count;
}

static void compare(struct rng *r, const struct stack *s, uint32_t R, bool wild, const char *what) {
    float *x = ops_floats(r, (size_t)R * s->K, wild), *bias = ops_floats(r, s->w.N, false);
    uint32_t ldy = s->w.N + 3;
    const struct cpu_ops *tables[8];
    int count = usable(tables);
    for (int t = 0; t < count; t++) {
        const struct cpu_ops *ops = tables[t];
        struct cpu_pool pool = ops_pool(R % 5 == 0 ? 2 : 1);
        struct cpu_matrix panels = ops_pack(ops, s->rows, s->w.N, s->K);
        void *operands = ops_operands(ops, x, R, s->K, s->K);
        size_t bytes = (size_t)R * ldy * sizeof(float);
        float *y = ops_alloc(bytes), *z = ops_alloc(bytes);
        memset(y, 0, bytes);
        memset(z, 0, bytes);
        ops->matmul(&pool, operands, s->K, R, &panels, wild ? NULL : bias, !wild, y, ldy);
        ops->matmul(&pool, operands, s->K, R, &s->w, wild ? NULL : bias, !wild, z, ldy);
        ops_assert_same(y, z, bytes, "%s, %s, R %u K %u N %u%s", ops->name, what, R, s->K, s->w.N,
                        wild ? ", wild" : "");
        free(y);
        free(z);
        free(operands);
        free((void *)panels.panels);
        ops_pool_close(&pool);
    }
    free(x);
    free(bias);
}

static void test_gives_the_bits_of_panels(void **state) {
    (void)state;
    struct rng r = rng_open(42, "compact", "products");
    for (int round = 0; round < 2; round++) {
        for (size_t t = 0; t < TYPE_COUNT; t++) {
            const struct tensor_format *f = tensor_format_of(TYPES[t]);
            uint32_t K = f->block * (1 + ops_below(&r, f->block == 32 ? 6 : 2));
            uint32_t rows = 1 + ops_below(&r, 90);
            struct stack s = stack_make(&r, K, 1, &TYPES[t], &rows);
            for (uint32_t R = 1; R <= 18; R += 1 + ops_below(&r, 4)) {
                compare(&r, &s, R, false, f->name);
                compare(&r, &s, R, true, f->name);
            }
            stack_free(&s);
        }
    }
}

// Parts of any formats, with and without panels that two of them share.
static void test_stacks_of_formats(void **state) {
    (void)state;
    struct rng r = rng_open(43, "compact", "stacks");
    for (int round = 0; round < 16; round++) {
        enum tensor_type types[3];
        uint32_t rows[3];
        int count = 2 + (int)ops_below(&r, 2);
        for (int i = 0; i < count; i++) {
            types[i] = TYPES[ops_below(&r, TYPE_COUNT)];
            if (i > 0 && ops_below(&r, 3) == 0) types[i] = types[i - 1];
            rows[i] = round % 2 ? 16 * (1 + ops_below(&r, 5)) : 1 + ops_below(&r, 70);
        }
        struct stack s = stack_make(&r, 256, count, types, rows);
        compare(&r, &s, 1 + ops_below(&r, 4), false, "stack");
        compare(&r, &s, 5 + ops_below(&r, 20), true, "stack");
        compare(&r, &s, 40 + ops_below(&r, 200), false, "stack");
        stack_free(&s);
    }
}

// Zero weights whose sign decides: x so small that a chain underflows to -0 before it meets them.
static void test_keeps_the_sign_of_zero(void **state) {
    (void)state;
    enum { K = 32, N = 16 };
    uint8_t blocks[N][18];
    const uint16_t scale = 0x8001; // -2^-24
    for (int n = 0; n < N; n++) {
        memset(blocks[n], 0x88,
               sizeof blocks[n]); // Q4_0: all codes 0 under a negative scale: w = -0
        memcpy(blocks[n], &scale, sizeof scale);
        blocks[n][2] = 0x89; // but w[0] = -2^-24
    }
    struct cpu_compact_part part = {TENSOR_Q4_0, N, blocks};
    struct stack s = {.K = K, .count = 1};
    uint8_t *memory = ops_alloc(cpu_compact_plan(&part, 1, K, &s.w));
    assert_int_equal(cpu_compact_pack(&s.w, &part, 1, 0, memory), -1);
    s.w.compact = memory;
    s.rows = ops_alloc(sizeof(float) * N * K);
    tensor_dequantize(TENSOR_Q4_0, blocks, N * K, s.rows);
    assert_true(signbit(s.rows[1]) && s.rows[0] == -0x1p-24f);
    const struct cpu_ops *tables[8];
    int count = usable(tables);
    for (int t = 0; t < count; t++) {
        const struct cpu_ops *ops = tables[t];
        float x[K] = {0x1p-110f, 0, 1}; // the flushed product gives -0, and so does 1 x (-0)
        struct cpu_pool pool = ops_pool(1);
        struct cpu_matrix panels = ops_pack(ops, s.rows, N, K);
        void *operands = ops_operands(ops, x, 1, K, K);
        float y[N], z[N];
        ops->matmul(&pool, operands, K, 1, &panels, NULL, false, y, N);
        ops->matmul(&pool, operands, K, 1, &s.w, NULL, false, z, N);
        ops_assert_same(y, z, sizeof y, "%s", ops->name);
        free(operands);
        free((void *)panels.panels);
        ops_pool_close(&pool);
    }
    free(memory);
    free(s.rows);
}

static void test_refuses_what_is_not_finite(void **state) {
    (void)state;
    struct rng r = rng_open(45, "compact", "finite");
    const uint16_t bad[] = {0x7c00, 0xfc00, 0x7e00, 0x7c01};
    for (size_t t = 0; t < TYPE_COUNT; t++) {
        const struct tensor_format *f = tensor_format_of(TYPES[t]);
        int place[2];
        half_places(TYPES[t], &place[0], &place[1]);
        for (int j = 0; j < 2 && place[j] >= 0; j++) {
            for (int i = 0; i < 4; i++) {
                uint32_t rows = 40, at = ops_below(&r, rows), K = 2 * f->block;
                uint8_t *good = random_rows(&r, TENSOR_Q8_0, 16, K);
                uint8_t *data = random_rows(&r, TYPES[t], rows, K);
                memcpy(data + (2 * at + 1) * f->block_bytes + place[j], &bad[i], sizeof bad[i]);
                struct cpu_compact_part part[] = {{TENSOR_Q8_0, 16, good}, {TYPES[t], rows, data}};
                struct cpu_matrix w;
                uint8_t *memory = ops_alloc(cpu_compact_plan(part, 2, K, &w));
                for (uint32_t p = 0; p < 4; p++)
                    assert_int_equal(cpu_compact_pack(&w, part, 2, p, memory),
                                     p == (16 + at) / CPU_PANEL ? 1 : -1);
                free(memory);
                free(good);
                free(data);
            }
        }
    }
}

// What is not quantized has no compact form, alone or in a stack.
static void test_leaves_other_formats(void **state) {
    (void)state;
    const enum tensor_type others[] = {TENSOR_F32, TENSOR_F16, TENSOR_BF16};
    for (int i = 0; i < 3; i++) {
        struct cpu_compact_part part[] = {{TENSOR_Q4_0, 16, NULL}, {others[i], 16, NULL}};
        struct cpu_matrix w;
        assert_int_equal(cpu_compact_plan(part, 2, 32, &w), 0);
        assert_int_equal(cpu_compact_plan(part + 1, 1, 32, &w), 0);
        assert_int_equal(cpu_compact_plan(part, 1, 32, &w), 64 + 256);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes_give_the_formula),
        cmocka_unit_test(test_gives_the_bits_of_panels),
        cmocka_unit_test(test_stacks_of_formats),
        cmocka_unit_test(test_keeps_the_sign_of_zero),
        cmocka_unit_test(test_refuses_what_is_not_finite),
        cmocka_unit_test(test_leaves_other_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

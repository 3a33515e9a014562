// Tensor-core arithmetic of both capabilities against whole-number sums made term by term, and
// against answers worked out by hand.
#include "tests/support/support.h"
#include "tests/support/simt.h"
#include "tests/kernels/simt/mma_kernels.h"

#include "engine/base/rng.h"

#include <math.h>
#include <string.h>

enum { TILES = 400, M = 16, N = 8, K = 16 };

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint16_t bf16(float x) {
    return (uint16_t)(bits_of(x) >> 16);
} // of values that it holds

// A term of the sum: +-significand 2^(exponent - fraction).
struct term {
    bool negative;
    uint64_t significand;
    int exponent, fraction;
};

static struct term term_of(float x) {
    uint32_t bits = bits_of(x);
    int field = (int)(bits >> 23 & 255);
    struct term t = {bits >> 31, bits & 0x7fffff, field > 0 ? field - 127 : -126, 23};
    if (field > 0) t.significand |= 0x800000;
    return t;
}

static struct term product_of(uint16_t a, uint16_t b) {
    struct term x = term_of(float_of((uint32_t)a << 16)), y = term_of(float_of((uint32_t)b << 16));
    struct term p = {x.negative != y.negative, x.significand * y.significand,
                     x.exponent + y.exponent, 46};
    return p;
}

// Magnitude m in units of 2^unit, cut to fp32.
static float cut(bool negative, uint64_t m, int unit) {
    if (m == 0) return 0.0f;
    int top = unit + 63 - __builtin_clzll(m);
    if (top > 127) return negative ? -INFINITY : INFINITY;
    int last = top - 23 > -149 ? top - 23 : -149;
    if (last > unit) {
        m = last - unit < 64 ? m >> (last - unit) : 0;
        unit = last;
    }
    double x = ldexp((double)m, unit);
    return (float)(negative ? -x : x);
}

// One step of hardware: `count` terms, each cut to `bits` fractional bits below the largest
// exponent.
static float sum_of(const struct term *terms, int count, int bits) {
    int top = terms[0].exponent;
    for (int i = 1; i < count; i++) top = terms[i].exponent > top ? terms[i].exponent : top;
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        int shift = terms[i].exponent - terms[i].fraction - top + bits;
        uint64_t s = terms[i].significand;
        s = shift >= 0 ? s << shift : shift > -64 ? s >> -shift : 0;
        sum += terms[i].negative ? -(int64_t)s : (int64_t)s;
    }
    return cut(sum < 0, (uint64_t)(sum < 0 ? -sum : sum), top - bits);
}

static float expected_element(const struct mma_operands *t, int m, int n, int capability) {
    int count = capability >= 90 ? 16 : 8, bits = capability >= 90 ? 25 : 24;
    float c = t->c[m + M * n];
    for (int first = 0; first < K; first += count) {
        struct term terms[K + 1];
        double plain = c;
        for (int k = 0; k < count; k++) {
            uint16_t a = t->a[m + M * (first + k)], b = t->b[n + N * (first + k)];
            terms[k] = product_of(a, b);
            plain += (double)float_of((uint32_t)a << 16) * float_of((uint32_t)b << 16);
        }
        terms[count] = term_of(c);
        if (isnan(plain))
            c = float_of(0x7fffffff);
        else
            c = isinf(plain) ? (float)plain : sum_of(terms, count + 1, bits);
    }
    return c;
}

static void run(struct mma_operands *tiles, int count, int capability) {
    struct simt_options before = simt_get_options(), o = before;
    o.capability = capability;
    simt_set_options(&o);
    void *device;
    size_t bytes = (size_t)count * sizeof *tiles;
    ASSERT_CUDA(cudaMalloc(&device, bytes));
    ASSERT_CUDA(cudaMemcpy(device, tiles, bytes, cudaMemcpyHostToDevice));
    ASSERT_CUDA(mma_tiles(device, count, NULL));
    ASSERT_CUDA(cudaMemcpy(tiles, device, bytes, cudaMemcpyDeviceToHost));
    ASSERT_CUDA(cudaFree(device));
    simt_set_options(&before);
}

static void compare(const struct mma_operands *tiles, int count) {
    struct mma_operands *got = arena_alloc(test_arena, (size_t)count * sizeof *got);
    for (int capability = 80; capability <= 90; capability += 10) {
        memcpy(got, tiles, (size_t)count * sizeof *got);
        run(got, count, capability);
        for (int i = 0; i < count; i++)
            for (int m = 0; m < M; m++)
                for (int n = 0; n < N; n++) {
                    float e = expected_element(&tiles[i], m, n, capability);
                    if (bits_of(e) != bits_of(got[i].c[m + M * n]))
                        fail_msg("capability %d, tile %d (%d,%d): %a, expected %a", capability, i,
                                 m, n, (double)got[i].c[m + M * n], (double)e);
                }
    }
}

// Numbers of one tile: exponent fields in [least, least + width), now and then a zero.
static uint32_t draw(struct rng *r, uint32_t least, uint32_t width) {
    if (rng_below(r, 16) == 0) return rng_u32(r) & 0x80000000u;
    uint32_t field = least + (uint32_t)rng_below(r, width);
    return (rng_u32(r) & 0x807fffffu) | field << 23;
}

static struct mma_operands *draw_tiles(const char *name, uint32_t least, uint32_t width) {
    struct rng r = rng_open(11, "mma", name);
    struct mma_operands *tiles = arena_alloc(test_arena, TILES * sizeof *tiles);
    for (int i = 0; i < TILES; i++) {
        for (int k = 0; k < M * K; k++) tiles[i].a[k] = (uint16_t)(draw(&r, least, width) >> 16);
        for (int k = 0; k < K * N; k++) tiles[i].b[k] = (uint16_t)(draw(&r, least, width) >> 16);
        for (int k = 0; k < M * N; k++) tiles[i].c[k] = float_of(draw(&r, least, width));
    }
    return tiles;
}

static void ordinary_numbers(void **state) {
    (void)state;
    compare(draw_tiles("ordinary", 124, 6), TILES);
    compare(draw_tiles("ordinary, wide", 110, 34), TILES);
}

static void subnormal_numbers_and_results(void **state) {
    (void)state;
    compare(draw_tiles("subnormal", 0, 3), TILES);          // everything below the sum's grid
    compare(draw_tiles("subnormal results", 62, 4), TILES); // products about 2^-128
    compare(draw_tiles("all exponents", 0, 255), TILES);
}

static void overflow_infinities_and_nans(void **state) {
    (void)state;
    compare(draw_tiles("overflow", 188, 6), TILES); // products about 2^127
    compare(draw_tiles("infinities and NaNs", 245, 11), TILES);
}

// Of two equal tiles in k, one negated, only what was cut before the sum can remain.
static void cancellation(void **state) {
    (void)state;
    struct mma_operands *tiles = draw_tiles("cancellation", 118, 12);
    for (int i = 0; i < TILES; i++)
        for (int k = 0; k < K; k += 2) {
            for (int m = 0; m < M; m++) tiles[i].a[m + M * (k + 1)] = tiles[i].a[m + M * k];
            for (int n = 0; n < N; n++)
                tiles[i].b[n + N * (k + 1)] = tiles[i].b[n + N * k] ^ 0x8000;
        }
    compare(tiles, TILES);
}

// The largest significands of one sign: the largest sum of whole numbers.
static void largest_sum(void **state) {
    (void)state;
    struct mma_operands *t = arena_alloc(test_arena, sizeof *t);
    for (int k = 0; k < M * K; k++) t->a[k] = 0x3fff;
    for (int k = 0; k < K * N; k++) t->b[k] = 0x3fff;
    for (int k = 0; k < M * N; k++) t->c[k] = k % 2 ? float_of(0x40ffffff) : 3.5f;
    compare(t, 1);
}

struct known {
    float c, factor; // 16 products of 1 and factor
    int products;    // of them that are not 0
    float sm80, sm90;
};

static void answers_by_hand(void **state) {
    (void)state;
    static const struct known cases[] = {
        {1.0f, 0x1p-25f, 16, 1.0f, 1.0f + 0x1p-21f}, // below 24 bits, within 25
        {1.0f, 0x1p-26f, 16, 1.0f, 1.0f},
        {1.0f, 0x1p-24f, 16, 1.0f + 0x1p-20f, 1.0f + 0x1p-20f},
        {1.0f, 0x1p-24f, 9, 1.0f + 0x1p-21f, 1.0f + 0x1p-21f}, // 8 + 1: the one is cut off behind
        {-1.0f, 0x1p-24f, 1, -1.0f + 0x1p-24f, -1.0f + 0x1p-24f},
        {1.0f, -0x1p-25f, 1, 1.0f, 1.0f - 0x1p-24f}, // towards zero
        {0.0f, 3.0f, 16, 48.0f, 48.0f},
        {-0.0f, 0.0f, 0, 0.0f, 0.0f},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int capability = 80; capability <= 90; capability += 10) {
            struct mma_operands t = {0};
            for (int k = 0; k < cases[i].products; k++) {
                t.a[5 + M * k] = bf16(1.0f);
                t.b[3 + N * k] = bf16(cases[i].factor);
            }
            t.c[5 + M * 3] = cases[i].c;
            run(&t, 1, capability);
            float expected = capability == 90 ? cases[i].sm90 : cases[i].sm80;
            if (bits_of(t.c[5 + M * 3]) != bits_of(expected))
                fail_msg("case %zu, capability %d: %a, expected %a", i, capability,
                         (double)t.c[5 + M * 3], (double)expected);
        }
}

// A zero beside a large factor still has an exponent, and what is far below it is cut.
static void exponent_of_a_zero_product(void **state) {
    (void)state;
    struct mma_operands t = {0};
    t.b[0] = bf16(0x1p127f);
    t.c[0] = 0x1p-30f;
    t.c[1] = 0x1p-20f;
    run(&t, 1, 90);
    assert_int_equal(bits_of(t.c[0]), 0);
    assert_int_equal(bits_of(t.c[1]), bits_of(0x1p-20f));
}

static void fragments_of_ldmatrix(void **state) {
    (void)state;
    uint16_t matrices[4][8][8];
    uint32_t got[32][8];
    for (int i = 0; i < 256; i++) matrices[i / 64][i / 8 % 8][i % 8] = (uint16_t)(1000 + 7 * i);
    void *device, *registers;
    ASSERT_CUDA(cudaMalloc(&device, sizeof matrices));
    ASSERT_CUDA(cudaMalloc(&registers, sizeof got));
    ASSERT_CUDA(cudaMemcpy(device, matrices, sizeof matrices, cudaMemcpyHostToDevice));
    ASSERT_CUDA(mma_load(registers, device, NULL));
    ASSERT_CUDA(cudaMemcpy(got, registers, sizeof got, cudaMemcpyDeviceToHost));
    ASSERT_CUDA(cudaFree(device));
    ASSERT_CUDA(cudaFree(registers));
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++) {
            const uint16_t *row = matrices[i][lane / 4];
            int k = lane % 4 * 2;
            assert_int_equal(got[lane][i], row[k] | (uint32_t)row[k + 1] << 16);
            uint16_t upper = matrices[i][k][lane / 4], lower = matrices[i][k + 1][lane / 4];
            assert_int_equal(got[lane][4 + i], upper | (uint32_t)lower << 16);
        }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(ordinary_numbers),
        TEST(subnormal_numbers_and_results),
        TEST(overflow_infinities_and_nans),
        TEST(cancellation),
        TEST(largest_sum),
        TEST(answers_by_hand),
        TEST(exponent_of_a_zero_product),
        TEST(fragments_of_ldmatrix),
    };
    simt_from_environment();
    return cmocka_run_group_tests_name("mma", tests, NULL, NULL);
}

// Attention of the GPU: both kernels near double precision for every head size,
// with the same bits, whatever the chunks and the company; and the shares of
// watched rows.
#include "tests/kernels/attention_support.h"
#include "tests/kernels/cuda/attention_support.h"

static attention_kernel *const kernels[] = {attention_decode_launch, attention_prefill_launch};
static const char *const names[] = {"decode", "prefill"};
#define EACH_KERNEL(i) for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)

// Weights are rounded to 8 bits and so is the result.
static void assert_near(const struct device_sequence *s, const uint16_t *out, uint32_t from,
                        uint32_t to, uint32_t step, const char *what) {
    uint32_t H = s->shape.H, E = s->shape.E;
    double expected[256], size[256];
    for (uint32_t t = from; t < to; t += step) {
        for (uint32_t h = 0; h < H; h++) {
            double_reference(s, t, h, (struct attention_key_range){0, 0}, expected, size);
            for (uint32_t e = 0; e < E; e++) {
                double got = (double)num_from_bf16(out[((size_t)(t - from) * H + h) * E + e]);
                if (!(fabs(got - expected[e]) <= size[e] * 0x1p-7 + 1e-6))
                    fail_msg("%s H %u G %u E %u window %u: row %u head %u element %u is "
                             "%g, not %g",
                             what, H, s->shape.G, E, s->shape.window, t, h, e, got, expected[e]);
            }
        }
    }
}

static void assert_same(const struct device_sequence *s, const uint16_t *a, const uint16_t *b,
                        uint32_t from, uint32_t to, const char *what) {
    size_t width = (size_t)s->shape.H * s->shape.E;
    for (size_t i = 0; i < (to - from) * width; i++)
        if (a[i] != b[i])
            fail_msg("%s E %u: row %zu of [%u, %u), element %zu: %04x %04x", what, s->shape.E,
                     from + i / width, from, to, i % width, a[i], b[i]);
}

static void test_near_double_precision(void **state) {
    (void)state;
    struct rng r = rng_open(61, "attention", "double");
    const struct {
        struct attention_shape shape;
        uint32_t length, from;
        float size;
    } cases[] = {
        {shape_of(2, 2, 64, 0, 0), 70, 0, 1.0f},      {shape_of(3, 1, 64, 0, 0), 600, 590, 2.0f},
        {shape_of(2, 1, 80, 0, 0), 530, 500, 1.0f},   {shape_of(4, 2, 96, 100, 0), 700, 690, 1.0f},
        {shape_of(4, 1, 128, 0, 30), 140, 100, 3.0f}, {shape_of(2, 2, 128, 513, 0), 1100, 1095, 1},
        {shape_of(7, 1, 256, 0, 0), 65, 60, 1.0f},    {shape_of(2, 1, 256, 512, 20), 530, 520, 9},
        {shape_of(20, 1, 64, 3, 0), 520, 508, 4.0f},  {shape_of(1, 1, 80, 1, 0), 130, 60, 1.0f},
        {shape_of(3, 3, 32, 0, 0), 600, 590, 2.0f},   {shape_of(9, 1, 32, 70, 20), 530, 505, 3.0f},
        {shape_of(2, 1, 128, 0, 0), 200, 65, 1.0f},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct device_sequence s =
            device_sequence_make(&r, cases[i].shape, cases[i].length, cases[i].size);
        device_sequence_append(&s, 0, s.length);
        EACH_KERNEL(k) {
            uint16_t *out = attend_alone(kernels[k], &s, cases[i].from, s.length);
            assert_near(&s, out, cases[i].from, s.length, 3, names[k]);
            free(out);
        }
        device_sequence_free(&s);
    }
}

// The same sequence for the CPU's numerics, as fp32 values.
static struct sequence on_cpu(const struct device_sequence *s) {
    const struct attention_shape *a = &s->shape;
    struct sequence c = {.a = {.H = a->H,
                               .G = a->G,
                               .E = a->E,
                               .scale = a->scale,
                               .softcap = a->softcap,
                               .window = a->window},
                         .length = s->length};
    size_t nq = (size_t)s->length * a->H * a->E, nk = (size_t)s->length * a->G * a->E;
    c.q = ops_alloc(nq * sizeof(float));
    c.k = ops_alloc(nk * sizeof(float));
    c.v = ops_alloc(nk * sizeof(float));
    for (size_t i = 0; i < nq; i++) c.q[i] = num_from_bf16(s->q[i]);
    for (size_t i = 0; i < nk; i++) c.k[i] = num_from_bf16(s->k[i]);
    for (size_t i = 0; i < nk; i++) c.v[i] = num_from_bf16(s->v[i]);
    return c;
}

// Elements of rows [from, to) that are not what the CPU's numerics give.
static uint32_t differing(const struct sequence *s, const uint16_t *out, uint32_t from, uint32_t to,
                          enum fault fault) {
    uint32_t count = 0, E = s->a.E;
    float row[256];
    for (uint32_t t = from; t < to; t++) {
        for (uint32_t h = 0; h < s->a.H; h++) {
            reference_row(s, true, t, h, fault, row);
            for (uint32_t e = 0; e < E; e++)
                count += out[((size_t)(t - from) * s->a.H + h) * E + e] != num_bf16(row[e]);
        }
    }
    return count;
}

// The GPU's sums are cut where the CPU's are rounded, which few results show. All else is the same:
// the rounding of weights, by a maximum that is an integer, shows in many.
static void test_rounds_where_the_cpu_does(void **state) {
    (void)state;
    struct rng r = rng_open(68, "attention", "numerics");
    const struct attention_shape shapes[] = {shape_of(2, 1, 64, 0, 0), shape_of(2, 2, 128, 600, 0),
                                             shape_of(1, 1, 256, 0, 30), shape_of(4, 1, 32, 0, 0)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct device_sequence s = device_sequence_make(&r, shapes[i], 1100, 2.0f);
        struct sequence cpu = on_cpu(&s);
        const uint32_t from = 1090, all = (s.length - from) * s.shape.H * s.shape.E;
        device_sequence_append(&s, 0, s.length);
        EACH_KERNEL(k) {
            uint16_t *out = attend_alone(kernels[k], &s, from, s.length);
            uint32_t right = differing(&cpu, out, from, s.length, RIGHT);
            uint32_t wrong = differing(&cpu, out, from, s.length, REAL_MAXIMUM);
            if (right * 50 > all || wrong * 5 < all)
                fail_msg("%s E %u: %u of %u differ, and %u", names[k], s.shape.E, right, all,
                         wrong);
            free(out);
        }
        sequence_free(&cpu);
        device_sequence_free(&s);
    }
}

// Rows of a call, chunk by chunk while the pages fill, against one call of all
// rows.
static void test_same_bits_for_any_chunks(void **state) {
    (void)state;
    struct rng r = rng_open(62, "attention", "chunks");
    const struct {
        struct attention_shape shape;
        uint32_t length, start, chunk;
    } cases[] = {
        {shape_of(3, 1, 64, 0, 0), 560, 500, 1},      {shape_of(2, 1, 64, 70, 0), 200, 100, 7},
        {shape_of(2, 1, 80, 0, 0), 300, 0, 64},       {shape_of(1, 1, 64, 600, 0), 1100, 480, 511},
        {shape_of(1, 1, 128, 0, 25), 1100, 550, 513}, {shape_of(4, 2, 96, 0, 0), 130, 60, 1},
        {shape_of(2, 1, 32, 90, 0), 600, 480, 1},     {shape_of(2, 1, 256, 0, 0), 70, 40, 7},
        {shape_of(2, 1, 128, 700, 0), 900, 500, 200},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct device_sequence s = device_sequence_make(&r, cases[i].shape, cases[i].length, 3.0f);
        size_t width = (size_t)s.shape.H * s.shape.E;
        uint16_t *chunks = malloc(s.length * width * sizeof *chunks);
        assert_non_null(chunks);
        device_sequence_append(&s, 0, cases[i].start);
        for (uint32_t from = cases[i].start, to; from < s.length; from = to) {
            to = from + cases[i].chunk < s.length ? from + cases[i].chunk : s.length;
            device_sequence_append(&s, from, to);
            attention_kernel *kernel = kernels[rng_below(&r, sizeof kernels / sizeof *kernels)];
            uint16_t *out = attend_alone(kernel, &s, from, to);
            memcpy(chunks + (from - cases[i].start) * width, out,
                   (to - from) * width * sizeof *out);
            free(out);
        }
        EACH_KERNEL(k) {
            uint16_t *whole = attend_alone(kernels[k], &s, cases[i].start, s.length);
            assert_same(&s, whole, chunks, cases[i].start, s.length, names[k]);
            free(whole);
        }
        free(chunks);
        device_sequence_free(&s);
    }
}

// Keys come in pairs, equal but for values that are neighbours among bf16 numbers: results lie next
// to the middle of two such numbers, and the last bits of sums decide.
static void test_order_of_sums(void **state) {
    (void)state;
    struct rng r = rng_open(69, "attention", "order");
    struct device_sequence s = device_sequence_make(&r, shape_of(4, 1, 64, 0, 0), 700, 6.0f);
    for (uint32_t t = 2; t < s.length; t++) {
        uint16_t *k = s.k + t * 64, *v = s.v + t * 64;
        if (t % 2 == 0) memcpy(k, k - 64, 64 * sizeof *k);
        for (int e = 0; e < 64; e++) v[e] = (uint16_t)(s.v[64 + e] + (t % 2 == 0));
    }
    device_sequence_append(&s, 0, s.length);
    const uint32_t from = 540;
    uint16_t *a = attend_alone(kernels[0], &s, from, s.length);
    EACH_KERNEL(k) {
        uint16_t *b = attend_alone(kernels[k], &s, from, s.length);
        assert_same(&s, a, b, from, s.length, names[k]);
        free(b);
    }
    free(a);
    device_sequence_free(&s);
}

// With a window of E keys and a one for each in V, results are weights over their sum: each weight
// shows, in all its bits. `prefill` takes most by an approximation and has to know where that does
// not tell how the polynomial rounds, which is where such kernels would differ first.
static void test_rounding_of_weights(void **state) {
    (void)state;
    struct rng r = rng_open(70, "attention", "weights");
    struct device_sequence s = device_sequence_make(&r, shape_of(4, 1, 64, 64, 0), 1500, 2.0f);
    for (uint32_t t = 0; t < s.length; t++)
        for (uint32_t e = 0; e < 64; e++) s.v[t * 64 + e] = num_bf16(e == t % 64 ? 1.0f : 0.0f);
    device_sequence_append(&s, 0, s.length);
    uint16_t *a = attend_alone(kernels[0], &s, 0, s.length);
    uint16_t *b = attend_alone(kernels[1], &s, 0, s.length);
    assert_same(&s, a, b, 0, s.length, names[1]);
    free(a);
    free(b);
    device_sequence_free(&s);
}

// Several sequences in one call, against each alone.
static void test_same_bits_in_company(void **state) {
    (void)state;
    struct rng r = rng_open(63, "attention", "company");
    enum { SPANS = 4 };
    const uint32_t lengths[SPANS] = {40, 513, 1, 1025}, rows[SPANS] = {3, 1, 1, 17};
    struct device_sequence s[SPANS];
    struct attend spans[SPANS];
    for (int i = 0; i < SPANS; i++) {
        s[i] = device_sequence_make(&r, shape_of(4, 2, 64, 0, 0), lengths[i], 2.0f);
        device_sequence_append(&s[i], 0, lengths[i]);
        spans[i] = (struct attend){.s = &s[i], .from = lengths[i] - rows[i], .to = lengths[i]};
    }
    EACH_KERNEL(k) {
        uint32_t bad;
        uint16_t *all = attend(kernels[k], spans, SPANS, &bad), *at = all;
        assert_int_equal(bad, UINT32_MAX);
        for (int i = 0; i < SPANS; i++) {
            uint16_t *alone = attend_alone(kernels[k], &s[i], spans[i].from, spans[i].to);
            assert_same(&s[i], at, alone, spans[i].from, spans[i].to, names[k]);
            at += (size_t)rows[i] * s[i].shape.H * s[i].shape.E;
            free(alone);
        }
        free(all);
    }
    for (int i = 0; i < SPANS; i++) device_sequence_free(&s[i]);
}

// Slots that no row sees may hold any number: those behind the last key and,
// with a window, those before the first.
static void test_unseen_slots_do_not_matter(void **state) {
    (void)state;
    struct rng r = rng_open(64, "attention", "unseen");
    struct device_sequence s = device_sequence_make(&r, shape_of(2, 1, 64, 90, 0), 600, 2.0f);
    struct device_sequence other = device_sequence_make(&r, s.shape, 1024, 1e4f);
    memcpy(other.q, s.q, (size_t)s.length * s.shape.H * s.shape.E * sizeof *s.q);
    device_sequence_append(&s, 0, s.length);
    device_sequence_append(&other, 0, other.length);
    const uint32_t from = 560, first = from - 90 + 1;
    size_t key = (size_t)s.shape.G * s.shape.E;
    memcpy(other.k + first * key, s.k + first * key, (s.length - first) * key * sizeof *s.k);
    memcpy(other.v + first * key, s.v + first * key, (s.length - first) * key * sizeof *s.v);
    device_sequence_append(&other, first, s.length);
    EACH_KERNEL(k) {
        uint16_t *a = attend_alone(kernels[k], &s, from, s.length);
        uint16_t *b = attend_alone(kernels[k], &other, from, s.length);
        assert_near(&s, a, from, s.length, 7, names[k]);
        assert_same(&s, a, b, from, s.length, names[k]);
        free(a);
        free(b);
    }
    device_sequence_free(&s);
    device_sequence_free(&other);
}

// Scores that differ by more than 126 powers of two, all keys equal, and rows
// whose maximum comes last: nothing overflows, and rows still do not know each
// other.
static void test_extreme_scores(void **state) {
    (void)state;
    struct rng r = rng_open(65, "attention", "extreme");
    struct device_sequence s = device_sequence_make(&r, shape_of(2, 1, 64, 0, 0), 700, 200.0f);
    memset(s.q + 690 * 128, 0, 128 * sizeof *s.q); // scores 0: the mean of v
    device_sequence_append(&s, 0, s.length);
    EACH_KERNEL(k) {
        uint16_t *all = attend_alone(kernels[k], &s, 600, 700);
        assert_near(&s, all, 600, 700, 10, names[k]);
        for (uint32_t t = 685; t < 700; t += 5) {
            uint16_t *alone = attend_alone(kernels[0], &s, t, t + 1);
            assert_same(&s, all + (size_t)(t - 600) * 128, alone, t, t + 1, names[k]);
            free(alone);
        }
        free(all);
    }
    device_sequence_free(&s);
}

// Row 63 is the first of a warp of `prefill` and sees the last key of a tile: no key is hidden.
static void test_names_the_bad_row(void **state) {
    (void)state;
    struct rng r = rng_open(66, "attention", "bad");
    const struct {
        float q, k;
    } values[] = {{1e30f, 1e30f}, {-1e30f, 1e30f}, {INFINITY, 1.0f}, {NAN, 1.0f}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct device_sequence s = device_sequence_make(&r, shape_of(2, 1, 64, 0, 0), 100, 1.0f);
        s.k[40 * 64 + 5] = num_bf16(values[i].k);
        s.q[(63 * 2 + 1) * 64 + 5] = num_bf16(values[i].q);
        s.q[(90 * 2 + 0) * 64 + 5] = num_bf16(values[i].q);
        s.q[(30 * 2 + 0) * 64 + 5] = num_bf16(i < 2 ? values[i].q : 1.0f); // does not see key 40
        device_sequence_append(&s, 0, s.length);
        EACH_KERNEL(k) {
            struct attend span = {.s = &s, .from = 15, .to = 95};
            uint32_t bad;
            free(attend(kernels[k], &span, 1, &bad));
            assert_int_equal(bad, 63 - 15);
        }
        device_sequence_free(&s);
    }
}

static void test_shares_of_watched_rows(void **state) {
    (void)state;
    struct rng r = rng_open(67, "attention", "shares");
    const struct attention_shape shapes[] = {shape_of(3, 1, 64, 0, 0), shape_of(2, 1, 32, 0, 0),
                                             shape_of(4, 2, 80, 300, 0),
                                             shape_of(2, 1, 256, 0, 20)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct device_sequence s = device_sequence_make(&r, shapes[i], 1100, 2.0f);
        device_sequence_append(&s, 0, s.length);
        struct attend span = {.s = &s,
                              .from = 1080,
                              .to = 1100,
                              .ranges = {{0, 2000}, {1000, 1040}, {500, 1030}, {1090, 4294967295u}},
                              .count = 4,
                              .watch_from = 1083,
                              .watch_to = 1098};
        uint32_t bad;
        uint16_t *out = attend(attention_decode_launch, &span, 1, &bad);
        uint16_t *unwatched = attend_alone(attention_decode_launch, &s, span.from, span.to);
        assert_same(&s, out, unwatched, span.from, span.to, "watched");
        double expected[256], size[256];
        for (uint32_t t = span.watch_from; t < span.watch_to; t++) {
            for (uint32_t h = 0; h < s.shape.H; h++) {
                for (uint32_t n = 0; n < span.count; n++) {
                    double share = double_reference(&s, t, h, span.ranges[n], expected, size);
                    size_t at = ((t - span.watch_from) * s.shape.H + h) * span.count + n;
                    if (!(fabs((double)span.shares[at] - share) <= 2e-5 * share + 1e-9))
                        fail_msg("row %u head %u range %u: %.9g, not %.9g", t, h, n,
                                 (double)span.shares[at], share);
                }
            }
        }
        free(span.shares);
        free(out);
        free(unwatched);
        device_sequence_free(&s);
    }
}

static void test_refuses_broken_calls(void **state) {
    (void)state;
    uint32_t word[8] = {0};
    EACH_KERNEL(k) {
        for (int kind = 0; kind < 5; kind++) {
            struct attention_call c = {.shape = shape_of(4, 2, 64, 0, 0),
                                       .limits = {.spans = 1, .rows = 1, .keys = 1},
                                       .spans = (const struct attention_span *)word,
                                       .q = (const void *)0x1000,
                                       .ldq = 256,
                                       .out = (void *)0x1000,
                                       .ldout = 256,
                                       .workspace = (void *)0x1000,
                                       .bad_row = word};
            if (kind == 0) c.shape.E = 72;
            if (kind == 1) c.shape.H = 3;
            if (kind == 2) c.ldq = 255;
            if (kind == 3) c.limits.rows = 2;
            if (kind == 4) c.limits.ranges = 1;
            assert_int_equal(kernels[k](NULL, &c), cudaErrorInvalidValue);
        }
    }
    assert_true(attention_supports(80) && attention_supports(32));
    assert_false(attention_supports(72));
}

int main(void) {
    simt_from_environment();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_near_double_precision),
        cmocka_unit_test(test_rounds_where_the_cpu_does),
        cmocka_unit_test(test_same_bits_for_any_chunks),
        cmocka_unit_test(test_order_of_sums),
        cmocka_unit_test(test_rounding_of_weights),
        cmocka_unit_test(test_same_bits_in_company),
        cmocka_unit_test(test_unseen_slots_do_not_matter),
        cmocka_unit_test(test_extreme_scores),
        cmocka_unit_test(test_names_the_bad_row),
        cmocka_unit_test(test_shares_of_watched_rows),
        cmocka_unit_test(test_refuses_broken_calls),
    };
    return cmocka_run_group_tests_name("cuda attention", tests, NULL, NULL);
}

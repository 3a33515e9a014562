// Attention of every op table: bit for bit what the numerics say (attention_support.h), near double
// precision, the published examples, and independent of chunks, company and threads.
#include "tests/kernels/attention_support.h"

#define EACH_TABLE(ops)                                                                            \
    int count_;                                                                                    \
    const struct cpu_ops *const *tables_ = cpu_ops_all(&count_), *ops;                             \
    for (int t_ = 0; t_ < count_ && (ops = tables_[t_]) != NULL; t_++)                             \
        if (cpu_ops_find(ops->numerics, ops->name, NULL) != NULL)

static struct cpu_attention shape(uint32_t H, uint32_t G, uint32_t E, uint32_t window,
                                  double softcap) {
    return (struct cpu_attention){
        .H = H, .G = G, .E = E, .scale = 1.0 / sqrt(E), .window = window, .softcap = softcap};
}

// Compares rows [from, to) at `out` with the numerics; every `step`th row, all heads.
static void assert_rows(const struct cpu_ops *ops, const struct sequence *s, const void *out,
                        uint32_t from, uint32_t to, uint32_t step, const char *what) {
    uint32_t E = s->a.E;
    size_t width = (size_t)s->a.H * E;
    float row[256];
    for (uint32_t t = from; t < to; t += step) {
        for (uint32_t h = 0; h < s->a.H; h++) {
            unsigned saved = env_enter();
            reference_row(s, ops->numerics == CPU_BF16_1, t, h, RIGHT, row);
            env_leave(saved);
            void *expected = ops_operands(ops, row, 1, E, E);
            const char *got =
                (const char *)out + ((t - from) * width + (size_t)h * E) * ops->operand_bytes;
            ops_assert_same(expected, got, E * ops->operand_bytes,
                            "%s %s: row %u head %u E %u window %u", ops->name, what, t, h, E,
                            s->a.window);
            free(expected);
        }
    }
}

static void test_equals_the_numerics(void **state) {
    (void)state;
    struct rng r = rng_open(41, "attention", "bits");
    const struct {
        struct cpu_attention a;
        uint32_t length;
        float size;
    } cases[] = {
        {shape(3, 1, 64, 0, 0), 100, 1.0f},     {shape(9, 3, 64, 0, 0), 37, 4.0f},
        {shape(2, 2, 16, 0, 0), 1030, 1.0f},    {shape(4, 1, 18, 0, 0), 530, 2.0f},
        {shape(2, 1, 256, 0, 50), 60, 1.0f},    {shape(6, 2, 32, 5, 0), 70, 1.0f},
        {shape(2, 1, 40, 513, 30), 1100, 1.0f}, {shape(3, 1, 20, 512, 0), 1040, 30.0f},
        {shape(50, 1, 16, 0, 0), 9, 1.0f},      {shape(1, 1, 80, 1, 0), 600, 1.0f},
        {shape(2, 1, 16, 0, 0), 1026, 200.0f},
    };
    EACH_TABLE(ops) {
        struct cpu_pool pool = ops_pool(1);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct sequence s = sequence_make(ops, &r, cases[i].a, cases[i].length, cases[i].size);
            struct pages p = pages_make(ops, &s.a, s.length);
            void *out = sequence_step(ops, &pool, &s, &p, 0, s.length);
            assert_rows(ops, &s, out, 0, s.length, s.length > 200 ? 41 : 1, "whole");
            free(out);
            sequence_free(&s);
            pages_free(&p);
        }
        ops_pool_close(&pool);
    }
}

// Chunks and single tokens, over the borders of pages.
static void test_same_bits_for_any_chunks(void **state) {
    (void)state;
    struct rng r = rng_open(42, "attention", "chunks");
    const uint32_t cuts[] = {1, 7, 64, 511, 512, 513, 1023, 1025};
    EACH_TABLE(ops) {
        struct cpu_pool pool = ops_pool(1);
        struct sequence s = sequence_make(ops, &r, shape(3, 1, 8, t_ % 2 ? 0 : 700, 0), 1100, 3.0f);
        size_t row = (size_t)s.a.H * s.a.E * ops->operand_bytes;
        struct pages p = pages_make(ops, &s.a, s.length);
        char *whole = sequence_step(ops, &pool, &s, &p, 0, s.length);
        assert_rows(ops, &s, whole, 0, s.length, 97, "whole");
        pages_free(&p);
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
            if (ops->name[0] == 'c' && c % 5 != 0) continue; // plain C is slow: 1 and 513 will do
            p = pages_make(ops, &s.a, s.length);
            for (uint32_t from = 0, to; from < s.length; from = to) {
                to = from + cuts[c] < s.length ? from + cuts[c] : s.length;
                void *out = sequence_step(ops, &pool, &s, &p, from, to);
                ops_assert_same(whole + from * row, out, (to - from) * row, "%s chunks of %u at %u",
                                ops->name, cuts[c], from);
                free(out);
            }
            pages_free(&p);
        }
        free(whole);
        sequence_free(&s);
        ops_pool_close(&pool);
    }
}

// Several sequences in one call, in other row orders, with any number of threads.
static void test_same_bits_in_company(void **state) {
    (void)state;
    struct rng r = rng_open(43, "attention", "company");
    enum { SPANS = 5 };
    const uint32_t lengths[SPANS] = {40, 513, 1, 600, 1025}, last[SPANS] = {3, 1, 1, 50, 17};
    EACH_TABLE(ops) {
        struct sequence s[SPANS];
        struct pages p[SPANS];
        void *alone[SPANS];
        struct cpu_span spans[SPANS];
        struct cpu_pool one = ops_pool(1);
        struct cpu_attention a = shape(4, 2, 12, 0, 0);
        uint32_t width = a.H * a.E, rows = 0, bad;
        size_t row = width * ops->operand_bytes;
        for (int i = 0; i < SPANS; i++) {
            s[i] = sequence_make(ops, &r, a, lengths[i], 2.0f);
            p[i] = pages_make(ops, &a, lengths[i]);
            if (lengths[i] > last[i])
                free(sequence_step(ops, &one, &s[i], &p[i], 0, lengths[i] - last[i]));
            alone[i] = sequence_step(ops, &one, &s[i], &p[i], lengths[i] - last[i], lengths[i]);
            rows += last[i];
        }
        a.page_offset = p[0].layer_bytes;
        for (int threads = 1; threads <= 8; threads++) {
            struct cpu_pool pool = ops_pool(threads);
            float *q = ops_alloc((size_t)rows * width * sizeof *q);
            for (uint32_t i = 0, at = 0; i < SPANS; i++) {
                uint32_t n = (i + (uint32_t)threads) % SPANS; // another order each time
                spans[i] = (struct cpu_span){at, last[n], lengths[n] - last[n], p[n].page, NULL};
                memcpy(q + (size_t)at * width, s[n].q + (size_t)(lengths[n] - last[n]) * width,
                       (size_t)last[n] * width * sizeof *q);
                at += last[n];
            }
            void *operands = ops_operands(ops, q, rows, width, width + 2);
            char *out = ops_alloc((size_t)rows * row);
            assert_int_equal(
                ops->attention(&pool, spans, SPANS, &a, operands, width + 2, out, width, &bad), 0);
            for (uint32_t i = 0; i < SPANS; i++)
                ops_assert_same(alone[(i + (uint32_t)threads) % SPANS],
                                out + spans[i].first_row * row, spans[i].rows * row,
                                "%s, %d threads, span %u", ops->name, threads, i);
            free(q);
            free(operands);
            free(out);
            ops_pool_close(&pool);
        }
        for (int i = 0; i < SPANS; i++) {
            free(alone[i]);
            sequence_free(&s[i]);
            pages_free(&p[i]);
        }
        ops_pool_close(&one);
    }
}

// Few rows over many keys, as in decoding, with any number of threads: one token, a few tokens, two
// sequences at once; all blocks in one go and in several waves; with and without a window.
static void test_same_bits_when_blocks_are_shared_out(void **state) {
    (void)state;
    struct rng r = rng_open(47, "attention", "decode");
    const struct {
        struct cpu_attention a;
        uint32_t rows;
    } cases[] = {
        {shape(6, 2, 64, 0, 0), 1}, {shape(3, 1, 32, 0, 0), 8}, {shape(4, 1, 64, 1700, 0), 3}};
    enum { LENGTH = 5700 };
    EACH_TABLE(ops) {
        struct cpu_pool one = ops_pool(1);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct cpu_attention a = cases[i].a;
            uint32_t from = LENGTH - cases[i].rows, width = a.H * a.E, bad;
            struct sequence s = sequence_make(ops, &r, a, LENGTH, 1.0f);
            struct pages p = pages_make(ops, &a, LENGTH);
            sequence_append(ops, &one, &s, &p, 0, from);
            char *alone = sequence_step(ops, &one, &s, &p, from, LENGTH);
            assert_rows(ops, &s, alone, from, LENGTH, 2, "alone");
            size_t bytes = (size_t)cases[i].rows * width * ops->operand_bytes;
            a.page_offset = p.layer_bytes;
            // the same rows twice, as two sequences with the same pages
            float *twice = ops_alloc(2 * (size_t)cases[i].rows * width * sizeof *twice);
            for (uint32_t copy = 0; copy < 2; copy++)
                memcpy(twice + copy * cases[i].rows * width, s.q + (size_t)from * width,
                       cases[i].rows * width * sizeof *twice);
            void *q = ops_operands(ops, twice, 2 * cases[i].rows, width, width);
            free(twice);
            for (int threads = 2; threads <= 8; threads += threads == 3 ? 5 : 1) {
                struct cpu_pool pool = ops_pool(threads);
                char *out = ops_alloc(2 * bytes);
                struct cpu_span spans[2] = {{0, cases[i].rows, from, p.page, NULL},
                                            {cases[i].rows, cases[i].rows, from, p.page, NULL}};
                for (uint32_t count = 1; count <= 2; count++) {
                    memset(out, 0, 2 * bytes);
                    assert_int_equal(
                        ops->attention(&pool, spans, count, &a, q, width, out, width, &bad), 0);
                    for (uint32_t copy = 0; copy < count; copy++)
                        ops_assert_same(alone, out + copy * bytes, bytes, "%s case %zu, %d threads",
                                        ops->name, i, threads);
                }
                free(out);
                ops_pool_close(&pool);
            }
            free(q);
            free(alone);
            sequence_free(&s);
            pages_free(&p);
        }
        ops_pool_close(&one);
    }
}

// Proof that a comparison with the numerics can fail.
static void test_notices_planted_faults(void **state) {
    (void)state;
    struct rng r = rng_open(44, "attention", "faults");
    const struct cpu_ops *ops = cpu_ops_find(CPU_BF16_1, "c", NULL);
    for (enum fault fault = SMALL_BLOCKS; fault <= SCALED_LATE; fault++) {
        struct sequence s = sequence_make(
            ops, &r, shape(1, 1, 64, fault == WINDOW_PLUS_ONE ? 600 : 0, 0), 1100, 1.0f);
        s.a.scale = 0.13; // not a power of two, or scaling late would change nothing
        float right[64], wrong[64];
        int differ = 0;
        for (uint32_t t = 1090; t < 1100; t++) {
            reference_row(&s, fault != SCALED_LATE, t, 0, RIGHT, right);
            reference_row(&s, fault != SCALED_LATE, t, 0, fault, wrong);
            differ += memcmp(right, wrong, sizeof right) != 0;
        }
        if (differ == 0) fail_msg("fault %d changes no bit", (int)fault);
        sequence_free(&s);
    }
}

static void test_agrees_with_double_precision(void **state) {
    (void)state;
    struct rng r = rng_open(45, "attention", "double");
    EACH_TABLE(ops) {
        struct cpu_pool pool = ops_pool(1);
        struct sequence s = sequence_make(ops, &r, shape(4, 2, 64, 0, t_ % 2 ? 20 : 0), 300, 2.0f);
        struct pages p = pages_make(ops, &s.a, s.length);
        void *out = sequence_step(ops, &pool, &s, &p, 0, s.length);
        for (uint32_t t = 0; t < s.length; t += 23) {
            for (uint32_t h = 0; h < 4; h++) {
                double total = 0, o[64] = {0};
                for (uint32_t j = 0; j <= t; j++) {
                    double score = 0;
                    for (uint32_t e = 0; e < 64; e++)
                        score += (double)s.q[(t * 4 + h) * 64 + e] *
                                 (double)s.k[(j * 2 + h / 2) * 64 + e];
                    score *= s.a.scale;
                    if (s.a.softcap != 0) score = s.a.softcap * tanh(score / s.a.softcap);
                    total += exp(score);
                    for (uint32_t e = 0; e < 64; e++)
                        o[e] += exp(score) * (double)s.v[(j * 2 + h / 2) * 64 + e];
                }
                double bound = ops->numerics == CPU_F32 ? 2e-5 : 2e-2;
                for (uint32_t e = 0; e < 64; e++) {
                    double got = (double)ops_value(ops, out, ((size_t)t * 4 + h) * 64 + e);
                    if (!(fabs(got - o[e] / total) < bound))
                        fail_msg("%s row %u head %u: %g, double says %g", ops->name, t, h, got,
                                 o[e] / total);
                }
            }
        }
        free(out);
        sequence_free(&s);
        pages_free(&p);
        ops_pool_close(&pool);
    }
}

// softmax(2, 1, 0) over the values 10, 20, 30; and self-attention over X = [[1,0,1,0],[0,2,0,2],
// [1,1,1,1]] with identity weights under the causal mask and, for the last row, without it.
static void test_published_examples(void **state) {
    (void)state;
    EACH_TABLE(ops) {
        double bound =
            ops->numerics == CPU_F32 ? 2e-6 : 8e-3; // relative: one rounding of p and of o
        struct cpu_pool pool = ops_pool(1);
        float q[6] = {0, 0, 0, 0, 1, 0}, k[6] = {2, 0, 1, 0, 0, 0}, v[6] = {10, 1, 20, 0, 30, 0};
        struct sequence s = {.a = shape(1, 1, 2, 0, 0), .length = 3, .q = q, .k = k, .v = v};
        s.a.scale = 1;
        struct pages p = pages_make(ops, &s.a, 3);
        void *out = sequence_step(ops, &pool, &s, &p, 0, 3);
        assert_float_equal(ops_value(ops, out, 4), 14.2479, 14.2479 * bound);
        assert_float_equal(ops_value(ops, out, 5), 0.665241, 0.665241 * bound);
        free(out);
        pages_free(&p);

        float x[12] = {1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1};
        const float causal[12] = {1,        0,         1,        0,         .017986f, 1.964028f,
                                  .017986f, 1.964028f, .577681f, 1.266956f, .577681f, 1.266956f};
        struct sequence self = {.a = shape(1, 1, 4, 0, 0), .length = 3, .q = x, .k = x, .v = x};
        p = pages_make(ops, &self.a, 3);
        out = sequence_step(ops, &pool, &self, &p, 0, 3);
        for (size_t i = 0; i < 12; i++)
            assert_float_equal(ops_value(ops, out, i), causal[i], (double)causal[i] * bound + 1e-6);
        free(out);
        pages_free(&p);

        // The mask is by position alone: a query placed after all keys sees every one of them, so
        // rows 0 and 1 asked at position 3 give the unmasked example (a copy of key 2 is masked out
        // of the comparison by reading its own weight back).
        const float open[12] = {.844638f, .733044f,  .844638f, .733044f,  .133187f, 1.850937f,
                                .133187f, 1.850937f, .577681f, 1.266956f, .577681f, 1.266956f};
        for (uint32_t row = 0; row < 3; row++) {
            float keys[12], queries[12];
            for (uint32_t i = 0; i < 3; i++) { // the asked row last: permuted keys, same output
                memcpy(keys + 4 * i, x + (row + 1 + i) % 3 * 4, 4 * sizeof *x);
                memcpy(queries + 4 * i, x + row * 4, 4 * sizeof *x);
            }
            struct sequence turned = {
                .a = shape(1, 1, 4, 0, 0), .length = 3, .q = queries, .k = keys, .v = keys};
            p = pages_make(ops, &turned.a, 3);
            out = sequence_step(ops, &pool, &turned, &p, 0, 3);
            for (size_t i = 0; i < 4; i++)
                assert_float_equal(ops_value(ops, out, 8 + i), open[row * 4 + i],
                                   (double)open[row * 4 + i] * bound + 1e-6);
            free(out);
            pages_free(&p);
        }
        ops_pool_close(&pool);
    }
}

// Values one-hot by position: the output shows which keys are seen. Window W: exactly i-W+1 .. i,
// in one call, in chunks and token by token; window 0 means all.
static void test_window_is_exact(void **state) {
    (void)state;
    enum { LENGTH = 10, E = 16 };
    const uint32_t windows[] = {4, 0, 1, LENGTH - 1, LENGTH, LENGTH + 1}, steps[] = {LENGTH, 3, 1};
    EACH_TABLE(ops) {
        struct cpu_pool pool = ops_pool(1);
        float q[LENGTH * E] = {0}, k[LENGTH * E], v[LENGTH * E] = {0};
        for (int i = 0; i < LENGTH; i++) v[i * E + i] = 1.0f;
        for (int i = 0; i < LENGTH * E; i++) k[i] = (float)(i % 7);
        for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
            for (size_t c = 0; c < sizeof steps / sizeof *steps; c++) {
                struct sequence s = {
                    .a = shape(1, 1, E, windows[w], 0), .length = LENGTH, .q = q, .k = k, .v = v};
                struct pages p = pages_make(ops, &s.a, LENGTH);
                for (uint32_t from = 0; from < LENGTH; from += steps[c]) {
                    uint32_t to = from + steps[c] < LENGTH ? from + steps[c] : LENGTH;
                    void *out = sequence_step(ops, &pool, &s, &p, from, to);
                    for (uint32_t t = from; t < to; t++) {
                        uint32_t seen = windows[w] != 0 && windows[w] < t + 1 ? windows[w] : t + 1;
                        for (uint32_t j = 0; j < E; j++) {
                            bool visible = j <= t && j + seen > t;
                            float got = ops_value(ops, out, (t - from) * E + j);
                            assert_float_equal(got, visible ? 1.0 / seen : 0.0,
                                               visible ? 2e-3 : 0.0);
                        }
                    }
                    free(out);
                }
                pages_free(&p);
            }
        }
        ops_pool_close(&pool);
    }
}

// A branch that was cut back and went on: what lies behind the cut in its pages is not seen.
static void test_truncated_pages_are_not_seen(void **state) {
    (void)state;
    struct rng r = rng_open(46, "attention", "truncate");
    EACH_TABLE(ops) {
        struct cpu_pool pool = ops_pool(1);
        struct sequence s = sequence_make(ops, &r, shape(2, 1, 32, 0, 0), 560, 1.0f);
        struct sequence other = sequence_make(ops, &r, s.a, 560, 1.0f);
        for (uint32_t cut = 505; cut < 520; cut += 7) { // odd and even, both sides of a border
            struct pages p = pages_make(ops, &s.a, 560);
            free(sequence_step(ops, &pool, &s, &p, 0, cut));
            free(sequence_step(ops, &pool, &other, &p, cut, 560)); // then cut back to `cut`
            for (uint32_t t = cut; t < cut + 3; t++) {
                void *out = sequence_step(ops, &pool, &s, &p, t, t + 1);
                assert_rows(ops, &s, out, t, t + 1, 1, "after the cut");
                free(out);
            }
            pages_free(&p);
        }
        sequence_free(&s);
        sequence_free(&other);
        ops_pool_close(&pool);
    }
}

static void test_names_the_row_that_is_not_finite(void **state) {
    (void)state;
    EACH_TABLE(ops) {
        enum { ROWS = 70, E = 32 };
        struct cpu_pool pool = ops_pool(2);
        struct cpu_attention a = shape(1, 1, E, 0, 0);
        struct pages p = pages_make(ops, &a, ROWS);
        struct cpu_span span = {.rows = ROWS, .pages = p.page};
        float values[ROWS * E];
        for (int i = 0; i < ROWS * E; i++) values[i] = (float)(i % 5) - 2.0f;
        void *k = ops_operands(ops, values, ROWS, E, E);
        uint32_t bad = 0;
        char out[ROWS * E * 4];
        assert_int_equal(ops->kv_append(&pool, &span, 1, &a, k, k, E, &bad), 0);
        values[65 * E + 3] = 3e38f; // a finite query, a score that is not
        values[65 * E + 4] = 3e38f;
        values[67 * E + 3] = INFINITY;
        void *q = ops_operands(ops, values, ROWS, E, E);
        assert_int_equal(ops->attention(&pool, &span, 1, &a, q, E, out, E, &bad), -1);
        assert_int_equal(bad, 65);
        assert_int_equal(ops->kv_append(&pool, &span, 1, &a, k, q, E, &bad), -1);
        assert_int_equal(bad, 67);
        assert_int_equal(ops->kv_append(&pool, &span, 1, &a, q, k, E, &bad), -1);
        assert_int_equal(bad, 67);
        free(k);
        free(q);
        pages_free(&p);
        ops_pool_close(&pool);
    }
}

// A score that overflows to either side, or to both on the way, among ordinary ones and among ones
// that lie far apart; alone as in decoding and in a chunk.
static void test_refuses_every_kind_of_infinite_score(void **state) {
    (void)state;
    enum { ROWS = 90, E = 32, KEY = 10, BAD = 65 };
    const float queries[][2] = {{3e38f, 0}, {-3e38f, 0}, {3e38f, -3e38f}};
    EACH_TABLE(ops) {
        struct cpu_pool pool = ops_pool(1);
        struct cpu_attention a = shape(1, 1, E, 0, 0);
        for (size_t i = 0; i < 6; i++) {
            float k[ROWS * E] = {0}, q[ROWS * E] = {0};
            for (uint32_t r = 0; r < ROWS; r++) k[r * E + 5] = q[r * E + 5] = r % 3 ? 1.0f : -1.0f;
            if (i >= 3) k[3 * E + 5] = 4e3f; // exponents below -126 elsewhere
            k[KEY * E] = k[KEY * E + 2] = 3e38f;
            q[BAD * E] = queries[i % 3][0];
            q[BAD * E + 2] = queries[i % 3][1];
            struct pages p = pages_make(ops, &a, ROWS);
            struct cpu_span span = {.rows = ROWS, .pages = p.page};
            void *keys = ops_operands(ops, k, ROWS, E, E),
                 *asked = ops_operands(ops, q, ROWS, E, E);
            uint32_t bad = 0;
            char out[ROWS * E * 4];
            assert_int_equal(ops->kv_append(&pool, &span, 1, &a, keys, keys, E, &bad), 0);
            assert_int_equal(ops->attention(&pool, &span, 1, &a, asked, E, out, E, &bad), -1);
            assert_int_equal(bad, BAD);
            span.rows = BAD; // the rows before it
            assert_int_equal(ops->attention(&pool, &span, 1, &a, asked, E, out, E, &bad), 0);
            span = (struct cpu_span){
                .first_row = BAD, .rows = 1, .first_position = BAD, .pages = p.page};
            assert_int_equal(ops->attention(&pool, &span, 1, &a, asked, E, out, E, &bad), -1);
            assert_int_equal(bad, BAD);
            free(keys);
            free(asked);
            pages_free(&p);
        }
        ops_pool_close(&pool);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_the_numerics),
        cmocka_unit_test(test_same_bits_for_any_chunks),
        cmocka_unit_test(test_same_bits_in_company),
        cmocka_unit_test(test_same_bits_when_blocks_are_shared_out),
        cmocka_unit_test(test_notices_planted_faults),
        cmocka_unit_test(test_agrees_with_double_precision),
        cmocka_unit_test(test_published_examples),
        cmocka_unit_test(test_window_is_exact),
        cmocka_unit_test(test_truncated_pages_are_not_seen),
        cmocka_unit_test(test_names_the_row_that_is_not_finite),
        cmocka_unit_test(test_refuses_every_kind_of_infinite_score),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

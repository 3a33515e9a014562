// Shares of attention on ranges of keys, in every op table: bit for bit what the numerics say, near
// double precision, the same for any threads and company, and no bit of the output changed.
#include "tests/kernels/attention_support.h"

#define EACH_TABLE(ops)                                                                            \
    int count_;                                                                                    \
    const struct cpu_ops *const *tables_ = cpu_ops_all(&count_), *ops;                             \
    for (int t_ = 0; t_ < count_ && (ops = tables_[t_]) != NULL; t_++)                             \
        if (cpu_ops_find(ops->numerics, ops->name, NULL) != NULL)

enum { RANGES = 9 };

// A sequence with its pages filled, rows [from, length) to attend, and what is watched of them.
struct scene {
    struct sequence s;
    struct pages pages;
    uint32_t from;
    struct cpu_key_range ranges[RANGES];
    struct cpu_watch watch;
};

static struct scene scene_make(const struct cpu_ops *ops, const struct cpu_pool *pool,
                               struct rng *r, struct cpu_attention a, uint32_t length,
                               uint32_t rows, float size) {
    struct scene c = {.s = sequence_make(ops, r, a, length, size), .from = length - rows};
    c.pages = pages_make(ops, &a, length);
    sequence_append(ops, pool, &c.s, &c.pages, 0, length);
    const struct cpu_key_range fixed[] = {{0, UINT32_MAX},      {0, 1}, {length - 1, length},
                                          {length, length + 9}, {7, 7}, {500, 525}};
    for (uint32_t i = 0; i < RANGES; i++) {
        uint32_t first = ops_below(r, length + 3);
        c.ranges[i] = (struct cpu_key_range){first, first + ops_below(r, i % 2 ? 20 : length)};
        if (i < sizeof fixed / sizeof *fixed) c.ranges[i] = fixed[i];
    }
    c.watch.count = RANGES;
    c.watch.first_row = ops_below(r, rows);
    c.watch.rows = 1 + ops_below(r, rows - c.watch.first_row);
    return c;
}

static void scene_free(struct scene *c) {
    sequence_free(&c->s);
    pages_free(&c->pages);
}

static size_t scene_shares(const struct scene *c) {
    return (size_t)c->watch.rows * c->s.a.H * RANGES;
}

// Attends with the scene watched. Returns the output; the shares come in *shares.
static void *scene_attend(const struct cpu_ops *ops, const struct cpu_pool *pool, struct scene *c,
                          float **shares) {
    size_t bytes = scene_shares(c) * sizeof(float);
    *shares = ops_alloc(bytes);
    memset(*shares, 0xff, bytes);
    struct cpu_watch watch = c->watch;
    watch.ranges = c->ranges;
    watch.shares = *shares;
    return sequence_attend(ops, pool, &c->s, &c->pages, c->from, c->s.length, &watch);
}

// The share of query t and head h on keys [first, end) in double precision.
static double exact_share(const struct sequence *s, uint32_t t, uint32_t h,
                          struct cpu_key_range range) {
    const struct cpu_attention *a = &s->a;
    uint32_t g = h / (a->H / a->G),
             start = a->window != 0 && t >= a->window ? t - a->window + 1 : 0;
    double score[SEQUENCE_BLOCKS_MAX * CPU_PAGE], max = -INFINITY, all = 0, part = 0;
    for (uint32_t j = start; j <= t; j++) {
        score[j] = 0;
        for (uint32_t e = 0; e < a->E; e++)
            score[j] += (double)s->q[((size_t)t * a->H + h) * a->E + e] *
                        (double)s->k[((size_t)j * a->G + g) * a->E + e];
        score[j] *= a->scale;
        if (a->softcap != 0) score[j] = a->softcap * tanh(score[j] / a->softcap);
        max = score[j] > max ? score[j] : max;
    }
    for (uint32_t j = start; j <= t; j++) {
        double p = exp(score[j] - max);
        all += p;
        if (j >= range.first && j < range.end) part += p;
    }
    return part / all;
}

static void assert_shares(const struct cpu_ops *ops, struct scene *c, const float *shares,
                          const char *what) {
    for (uint32_t i = 0; i < scene_shares(c); i += 1 + i % 3) {
        uint32_t range = i % RANGES, h = i / RANGES % c->s.a.H, row = i / RANGES / c->s.a.H;
        uint32_t t = c->from + c->watch.first_row + row;
        float unused[256];
        c->s.range = c->ranges[range];
        unsigned saved = env_enter();
        float expected = reference_row(&c->s, ops->numerics == CPU_BF16_1, t, h, RIGHT, unused);
        env_leave(saved);
        if (memcmp(&expected, &shares[i], sizeof expected) != 0)
            fail_msg("%s %s: row %u head %u keys [%u, %u): %.9g, the numerics say %.9g", ops->name,
                     what, t, h, c->s.range.first, c->s.range.end, (double)shares[i],
                     (double)expected);
        double exact = exact_share(&c->s, t, h, c->s.range);
        if (!(fabs((double)expected - exact) <= 3e-5 * exact + 1e-9))
            fail_msg("%s %s: row %u head %u keys [%u, %u): %.9g, double says %.9g", ops->name, what,
                     t, h, c->s.range.first, c->s.range.end, (double)expected, exact);
    }
}

static struct cpu_attention random_attention(struct rng *r, uint32_t length) {
    const uint32_t groups[] = {1, 2, 3, 5};
    uint32_t G = 1 + ops_below(r, 2), E = 2 * (1 + ops_below(r, 40));
    return (struct cpu_attention){.H = G * groups[ops_below(r, 4)],
                                  .G = G,
                                  .E = E,
                                  .scale = 1.0 / sqrt(E),
                                  .window = ops_below(r, 3) == 0 ? 1 + ops_below(r, length) : 0,
                                  .softcap = ops_below(r, 3) == 0 ? 20.0 : 0.0};
}

static void test_equals_the_numerics_and_double(void **state) {
    (void)state;
    struct rng r = rng_open(61, "watch", "bits");
    for (int draw = 0; draw < 12; draw++) {
        uint32_t length = 3 + ops_below(&r, draw % 2 ? 1300 : 60), rows = 1 + ops_below(&r, 5);
        rows = rows < length ? rows : length;
        struct cpu_attention a = random_attention(&r, length);
        EACH_TABLE(ops) {
            struct cpu_pool pool = ops_pool(1);
            struct scene c = scene_make(ops, &pool, &r, a, length, rows, 2.0f);
            float *shares;
            void *plain = sequence_attend(ops, &pool, &c.s, &c.pages, c.from, c.s.length, NULL);
            void *watched = scene_attend(ops, &pool, &c, &shares);
            ops_assert_same(plain, watched, (size_t)rows * a.H * a.E * ops->operand_bytes,
                            "%s: output of a watched span", ops->name);
            assert_shares(ops, &c, shares, "one thread");
            for (uint32_t i = 0; i < scene_shares(&c); i += RANGES) {
                assert_true(shares[i] == 1.0f); // all keys
                for (int none = 3; none < 5; none++)
                    assert_int_equal(num_bits(shares[i + none]), 0); // no visible key
            }
            free(plain);
            free(watched);
            free(shares);
            scene_free(&c);
            ops_pool_close(&pool);
        }
    }
}

// Few rows over many keys, whose blocks go to different threads; and scores so far apart that whole
// blocks fade to nothing while they are folded.
static void test_same_bits_for_any_threads(void **state) {
    (void)state;
    struct rng r = rng_open(62, "watch", "threads");
    const float sizes[] = {1.0f, 150.0f};
    EACH_TABLE(ops) {
        struct cpu_pool one = ops_pool(1);
        for (int i = 0; i < 4; i++) {
            struct cpu_attention a = {
                .H = 6, .G = 2, .E = 32, .scale = 0.2, .window = i < 2 ? 0 : 3000};
            uint32_t rows = 1 + ops_below(&r, 6), length = 4000 + ops_below(&r, 1600);
            struct scene c = scene_make(ops, &one, &r, a, length, rows, sizes[i % 2]);
            float *alone, *shares;
            void *expected = scene_attend(ops, &one, &c, &alone);
            if (i % 2 == 0) assert_shares(ops, &c, alone, "many blocks");
            for (int threads = 2; threads <= 8; threads += 3) {
                struct cpu_pool pool = ops_pool(threads);
                void *out = scene_attend(ops, &pool, &c, &shares);
                ops_assert_same(expected, out, (size_t)rows * a.H * a.E * ops->operand_bytes,
                                "%s, %d threads: output", ops->name, threads);
                ops_assert_same(alone, shares, scene_shares(&c) * sizeof *shares,
                                "%s, %d threads: shares", ops->name, threads);
                free(out);
                free(shares);
                ops_pool_close(&pool);
            }
            free(expected);
            free(alone);
            scene_free(&c);
        }
        ops_pool_close(&one);
    }
}

// Three spans in one call, of which two are watched, each with ranges of its own.
static void test_same_bits_in_company(void **state) {
    (void)state;
    struct rng r = rng_open(63, "watch", "company");
    enum { SPANS = 3 };
    const uint32_t lengths[SPANS] = {700, 90, 1600}, rows[SPANS] = {33, 40, 2};
    EACH_TABLE(ops) {
        struct cpu_pool one = ops_pool(1), pool = ops_pool(3);
        struct cpu_attention a = {.H = 4, .G = 2, .E = 16, .scale = 0.25};
        struct scene c[SPANS];
        struct cpu_watch watch[SPANS];
        struct cpu_span spans[SPANS];
        float *alone[SPANS];
        uint32_t width = a.H * a.E, all = 0, bad;
        for (int i = 0; i < SPANS; i++) {
            c[i] = scene_make(ops, &one, &r, a, lengths[i], rows[i], 2.0f);
            free(scene_attend(ops, &one, &c[i], &alone[i]));
            watch[i] = c[i].watch;
            watch[i].ranges = c[i].ranges;
            watch[i].shares = ops_alloc(scene_shares(&c[i]) * sizeof(float));
            spans[i] = (struct cpu_span){all, rows[i], c[i].from, c[i].pages.page,
                                         i == 1 ? NULL : &watch[i]};
            all += rows[i];
        }
        a.page_offset = c[0].pages.layer_bytes;
        float *q = ops_alloc((size_t)all * width * sizeof *q);
        for (int i = 0; i < SPANS; i++)
            memcpy(q + (size_t)spans[i].first_row * width, c[i].s.q + (size_t)c[i].from * width,
                   (size_t)rows[i] * width * sizeof *q);
        void *operands = ops_operands(ops, q, all, width, width);
        void *out = ops_alloc((size_t)all * width * ops->operand_bytes);
        assert_int_equal(ops->attention(&pool, spans, SPANS, &a, operands, width, out, width, &bad),
                         0);
        for (int i = 0; i < SPANS; i++) {
            if (i != 1)
                ops_assert_same(alone[i], watch[i].shares, scene_shares(&c[i]) * sizeof(float),
                                "%s: shares of span %d", ops->name, i);
            free(alone[i]);
            free(watch[i].shares);
            scene_free(&c[i]);
        }
        free(q);
        free(operands);
        free(out);
        ops_pool_close(&one);
        ops_pool_close(&pool);
    }
}

// Proof that the comparison tells shares of rounded weights from those of unrounded ones.
static void test_notices_rounded_weights(void **state) {
    (void)state;
    struct rng r = rng_open(64, "watch", "faults");
    const struct cpu_ops *ops = cpu_ops_find(CPU_BF16_1, "c", NULL);
    struct cpu_attention a = {.H = 1, .G = 1, .E = 16, .scale = 0.25};
    struct sequence s = sequence_make(ops, &r, a, 600, 1.0f);
    s.range = (struct cpu_key_range){40, 60};
    float unused[256];
    assert_true(reference_row(&s, true, 599, 0, RIGHT, unused) !=
                reference_row(&s, true, 599, 0, ROUNDED_SHARES, unused));
    sequence_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_the_numerics_and_double),
        cmocka_unit_test(test_same_bits_for_any_threads),
        cmocka_unit_test(test_same_bits_in_company),
        cmocka_unit_test(test_notices_rounded_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

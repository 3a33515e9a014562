// The benchmark's counts against counting token by token, and its tests on a tiny model.
#include "tests/support/gguf_writer.h"
#include "tests/support/support.h"

#include "engine/base/rng.h"
#include "engine/bench.h"
#include "engine/bench_work.h"

#include <string.h>

static const char *model_path; // trained for 4,096 tokens

static uint64_t keys_of(const struct model_config *c, uint64_t position) {
    uint64_t keys = 0;
    for (uint64_t k = 0; k <= position; k++) keys += c->window == 0 || position - k < c->window;
    return keys;
}

static void test_keys(void **state) {
    (void)state;
    struct rng r = rng_open(1, "bench", "keys");
    for (int i = 0; i < 300; i++) {
        struct model_config c = {.window =
                                     (uint32_t)rng_below(&r, 2) * (uint32_t)rng_below(&r, 90)};
        uint64_t first = rng_below(&r, 100), rows = rng_below(&r, 100), keys = 0;
        for (uint64_t p = first; p < first + rows; p++) keys += keys_of(&c, p);
        assert_int_equal(bench_keys(&c, first, rows), keys);
    }
}

static struct model_config draw_config(struct rng *r) {
    uint32_t G = 1 + (uint32_t)rng_below(r, 3);
    return (struct model_config){.L = 1 + (uint32_t)rng_below(r, 4),
                                 .D = 8 + (uint32_t)rng_below(r, 90),
                                 .G = G,
                                 .H = G * (1 + (uint32_t)rng_below(r, 3)),
                                 .E = 8,
                                 .F = 16 + (uint32_t)rng_below(r, 90),
                                 .V = 100 + (uint32_t)rng_below(r, 90),
                                 .window = (uint32_t)rng_below(r, 2) * 700};
}

// Products and attention of one token in one layer, x 2.
static uint64_t flop_of_token(const struct model_config *c, uint64_t position) {
    uint64_t q = (uint64_t)c->D * c->H * c->E, kv = 2 * (uint64_t)c->D * c->G * c->E;
    uint64_t o = q, ffn = 3 * (uint64_t)c->D * c->F;
    return 2 * (q + kv + o + ffn + 2 * (uint64_t)c->H * c->E * keys_of(c, position));
}

static void test_prefill_work(void **state) {
    (void)state;
    struct rng r = rng_open(2, "bench", "prefill");
    for (int i = 0; i < 50; i++) {
        struct model_config c = draw_config(&r);
        struct bench_shape s = {.config = &c,
                                .few = {1000, 100},
                                .many = {1000, 100},
                                .kv_bytes = 10,
                                .chunk_tokens = 1 + (uint32_t)rng_below(&r, 600)};
        uint32_t n = 1 + (uint32_t)rng_below(&r, 1200);
        uint64_t flop = 2 * (uint64_t)c.D * c.V, bytes = 100;
        for (uint32_t p = 0; p < n; p++) {
            flop += (c.L - 1) * flop_of_token(&c, p);
            flop += p + 1 == n ? flop_of_token(&c, p) : 4 * (uint64_t)c.D * c.G * c.E;
        }
        for (uint32_t p = 0; p < n; p += s.chunk_tokens) {
            uint32_t end = n - p < s.chunk_tokens ? n : p + s.chunk_tokens, seen = 0;
            for (uint32_t k = 0; k < end; k++) seen += c.window == 0 || k >= p || p - k < c.window;
            bytes += 1000 + 10 * (uint64_t)seen;
        }
        struct bench_work w = bench_prefill_work(&s, n);
        assert_int_equal(w.flop, flop);
        assert_int_equal(w.bytes, bytes);
    }
}

static void test_decode_work(void **state) {
    (void)state;
    struct rng r = rng_open(3, "bench", "decode");
    for (int i = 0; i < 50; i++) {
        struct model_config c = draw_config(&r);
        struct bench_shape s = {.config = &c,
                                .few = {400, 40},
                                .many = {1000, 100},
                                .few_rows = (uint32_t)rng_below(&r, 5),
                                .kv_bytes = 10,
                                .chunk_tokens = 512};
        uint32_t depth = (uint32_t)rng_below(&r, 1300), n = 1 + (uint32_t)rng_below(&r, 40);
        uint32_t sequences = 1 + (uint32_t)rng_below(&r, 16);
        uint64_t flop = 0, bytes = 0, keys = 0;
        for (uint32_t p = depth; p < depth + n; p++) {
            flop += sequences * (c.L * flop_of_token(&c, p) + 2 * (uint64_t)c.D * c.V);
            keys += sequences * c.L * keys_of(&c, p);
            bytes += sequences <= s.few_rows ? 440 : 1100;
            for (uint32_t k = 0; k <= p; k++) {
                bool seen = c.window == 0 || p - k < c.window, shared = k / 512 < depth / 512;
                bytes += seen ? 10 * (shared ? 1 : sequences) : 0;
            }
        }
        struct bench_work w = bench_decode_work(&s, depth, n, sequences);
        assert_int_equal(w.flop, flop);
        assert_int_equal(w.bytes, bytes);
        assert_int_equal(w.keys, keys);
        uint64_t per_key = 4 * (uint64_t)c.H * c.E;
        assert_int_equal(2 * w.weights * sequences, flop - keys * per_key);
    }
}

static int bench(const struct bench_options *o, struct arena *a, struct bench_result *out,
                 struct err *e) {
    struct model *m;
    struct session *s;
    *e = (struct err){0};
    ASSERT_OK(model_open(model_path, a, &m, e), *e);
    int result = bench_run(m, o, a, &s, out, e);
    session_close(s);
    model_close(m);
    return result;
}

static void check_range(const struct bench_line *l, struct bench_range r) {
    if (!(r.least > 0 && r.least <= r.median && r.median <= r.most))
        fail_msg("%s: %g, %g, %g", l->name, r.least, r.median, r.most);
}

static void test_lines(void **state) {
    (void)state;
    struct err e;
    struct bench_result r;
    static const char *const tables[] = {"c", NULL};
    for (size_t t = 0; t < 2; t++) {
        struct bench_options o = {.session = {.threads = 1, .op_table = tables[t]},
                                  .prompts = {700, 40},
                                  .prompt_count = 2,
                                  .depths = {0, 600, 512},
                                  .depth_count = 3,
                                  .reply_tokens = 3,
                                  .batch = 5,
                                  .repeats = 2,
                                  .ops = t > 0};
        ASSERT_OK(bench(&o, test_arena, &r, &e), e);
        static const char *const names[] = {"pp700",   "pp40",    "tg3",
                                            "tg3@600", "tg3@512", "tg3 x 5"};
        assert_int_equal(r.count, t > 0 ? 6 + 4 + 3 * 5 + 2 : 6);
        for (int i = 0; i < r.count; i++) {
            const struct bench_line *l = &r.lines[i];
            if (i < 6) assert_string_equal(l->name, names[i]);
            assert_int_equal(l->tokens > 0, i < 6);
            check_range(l, l->seconds);
            check_range(l, l->share);
            assert_true(l->held_by >= 0 && l->allowed_s[l->held_by] > 0);
            assert_int_equal(l->allowed_s[BENCH_COMPUTE] > 0, t > 0); // plain C has no measure
            assert_true(l->allowed_s[BENCH_MEMORY] > 0);
            bool few = strcmp(l->kind, "prefill") != 0 && l->rows <= 4;
            assert_int_equal(l->allowed_s[BENCH_ISSUE] > 0, few);
        }
        assert_int_equal(r.lines[5].tokens, 15);
        assert_true(r.load_s > 0 && r.peak_bytes > 0 && r.read_bytes_per_s.least > 0);
    }
}

static void test_refusals(void **state) {
    (void)state;
    struct err e;
    struct bench_result r;
    struct bench_options o = {.prompts = {4097}, .prompt_count = 1, .repeats = 1};
    ASSERT_FAILS(bench(&o, test_arena, &r, &e), e, ERR_CONFIG, "take 4097 tokens");
    o = (struct bench_options){.depths = {4090}, .depth_count = 1, .reply_tokens = 7, .repeats = 1};
    ASSERT_FAILS(bench(&o, test_arena, &r, &e), e, ERR_CONFIG, "trained for 4096");
    o.reply_tokens = 6;
    o.session.memory_bytes = 1 << 20;
    ASSERT_FAILS(bench(&o, test_arena, &r, &e), e, ERR_MEMORY, "KV cache");
    o.session = (struct session_options){.op_table = "sse9"};
    ASSERT_FAILS(bench(&o, test_arena, &r, &e), e, ERR_PROVIDER, "'sse9'");
}

static int make_model(void **state) {
    test_arena_open(state);
    model_path = arena_printf(test_arena, "%s/tiny.gguf", test_folder());
    tiny_model_write(model_path, &(struct tiny_model_options){.seed = 6});
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),        cmocka_unit_test(test_prefill_work),
        cmocka_unit_test(test_decode_work), cmocka_unit_test(test_lines),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make_model, test_arena_close);
}

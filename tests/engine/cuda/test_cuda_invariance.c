// DESIGN section 5 on the emulated GPU: a token's numbers depend only on its prefix. Ways of
// feeding the same ids are compared with one prefill, bit by bit.
#include "tests/support/engine_probe.h"
#include "tests/support/simt.h"
#include "tests/support/support.h"

#include "engine/backend_plugin.h"

#include <string.h>

#define COUNT 547 // a whole page and a part
#define CONTEXT 700

const struct cuda_ops *lacuna_cuda_ops(void);

static const char *model_path;
static int32_t ids[COUNT];
static uint64_t reference[COUNT], got[COUNT], ignored[CONTEXT];

// A fault, put between the layer loop and the backend: products of few rows differ a little.
static struct backend_ops faulty;
static const struct backend_ops *sound;

static void nudged_matmul(struct backend *b, const void *x, uint32_t ldx, uint32_t R,
                          const struct backend_matrix *w, const float *bias, bool add, float *y,
                          uint32_t ldy) {
    uint32_t bits;
    sound->matmul(b, x, ldx, R, w, bias, add, y, ldy);
    if (R > 16) return;
    sound->download(b, &bits, y, sizeof bits);
    bits ^= 1u << 12; // large enough to outlive the rounding to bf16 behind it, now and then
    sound->upload(b, y, &bits, sizeof bits);
}

static void plant(struct probe *p) {
    struct backend *b = session_backend(p->session);
    sound = b->ops;
    faulty = *sound;
    faulty.matmul = nudged_matmul;
    b->ops = &faulty;
}

static struct probe open_probe(uint32_t chunk) {
    struct session_options o = {.backend = "cuda",
                                .chunk_tokens = chunk,
                                .context_tokens = CONTEXT,
                                .sequences = 6,
                                .pages_least = 12,
                                .watched = 8,
                                .weights = "unpacked"};
    return probe_open(model_path, &o);
}

static void assert_same(const char *what) {
    uint32_t different = probe_differences(reference, got, COUNT);
    if (different > 0) fail_msg("%s: %u rows of %d differ", what, different, COUNT);
}

static void test_chunks(void **state) {
    (void)state;
    static const uint32_t chunks[] = {64, 513};
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        struct probe p = open_probe(chunks[i]);
        probe_feed(&p, probe_sequence(&p), ids, COUNT, got);
        probe_close(&p);
        assert_same("chunks");
    }
    enum { SOME = 60 }; // in small chunks, and with the fault
    for (int planted = 0; planted < 2; planted++) {
        struct probe p = open_probe(7);
        if (planted) plant(&p);
        probe_feed(&p, probe_sequence(&p), ids, SOME, got);
        probe_close(&p);
        assert_int_equal(probe_differences(reference, got, SOME) > 0, planted);
    }
}

// One token at a time: from the start, and over the border of a page.
static void test_decode_is_prefill(void **state) {
    (void)state;
    struct probe p = open_probe(512);
    struct kv_sequence *s = probe_sequence(&p);
    uint32_t at = 0;
    for (; at < 20; at++) probe_feed(&p, s, ids + at, 1, got + at);
    probe_feed(&p, s, ids + at, 485, got + at);
    for (at += 485; at < 520; at++) probe_feed(&p, s, ids + at, 1, got + at);
    probe_feed(&p, s, ids + at, COUNT - at, got + at);
    probe_close(&p);
    assert_same("one token at a time");
}

// The last rows one at a time and in small steps, among other sequences of other lengths.
static void test_company(void **state) {
    (void)state;
    enum { OTHERS = 3, FROM = 500 };
    static int32_t other_ids[OTHERS][COUNT];
    struct probe p = open_probe(512);
    struct probe_part parts[OTHERS + 1];
    struct err e = {0};
    for (uint32_t i = 0; i < OTHERS; i++) {
        probe_ids(100 + i, p.model->config.V, other_ids[i], COUNT);
        parts[i] = (struct probe_part){probe_sequence(&p), other_ids[i], 1 + 170 * i, ignored};
    }
    parts[OTHERS] = (struct probe_part){probe_sequence(&p), ids, FROM, got};
    ASSERT_OK(probe_feed_parts(&p, parts, OTHERS + 1, &e), e);
    for (uint32_t at = FROM, step = 1; at < COUNT; at += step) {
        struct probe_part now[OTHERS + 1];
        uint32_t place = at % (OTHERS + 1), n = 0;
        step = at % 3 == 0 && at + 5 < COUNT ? 5 : 1;
        for (uint32_t i = 0; i <= OTHERS; i++) {
            if (i == place) {
                now[i] = (struct probe_part){parts[OTHERS].sequence, ids + at, step, got + at};
                continue;
            }
            now[i] =
                (struct probe_part){parts[n].sequence, other_ids[n] + at % 100, 1 + n, ignored};
            n++;
        }
        ASSERT_OK(probe_feed_parts(&p, now, OTHERS + 1, &e), e);
        for (uint32_t i = 0; i < OTHERS; i++)
            if (parts[i].sequence->length > 500)
                kv_truncate(session_kv(p.session), parts[i].sequence, 100);
    }
    probe_close(&p);
    assert_same("company");
}

// Wrong tails that are cut off again, pages that other prompts filled before, and forks.
static void test_history(void **state) {
    (void)state;
    static int32_t wrong[CONTEXT];
    struct probe p = open_probe(512);
    struct kv_pool *kv = session_kv(p.session);
    struct err e = {0};
    probe_ids(7, p.model->config.V, wrong, CONTEXT);
    struct kv_sequence *gone = probe_sequence(&p), *s = NULL, *child = NULL;
    probe_feed(&p, gone, wrong, CONTEXT, ignored);
    kv_sequence_close(kv, gone);
    s = probe_sequence(&p);
    static const uint32_t keep[] = {1, 300, 511, 513};
    uint32_t at = 0;
    for (size_t i = 0; i < sizeof keep / sizeof *keep; i++) {
        probe_feed(&p, s, ids + at, keep[i] - at, got + at);
        at = keep[i];
        probe_feed(&p, s, wrong, 40, ignored);
        kv_truncate(kv, s, at);
    }
    ASSERT_OK(kv_fork(kv, s, at, &child, &e), e);
    probe_feed(&p, s, wrong, 30, ignored);
    probe_feed(&p, child, ids + at, COUNT - at, got + at);
    probe_close(&p);
    assert_same("history");
}

// Watching changes no bit, and the shares of a row do not hang on how its prompt was read.
static void test_watching(void **state) {
    (void)state;
    static const struct backend_key_range ranges[] = {{3, 40}, {500, 530}, {0, CONTEXT}};
    float shares[2][2 * 2 * 3];
    for (int way = 0; way < 2; way++) {
        struct probe p = open_probe(way == 0 ? 512 : 64);
        struct kv_sequence *s = probe_sequence(&p);
        struct session_watch watch = {ranges, 3, shares[way]};
        uint32_t before = way == 0 ? 0 : COUNT - 1;
        assert_int_equal(p.model->config.L * p.model->config.H * 3, 12);
        if (before > 0) probe_feed(&p, s, ids, before, got);
        probe_feed_watched(&p, s, ids + before, COUNT - before, &watch, got + before);
        probe_close(&p);
        assert_same("watched");
        for (int i = 0; i < 4; i++) {
            const float *row = shares[way] + 3 * i;
            assert_true(row[0] > 0 && row[1] > 0 && row[0] + row[1] < 1);
            assert_float_equal(row[2], 1, 1e-5);
        }
    }
    assert_memory_equal(shares[0], shares[1], sizeof shares[0]);
}

static int make_reference(void **state) {
    (void)state;
    model_path = probe_model("invariance",
                             &(struct tiny_model_options){
                                 .type = TENSOR_Q8_0, .D = 64, .H = 2, .G = 1, .F = 96, .seed = 5});
    struct probe p = open_probe(512);
    probe_ids(1, p.model->config.V, ids, COUNT);
    probe_feed(&p, probe_sequence(&p), ids, COUNT, reference);
    probe_close(&p);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),   cmocka_unit_test(test_decode_is_prefill),
        cmocka_unit_test(test_company),  cmocka_unit_test(test_history),
        cmocka_unit_test(test_watching),
    };
    simt_from_environment();
    backend_plugin_use(lacuna_cuda_ops());
    return cmocka_run_group_tests_name("cuda invariance", tests, make_reference, NULL);
}

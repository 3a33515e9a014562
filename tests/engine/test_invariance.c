// DESIGN section 5: a token's numbers depend only on its prefix. Every way of feeding the same ids
// is compared with one prefill, bit by bit; and each comparison is shown to notice planted faults.
#include "tests/support/engine_probe.h"
#include "tests/support/support.h"

#include "kernels/cpu/ops.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 1153 // two whole pages and a part
#define CONTEXT 1400

static const char *model_path;
static int32_t ids[COUNT];
static uint64_t reference[COUNT];

// Faults, put between the layer loop and the backend.
enum fault {
    FAULT_NONE,
    FAULT_ROW,   // the fourth row of a call comes out differently from the others
    FAULT_SPLIT, // products of few rows are summed in another way than those of many
    FAULT_FOLD   // rows that begin behind the first attention block fold it in another way
};
static struct backend_ops faulty;
static const struct backend_ops *sound;

static void nudge(float *y) {
    uint32_t bits;
    memcpy(&bits, y, sizeof bits);
    bits ^= 1u << 12; // large enough to outlive the rounding to bf16 behind it, now and then
    memcpy(y, &bits, sizeof bits);
}

static void matmul_row(struct backend *b, const void *x, uint32_t ldx, uint32_t R,
                       const struct backend_matrix *w, const float *bias, bool add, float *y,
                       uint32_t ldy) {
    sound->matmul(b, x, ldx, R, w, bias, add, y, ldy);
    if (R > 3) nudge(y + (size_t)3 * ldy);
}

static void matmul_split(struct backend *b, const void *x, uint32_t ldx, uint32_t R,
                         const struct backend_matrix *w, const float *bias, bool add, float *y,
                         uint32_t ldy) {
    sound->matmul(b, x, ldx, R, w, bias, add, y, ldy);
    for (uint32_t r = 0; R < 100 && r < R; r++) nudge(y + (size_t)r * ldy);
}

static const struct backend_pass *faulty_pass;

static void begin_fold(struct backend *b, const struct backend_pass *pass) {
    faulty_pass = pass;
    sound->begin(b, pass);
}

static void attention_fold(struct backend *b, const struct backend_attention *a, bool wanted,
                           const void *q, uint32_t ldq, void *out, uint32_t ldout) {
    const struct backend_pass *pass = faulty_pass;
    const struct backend_span *spans = wanted ? pass->wanted_spans : pass->spans;
    uint32_t count = wanted ? pass->wanted_span_count : pass->span_count;
    sound->attention(b, a, wanted, q, ldq, out, ldout);
    for (uint32_t i = 0; i < count; i++)
        if (spans[i].first_position % BACKEND_PAGE != 0 && spans[i].first_position > BACKEND_PAGE)
            ((uint16_t *)out)[(size_t)spans[i].first_row * ldout] ^= 1u;
}

static void plant(struct probe *p, enum fault fault) {
    struct backend *b = session_backend(p->session);
    if (fault == FAULT_NONE) return;
    sound = b->ops;
    faulty = *sound;
    if (fault == FAULT_ROW) faulty.matmul = matmul_row;
    if (fault == FAULT_SPLIT) faulty.matmul = matmul_split;
    if (fault == FAULT_FOLD) {
        faulty.begin = begin_fold;
        faulty.attention = attention_fold;
    }
    b->ops = &faulty;
}

static struct probe open_probe(uint32_t chunk, int threads, enum fault fault) {
    struct session_options o = {.chunk_tokens = chunk,
                                .threads = threads,
                                .context_tokens = CONTEXT,
                                .sequences = 12,
                                .pages_least = 24,
                                .weights = "unpacked"};
    struct probe p = probe_open(model_path, &o);
    plant(&p, fault);
    return p;
}

// Each of these returns how many rows differ from the reference.

static uint32_t in_chunks(uint32_t chunk, int threads, enum fault fault) {
    static uint64_t got[COUNT];
    struct probe p = open_probe(chunk, threads, fault);
    probe_feed(&p, probe_sequence(&p), ids, COUNT, got);
    probe_close(&p);
    return probe_differences(reference, got, COUNT);
}

// Calls that end at the given positions, and one for the rest.
static uint32_t in_calls(const uint32_t *ends, int count, enum fault fault) {
    static uint64_t got[COUNT];
    struct probe p = open_probe(512, 1, fault);
    struct kv_sequence *s = probe_sequence(&p);
    uint32_t at = 0;
    for (int i = 0; i <= count; i++) {
        uint32_t end = i < count ? ends[i] : COUNT;
        probe_feed(&p, s, ids + at, end - at, got + at);
        at = end;
    }
    probe_close(&p);
    return probe_differences(reference, got, COUNT);
}

static uint32_t by_token(uint32_t prefilled, enum fault fault) {
    static uint64_t got[COUNT];
    struct probe p = open_probe(512, 1, fault);
    struct kv_sequence *s = probe_sequence(&p);
    if (prefilled > 0) probe_feed(&p, s, ids, prefilled, got);
    for (uint32_t i = prefilled; i < COUNT; i++) probe_feed(&p, s, ids + i, 1, got + i);
    probe_close(&p);
    return probe_differences(reference, got, COUNT);
}

// The rows from 1,000 on, one at a time, in the company of five other sequences of other lengths.
static uint32_t in_company(enum fault fault) {
    enum { OTHERS = 5, FROM = 1000 };
    static uint64_t got[COUNT], theirs[OTHERS][COUNT];
    static int32_t other_ids[OTHERS][COUNT];
    struct probe p = open_probe(512, 1, fault);
    struct probe_part parts[OTHERS + 1];
    for (uint32_t i = 0; i < OTHERS; i++) {
        probe_ids(100 + i, p.model->config.V, other_ids[i], COUNT);
        parts[i] = (struct probe_part){probe_sequence(&p), other_ids[i], 1 + 130 * i, theirs[i]};
    }
    parts[OTHERS] = (struct probe_part){probe_sequence(&p), ids, FROM, got};
    struct err e = {0};
    ASSERT_OK(probe_feed_parts(&p, parts, OTHERS + 1, &e), e);
    for (uint32_t at = FROM; at < COUNT; at++) {
        // The watched one moves through the batch.
        uint32_t place = at % (OTHERS + 1), n = 0;
        struct probe_part step[OTHERS + 1];
        for (uint32_t i = 0; i < OTHERS + 1; i++)
            step[i] = i == place
                          ? (struct probe_part){parts[OTHERS].sequence, ids + at, 1, got + at}
                          : (n++, (struct probe_part){parts[n - 1].sequence, other_ids[n - 1] + at,
                                                      1, theirs[0]});
        ASSERT_OK(probe_feed_parts(&p, step, OTHERS + 1, &e), e);
    }
    probe_close(&p);
    return probe_differences(reference, got, COUNT);
}

// Other prompts fill the pages first; the sequence itself holds wrong tails that are cut off again.
static uint32_t with_history(enum fault fault) {
    static uint64_t got[COUNT], ignored[CONTEXT];
    static int32_t wrong[CONTEXT];
    struct probe p = open_probe(512, 1, fault);
    struct kv_pool *kv = session_kv(p.session);
    probe_ids(7, p.model->config.V, wrong, CONTEXT);
    struct kv_sequence *resident = probe_sequence(&p), *gone = probe_sequence(&p);
    probe_feed(&p, resident, wrong, 700, ignored);
    probe_feed(&p, gone, wrong, CONTEXT, ignored);
    kv_sequence_close(kv, gone);
    struct kv_sequence *s = probe_sequence(&p);
    static const uint32_t keep[] = {1, 511, 512, 513, 800, 1024, 1025};
    uint32_t at = 0;
    for (size_t i = 0; i < sizeof keep / sizeof *keep; i++) {
        probe_feed(&p, s, ids + at, keep[i] - at, got + at);
        at = keep[i];
        probe_feed(&p, s, wrong, CONTEXT - at, ignored);
        kv_truncate(kv, s, at);
    }
    probe_feed(&p, s, ids + at, COUNT - at, got + at);
    probe_close(&p);
    return probe_differences(reference, got, COUNT);
}

// Forks inside a page, at its border and behind it; parent and child go on with different ids.
static uint32_t after_fork(uint32_t at, enum fault fault) {
    static uint64_t got[COUNT], child_got[COUNT], ignored[CONTEXT];
    static int32_t wrong[CONTEXT];
    struct probe p = open_probe(512, 1, fault);
    struct kv_pool *kv = session_kv(p.session);
    probe_ids(8, p.model->config.V, wrong, CONTEXT);
    struct kv_sequence *parent = probe_sequence(&p), *child = NULL, *second = NULL;
    struct err e = {0};
    probe_feed(&p, parent, ids, at, got);
    ASSERT_OK(kv_fork(kv, parent, parent->length, &child, &e), e);
    ASSERT_OK(kv_fork(kv, parent, parent->length, &second, &e), e);
    memcpy(child_got, got, at * sizeof *got);
    probe_feed(&p, second, wrong, 60, ignored);
    probe_feed(&p, parent, ids + at, 20, got + at);
    probe_feed(&p, child, ids + at, 40, child_got + at);
    kv_sequence_close(kv, second);
    // The parent is cut back into what the child still shares, and goes wrong there.
    kv_truncate(kv, parent, at - 5);
    probe_feed(&p, parent, wrong, 30, ignored);
    probe_feed(&p, child, ids + at + 40, COUNT - at - 40, child_got + at + 40);
    kv_truncate(kv, parent, at - 5);
    probe_feed(&p, parent, ids + at - 5, COUNT - at + 5, got + at - 5);
    probe_close(&p);
    return probe_differences(reference, got, COUNT) +
           probe_differences(reference, child_got, COUNT);
}

static void test_chunks(void **state) {
    (void)state;
    static const uint32_t chunks[] = {1, 7, 64, 511, 513, 2048};
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
        assert_int_equal(in_chunks(chunks[i], 1, FAULT_NONE), 0);
    assert_true(in_chunks(64, 1, FAULT_ROW) > 0);
    assert_true(in_chunks(64, 1, FAULT_SPLIT) > 0);
    assert_true(in_chunks(511, 1, FAULT_FOLD) > 0);
}

static void test_threads(void **state) {
    (void)state;
    static const int threads[] = {1, 2, 3, 5, 8};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        assert_int_equal(in_chunks(512, threads[i], FAULT_NONE), 0);
    assert_true(in_chunks(512, 2, FAULT_ROW) > 0);
}

static void test_splits(void **state) {
    (void)state;
    static const uint32_t borders[] = {511, 512, 513, 1023, 1024, 1025};
    assert_int_equal(in_calls(borders, 6, FAULT_NONE), 0);
    for (int i = 0; i < 6; i++) assert_int_equal(in_calls(borders + i, 1, FAULT_NONE), 0);
    assert_true(in_calls(borders, 6, FAULT_ROW) > 0);
    assert_true(in_calls(borders, 6, FAULT_SPLIT) > 0);
    assert_true(in_calls(borders, 6, FAULT_FOLD) > 0);
}

static void test_decode_is_prefill(void **state) {
    (void)state;
    assert_int_equal(by_token(0, FAULT_NONE), 0);
    assert_int_equal(by_token(1020, FAULT_NONE), 0);
    assert_true(by_token(1020, FAULT_ROW) > 0);
    assert_true(by_token(1020, FAULT_SPLIT) > 0);
    assert_true(by_token(1020, FAULT_FOLD) > 0);
}

static void test_company(void **state) {
    (void)state;
    assert_int_equal(in_company(FAULT_NONE), 0);
    assert_true(in_company(FAULT_ROW) > 0);
    assert_true(in_company(FAULT_SPLIT) > 0);
    assert_true(in_company(FAULT_FOLD) > 0);
}

static void test_history(void **state) {
    (void)state;
    assert_int_equal(with_history(FAULT_NONE), 0);
    assert_true(with_history(FAULT_ROW) > 0);
    assert_true(with_history(FAULT_SPLIT) > 0);
    assert_true(with_history(FAULT_FOLD) > 0);
}

static void test_forks(void **state) {
    (void)state;
    static const uint32_t at[] = {500, 511, 512, 513, 1024, 1030};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        assert_int_equal(after_fork(at[i], FAULT_NONE), 0);
    assert_true(after_fork(513, FAULT_ROW) > 0);
    assert_true(after_fork(513, FAULT_SPLIT) > 0);
    assert_true(after_fork(513, FAULT_FOLD) > 0);
}

// A page that is shared although it should have been copied: the comparison sees that too.
static void test_forks_notice_shared_page(void **state) {
    (void)state;
    static uint64_t got[COUNT], ignored[COUNT];
    static int32_t wrong[COUNT];
    struct probe p = open_probe(512, 1, FAULT_NONE);
    probe_ids(9, p.model->config.V, wrong, COUNT);
    struct kv_sequence *parent = probe_sequence(&p), *child = NULL;
    struct err e = {0};
    probe_feed(&p, parent, ids, 600, got);
    ASSERT_OK(kv_fork(session_kv(p.session), parent, parent->length, &child, &e), e);
    child->address[1] = parent->address[1];
    probe_feed(&p, parent, ids + 600, 100, got + 600);
    probe_feed(&p, child, wrong, 100, ignored);
    probe_feed(&p, parent, ids + 700, 100, got + 700);
    assert_true(probe_differences(reference, got, 800) > 0);
    probe_close(&p);
}

// One id for each value of the pair (stored, unpacked), types with blocks and without.
static void test_stored_is_unpacked(void **state) {
    (void)state;
    static const enum tensor_type types[] = {TENSOR_F32, TENSOR_F16, TENSOR_Q8_0, TENSOR_Q4_1};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char name[32];
        snprintf(name, sizeof name, "stored-%zu", i);
        const char *path = probe_model(
            name, &(struct tiny_model_options){.type = types[i], .biases = true, .V = 333});
        uint64_t hashes[2][200];
        int32_t some[200];
        probe_ids(3, 333, some, 200);
        for (int stored = 0; stored < 2; stored++) {
            struct session_options o = {.weights = stored ? "stored" : "unpacked", .threads = 1};
            struct probe p = probe_open(path, &o);
            probe_feed(&p, probe_sequence(&p), some, 200, hashes[stored]);
            probe_close(&p);
        }
        assert_int_equal(probe_differences(hashes[0], hashes[1], 200), 0);
    }
}

static int make_reference(void **state) {
    (void)state;
    model_path =
        probe_model("invariance", &(struct tiny_model_options){.type = TENSOR_Q8_0, .seed = 5});
    struct probe p = open_probe(512, 1, FAULT_NONE);
    probe_ids(1, p.model->config.V, ids, COUNT);
    probe_feed(&p, probe_sequence(&p), ids, COUNT, reference);
    probe_close(&p);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_splits),
        cmocka_unit_test(test_decode_is_prefill),
        cmocka_unit_test(test_company),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_forks),
        cmocka_unit_test(test_forks_notice_shared_page),
        cmocka_unit_test(test_stored_is_unpacked),
    };
    return cmocka_run_group_tests(tests, make_reference, NULL);
}

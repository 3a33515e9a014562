// A trained model with a window of W tokens in each of its L layers
// (tests/oracle/train_subjects.py), token by token: what stands more than L (W - 1) tokens before
// the end of a prompt changes no bit of the logits there or in the reply, what stands within one
// window changes them, and the border lies exactly at L (W - 1). The same model without a window
// sees everything. Both agree with the double-precision reference.
#include "tests/support/engine_probe.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/rng.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    LAYERS = 2,
    WINDOW = 128,
    REACH = LAYERS * (WINDOW - 1),
    TOKENS = 500,
    REPLY = 6,
    VOCABULARY = 257,
    END = 256
};

static const char question[] = "\n\nWhat is the code?", reply[] = " 4821";

static struct probe open_subject(const char *name, const char *numerics) {
    struct arena *a = arena_create("path");
    const char *path = test_data(a, arena_printf(a, "engine/golden/subject-%s.gguf", name));
    const struct session_options o = {.backend = "cpu",
                                      .numerics = numerics,
                                      .context_tokens = 576,
                                      .threads = 1,
                                      .weights = "unpacked"};
    struct probe p = probe_open(path, &o);
    arena_destroy(a);
    return p;
}

// Words of small letters, the question, and the reply that is to be scored.
static void prompt_draw(struct rng *r, int32_t ids[TOKENS + REPLY]) {
    size_t asks = sizeof question - 1;
    for (size_t i = 0; i < TOKENS - asks; i++)
        ids[i] = rng_below(r, 6) == 0 ? ' ' : (int32_t)('a' + rng_below(r, 26));
    for (size_t i = 0; i < asks; i++) ids[TOKENS - asks + i] = question[i];
    for (size_t i = 0; i < REPLY - 1; i++) ids[TOKENS + i] = reply[i];
    ids[TOKENS + REPLY - 1] = END;
}

// How many of the logits of the prompt's last token and the reply differ after the tokens
// [from, to) were drawn anew.
static uint32_t changed_rows(struct probe *p, struct rng *r, uint32_t from, uint32_t to) {
    int32_t ids[TOKENS + REPLY];
    uint64_t hashes[2][TOKENS + REPLY];
    prompt_draw(r, ids);
    for (int turn = 0; turn < 2; turn++) {
        struct kv_sequence *s = probe_sequence(p);
        probe_feed(p, s, ids, TOKENS + REPLY, hashes[turn]);
        kv_sequence_close(session_kv(p->session), s);
        for (uint32_t i = from; i < to; i++) ids[i] = (ids[i] + 1 + (int)rng_below(r, 255)) % 256;
    }
    return probe_differences(hashes[0] + TOKENS - 1, hashes[1] + TOKENS - 1, REPLY + 1);
}

static void test_window(void **state) {
    (void)state;
    struct probe p = open_subject("window", "bf16-1");
    struct rng r = rng_open(1, "window", "test");
    assert_int_equal(p.model->config.window, WINDOW);
    assert_int_equal(p.model->config.L, LAYERS);
    const uint32_t last = TOKENS - 1;
    for (int round = 0; round < 20; round++) {
        uint32_t from = (uint32_t)rng_below(&r, last - REACH);
        assert_int_equal(changed_rows(&p, &r, from, from + 1), 0);
        from = last - (uint32_t)rng_below(&r, WINDOW - REPLY);
        assert_int_equal(changed_rows(&p, &r, from, from + 1), REPLY + 1);
    }
    assert_int_equal(changed_rows(&p, &r, 0, last - REACH), 0); // all that lies beyond, at once
    // At the border a single path of attention is left, and rounding may swallow what it carries:
    // several draws, each of one token.
    uint32_t at_border = 0;
    for (int round = 0; round < 20; round++)
        at_border += changed_rows(&p, &r, last - REACH, last - REACH + 1);
    assert_true(at_border > 0);
    probe_close(&p);
}

static void test_full(void **state) {
    (void)state;
    struct probe p = open_subject("full", "bf16-1");
    struct rng r = rng_open(2, "full", "test");
    assert_int_equal(p.model->config.window, 0);
    for (uint32_t from = 0; from < TOKENS; from += 71)
        assert_int_equal(changed_rows(&p, &r, from, from + 1), REPLY + 1);
    probe_close(&p);
}

struct rows {
    float logits[REPLY + 1][VOCABULARY];
};

static int take_row(void *context, struct session *s, const struct session_row *row,
                    struct err *e) {
    (void)e;
    struct rows *rows = context;
    if (row->index >= TOKENS - 1)
        memcpy(rows->logits[row->index - TOKENS + 1], session_row_logits(s, row),
               sizeof rows->logits[0]);
    return 0;
}

// The prompt of train_subjects.py's reference_rows: its code is relayed through the window's
// layers.
static void rows_of(struct probe *p, struct rows *out) {
    static const char key[] = " The code is 4821. ";
    int32_t ids[TOKENS + REPLY];
    size_t asks = sizeof question - 1;
    for (size_t i = 0; i < TOKENS - asks; i++) ids[i] = (int32_t)('a' + (i * i + 3 * i) % 26);
    for (size_t i = 0; i < asks; i++) ids[TOKENS - asks + i] = question[i];
    for (size_t i = 0; i < sizeof key - 1; i++) ids[290 + i] = key[i];
    for (size_t i = 0; i < REPLY - 1; i++) ids[TOKENS + i] = reply[i];
    ids[TOKENS + REPLY - 1] = END;
    struct err e = {0};
    struct kv_sequence *s = probe_sequence(p);
    const struct session_item item = {
        .sequence = s, .ids = ids, .count = TOKENS + REPLY, .logits = SESSION_ALL};
    const struct session_sink sink = {take_row, out};
    ASSERT_OK(session_forward(p->session, &item, 1, &sink, &e), e);
    kv_sequence_close(session_kv(p->session), s);
}

static void test_reference(void **state) {
    (void)state;
    static const char *const names[] = {"full", "window"};
    static const struct {
        const char *numerics;
        double most;
    } allowed[] = {{"f32", 2e-4}, {"bf16-1", 0.5}};
    for (size_t n = 0; n < 2; n++)
        for (size_t k = 0; k < 2; k++) {
            struct probe p = open_subject(names[n], allowed[k].numerics);
            struct rows rows;
            struct str stored;
            struct err e = {0};
            double worst = 0;
            const char *file = arena_printf(p.arena, "engine/golden/subject-%s.logits", names[n]);
            ASSERT_OK(file_read(test_data(p.arena, file), 1 << 20, p.arena, &stored, &e), e);
            assert_int_equal(stored.n, sizeof rows);
            rows_of(&p, &rows);
            for (size_t i = 0; i < stored.n / sizeof(float); i++) {
                float expected;
                memcpy(&expected, stored.p + i * sizeof expected, sizeof expected);
                worst = fmax(worst, fabs((double)expected - (double)(&rows.logits[0][0])[i]));
            }
            if (!(worst < allowed[k].most))
                fail_msg("%s, %s: a logit is off by %g", names[n], allowed[k].numerics, worst);
            probe_close(&p);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_window), cmocka_unit_test(test_full),
                                       cmocka_unit_test(test_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// What a session refuses and says, before it loads anything and while it runs (cases B03, B33).
#include "tests/support/engine_probe.h"
#include "tests/support/support.h"

#include "engine/base/file.h"

#include <math.h>
#include <string.h>

#define V 320

static const char *model_path; // trained for 4,096 tokens

static int try_open(const struct session_options *o, struct err *e) {
    struct arena *a = arena_create("test");
    struct model *m;
    struct session *s = NULL;
    *e = (struct err){0};
    ASSERT_OK(model_open(model_path, a, &m, e), *e);
    int result = session_open(m, o, &s, e);
    session_close(s);
    model_close(m);
    arena_destroy(a);
    return result;
}

static void test_names(void **state) {
    (void)state;
    struct err e;
    ASSERT_FAILS(try_open(&(struct session_options){.backend = "cuda"}, &e), e, ERR_PROVIDER,
                 "no NVIDIA driver");
    ASSERT_FAILS(try_open(&(struct session_options){.backend = "tpu"}, &e), e, ERR_CONFIG, "'tpu'");
    ASSERT_FAILS(try_open(&(struct session_options){.numerics = "fp8"}, &e), e, ERR_CONFIG,
                 "bf16-1 or f32");
    ASSERT_FAILS(try_open(&(struct session_options){.weights = "packed"}, &e), e, ERR_CONFIG,
                 "'packed'");
    ASSERT_FAILS(try_open(&(struct session_options){.op_table = "sse9"}, &e), e, ERR_PROVIDER,
                 "'sse9'");
    struct probe p = probe_open(model_path, &(struct session_options){.backend = "auto"});
    assert_string_equal(session_backend(p.session)->name, "cpu");
    assert_non_null(strstr(session_backend(p.session)->note, "no NVIDIA driver"));
    assert_int_equal(session_plan(p.session)->context_tokens, 4096);
    assert_int_equal(session_plan(p.session)->storage, BACKEND_UNPACKED);
    probe_close(&p);
}

static void test_context(void **state) {
    (void)state;
    struct err e;
    struct session_options o = {.context_tokens = 4097};
    ASSERT_FAILS(try_open(&o, &e), e, ERR_CONFIG, "beyond_trained");
    assert_non_null(strstr(e.text, "4097"));
    assert_non_null(strstr(e.text, "4096"));
    o.beyond_trained = true;
    ASSERT_OK(try_open(&o, &e), e);
}

static void test_memory_is_planned(void **state) {
    (void)state;
    struct err e;
    struct session_options o = {.context_tokens = 4096, .memory_bytes = 1 << 20};
    ASSERT_FAILS(try_open(&o, &e), e, ERR_MEMORY, "does not fit");
    static const char *const rows[] = {"weights (unpacked)",
                                       "KV cache",
                                       "9 pages of 512",
                                       "activations",
                                       "working",
                                       "together",
                                       "bound",
                                       "Raise the bound, or lower the context (now 4096 tokens)."};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_non_null(strstr(e.text, rows[i]));
    // More than any machine has: refused by arithmetic, not by the allocator.
    o = (struct session_options){.context_tokens = 4096, .pages_least = UINT32_MAX / 2};
    ASSERT_FAILS(try_open(&o, &e), e, ERR_MEMORY, "free on the machine");
    assert_non_null(strstr(e.text, "\nLower the context (now 4096 tokens)."));
    o.weights = "unpacked";
    ASSERT_FAILS(try_open(&o, &e), e, ERR_MEMORY, "(now 4096 tokens), or hold the weights stored.");
    // Between least and most as the bound allows; the plan is what is taken.
    o = (struct session_options){.context_tokens = 512, .pages_least = 2, .pages_most = 50};
    struct probe p = probe_open(model_path, &o);
    const struct session_plan *plan = session_plan(p.session);
    assert_int_equal(plan->pages, 50);
    assert_int_equal(plan->kv_bytes, 50 * plan->page_bytes);
    assert_int_equal(plan->total_bytes, plan->weights_bytes + plan->kv_bytes +
                                            plan->activation_bytes + plan->scratch_bytes);
    uint64_t beside = plan->total_bytes - plan->weights_bytes;
    o.memory_bytes = beside - 10 * plan->page_bytes - 1;
    probe_close(&p);
    p = probe_open(model_path, &o);
    assert_int_equal(session_plan(p.session)->pages, 39);
    probe_close(&p);
}

static void test_nothing_is_cut(void **state) {
    (void)state;
    int32_t ids[600];
    uint64_t hashes[600];
    probe_ids(1, V, ids, 600);
    struct session_options o = {.context_tokens = 550, .sequences = 2, .pages_least = 6};
    struct probe p = probe_open(model_path, &o);
    struct kv_sequence *s = probe_sequence(&p), *other = probe_sequence(&p);
    struct err e = {0};
    struct probe_part whole = {s, ids, 551, hashes};
    ASSERT_FAILS(probe_feed_parts(&p, &whole, 1, &e), e, ERR_CONFIG, "nothing is cut");
    assert_int_equal(s->length, 0);
    probe_feed(&p, s, ids, 550, hashes);
    struct probe_part parts[] = {{other, ids, 3, hashes}, {s, ids, 1, hashes}};
    ASSERT_FAILS(probe_feed_parts(&p, parts, 2, &e), e, ERR_CONFIG, "550");
    assert_int_equal(other->length, 0);
    ids[1] = V;
    ASSERT_FAILS(probe_feed_parts(&p, parts, 1, &e), e, ERR_INPUT, "vocabulary of 320");
    ids[1] = -1;
    ASSERT_FAILS(probe_feed_parts(&p, parts, 1, &e), e, ERR_INPUT, "-1");
    probe_close(&p);
}

static void test_weights_that_are_not_finite(void **state) {
    (void)state;
    static const char *const tensors[] = {"blk.1.ffn_up.weight", "blk.0.attn_norm.weight",
                                          "token_embd.weight", "blk.1.attn_v.bias"};
    for (size_t i = 0; i < 4; i++)
        for (int stored = 0; stored < 2; stored++) {
            static char path[600];
            snprintf(path, sizeof path, "%s/not-finite.gguf", test_folder());
            tiny_model_write(path, &(struct tiny_model_options){.biases = true});
            tiny_model_patch(path, tensors[i], 5, stored ? INFINITY : NAN);
            const char *sound_path = model_path;
            model_path = path;
            struct err e;
            struct session_options o = {.weights = stored ? "stored" : "unpacked"};
            ASSERT_FAILS(try_open(&o, &e), e, ERR_MODEL, tensors[i]);
            assert_non_null(strstr(e.text, "not-finite.gguf"));
            model_path = sound_path;
        }
}

// Quantized weights: the choice is measured, told, counted as it came out, and changes no bit.
static void test_auto_weights(void **state) {
    (void)state;
    static char path[600];
    snprintf(path, sizeof path, "%s/quantized.gguf", test_folder());
    tiny_model_write(path, &(struct tiny_model_options){.type = TENSOR_Q8_0});
    static const char *const weights[] = {"unpacked", "stored", "auto"};
    int32_t ids[40];
    uint64_t hashes[3][40];
    probe_ids(9, V, ids, 40);
    for (int i = 0; i < 3; i++) {
        struct probe p = probe_open(path, &(struct session_options){.weights = weights[i]});
        const struct session_plan *plan = session_plan(p.session);
        struct backend *b = session_backend(p.session);
        assert_int_equal(plan->weights_bytes, weights_bytes(b, p.model, plan->storage));
        if (i < 2) {
            assert_string_equal(backend_storage_name(plan->storage), weights[i]);
            assert_string_equal(plan->storage_why, "asked for");
        } else {
            assert_true(plan->storage == BACKEND_BOTH || plan->storage == BACKEND_UNPACKED);
            assert_non_null(strstr(plan->storage_why, "measured"));
            bool both = plan->storage == BACKEND_BOTH;
            assert_int_equal(session_storage(p.session, 1),
                             both ? BACKEND_STORED : BACKEND_UNPACKED);
            assert_int_equal(session_storage(p.session, 100), BACKEND_UNPACKED);
        }
        struct kv_sequence *s = probe_sequence(&p);
        for (int at = 0; at < 40; at++) probe_feed(&p, s, ids + at, 1, hashes[i] + at);
        assert_memory_equal(hashes[i], hashes[0], sizeof hashes[0]);
        probe_close(&p);
    }
}

// A token whose key overflows in layer 0, and only there: its embedding alone has an element that
// the norm's weight makes huge.
static void test_values_that_are_not_finite(void **state) {
    (void)state;
    enum { BAD = 50, ELEMENT = 7, D = 64 };
    static char path[600];
    snprintf(path, sizeof path, "%s/overflow.gguf", test_folder());
    tiny_model_write(path, &(struct tiny_model_options){.D = D});
    for (uint64_t id = 0; id < V; id++)
        tiny_model_patch(path, "token_embd.weight", id * D + ELEMENT, id == BAD ? 1.0f : 0.0f);
    tiny_model_patch(path, "blk.0.attn_norm.weight", ELEMENT, 1e30f);
    tiny_model_patch(path, "blk.0.attn_k.weight", ELEMENT, 1e10f);
    int32_t ids[700];
    uint64_t hashes[700];
    probe_ids(4, V, ids, 700);
    for (int i = 0; i < 700; i++)
        if (ids[i] == BAD) ids[i] = BAD + 1;
    struct probe p = probe_open(path, &(struct session_options){.chunk_tokens = 64, .threads = 1});
    struct kv_sequence *s = probe_sequence(&p);
    probe_feed(&p, s, ids, 200, hashes);
    ids[577] = BAD;
    struct err e = {0};
    struct probe_part part = {s, ids + 200, 500, hashes};
    ASSERT_FAILS(probe_feed_parts(&p, &part, 1, &e), e, ERR_NUMERIC, "layer 0, position 577");
    assert_int_equal(s->length, 200); // as before, though several passes had succeeded
    part.count = 300;
    ASSERT_OK(probe_feed_parts(&p, &part, 1, &e), e);
    assert_int_equal(s->length, 500);
    probe_close(&p);
}

static int make_model(void **state) {
    (void)state;
    model_path = probe_model("session", &(struct tiny_model_options){.context = 4096});
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_memory_is_planned),
        cmocka_unit_test(test_nothing_is_cut),
        cmocka_unit_test(test_weights_that_are_not_finite),
        cmocka_unit_test(test_auto_weights),
        cmocka_unit_test(test_values_that_are_not_finite),
    };
    return cmocka_run_group_tests(tests, make_model, NULL);
}

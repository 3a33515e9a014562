// Whole models on the GPU: their logits against the double-precision reference and the
// CPU engine's.
#include "tests/engine/draw_support.h"
#include "tests/support/engine_probe.h"
#include "tests/support/golden_models.h"
#include "tests/support/simt.h"
#include "tests/support/support.h"

#include "engine/backend_plugin.h"
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "kernels/cuda/ops.h"

#include <math.h>
#include <string.h>

const struct cuda_ops *lacuna_cuda_ops(void);

struct taken {
    float *logits; // [count][V]
    uint32_t V;
};

static int take_row(void *context, struct session *s, const struct session_row *row,
                    struct err *e) {
    struct taken *t = context;
    (void)e;
    memcpy(t->logits + (size_t)row->index * t->V, session_row_logits(s, row), t->V * sizeof(float));
    return 0;
}

// Logits behind each id, [count][V] in the arena.
static float *logits_of(const char *path, bool gpu, const char *weights, const int32_t *ids,
                        uint32_t count, uint32_t *V) {
    struct session_options o = {.backend = gpu ? "cuda" : "cpu",
                                .weights = weights,
                                .threads = 1,
                                .context_tokens = 64,
                                .chunk_tokens = 17};
    struct probe p = probe_open(path, &o);
    struct taken t = {.V = p.model->config.V};
    struct kv_sequence *sequence = probe_sequence(&p);
    struct err e = {0};
    t.logits = arena_array(test_arena, (size_t)count * t.V, sizeof(float));
    struct session_item item = {
        .sequence = sequence, .ids = ids, .count = count, .logits = SESSION_ALL};
    struct session_sink sink = {take_row, &t};
    ASSERT_OK(session_forward(p.session, &item, 1, &sink, &e), e);
    assert_string_equal(session_backend(p.session)->name, o.backend);
    probe_close(&p);
    *V = t.V;
    return t.logits;
}

// Rows whose largest logit is another one, unless the two are as good as equal.
static uint32_t other_choices(const float *a, const float *b, uint32_t rows, uint32_t n) {
    uint32_t others = 0;
    for (uint32_t r = 0; r < rows; r++, a += n, b += n) {
        uint32_t best_a = 0, best_b = 0;
        for (uint32_t i = 1; i < n; i++) {
            if (a[i] > a[best_a]) best_a = i;
            if (b[i] > b[best_b]) best_b = i;
        }
        others += best_a != best_b && a[best_a] - a[best_b] > 0.02f;
    }
    return others;
}

// The golden models with heads that there are kernels for, against double precision.
static void test_golden(void **state) {
    (void)state;
    json_t *index, *name;
    struct err e = {0};
    struct arena *a = test_arena;
    size_t i;
    ASSERT_OK(json_read_file(test_data(a, "engine/golden/golden.json"), 1 << 20, &index, &e), e);
    const json_t *list = json_object_get(index, "ids");
    int32_t *ids = arena_array(a, json_array_size(list), sizeof *ids);
    uint32_t count = (uint32_t)json_array_size(list), V, models = 0;
    for (uint32_t k = 0; k < count; k++)
        ids[k] = (int32_t)json_integer_value(json_array_get(list, k));
    json_array_foreach(json_object_get(index, "models"), i, name) {
        const char *model = json_string_value(name);
        if (strstr(model, "e64") == NULL && strstr(model, "e32") == NULL) continue;
        const char *path = test_data(a, arena_printf(a, "engine/golden/%s.gguf", model));
        float *z = logits_of(path, true, "unpacked", ids, count, &V);
        struct str reference;
        ASSERT_OK(file_read(test_data(a, arena_printf(a, "engine/golden/%s.logits", model)),
                            1 << 20, a, &reference, &e),
                  e);
        assert_int_equal(reference.n, (size_t)count * V * sizeof(float));
        double divergence = golden_divergence((const float *)reference.p, z, count, V);
        if (!(divergence < 1.5e-3)) fail_msg("%s: mean KL %g", model, divergence);
        models++;
    }
    assert_true(models >= 4);
    json_decref(index);
}

// Every format, biases, an own head, a window and both forms of weights, against the CPU engine.
static void test_against_cpu(void **state) {
    (void)state;
    static const enum tensor_type types[] = {TENSOR_F32,  TENSOR_F16,  TENSOR_BF16, TENSOR_Q4_0,
                                             TENSOR_Q4_1, TENSOR_Q5_0, TENSOR_Q5_1, TENSOR_Q8_0,
                                             TENSOR_Q4_K, TENSOR_Q5_K, TENSOR_Q6_K};
    enum { COUNT = 20 }; // two chunks
    int32_t ids[COUNT];
    probe_ids(3, 320, ids, COUNT);
    for (uint32_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct tiny_model_options o = {.type = types[i],
                                       .L = 1,
                                       .D = 256,
                                       .H = 4,
                                       .G = 2,
                                       .F = 256,
                                       .seed = 20 + i,
                                       .own_head = i % 2 != 0,
                                       .biases = i % 3 == 0,
                                       .window = i % 4 == 0 ? 9 : 0};
        const char *type = tensor_format_of(types[i])->name;
        const char *path = probe_model(type, &o);
        uint32_t V;
        float *expected = logits_of(path, false, "unpacked", ids, COUNT, &V);
        float *unpacked = logits_of(path, true, "unpacked", ids, COUNT, &V);
        float *stored = logits_of(path, true, "stored", ids, COUNT, &V);
        double divergence = golden_divergence(expected, unpacked, COUNT, V);
        if (!(divergence < 1e-3)) fail_msg("%s: mean KL to the CPU's %g", type, divergence);
        assert_int_equal(other_choices(expected, unpacked, COUNT, V), 0);
        assert_memory_equal(unpacked, stored, (size_t)COUNT * V * sizeof(float));
    }
}

static void test_is_described(void **state) {
    (void)state;
    const char *path = probe_model("described", &(struct tiny_model_options){.D = 256});
    struct session_options o = {.backend = "auto"};
    struct probe p = probe_open(path, &o);
    const struct backend *b = session_backend(p.session);
    assert_string_equal(b->name, "cuda");
    assert_string_equal(b->note, "");
    assert_string_equal(b->numerics, b->device->capability >= 90 ? "cuda-sm90-1" : "cuda-sm80-1");
    assert_true(strlen(b->device->name) > 0 && b->device->memory_bytes > 0);
    assert_int_equal(b->device->driver / 1000, 13);
    probe_close(&p);
}

// More than what the memory between device and host holds at once.
static void test_long_copies(void **state) {
    (void)state;
    enum { WORDS = 700003 };
    static int32_t up[WORDS], down[WORDS];
    struct backend *b;
    struct err e = {0};
    void *p;
    probe_ids(9, 1 << 30, up, WORDS);
    ASSERT_OK(backend_open(&(struct backend_options){.name = "cuda"}, &b, &e), e);
    ASSERT_OK(b->ops->alloc(b, sizeof up, "words", &p, &e), e);
    b->ops->upload(b, p, up, sizeof up);
    b->ops->download(b, down, p, sizeof down);
    assert_memory_equal(up, down, sizeof up);
    b->ops->free(b, p);
    backend_close(b);
}

// In calls of any size, with the memory that was planned.
static void test_tokens_are_drawn(void **state) {
    (void)state;
    struct backend *b;
    struct err e = {0};
    struct rng r = rng_open(52, "cuda", "draw");
    struct backend_limits limits = {.rows = 64,
                                    .K = 64,
                                    .N = 700,
                                    .H = 1,
                                    .G = 1,
                                    .E = 64,
                                    .L = 1,
                                    .sequences = 64,
                                    .positions = 512};
    ASSERT_OK(backend_open(&(struct backend_options){.name = "cuda"}, &b, &e), e);
    ASSERT_OK(b->ops->prepare(b, &limits, &e), e);
    draw_check_backend(b, &r, DRAW_ROWS, 700, 6);
    struct backend_fault fault = {0};
    assert_false(b->ops->fault(b, &fault));
    backend_close(b);
}

// What the GPU cannot do is refused with words.
static void test_refusals(void **state) {
    (void)state;
    const char *path = probe_model("refused", &(struct tiny_model_options){0});
    struct arena *a = test_arena;
    struct model *m;
    struct session *s;
    struct err e = {0};
    ASSERT_OK(model_open(path, a, &m, &e), e);
    struct session_options o = {.backend = "cuda", .numerics = "f32"};
    ASSERT_FAILS(session_open(m, &o, &s, &e), e, ERR_CONFIG, "numerics 'f32' are for the cpu");
    o.numerics = NULL;
    ASSERT_FAILS(session_open(m, &o, &s, &e), e, ERR_MODEL, "heads of 16 elements");
    model_close(m);
#ifndef LACUNA_GPU
    struct simt_options kept = simt_get_options(), small = kept;
    small.memory_bytes = 1 << 20;
    simt_set_options(&small);
    path = probe_model("large", &(struct tiny_model_options){.D = 128, .H = 2, .G = 1});
    ASSERT_OK(model_open(path, a, &m, &e), e);
    ASSERT_FAILS(session_open(m, &o, &s, &e), e, ERR_MEMORY, "does not fit");
    simt_set_options(&kept);
    model_close(m);
#endif
}

// `auto` goes to the CPU with a model or numerics that the GPU does not serve, and says why.
static void test_auto_goes_to_the_cpu(void **state) {
    (void)state;
    const char *path = probe_model("small-heads", &(struct tiny_model_options){0});
    struct session_options o = {.backend = "auto", .threads = 1};
    struct probe p = probe_open(path, &o);
    assert_string_equal(session_backend(p.session)->name, "cpu");
    assert_string_equal(session_backend(p.session)->numerics, "bf16-1");
    assert_non_null(strstr(session_backend(p.session)->note,
                           "cuda backend: there is no attention kernel for heads of 16 elements"));
    probe_close(&p);
    path = probe_model("f32", &(struct tiny_model_options){.D = 128, .H = 4, .G = 1});
    p = probe_open(path, &o);
    assert_string_equal(session_backend(p.session)->name, "cuda");
    probe_close(&p);
    o.numerics = "f32";
    p = probe_open(path, &o);
    assert_string_equal(session_backend(p.session)->name, "cpu");
    assert_non_null(strstr(session_backend(p.session)->note, "numerics 'f32' are for the cpu"));
    probe_close(&p);
}

// One token whose keys overflow: the layer and position are told, and the sequence stays as it was.
static void test_values_that_are_not_finite(void **state) {
    (void)state;
    enum { BAD = 50, ELEMENT = 7, D = 128, V = 320, COUNT = 100, AT = 77 };
    const char *path =
        probe_model("overflow", &(struct tiny_model_options){.D = D, .H = 2, .G = 1, .V = V});
    for (uint64_t id = 0; id < V; id++)
        tiny_model_patch(path, "token_embd.weight", id * D + ELEMENT, id == BAD ? 1.0f : 0.0f);
    tiny_model_patch(path, "blk.0.attn_norm.weight", ELEMENT, 1e30f);
    tiny_model_patch(path, "blk.0.attn_k.weight", ELEMENT, 1e10f);
    int32_t ids[COUNT];
    uint64_t hashes[COUNT];
    probe_ids(4, V, ids, COUNT);
    for (int i = 0; i < COUNT; i++)
        if (ids[i] == BAD) ids[i] = BAD + 1;
    ids[AT] = BAD;
    struct session_options o = {.backend = "cuda", .chunk_tokens = 32, .context_tokens = 128};
    struct probe p = probe_open(path, &o);
    struct kv_sequence *s = probe_sequence(&p);
    probe_feed(&p, s, ids, 20, hashes);
    struct err e = {0};
    struct probe_part part = {s, ids + 20, COUNT - 20, hashes};
    ASSERT_FAILS(probe_feed_parts(&p, &part, 1, &e), e, ERR_NUMERIC, "layer 0, position 77: a key");
    assert_int_equal(s->length, 20);
    part.count = AT - 20;
    ASSERT_OK(probe_feed_parts(&p, &part, 1, &e), e);
    probe_close(&p);
}

static void test_weights_that_are_not_finite(void **state) {
    (void)state;
    const char *path =
        probe_model("broken", &(struct tiny_model_options){.D = 128, .H = 2, .G = 1});
    tiny_model_patch(path, "blk.1.attn_v.weight", 4000, INFINITY);
    struct session_options o = {.backend = "cuda", .context_tokens = 128};
    struct model *m;
    struct session *s;
    struct err e = {0};
    ASSERT_OK(model_open(path, test_arena, &m, &e), e);
    ASSERT_FAILS(session_open(m, &o, &s, &e), e, ERR_MODEL, "blk.1.attn_v.weight: holds a NaN");
    model_close(m);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_golden),
                                       TEST(test_against_cpu),
                                       TEST(test_is_described),
                                       TEST(test_long_copies),
                                       TEST(test_tokens_are_drawn),
                                       TEST(test_refusals),
                                       TEST(test_auto_goes_to_the_cpu),
                                       TEST(test_values_that_are_not_finite),
                                       TEST(test_weights_that_are_not_finite)};
    simt_from_environment();
    backend_plugin_use(lacuna_cuda_ops());
    return cmocka_run_group_tests_name("cuda session", tests, NULL, NULL);
}

// Logits of small random models against the double-precision reference (tests/oracle): every tensor
// type, several head layouts, rotations and a window; packed and stored weights.
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/session.h"
#include "tests/support/golden_models.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

// Logits of the whole id sequence, [count][V] in the arena.
static float *logits_of(const struct golden *g, const char *name, const char *numerics,
                        const char *weights) {
    struct model *m;
    struct session *s;
    struct kv_sequence *sequence;
    struct err e = {0};
    const struct session_options o = {.backend = "cpu",
                                      .numerics = numerics,
                                      .weights = weights,
                                      .threads = 1,
                                      .context_tokens = 64,
                                      .chunk_tokens = 17};
    struct taken t = {.V = g->vocabulary};
    t.logits = arena_array(g->a, (size_t)g->count * t.V, sizeof(float));
    const char *path = test_data(g->a, arena_printf(g->a, "engine/golden/%s.gguf", name));
    ASSERT_OK(model_open(path, g->a, &m, &e), e);
    ASSERT_OK(session_open(m, &o, &s, &e), e);
    ASSERT_OK(kv_sequence_open(session_kv(s), &sequence, &e), e);
    const struct session_item item = {
        .sequence = sequence, .ids = g->ids, .count = g->count, .logits = SESSION_ALL};
    const struct session_sink sink = {.take = take_row, .context = &t};
    ASSERT_OK(session_forward(s, &item, 1, &sink, &e), e);
    kv_sequence_close(session_kv(s), sequence);
    session_close(s);
    model_close(m);
    return t.logits;
}

static const float *reference_of(const struct golden *g, const char *name) {
    struct err e = {0};
    struct str bytes;
    const char *path = test_data(g->a, arena_printf(g->a, "engine/golden/%s.logits", name));
    ASSERT_OK(file_read(path, 1 << 20, g->a, &bytes, &e), e);
    assert_int_equal(bytes.n, (size_t)g->count * g->vocabulary * sizeof(float));
    return (const float *)bytes.p; // the arena aligns
}

static void test_f32(void **state) {
    const struct golden *g = *state;
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(g->index, "models"), i, name) {
        const char *model = json_string_value(name);
        const float *reference = reference_of(g, model);
        const float *z = logits_of(g, model, "f32", "unpacked");
        double worst = 0;
        for (size_t k = 0; k < (size_t)g->count * g->vocabulary; k++)
            worst = fmax(worst, fabs((double)z[k] - (double)reference[k]));
        if (!(worst < 5e-4)) fail_msg("%s: a logit is off by %g", model, worst);
    }
}

static void test_bf16(void **state) {
    const struct golden *g = *state;
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(g->index, "models"), i, name) {
        const char *model = json_string_value(name);
        const float *z = logits_of(g, model, "bf16-1", "unpacked");
        double divergence = golden_divergence(reference_of(g, model), z, g->count, g->vocabulary);
        if (!(divergence < 1.5e-3)) fail_msg("%s: mean KL %g", model, divergence);
    }
}

// Weights that stay in the file's format give the same bits, under both numerics.
static void test_stored(void **state) {
    const struct golden *g = *state;
    size_t i, bytes = (size_t)g->count * g->vocabulary * sizeof(float);
    json_t *name;
    json_array_foreach(json_object_get(g->index, "models"), i, name) for (int f32 = 0; f32 < 2;
                                                                          f32++) {
        const char *model = json_string_value(name), *numerics = f32 ? "f32" : "bf16-1";
        const float *packed = logits_of(g, model, numerics, "unpacked");
        const float *stored = logits_of(g, model, numerics, "stored");
        if (memcmp(packed, stored, bytes) != 0)
            fail_msg("%s: stored weights give other bits under %s", model, numerics);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_f32, golden_open, golden_close),
        cmocka_unit_test_setup_teardown(test_bf16, golden_open, golden_close),
        cmocka_unit_test_setup_teardown(test_stored, golden_open, golden_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

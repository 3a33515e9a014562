// Infinities and NaN of a model file, through the whole program: a weight that is one ends in an
// error that names tensor and file; a value that overflows on the way ends that trial alone.
#include "tests/support/engine_probe.h"
#include "tests/support/fast_folder.h"
#include "tests/support/sample_run.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/rng.h"
#include "kernels/numerics.h"
#include "reports/record.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *model_path(const char *name) {
    return path_join(test_arena, fast_folder(), name);
}

static int try_open(const char *path, bool stored, struct err *e) {
    struct arena *a = arena_create("test");
    struct model *m;
    struct session *s = NULL;
    struct session_options o = {
        .numerics = "bf16-1", .weights = stored ? "stored" : "unpacked", .threads = 1};
    *e = (struct err){0};
    int result = model_open(path, a, &m, e);
    if (result == 0) {
        result = session_open(m, &o, &s, e);
        if (result == 0) session_close(s);
        model_close(m);
    }
    arena_destroy(a);
    return result;
}

// Every tensor of a model that has them all, at a random element.
static void every_tensor_is_looked_at(void **state) {
    (void)state;
    const char *path = model_path("every.gguf");
    const struct tiny_model_options o = {.biases = true, .own_head = true, .L = 2};
    const float values[] = {INFINITY, -INFINITY, NAN};
    struct rng r = rng_open(81, "not finite", "tensors");
    tiny_model_write(path, &o);
    struct gguf *g;
    struct err e = {0};
    ASSERT_OK(gguf_open(path, test_arena, &g, &e), e);
    assert_true(g->tensor_count > 20);
    for (size_t i = 0; i < g->tensor_count; i++) {
        const char *name = str_to_c(test_arena, g->tensors[i].name);
        const char *bad = model_path("bad.gguf");
        tiny_model_write(bad, &o);
        tiny_model_patch(bad, name, rng_below(&r, g->tensors[i].elements), values[i % 3]);
        for (int stored = 0; stored < 2; stored++) {
            ASSERT_FAILS(try_open(bad, stored, &e), e, ERR_MODEL, name);
            assert_non_null(strstr(e.text, "bad.gguf"));
        }
    }
    gguf_close(g);
}

// Every format: a block whose scale is an infinity or a NaN.
static void every_format_is_looked_at(void **state) {
    (void)state;
    static const struct {
        enum tensor_type type;
        size_t scale; // its place in a block
    } formats[] = {{TENSOR_F16, 0},  {TENSOR_Q4_0, 0}, {TENSOR_Q4_1, 2},
                   {TENSOR_Q5_0, 0}, {TENSOR_Q5_1, 0}, {TENSOR_Q8_0, 0},
                   {TENSOR_Q4_K, 0}, {TENSOR_Q5_K, 2}, {TENSOR_Q6_K, 208}};
    const char *path = model_path("format.gguf");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        tiny_model_write(path, &(struct tiny_model_options){
                                   .type = formats[i].type, .D = 256, .F = 256, .L = 1});
        struct gguf *g;
        struct str bytes;
        struct err e = {0};
        ASSERT_OK(gguf_open(path, test_arena, &g, &e), e);
        const struct gguf_tensor *t = gguf_tensor_find(g, "blk.0.ffn_down.weight");
        assert_int_equal(t->type, formats[i].type);
        const struct tensor_format *f = tensor_format_of(t->type);
        size_t at = (size_t)(t->data - g->map.p) + 3 * f->block_bytes + formats[i].scale;
        gguf_close(g);
        ASSERT_OK(file_read(path, 64 << 20, test_arena, &bytes, &e), e);
        char *copy = arena_memdup(test_arena, bytes.p, bytes.n);
        memcpy(copy + at, i % 2 ? "\x00\x7e" : "\x00\x7c", 2); // NaN, infinity
        test_write_file(path, (struct str){copy, bytes.n});
        for (int stored = 0; stored < 2; stored++)
            ASSERT_FAILS(try_open(path, stored, &e), e, ERR_MODEL, "blk.0.ffn_down.weight");
    }
}

// One day of three has a letter that no other text of the experiment has, and its embedding alone
// has an element that the first layer makes overflow.
static void an_overflow_ends_one_trial(void **state) {
    (void)state;
    enum { D = 64, V = 320, ELEMENT = 7 };
    const char *experiment = sample_local_experiment(test_arena, fast_folder(), "l", 8);
    struct str text;
    struct err e = {0};
    ASSERT_OK(file_read(experiment, 1 << 20, test_arena, &text, &e), e);
    const char *days = "[Monday, Tuesday, Friday]";
    size_t at = str_find(text, str_from(days), 0);
    assert_true(at != STR_NONE);
    struct buf changed = {0};
    buf_add_str(&changed, str_slice(text, 0, at));
    buf_add_c(&changed, "[Monday, Tuesday, Fri~ay]");
    buf_add_str(&changed, str_slice(text, at + strlen(days), text.n));
    test_write(experiment, buf_str(&changed));
    buf_free(&changed);
    const char *path = model_path("l.gguf");
    for (uint64_t id = 0; id < V; id++)
        tiny_model_patch(path, "token_embd.weight", id * D + ELEMENT, id == 3 + '~' ? 1.0f : 0.0f);
    tiny_model_patch(path, "blk.0.attn_norm.weight", ELEMENT, 1e30f);
    tiny_model_patch(path, "blk.0.attn_k.weight", ELEMENT, 1e10f);
    struct run_result result;
    const char *folder = model_path("overflow");
    ASSERT_OK(sample_run_report(experiment, folder, false, &result, &e), e);
    assert_int_equal(result.done, result.planned);
    struct record *r;
    ASSERT_OK(record_open(folder, test_arena, &r, &e), e);
    int64_t errors = 0;
    for (int64_t i = 0; i < r->trial_count; i++) {
        const struct record_trial *t = &r->trials[i];
        const struct record_outcome *o = r->outcomes[i];
        struct record_part *parts;
        size_t count;
        struct str prompt;
        ASSERT_OK(record_get_prompt(r, t->prompt_sha256, test_arena, &parts, &count, &prompt, &e),
                  e);
        bool bad = str_find(prompt, STR("~"), 0) != STR_NONE;
        assert_int_equal(o->status, bad ? STATUS_ERROR : STATUS_OK);
        if (bad) assert_non_null(strstr(o->reason_text, "layer 0, position "));
        errors += bad;
    }
    assert_true(errors > 0 && errors < r->trial_count);
    record_close(r);
}

int main(void) {
    log_set_level(LOG_QUIET);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_tensor_is_looked_at, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(every_format_is_looked_at, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(an_overflow_ends_one_trial, test_arena_open,
                                        test_arena_close),
    };
    return cmocka_run_group_tests_name("not_finite", tests, NULL, NULL);
}

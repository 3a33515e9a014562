#include "engine/model.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/support.h"

#include <string.h>

static const char *model_path(struct arena *a) {
    return arena_printf(a, "%s/model.gguf", test_folder());
}

static void test_every_type(void **state) {
    (void)state;
    static const enum tensor_type types[] = {TENSOR_F32,  TENSOR_F16,  TENSOR_BF16, TENSOR_Q8_0,
                                             TENSOR_Q4_0, TENSOR_Q4_1, TENSOR_Q5_0, TENSOR_Q5_1,
                                             TENSOR_Q4_K, TENSOR_Q5_K, TENSOR_Q6_K};
    struct arena *a = arena_create("test");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct tiny_model_options o = {.type = types[i], .L = 1, .D = 256, .F = 256};
        tiny_model_write(model_path(a), &o);
        struct model *m;
        struct err e = {0};
        ASSERT_OK(model_open(model_path(a), a, &m, &e), e);
        assert_int_equal(m->layers[0].q->type, types[i]);
        assert_true(m->config.tied_head);
        assert_int_equal(m->config.E, 64);
        model_close(m);
    }
    arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_type)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

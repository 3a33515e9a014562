// Plug-ins are loaded, and what is none is refused by name.
#include "tests/support/support.h"

#include "engine/backend.h"
#include "engine/backend_plugin.h"
#include "kernels/cuda/ops.h"

#include <string.h>

static void test_loads(void **state) {
    (void)state;
    struct err e = {0};
    const struct cuda_ops *table;
    ASSERT_OK(backend_plugin_load(LACUNA_BINARY_DIR "/liblacuna-cuda-simt.so", &e), e);
    ASSERT_OK(backend_plugin_table(&table, &e), e);
    assert_string_equal(table->name, "emulated");
    struct backend *b;
    ASSERT_OK(backend_open(&(struct backend_options){.name = "auto"}, &b, &e), e);
    assert_string_equal(b->name, "cuda");
    backend_close(b);
}

static void test_refuses(void **state) {
    (void)state;
    struct err e = {0};
    ASSERT_FAILS(backend_plugin_load("/nowhere/liblacuna-cuda.so", &e), e, ERR_PROVIDER,
                 "/nowhere/liblacuna-cuda.so");
    ASSERT_FAILS(backend_plugin_load("libm.so.6", &e), e, ERR_PROVIDER,
                 "libm.so.6 is no CUDA plug-in");
    struct backend *b;
    struct cuda_ops other = {.version = CUDA_OPS_VERSION + 1};
    backend_plugin_use(&other);
    ASSERT_FAILS(backend_open(&(struct backend_options){.name = "cuda"}, &b, &e), e, ERR_PROVIDER,
                 "another version");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_loads),
                                       cmocka_unit_test(test_refuses)};
    return cmocka_run_group_tests_name("cuda plug-in", tests, NULL, NULL);
}

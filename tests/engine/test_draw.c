// The CPU draws tokens for many rows at once, on any number of threads.
#include "tests/engine/draw_support.h"

static void test_rows_and_threads(void **state) {
    (void)state;
    struct rng r = rng_open(51, "draw", "rows");
    for (int threads = 1; threads <= 5; threads += 2) {
        struct backend *b;
        struct err e = {0};
        struct backend_options o = {.name = "cpu", .op_table = "c", .threads = threads};
        struct backend_limits limits = {
            .rows = 8, .K = 16, .N = 3000, .H = 1, .G = 1, .E = 16, .L = 1, .sequences = 8};
        ASSERT_OK(backend_open(&o, &b, &e), e);
        ASSERT_OK(b->ops->prepare(b, &limits, &e), e);
        draw_check_backend(b, &r, DRAW_ROWS, 3000, 12);
        backend_close(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_and_threads)};
    return cmocka_run_group_tests_name("draw", tests, NULL, NULL);
}

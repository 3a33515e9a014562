// Buffers side by side in large mappings: zeroed, aligned, of any size, apart from each other, and
// memory that goes back when the last buffer of a mapping does.
#include "engine/base/slab.h"

#include "engine/base/rng.h"
#include "tests/support/support.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BUFFERS 40

static uint8_t *take(struct slab *s, size_t bytes) {
    void *p;
    struct err e;
    assert_int_equal(slab_alloc(s, bytes, "test", &p, &e), 0);
    return p;
}

// Mapped bytes of this process, in pages, from the kernel.
static unsigned long mapped_pages(void) {
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    return pages;
}

static void test_buffers_are_apart(void **state) {
    (void)state;
    struct rng draw = rng_open(11, "repeat 0", "slab");
    struct slab s = SLAB_EMPTY;
    uint8_t *buffer[BUFFERS];
    size_t bytes[BUFFERS];
    for (int i = 0; i < BUFFERS; i++) {
        bytes[i] = 1 + rng_below(&draw, 6u << 20);
        if (i == BUFFERS / 2) bytes[i] = 70u << 20; // more than one mapping usually has
        buffer[i] = take(&s, bytes[i]);
        assert_int_equal((uintptr_t)buffer[i] % 64, 0);
        for (size_t k = 0; k < bytes[i]; k += 4000) assert_int_equal(buffer[i][k], 0);
        memset(buffer[i], i + 1, bytes[i]);
    }
    for (int i = 0; i < BUFFERS; i++) {
        assert_int_equal(buffer[i][0], i + 1);
        assert_int_equal(buffer[i][bytes[i] - 1], i + 1);
    }
    uint32_t order[BUFFERS];
    for (uint32_t i = 0; i < BUFFERS; i++) order[i] = i;
    rng_shuffle(&draw, order, BUFFERS);
    for (int i = 0; i < BUFFERS; i++) slab_free(&s, buffer[order[i]]);
    assert_null(s.blocks);
}

static void test_memory_goes_back(void **state) {
    (void)state;
    struct slab s = SLAB_EMPTY;
    uint8_t *first = take(&s, 100), *second = take(&s, 3u << 20);
    unsigned long before = mapped_pages();
    uint8_t *large = take(&s, 100u << 20);
    assert_true(mapped_pages() - before >= (100u << 20) / 4096);
    slab_free(&s, large);
    assert_true(mapped_pages() - before < (4u << 20) / 4096);
    slab_free(&s, first);
    memset(second, 7, 3u << 20);
    slab_free(&s, NULL);
    slab_free(&s, second);
    assert_null(s.blocks);
}

static void test_too_much_is_refused(void **state) {
    (void)state;
    struct slab s = SLAB_EMPTY;
    void *p;
    struct err e;
    assert_int_equal(slab_alloc(&s, SIZE_MAX - 10, "test", &p, &e), -1);
    assert_int_equal(e.code, ERR_MEMORY);
    assert_null(p);
    assert_null(s.blocks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buffers_are_apart),
        cmocka_unit_test(test_memory_goes_back),
        cmocka_unit_test(test_too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

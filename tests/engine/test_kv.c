// Page accounting: forks share, writes never reach a shared page, every page comes back.
#include "engine/kv.h"
#include "engine/base/rng.h"
#include "kernels/cpu/ops.h"
#include "tests/support/support.h"

#include <string.h>

#define PAGES 20
#define SEQUENCES 6
#define POSITIONS 2000
#define LAYER_BYTES 1024 // pages of 1 KiB: only the tables matter here

static struct backend *open_backend(void) {
    struct backend *b = NULL;
    struct err e = {0};
    struct backend_options o = {.name = "cpu", .threads = 1};
    ASSERT_OK(backend_open(&o, &b, &e), e);
    return b;
}

static struct kv_pool *open_pool(struct backend *b) {
    struct kv_pool *p = NULL;
    struct err e = {0};
    ASSERT_OK(kv_open(b, LAYER_BYTES, 1, PAGES, SEQUENCES, POSITIONS, &p, &e), e);
    return p;
}

static void extend(struct kv_pool *p, struct kv_sequence *s, uint32_t length) {
    struct err e = {0};
    ASSERT_OK(kv_reserve(p, s, length, &e), e);
    s->length = length;
}

static void test_fork_shares_whole_pages(void **state) {
    (void)state;
    struct backend *b = open_backend();
    struct kv_pool *p = open_pool(b);
    struct kv_sequence *a = NULL, *c = NULL;
    struct err e = {0};
    ASSERT_OK(kv_sequence_open(p, &a, &e), e);
    extend(p, a, 1300);
    assert_int_equal(PAGES - p->free_count, 3);
    assert_int_equal(kv_bytes_used(p), 3 * LAYER_BYTES);
    memset(a->address[2], 7, LAYER_BYTES);
    ASSERT_OK(kv_fork(p, a, a->length, &c, &e), e);
    assert_int_equal(PAGES - p->free_count, 4);
    assert_ptr_equal(a->address[0], c->address[0]);
    assert_ptr_equal(a->address[1], c->address[1]);
    assert_ptr_not_equal(a->address[2], c->address[2]);
    assert_memory_equal(a->address[2], c->address[2], LAYER_BYTES);
    kv_sequence_close(p, a);
    assert_int_equal(PAGES - p->free_count, 3);
    kv_sequence_close(p, c);
    assert_int_equal(p->free_count, PAGES);
    kv_close(p);
    backend_close(b);
}

static void test_shared_page_is_copied_before_writing(void **state) {
    (void)state;
    struct backend *b = open_backend();
    struct kv_pool *p = open_pool(b);
    struct kv_sequence *a = NULL, *c = NULL;
    struct err e = {0};
    ASSERT_OK(kv_sequence_open(p, &a, &e), e);
    extend(p, a, 1024);
    ASSERT_OK(kv_fork(p, a, a->length, &c, &e), e); // at a border nothing is copied
    assert_int_equal(PAGES - p->free_count, 2);
    kv_truncate(p, c, 600); // now inside a page that both hold
    assert_ptr_equal(a->address[1], c->address[1]);
    assert_int_equal(kv_pages_needed(p, c, 601), 1);
    extend(p, c, 601);
    assert_ptr_not_equal(a->address[1], c->address[1]);
    assert_int_equal(kv_pages_needed(p, c, 1024), 0);
    kv_close(p);
    backend_close(b);
}

static void test_bounds(void **state) {
    (void)state;
    struct backend *b = open_backend();
    struct kv_pool *p = open_pool(b);
    struct kv_sequence *s[SEQUENCES], *more = NULL;
    struct err e = {0};
    for (int i = 0; i < SEQUENCES; i++) ASSERT_OK(kv_sequence_open(p, &s[i], &e), e);
    ASSERT_FAILS(kv_sequence_open(p, &more, &e), e, ERR_MEMORY, "all 6 sequences");
    for (int i = 0; i < 5; i++) extend(p, s[i], 2000);
    assert_int_equal(p->free_count, 0);
    ASSERT_FAILS(kv_reserve(p, s[5], 1, &e), e, ERR_MEMORY, "0 of 20");
    assert_int_equal(s[5]->length, 0);
    kv_truncate(p, s[0], 513);
    assert_int_equal(p->free_count, 2);
    kv_sequence_close(p, s[5]);
    ASSERT_OK(kv_fork(p, s[0], s[0]->length, &more, &e), e);
    assert_int_equal(p->free_count, 1);
    kv_close(p);
    backend_close(b);
}

// Random work; after each step the reference counts are those that the tables imply.
static void check_counts(const struct kv_pool *p) {
    uint32_t held[PAGES] = {0}, used = 0;
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        const struct kv_sequence *s = &p->sequence[i];
        if (!s->used) continue;
        assert_true(s->pages >= kv_pages_of(s->length));
        for (uint32_t j = 0; j < s->pages; j++) {
            held[s->page[j]]++;
            assert_ptr_equal(s->address[j], p->memory + s->page[j] * p->page_bytes);
        }
    }
    for (uint32_t i = 0; i < PAGES; i++) {
        assert_int_equal(held[i], p->references[i]);
        used += held[i] > 0;
    }
    assert_int_equal(used + p->free_count, PAGES);
}

static void random_step(struct kv_pool *p, struct rng *r) {
    struct err e = {0};
    struct kv_sequence *s = &p->sequence[rng_below(r, SEQUENCES)], *other = NULL;
    if (!s->used) {
        ASSERT_OK(kv_sequence_open(p, &other, &e), e);
        return;
    }
    switch (rng_below(r, 5)) {
    case 0: kv_sequence_close(p, s); break;
    case 1: kv_truncate(p, s, (uint32_t)rng_below(r, s->length + 1)); break;
    case 2: (void)kv_fork(p, s, s->length, &other, &e); break;
    default: {
        uint32_t to = s->length + (uint32_t)rng_below(r, POSITIONS + 1 - s->length);
        uint32_t needed = kv_pages_needed(p, s, to), before = p->free_count;
        if (kv_reserve(p, s, to, &e) != 0) {
            assert_true(needed > before);
            break;
        }
        assert_int_equal(before - p->free_count, needed);
        // All that may now be written belongs to this sequence alone.
        for (uint32_t i = s->length / BACKEND_PAGE; i < kv_pages_of(to); i++)
            if (to > s->length) assert_int_equal(p->references[s->page[i]], 1);
        s->length = to;
    }
    }
}

static void test_random_work(void **state) {
    (void)state;
    struct backend *b = open_backend();
    struct kv_pool *p = open_pool(b);
    struct rng r = rng_open(11, "test", "kv");
    for (int i = 0; i < 20000; i++) {
        random_step(p, &r);
        check_counts(p);
    }
    for (uint32_t i = 0; i < SEQUENCES; i++)
        if (p->sequence[i].used) kv_sequence_close(p, &p->sequence[i]);
    assert_int_equal(p->free_count, PAGES);
    kv_close(p);
    backend_close(b);
}

// The worked example of the background notes: keys of 5,000 tokens x 50 layers x 20 heads x 1,000
// dimensions x 2 bytes are 10 GB; keys of rank 200 are 2 GB. Pages pad a head to 16 elements, so
// they hold at most that much more.
static void test_size_of_long_context(void **state) {
    (void)state;
    const double tokens = 5000, layers = 50;
    double wide = (double)cpu_kv_bytes(CPU_BF16_1, 20, 1000) / CPU_PAGE * layers * tokens;
    double low_rank = (double)cpu_kv_bytes(CPU_BF16_1, 20, 200) / CPU_PAGE * layers * tokens;
    assert_float_equal(wide, 10e9 * 1008 / 1000, 1);
    assert_float_equal(low_rank, 2e9 * 208 / 200, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork_shares_whole_pages),
        cmocka_unit_test(test_shared_page_is_copied_before_writing),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_random_work),
        cmocka_unit_test(test_size_of_long_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

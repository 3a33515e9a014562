// Merging against the definition: look for the lowest rank, leftmost, join, repeat.
#include "engine/bpe.h"
#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>

#define SYMBOLS 4
#define MERGES 120

struct merge {
    int32_t left, right;
};

// Random merges over a growing alphabet, not in the order in which training would find them: a join
// may have a lower rank than the pairs that it is made of.
static size_t merges_draw(struct rng *r, struct merge *merges) {
    size_t count = 0;
    for (int i = 0; i < MERGES; i++) {
        struct merge m = {(int32_t)rng_below(r, SYMBOLS + count),
                          (int32_t)rng_below(r, SYMBOLS + count)};
        merges[count++] = m;
    }
    return count;
}

static size_t merge_by_definition(const struct merge *merges, const int32_t *results, int32_t *ids,
                                  size_t n) {
    for (;;) {
        size_t best_rank = MERGES, best = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            for (size_t rank = 0; rank < best_rank; rank++) {
                if (merges[rank].left != ids[i] || merges[rank].right != ids[i + 1]) continue;
                best_rank = rank;
                best = i;
            }
        }
        if (best_rank == MERGES) return n;
        ids[best] = results[best_rank];
        memmove(ids + best + 1, ids + best + 2, (n - best - 2) * sizeof *ids);
        n--;
    }
}

static void test_equals_definition(void **state) {
    (void)state;
    struct rng r = rng_open(11, "test", "bpe");
    for (int table = 0; table < 30; table++) {
        struct arena *a = arena_create("test");
        struct merge merges[MERGES];
        int32_t results[MERGES];
        uint32_t order[MERGES];
        size_t count = merges_draw(&r, merges);
        for (uint32_t i = 0; i < count; i++) order[i] = i;
        for (uint32_t i = 0; i < count; i++) results[i] = (int32_t)(SYMBOLS + i);
        // Ranks are shuffled: results keep their merge.
        rng_shuffle(&r, order, (uint32_t)count);
        struct merge shuffled[MERGES];
        int32_t shuffled_results[MERGES];
        struct bpe *b = bpe_create(a, count);
        for (size_t i = 0; i < count; i++) {
            shuffled[i] = merges[order[i]];
            shuffled_results[i] = results[order[i]];
            bpe_add(b, shuffled[i].left, shuffled[i].right, shuffled_results[i]);
        }
        struct bpe_scratch s = {0};
        for (int round = 0; round < 60; round++) {
            int32_t ids[300], expected[300];
            size_t n = rng_below(&r, round % 2 ? 28 : 300) + 1, got = n;
            for (size_t i = 0; i < n; i++) ids[i] = expected[i] = (int32_t)rng_below(&r, SYMBOLS);
            struct err e = {0};
            ASSERT_OK(bpe_merge(b, ids, &got, &s, &e), e);
            size_t want = merge_by_definition(shuffled, shuffled_results, expected, n);
            assert_int_equal(got, want);
            assert_memory_equal(ids, expected, got * sizeof *ids);
        }
        bpe_scratch_free(&s);
        arena_destroy(a);
    }
}

static void test_first_rank_counts(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct bpe *b = bpe_create(a, 3);
    bpe_add(b, 1, 2, 10);
    bpe_add(b, 0, 1, 11);
    bpe_add(b, 1, 2, 12);
    int32_t ids[] = {0, 1, 2};
    size_t n = 3;
    struct bpe_scratch s = {0};
    struct err e = {0};
    ASSERT_OK(bpe_merge(b, ids, &n, &s, &e), e);
    assert_int_equal(n, 2);
    assert_int_equal(ids[0], 0);
    assert_int_equal(ids[1], 10);
    bpe_scratch_free(&s);
    arena_destroy(a);
}

// Doubling the piece may not quadruple the time.
static void test_time_is_near_linear(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct bpe *b = bpe_create(a, 20);
    for (int32_t i = 0; i < 20; i++) bpe_add(b, i, i, i + 1);
    struct bpe_scratch s = {0};
    size_t sizes[] = {1 << 17, 1 << 20};
    double ns[2];
    for (int k = 0; k < 2; k++) {
        int32_t *ids = calloc(sizes[k], sizeof *ids);
        assert_non_null(ids);
        size_t n = sizes[k];
        struct err e = {0};
        uint64_t start = clock_cpu_ns();
        ASSERT_OK(bpe_merge(b, ids, &n, &s, &e), e);
        ns[k] = (double)(clock_cpu_ns() - start);
        assert_int_equal(n, 1);
        assert_int_equal(ids[0], k == 0 ? 17 : 20);
        free(ids);
    }
    if (ns[1] > 40 * ns[0] + 1e8) fail_msg("8 x the length took %.1f x the time", ns[1] / ns[0]);
    bpe_scratch_free(&s);
    arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_definition),
        cmocka_unit_test(test_first_rank_counts),
        cmocka_unit_test(test_time_is_near_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

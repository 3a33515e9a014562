// Ids held as runs of one another compare as the whole ids do, and take little room where a part
// of them has moved.
#include "tests/support/support.h"

#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "evals/plan_ids.h"

#include <string.h>

enum { PROMPTS = 12, IDS_MOST = 3000 };

static int naive_order(const struct provider_ids *a, const struct provider_ids *b,
                       uint32_t *common) {
    size_t n = 0;
    while (n < a->count && n < b->count && a->ids[n] == b->ids[n]) n++;
    *common = (uint32_t)n;
    if (n < a->count && n < b->count) return a->ids[n] < b->ids[n] ? -1 : 1;
    return (a->count > b->count) - (a->count < b->count);
}

static int sign(int x) {
    return (x > 0) - (x < 0);
}

// The base with pieces taken out, put in and replaced; few different ids, so that runs begin by
// chance as well.
static struct provider_ids edited(const struct provider_ids *base, struct rng *r) {
    struct provider_ids out = {arena_array(test_arena, 2 * IDS_MOST, sizeof *out.ids), 0};
    for (size_t i = 0; i < base->count; i++) {
        uint64_t edit = rng_below(r, 300);
        if (edit == 0) i += rng_below(r, 400);
        for (uint64_t k = edit == 1 ? rng_below(r, 40) : 0; k > 0 && out.count < IDS_MOST; k--)
            out.ids[out.count++] = (int32_t)rng_below(r, 5);
        if (i < base->count && out.count < IDS_MOST)
            out.ids[out.count++] = edit == 2 ? (int32_t)rng_below(r, 5) : base->ids[i];
    }
    return out;
}

static void held_ids_compare_as_whole_ones(void **state) {
    (void)state;
    uint64_t seed = clock_ns();
    struct rng r = rng_open(seed, "test", "ids");
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 60; round++) {
        struct provider_ids whole[PROMPTS], bases[2] = {{NULL, 0}, {NULL, 0}};
        struct plan_ids held[PROMPTS];
        for (int i = 0; i < PROMPTS; i++) {
            struct provider_ids fresh = {arena_array(test_arena, IDS_MOST, sizeof(int32_t)),
                                         rng_below(&r, IDS_MOST)};
            for (size_t k = 0; k < fresh.count; k++) fresh.ids[k] = (int32_t)rng_below(&r, 5);
            whole[i] = i < 2 ? fresh : edited(&whole[i % 2], &r);
            held[i] = plan_ids_hold(&whole[i], &bases[i % 2], test_arena);
            assert_int_equal(held[i].count, whole[i].count);
        }
        for (int i = 0; i < PROMPTS; i++)
            for (int k = 0; k < PROMPTS; k++) {
                uint32_t common;
                int order = naive_order(&whole[i], &whole[k], &common);
                assert_int_equal(sign(plan_ids_order(&held[i], &held[k])), order);
                assert_int_equal(plan_ids_common(&held[i], &held[k]), common);
            }
    }
}

// A constraint of 20 ids that stands elsewhere, with another join behind it, costs about its own
// length.
static void a_moved_constraint_costs_little(void **state) {
    (void)state;
    enum { FILLER = 2000, MOVED = 20 };
    int32_t first[FILLER + MOVED], second[FILLER + MOVED];
    for (int i = 0; i < FILLER; i++) first[MOVED + i] = 100 + i;
    for (int i = 0; i < MOVED; i++) first[i] = i;
    first[MOVED] = 99; // the word at the beginning of the filler, without its space
    memcpy(second, first + MOVED, FILLER / 2 * sizeof *second);
    second[0] = 98;
    memcpy(second + FILLER / 2, first, MOVED * sizeof *second);
    memcpy(second + FILLER / 2 + MOVED, first + MOVED + FILLER / 2, FILLER / 2 * sizeof *second);
    struct provider_ids base = {0}, a = {first, FILLER + MOVED}, b = {second, FILLER + MOVED};
    plan_ids_hold(&a, &base, test_arena);
    size_t before = arena_bytes(test_arena);
    struct plan_ids held = plan_ids_hold(&b, &base, test_arena);
    assert_true(arena_bytes(test_arena) - before < 600);
    assert_true(held.run_count < 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(held_ids_compare_as_whole_ones, test_arena_open,
                                        test_arena_close),
        cmocka_unit_test_setup_teardown(a_moved_constraint_costs_little, test_arena_open,
                                        test_arena_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

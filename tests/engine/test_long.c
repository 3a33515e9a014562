// Far positions and large caches: angles of the rotation, KV beyond 4 GiB, positions near 2^31.
#include "kernels/cpu/ops.h"
#include "tests/support/engine_probe.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- rotation ----------------------------------------------------------------------------------

static long double angle_error(double base, uint32_t rotary, const float *factor,
                               uint32_t position) {
    float angles[256];
    long double worst = 0;
    cpu_rope_angles(base, rotary, factor, position, angles);
    for (uint32_t i = 0; i < rotary / 2; i++) {
        long double frequency = powl((long double)base, -2.0L * i / rotary);
        if (factor != NULL) frequency /= (long double)factor[i];
        long double angle = (long double)position * frequency;
        long double c = fabsl((long double)angles[2 * i] - cosl(angle));
        long double s = fabsl((long double)angles[2 * i + 1] - sinl(angle));
        worst = fmaxl(worst, fmaxl(c, s));
    }
    return worst;
}

// Up to 128K the error is the rounding to fp32, half a unit in the last place, and little else; an
// angle in fp32 would be off by up to 0.004 there. Far beyond, that of the frequency shows.
static void test_angles(void **state) {
    (void)state;
    static const double bases[] = {10000, 100000, 500000, 1e6};
    static const uint32_t sizes[] = {32, 64, 96, 128};
    static const struct {
        uint32_t position;
        double most;
    } bars[] = {{1, 0x1p-25 + 1e-12},     {8191, 0x1p-25 + 1e-11}, {32767, 0x1p-25 + 1e-10},
                {131071, 0x1p-25 + 1e-9}, {1u << 24, 1e-7},        {INT32_MAX, 1e-5}};
    float factor[64];
    for (int i = 0; i < 64; i++) factor[i] = i < 20 ? 1.0f : 1.0f + 0.125f * (float)i;
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t p = 0; p < sizeof bars / sizeof *bars; p++)
                for (int scaled = 0; scaled < 2; scaled++) {
                    long double error =
                        angle_error(bases[b], sizes[s], scaled ? factor : NULL, bars[p].position);
                    if (error > (long double)bars[p].most)
                        fail_msg("base %g, size %u, position %u: off by %.3Lg", bases[b], sizes[s],
                                 bars[p].position, error);
                }
}

// ---- large caches ------------------------------------------------------------------------------

#define TOKENS 1300 // in pages below and above a border

// Two layers of 64 KiB: 32,768 pages are 4 GiB.
static const struct tiny_model_options SMALL = {.seed = 8};
enum { BORDER = 32768 };

static size_t resident_bytes(void) {
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*u %lu", &pages), 1);
    fclose(f);
    return (size_t)pages * 4096;
}

static bool has_memory(struct probe *p, uint64_t bytes) {
    struct backend *b = session_backend(p->session);
    struct err e = {0};
    uint64_t available;
    return b->ops->memory_free_bytes(b, &available, &e) == 0 && available > bytes;
}

// A sequence that takes the pages in front, and touches but the first ones, brings the next one to
// the border. Whatever is written behind it stays away from the front.
static void compute_behind(const char *path, uint32_t pages_in_front, const int32_t *ids,
                           uint64_t *hashes) {
    struct session_options o = {.threads = 2,
                                .context_tokens = (pages_in_front + 8) * BACKEND_PAGE,
                                .beyond_trained = true,
                                .sequences = 3,
                                .pages_least = pages_in_front + 8};
    struct probe p = probe_open(path, &o);
    assert_int_equal(session_plan(p.session)->page_bytes, 131072);
    struct kv_pool *kv = session_kv(p.session);
    struct kv_sequence *front = probe_sequence(&p), *s = probe_sequence(&p), *fork;
    uint64_t before[200], after[200];
    struct err e = {0};
    if (pages_in_front > 0) probe_feed(&p, front, ids + 100, 200, before);
    ASSERT_OK(kv_reserve(kv, front, pages_in_front * BACKEND_PAGE, &e), e);
    probe_feed(&p, s, ids, TOKENS, hashes);
    assert_int_equal(s->page[0], pages_in_front);
    // A fork copies its partial page, here the last of three, across the border too.
    ASSERT_OK(kv_fork(kv, s, TOKENS - 100, &fork, &e), e);
    probe_feed(&p, fork, ids + TOKENS - 100, 100, hashes + TOKENS);
    if (pages_in_front > 0) {
        kv_truncate(kv, front, 100);
        probe_feed(&p, front, ids + 200, 100, after + 100);
        assert_int_equal(probe_differences(before + 100, after + 100, 100), 0);
    }
    kv_sequence_close(kv, front);
    kv_sequence_close(kv, fork);
    kv_sequence_close(kv, s);
    probe_close(&p);
}

static void test_cache_beyond_4_gib(void **state) {
    (void)state;
    const char *path = probe_model("small", &SMALL);
    struct probe p = probe_open(path, &(struct session_options){.threads = 1});
    bool enough = has_memory(&p, (uint64_t)5 << 30);
    probe_close(&p);
    if (!enough) {
        print_message("less than 5 GiB are free: a cache of 4 GiB is not planned here\n");
        skip();
    }
    static int32_t ids[TOKENS];
    static uint64_t near[TOKENS + 100], far[TOKENS + 100];
    probe_ids(4, 320, ids, TOKENS);
    size_t before = resident_bytes();
    compute_behind(path, 0, ids, near);
    assert_int_equal(probe_differences(near + TOKENS - 100, near + TOKENS, 100), 0);
    static const uint32_t in_front[] = {BORDER - 1, BORDER - 2, BORDER / 2 - 1, BORDER};
    for (size_t i = 0; i < sizeof in_front / sizeof *in_front; i++) {
        compute_behind(path, in_front[i], ids, far);
        assert_int_equal(probe_differences(near, far, TOKENS + 100), 0);
    }
    // What is not touched costs nothing.
    assert_true(resident_bytes() < before + ((size_t)256 << 20));
}

// ---- far positions -----------------------------------------------------------------------------

// With a window of 96 keys, a sequence that claims to be long needs no more than its last pages;
// whatever the chunks, what is computed there is the same.
static void test_positions_near_2_31(void **state) {
    (void)state;
    enum { COUNT = 700, START = INT32_MAX / BACKEND_PAGE * BACKEND_PAGE - 512 };
    struct tiny_model_options windowed = {.seed = 9, .window = 96};
    const char *path = probe_model("windowed", &windowed);
    static const uint32_t chunks[] = {512, 1, 37, 512};
    static int32_t ids[COUNT];
    static uint64_t hashes[4][COUNT];
    probe_ids(5, 320, ids, COUNT);
    for (int run = 0; run < 4; run++) {
        struct session_options o = {.threads = 1 + run % 2,
                                    .context_tokens = START + COUNT,
                                    .beyond_trained = true,
                                    .chunk_tokens = chunks[run],
                                    .op_table = run == 3 ? "c" : NULL,
                                    .pages_least = 4};
        struct probe p = probe_open(path, &o);
        struct kv_sequence *s = probe_sequence(&p);
        // The window reaches back into a page of zeros.
        struct err e = {0};
        ASSERT_OK(kv_reserve(session_kv(p.session), s, 1, &e), e);
        for (uint32_t i = 1; i < START / BACKEND_PAGE; i++) {
            s->page[i] = s->page[0];
            s->address[i] = s->address[0];
        }
        s->length = START;
        s->pages = START / BACKEND_PAGE;
        probe_feed(&p, s, ids, COUNT, hashes[run]);
        assert_int_equal(s->length, START + COUNT);
        kv_truncate(session_kv(p.session), s, START);
        s->length = 1;
        s->pages = 1;
        probe_close(&p);
        assert_int_equal(probe_differences(hashes[0], hashes[run], COUNT), 0);
    }
    assert_true(probe_differences(hashes[0], hashes[0] + 1, COUNT - 1) == COUNT - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_angles),
        cmocka_unit_test(test_cache_beyond_4_gib),
        cmocka_unit_test(test_positions_near_2_31),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

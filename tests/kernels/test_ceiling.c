// A ceiling that reads less than it says would be too high, so each way must read every word once.
#include "engine/base/arena.h"
#include "engine/base/rng.h"
#include "kernels/cpu/cache.h"
#include "kernels/cpu/ceiling.h"
#include "tests/support/support.h"

#include <string.h>

static void test_reads_every_word(void **state) {
    (void)state;
    enum { MOST = 1 << 20 };
    struct err e = {0};
    void *memory;
    ASSERT_OK(mem_alloc(MOST, "memory to read", &memory, &e), e);
    uint64_t *words = memory;
    struct rng r = rng_open(1, "ceiling", "words");
    for (size_t i = 0; i < MOST / 8; i++) words[i] = rng_u64(&r);
    for (int round = 0; round < 200; round++) {
        // Around the ends of steps and streams, and anywhere.
        size_t lines = round < 40 ? (size_t)round : rng_below(&r, MOST / 64 + 1);
        uint64_t sum = 0;
        for (size_t i = 0; i < lines * 8; i++) sum ^= words[i];
        for (int way = 0; way < CPU_READ_WAYS; way++)
            if (cpu_ceiling_read(way, memory, lines * 64) != sum)
                fail_msg("way %d does not read %zu lines once each", way, lines);
    }
    mem_free(memory);
}

static void test_rates(void **state) {
    (void)state;
    struct err e = {0};
    void *memory;
    ASSERT_OK(mem_alloc(4 << 20, "memory to read", &memory, &e), e);
    memset(memory, 1, 4 << 20);
    struct team *team = team_open(3);
    assert_non_null(team);
    for (int threads = 1; threads <= 3; threads++) {
        assert_true(cpu_ceiling_read_per_s(memory, 4 << 20, team, threads) > 1e6);
        assert_true(cpu_ceiling_read_per_s(memory, 64 * (size_t)threads - 1, team, threads) == 0);
    }
    int count;
    const struct cpu_ops *const *tables = cpu_ops_all(&count);
    for (int i = 0; i < count; i++) {
        if (cpu_ops_find(tables[i]->numerics, tables[i]->name, NULL) == NULL) continue;
        bool plain = tables[i]->name[0] == 'c';
        assert_true(plain == (cpu_ceiling_fma_per_s(tables[i], team, 2) == 0));
    }
    assert_true(cpu_core_cache_bytes() >= 64 << 10);
    team_close(team);
    mem_free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_every_word),
        cmocka_unit_test(test_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

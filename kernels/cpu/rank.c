#include "kernels/cpu/rank.h"

#include "kernels/sample.h"

#include <string.h>

#define DIGIT_BITS 11
#define DIGITS 3
#define VALUES (1u << DIGIT_BITS)

struct counts {
    uint32_t of[DIGITS][VALUES]; // keys with a value of a digit, later where the next of them goes
};

size_t cpu_rank_bytes(uint32_t n) {
    return sizeof(struct counts) + 2 * (size_t)n * sizeof(struct cpu_ranked);
}

static uint32_t digit_of(uint32_t key, int digit) {
    return key >> (digit * DIGIT_BITS) & (VALUES - 1);
}

static uint32_t take_keys(const float *z, uint32_t n, uint32_t last_key, struct cpu_ranked *to,
                          struct counts *counts) {
    uint32_t count = 0;
    memset(counts, 0, sizeof *counts);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t key = sample_key(z[i]);
        if (key > last_key) continue;
        to[count++] = (struct cpu_ranked){key, (int32_t)i};
        for (int d = 0; d < DIGITS; d++) counts->of[d][digit_of(key, d)]++;
    }
    return count;
}

static void start_values(uint32_t of[VALUES]) {
    uint32_t start = 0;
    for (uint32_t v = 0; v < VALUES; v++) {
        uint32_t count = of[v];
        of[v] = start;
        start += count;
    }
}

// Radix sort from the lowest digit, each step stable.
uint32_t cpu_rank(const float *z, uint32_t n, uint32_t last_key, void *memory,
                  struct cpu_ranked **out, void **spare) {
    struct counts *counts = memory;
    struct cpu_ranked *from = (struct cpu_ranked *)(counts + 1), *to = from + n;
    uint32_t count = take_keys(z, n, last_key, from, counts);
    for (int d = 0; d < DIGITS; d++) {
        uint32_t *next = counts->of[d];
        if (count == 0 || next[digit_of(from[0].key, d)] == count) continue; // all have it
        start_values(next);
        for (uint32_t i = 0; i < count; i++) to[next[digit_of(from[i].key, d)]++] = from[i];
        struct cpu_ranked *sorted = to;
        to = from;
        from = sorted;
    }
    *out = from;
    *spare = to;
    return count;
}

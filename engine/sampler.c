#include "engine/sampler.h"

#include "engine/base/arena.h"
#include "kernels/cpu/ops.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct ranked {
    uint32_t key; // ascending keys are descending logits
    int32_t id;
};

struct sampler {
    uint32_t V;
    struct ranked *order, *spare;
    double *weight;
};

struct sampler *sampler_open(uint32_t V) {
    struct sampler *s = calloc(1, sizeof *s);
    if (s == NULL) mem_exhausted("sampler", sizeof *s);
    s->V = V;
    s->order = calloc(V, sizeof *s->order);
    s->spare = calloc(V, sizeof *s->spare);
    s->weight = calloc(V, sizeof *s->weight);
    if (s->order == NULL || s->spare == NULL || s->weight == NULL)
        mem_exhausted("sampler", V * sizeof *s->order);
    return s;
}

void sampler_close(struct sampler *s) {
    if (s == NULL) return;
    free(s->order);
    free(s->spare);
    free(s->weight);
    free(s);
}

// Order-preserving integer of a float, turned round; both zeros are one value.
static uint32_t descending_key(float z) {
    uint32_t bits;
    z += 0.0f; // -0 becomes +0
    memcpy(&bits, &z, sizeof bits);
    uint32_t ascending = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
    return ~ascending;
}

// Radix sort, stable, so that equal logits stay in the order of their ids. Leaves the result in
// s->order. (qsort would allocate.)
static void sort_descending(struct sampler *s, const float *logits) {
    for (uint32_t i = 0; i < s->V; i++)
        s->order[i] = (struct ranked){descending_key(logits[i]), (int32_t)i};
    for (int shift = 0; shift < 32; shift += 8) {
        uint32_t start[257] = {0};
        for (uint32_t i = 0; i < s->V; i++) start[(s->order[i].key >> shift & 255) + 1]++;
        for (int d = 0; d < 256; d++) start[d + 1] += start[d];
        for (uint32_t i = 0; i < s->V; i++)
            s->spare[start[s->order[i].key >> shift & 255]++] = s->order[i];
        struct ranked *sorted = s->spare;
        s->spare = s->order;
        s->order = sorted;
    }
}

int32_t sampler_draw(struct sampler *s, const float *logits, double temperature, double top_p,
                     const struct rng *stream, uint64_t index) {
    assert(temperature > 0 && top_p > 0 && top_p <= 1);
    sort_descending(s, logits);
    double first = logits[s->order[0].id];
    double total = 0;
    for (uint32_t i = 0; i < s->V; i++) {
        s->weight[i] = cpu_exp((logits[s->order[i].id] - first) / temperature);
        if (s->weight[i] < total * 0x1p-54) break; // neither this nor a smaller one moves the sum
        total += s->weight[i];
    }
    uint32_t kept = 0;
    double kept_sum = 0;
    while (kept < s->V && (kept == 0 || kept_sum < top_p * total)) kept_sum += s->weight[kept++];
    double threshold = rng_unit_at(stream, index) * kept_sum;
    double running = 0;
    for (uint32_t i = 0; i < kept; i++) {
        running += s->weight[i];
        if (running > threshold) return s->order[i].id;
    }
    return s->order[kept - 1].id; // u < 1, so only a rounding of the last sum leads here
}

void sampler_top(struct sampler *s, const float *logits, uint32_t k, int32_t *ids) {
    assert(k <= s->V);
    sort_descending(s, logits);
    for (uint32_t i = 0; i < k; i++) ids[i] = s->order[i].id;
}

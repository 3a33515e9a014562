#include "engine/ranking.h"

#include "engine/base/arena.h"
#include "kernels/cpu/rank.h"

#include <assert.h>
#include <stdlib.h>

struct ranking {
    uint32_t V;
    void *memory;
};

struct ranking *ranking_open(uint32_t V) {
    struct ranking *r = calloc(1, sizeof *r);
    if (r == NULL) mem_exhausted("ranking", sizeof *r);
    *r = (struct ranking){V, malloc(cpu_rank_bytes(V))};
    if (r->memory == NULL) mem_exhausted("ranking", cpu_rank_bytes(V));
    return r;
}

void ranking_close(struct ranking *r) {
    if (r == NULL) return;
    free(r->memory);
    free(r);
}

void ranking_top(struct ranking *r, const float *logits, uint32_t k, int32_t *ids) {
    struct cpu_ranked *order;
    void *spare;
    assert(k <= r->V);
    cpu_rank(logits, r->V, UINT32_MAX, r->memory, &order, &spare);
    for (uint32_t i = 0; i < k; i++) ids[i] = order[i].id;
}

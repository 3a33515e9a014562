// Logits in descending order.
#ifndef LACUNA_KERNELS_CPU_RANK_H
#define LACUNA_KERNELS_CPU_RANK_H

#include <stddef.h>
#include <stdint.h>

struct cpu_ranked {
    uint32_t key; // sample_key of the logit
    int32_t id;
};

// Working memory to rank n logits, aligned to 8 bytes.
size_t cpu_rank_bytes(uint32_t n);

// The logits whose keys are at most `last_key`, ties by ascending id: returns how many of n, and
// where in `memory` they stand. *spare is room for as many more, of 8 bytes each.
uint32_t cpu_rank(const float *z, uint32_t n, uint32_t last_key, void *memory,
                  struct cpu_ranked **out, void **spare);

#endif

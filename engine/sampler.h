// Choice of the next token (NUMERICS.md, "Choice of a token") by temperature and top-p ("nucleus",
// Holtzman et al. 2020) from a counter-based stream, so that reply token i is drawn with number i
// of the stream whatever else is sampled beside it. The greedy choice is the backend's argmax.
#ifndef LACUNA_ENGINE_SAMPLER_H
#define LACUNA_ENGINE_SAMPLER_H

#include "engine/base/rng.h"

#include <stdint.h>

struct sampler;

// Working memory for a vocabulary of V; used by one thread. Sampling allocates nothing.
struct sampler *sampler_open(uint32_t V);
void sampler_close(struct sampler *s); // NULL is allowed

// temperature > 0, 0 < top_p <= 1, all logits finite. `index` is the number of the reply token.
int32_t sampler_draw(struct sampler *s, const float *logits, double temperature, double top_p,
                     const struct rng *stream, uint64_t index);

// Ids of the k largest logits, descending, ties by ascending id. k <= V.
void sampler_top(struct sampler *s, const float *logits, uint32_t k, int32_t *ids);

#endif

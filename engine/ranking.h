// The largest logits of a row.
#ifndef LACUNA_ENGINE_RANKING_H
#define LACUNA_ENGINE_RANKING_H

#include <stdint.h>

struct ranking;

// Working memory for a vocabulary of V; used by one thread.
struct ranking *ranking_open(uint32_t V);
void ranking_close(struct ranking *r); // NULL is allowed

// Ids of the k largest of V logits, descending, ties by ascending id. k <= V.
void ranking_top(struct ranking *r, const float *logits, uint32_t k, int32_t *ids);

#endif

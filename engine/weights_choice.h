// Which form of the weights products of few rows take, measured on a model's own layers.
#ifndef LACUNA_ENGINE_WEIGHTS_CHOICE_H
#define LACUNA_ENGINE_WEIGHTS_CHOICE_H

#include "engine/weights.h"

// Layers of so many bytes are looked at, so that they come from memory as in decoding.
#define WEIGHTS_CHOICE_BYTES (256u << 20)

// Times decoding steps over the first `layers` layers, loaded as BACKEND_BOTH, in both forms. Sets
// few_rows to the most rows for which the stored form is faster, or makes the weights
// BACKEND_UNPACKED.
int weights_choose(struct weights *w, const struct model_config *c, uint32_t layers, struct err *e);

#endif

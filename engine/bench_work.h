// What a pass of a model has to compute and to read at least. Counted from the model's shape; the
// work that an implementation adds does not count.
#ifndef LACUNA_ENGINE_BENCH_WORK_H
#define LACUNA_ENGINE_BENCH_WORK_H

#include "engine/model.h"

// Bytes of all layers and of the output layer.
struct bench_weights {
    uint64_t layer_bytes, head_bytes;
};

struct bench_shape {
    const struct model_config *config;
    struct bench_weights few, many; // as passes of up to few_rows rows read them, and larger ones
    uint32_t few_rows;
    uint64_t kv_bytes;     // of one position, all layers
    uint32_t chunk_tokens; // of one pass
};

struct bench_work {
    uint64_t flop;  // 2 for a multiply-add of a product or of attention; nothing else counts
    uint64_t bytes; // weights once a pass, and the keys and values that the pass looks at
    uint64_t weights, keys; // elements of matrices and keys of all layers that pass by one row
};

// Keys that the rows at positions first .. first + rows - 1 see, in sum.
uint64_t bench_keys(const struct model_config *c, uint64_t first, uint64_t rows);

// The products of one layer, for `rows` rows.
uint64_t bench_layer_flop(const struct model_config *c, uint64_t rows);

// `tokens` from position 0 on, logits for the last one alone: of the other rows the last layer has
// nothing but keys and values to compute.
struct bench_work bench_prefill_work(const struct bench_shape *s, uint32_t tokens);

// `tokens` passes behind `depth` tokens, one row for each of `sequences`, which share the whole
// pages of these.
struct bench_work bench_decode_work(const struct bench_shape *s, uint32_t depth, uint32_t tokens,
                                    uint32_t sequences);

#endif

// Single ops of a backend on a model's own shapes and weights, for the benchmark: operands of
// seeded random numbers, and keys and values of a layer for 8,192 positions.
#ifndef LACUNA_ENGINE_BENCH_OPS_H
#define LACUNA_ENGINE_BENCH_OPS_H

#include "engine/session.h"

#define BENCH_ATTENTION_TOKENS 8192
#define BENCH_ROWS 512    // most rows of an op
#define BENCH_FEW_ROWS 16 // most rows of a product with the output layer

struct bench_product {
    uint32_t N, K;
    uint32_t count; // of such matrices in the model: layers, or 1
    uint64_t bytes; // of one as loaded, which is what a product reads
};
struct bench_product bench_product_of(const struct model *m, struct backend *b,
                                      enum backend_storage storage, enum weights_matrix which);

struct bench_ops;

// `near_bytes`: the caches that the cores have for themselves; the ops of bench_ops_issue stay
// within.
int bench_ops_open(const struct model *m, const struct session *s, size_t near_bytes,
                   struct bench_ops **out, struct err *e);
void bench_ops_close(struct bench_ops *o); // NULL is allowed

// `rows` rows times the matrix of each of the first `layers` layers.
void bench_ops_product(struct bench_ops *o, enum weights_matrix which, uint32_t layers,
                       uint32_t rows);
// One layer's attention of queries at first .. first + rows - 1 < BENCH_ATTENTION_TOKENS.
int bench_ops_attention(struct bench_ops *o, uint32_t first, uint32_t rows, struct err *e);

// Least time that the cores take for what `rows` rows ask of one element of a matrix, and a row of
// one key of a layer, when all data are in their own caches.
struct bench_issue {
    double s_per_weight, s_per_key;
};
int bench_ops_issue(struct bench_ops *o, uint32_t rows, struct bench_issue *out, struct err *e);

#endif

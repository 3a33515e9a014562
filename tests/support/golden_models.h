// tests/engine/golden/golden.json: models of random numbers, and what they were asked.
#ifndef LACUNA_TESTS_GOLDEN_MODELS_H
#define LACUNA_TESTS_GOLDEN_MODELS_H

#include "engine/backend.h"
#include "engine/base/arena.h"
#include "engine/base/json.h"

enum { GOLDEN_RANGES_MOST = 8 };

struct golden {
    struct arena *a;
    json_t *index; // the file
    int32_t *ids;
    uint32_t count, vocabulary;
    struct backend_key_range ranges[GOLDEN_RANGES_MOST];
    uint32_t range_count;
};

// Set-up and tear-down of a test whose state is a struct golden.
int golden_open(void **state);
int golden_close(void **state);

// KL(reference || z) of logits [rows][n], in double, mean over the rows.
double golden_divergence(const float *reference, const float *z, uint32_t rows, uint32_t n);

#endif

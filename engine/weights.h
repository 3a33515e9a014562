// A model's weights in a backend: the file's tensors, stacked where products share an input.
#ifndef LACUNA_ENGINE_WEIGHTS_H
#define LACUNA_ENGINE_WEIGHTS_H

#include "engine/backend.h"
#include "engine/model.h"

struct weights_layer {
    float *attention_norm, *ffn_norm; // device, [D]
    struct backend_matrix *qkv;       // q, k and v rows one below the other: N = (H + 2G) E
    float *qkv_bias;                  // device, [N], or NULL
    struct backend_matrix *o;         // [D][H E]
    struct backend_matrix *gate_up;   // [2F][D]
    struct backend_matrix *down;      // [D][F]
};

struct weights {
    struct backend *backend;
    uint32_t L;
    enum backend_storage storage; // BACKEND_BOTH becomes UNPACKED when that is always faster
    uint32_t few_rows;            // of BACKEND_BOTH: products of so many rows take the stored form
    struct backend_matrix *embedding; // rows as they stand in the file
    struct weights_layer *layer;      // [L]
    float *output_norm;               // device, [D]
    struct backend_matrix *head;      // [V][D]
};

// Bytes that loading would take on the device.
uint64_t weights_bytes(struct backend *b, const struct model *m, enum backend_storage storage);

// BACKEND_BOTH: which form is faster for few rows is measured on the first layers; bits are equal.
// The embedding keeps pointers into the model's mapped file. Non-finite weights are an error that
// names the tensor.
int weights_load(struct backend *b, const struct model *m, enum backend_storage storage,
                 struct weights **out, struct err *e);
void weights_close(struct weights *w); // NULL is allowed

#endif

// A model's weights in a backend: the file's tensors, stacked where products share an input.
#ifndef LACUNA_ENGINE_WEIGHTS_H
#define LACUNA_ENGINE_WEIGHTS_H

#include "engine/backend.h"
#include "engine/model.h"

// The matrices that products are made with: those of a layer, and the output layer.
enum weights_matrix {
    WEIGHTS_QKV,
    WEIGHTS_O,
    WEIGHTS_GATE_UP,
    WEIGHTS_DOWN,
    WEIGHTS_HEAD,
    WEIGHTS_MATRICES
};
#define WEIGHTS_LAYER_MATRICES WEIGHTS_HEAD

const char *weights_matrix_name(enum weights_matrix which); // "gate_up"

struct weights_layer {
    float *attention_norm, *ffn_norm; // device, [D]
    float *qkv_bias;                  // device, [N] of qkv, or NULL
    union {
        struct {
            struct backend_matrix *qkv;     // q, k and v rows one below the other: N = (H + 2G) E
            struct backend_matrix *o;       // [D][H E]
            struct backend_matrix *gate_up; // [2F][D]
            struct backend_matrix *down;    // [D][F]
        };
        struct backend_matrix *matrix[WEIGHTS_LAYER_MATRICES]; // the same
    };
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

// A matrix as it stands in the model file: tensors one below the other. The layer is not looked at
// for WEIGHTS_HEAD, here and below.
struct weights_stack {
    struct backend_part part[BACKEND_PARTS];
    int count;
    uint32_t N, K;
};
struct weights_stack weights_stack_of(const struct model *m, uint32_t layer,
                                      enum weights_matrix which);
uint64_t weights_stack_bytes(struct backend *b, const struct weights_stack *s,
                             enum backend_storage storage);

struct backend_matrix *weights_matrix_of(const struct weights *w, uint32_t layer,
                                         enum weights_matrix which);

// Bytes that loading would take on the device.
uint64_t weights_bytes(struct backend *b, const struct model *m, enum backend_storage storage);

// BACKEND_BOTH: which form is faster for few rows is measured on the first layers; bits are equal.
// The embedding keeps pointers into the model's mapped file. Non-finite weights are an error that
// names the tensor.
int weights_load(struct backend *b, const struct model *m, enum backend_storage storage,
                 struct weights **out, struct err *e);
void weights_close(struct weights *w); // NULL is allowed

#endif

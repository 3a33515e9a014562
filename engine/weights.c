#include "engine/weights.h"

#include "engine/weights_choice.h"

#include "engine/base/arena.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *weights_matrix_name(enum weights_matrix which) {
    static const char *const names[] = {"qkv", "o", "gate_up", "down", "head"};
    return names[which];
}

static struct weights_stack stack_of(const struct gguf_tensor *a, const struct gguf_tensor *b,
                                     const struct gguf_tensor *c) {
    struct weights_stack s = {.K = (uint32_t)a->dim[0]};
    const struct gguf_tensor *all[] = {a, b, c};
    for (int i = 0; i < BACKEND_PARTS && all[i] != NULL; i++) {
        const struct gguf_tensor *t = all[i];
        assert(t->dim[0] == a->dim[0]);
        uint32_t rows = t->dims > 1 ? (uint32_t)t->dim[1] : 1;
        s.part[s.count++] =
            (struct backend_part){.name = t->name, .type = t->type, .rows = rows, .data = t->data};
        s.N += rows;
    }
    return s;
}

struct weights_stack weights_stack_of(const struct model *m, uint32_t layer,
                                      enum weights_matrix which) {
    const struct model_layer *l = &m->layers[layer];
    switch (which) {
    case WEIGHTS_QKV: return stack_of(l->q, l->k, l->v);
    case WEIGHTS_O: return stack_of(l->o, NULL, NULL);
    case WEIGHTS_GATE_UP: return stack_of(l->gate, l->up, NULL);
    case WEIGHTS_DOWN: return stack_of(l->down, NULL, NULL);
    default: return stack_of(m->output, NULL, NULL);
    }
}

uint64_t weights_stack_bytes(struct backend *b, const struct weights_stack *s,
                             enum backend_storage storage) {
    return b->ops->matrix_bytes(b, s->part, s->count, s->K, storage);
}

struct backend_matrix *weights_matrix_of(const struct weights *w, uint32_t layer,
                                         enum weights_matrix which) {
    return which == WEIGHTS_HEAD ? w->head : w->layer[layer].matrix[which];
}

static bool has_bias(const struct model_layer *l) {
    return l->q_bias != NULL || l->k_bias != NULL || l->v_bias != NULL;
}

static uint64_t layer_bytes(struct backend *b, const struct model *m, uint32_t layer,
                            enum backend_storage storage) {
    uint64_t bytes = 0;
    for (int j = 0; j < WEIGHTS_LAYER_MATRICES; j++) {
        struct weights_stack s = weights_stack_of(m, layer, (enum weights_matrix)j);
        bytes += weights_stack_bytes(b, &s, storage);
    }
    return bytes;
}

uint64_t weights_bytes(struct backend *b, const struct model *m, enum backend_storage storage) {
    const struct model_config *c = &m->config;
    struct weights_stack embedding = stack_of(m->embedding, NULL, NULL);
    struct weights_stack head = weights_stack_of(m, 0, WEIGHTS_HEAD);
    uint64_t bytes = weights_stack_bytes(b, &embedding, BACKEND_ROWS);
    uint64_t vectors = c->D; // output norm
    for (uint32_t i = 0; i < c->L; i++) {
        bytes += layer_bytes(b, m, i, storage);
        vectors += 2 * (uint64_t)c->D;
        if (has_bias(&m->layers[i])) vectors += model_qkv_width(c);
    }
    return bytes + weights_stack_bytes(b, &head, storage) + vectors * sizeof(float);
}

static int matrix_load(struct backend *b, const struct weights_stack *s,
                       enum backend_storage storage, struct backend_matrix **out, struct err *e) {
    return b->ops->matrix_load(b, s->part, s->count, s->K, storage, out, e);
}

static int read_vector(const struct gguf_tensor *t, float *to, struct err *e) {
    tensor_dequantize(t->type, t->data, t->elements, to);
    for (uint64_t i = 0; i < t->elements; i++)
        if (!isfinite(to[i]))
            FAIL(e, ERR_MODEL,
                 "tensor " STR_FMT ": holds a NaN or an infinity; the model file is damaged or was "
                 "converted wrongly",
                 STR_ARG(t->name));
    return 0;
}

static int vector_upload(struct backend *b, const float *host, uint64_t n, const char *what,
                         float **out, struct err *e) {
    void *device;
    TRY(b->ops->alloc(b, n * sizeof *host, what, &device, e));
    b->ops->upload(b, device, host, n * sizeof *host);
    b->ops->sync(b);
    *out = device;
    return 0;
}

static int vector_load(struct backend *b, const struct gguf_tensor *t, float *scratch, float **out,
                       struct err *e) {
    TRY(read_vector(t, scratch, e));
    return vector_upload(b, scratch, t->elements, "norm weights", out, e);
}

// The biases of q, k and v one after the other; a missing one is zeros.
static int bias_load(struct backend *b, const struct model_config *c, const struct model_layer *l,
                     float *scratch, float **out, struct err *e) {
    const struct gguf_tensor *bias[] = {l->q_bias, l->k_bias, l->v_bias};
    uint64_t size[] = {(uint64_t)c->H * c->E, (uint64_t)c->G * c->E, (uint64_t)c->G * c->E};
    uint64_t at = 0;
    for (int i = 0; i < 3; i++) {
        memset(scratch + at, 0, size[i] * sizeof *scratch);
        if (bias[i] != NULL) TRY(read_vector(bias[i], scratch + at, e));
        at += size[i];
    }
    return vector_upload(b, scratch, at, "biases", out, e);
}

static int layer_load(struct weights *w, const struct model *m, uint32_t index, float *scratch,
                      struct err *e) {
    struct backend *b = w->backend;
    const struct model_layer *l = &m->layers[index];
    struct weights_layer *to = &w->layer[index];
    for (int j = 0; j < WEIGHTS_LAYER_MATRICES; j++) {
        struct weights_stack s = weights_stack_of(m, index, (enum weights_matrix)j);
        TRY(matrix_load(b, &s, w->storage, &to->matrix[j], e));
        b->ops->matrix_few_rows(b, to->matrix[j], w->few_rows);
    }
    TRY(vector_load(b, l->attention_norm, scratch, &to->attention_norm, e));
    TRY(vector_load(b, l->ffn_norm, scratch, &to->ffn_norm, e));
    if (has_bias(l)) TRY(bias_load(b, &m->config, l, scratch, &to->qkv_bias, e));
    return 0;
}

static int load_all(struct weights *w, const struct model *m, float *scratch, struct err *e) {
    struct weights_stack embedding = stack_of(m->embedding, NULL, NULL);
    struct weights_stack head = weights_stack_of(m, 0, WEIGHTS_HEAD);
    TRY(matrix_load(w->backend, &embedding, BACKEND_ROWS, &w->embedding, e));
    uint64_t bytes = 0; // of layers that the choice between two forms is measured on
    for (uint32_t i = 0; i < w->L; i++) {
        TRY(layer_load(w, m, i, scratch, e));
        bytes += layer_bytes(w->backend, m, i, BACKEND_UNPACKED);
        bool enough = bytes >= WEIGHTS_CHOICE_BYTES || i + 1 == w->L;
        if (w->storage == BACKEND_BOTH && w->few_rows == 0 && enough)
            TRY(weights_choose(w, &m->config, i + 1, e));
    }
    TRY(vector_load(w->backend, m->output_norm, scratch, &w->output_norm, e));
    TRY(matrix_load(w->backend, &head, w->storage, &w->head, e));
    w->backend->ops->matrix_few_rows(w->backend, w->head, w->few_rows);
    return 0;
}

// What was copied is not read again: the system need not keep it in memory.
static void release_file(const struct model *m) {
    for (size_t i = 0; i < m->file->tensor_count; i++) {
        const struct gguf_tensor *t = &m->file->tensors[i];
        if (t != m->embedding) file_map_release(&m->file->map, t->data, t->bytes);
    }
}

int weights_load(struct backend *b, const struct model *m, enum backend_storage storage,
                 struct weights **out, struct err *e) {
    const struct model_config *c = &m->config;
    struct weights *w = calloc(1, sizeof *w);
    struct weights_layer *layers = calloc(c->L, sizeof *layers);
    uint64_t widest = ((uint64_t)c->H + 2 * (uint64_t)c->G) * c->E;
    if (widest < c->D) widest = c->D;
    float *scratch = malloc(widest * sizeof *scratch);
    if (w == NULL || layers == NULL || scratch == NULL)
        mem_exhausted("weight tables", c->L * sizeof *layers);
    *w = (struct weights){.backend = b, .L = c->L, .storage = storage, .layer = layers};
    int result = load_all(w, m, scratch, e);
    free(scratch);
    if (result != 0) {
        err_prefix(e, "%s", m->file->path);
        weights_close(w);
        return -1;
    }
    release_file(m);
    *out = w;
    return 0;
}

void weights_close(struct weights *w) {
    if (w == NULL) return;
    struct backend *b = w->backend;
    for (uint32_t i = 0; i < w->L; i++) {
        struct weights_layer *l = &w->layer[i];
        for (int j = 0; j < WEIGHTS_LAYER_MATRICES; j++) b->ops->matrix_free(b, l->matrix[j]);
        b->ops->free(b, l->attention_norm);
        b->ops->free(b, l->ffn_norm);
        b->ops->free(b, l->qkv_bias);
    }
    b->ops->matrix_free(b, w->embedding);
    b->ops->matrix_free(b, w->head);
    b->ops->free(b, w->output_norm);
    free(w->layer);
    free(w);
}

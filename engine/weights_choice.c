#include "engine/weights_choice.h"

#include "engine/base/clock.h"

#define ROWS_MOST 4
#define RUNS 4        // the first one warms up, the fastest is the least disturbed
#define WORTH_IT 0.97 // the stored form costs memory: it must save so much time

struct trial {
    void *x;
    float *y;
    uint32_t ldx, ldy;
};

static void set_few_rows(struct weights *w, uint32_t layers, uint32_t rows) {
    for (uint32_t i = 0; i < layers; i++)
        for (int j = 0; j < WEIGHTS_LAYER_MATRICES; j++)
            w->backend->ops->matrix_few_rows(w->backend, w->layer[i].matrix[j], rows);
}

// Nanoseconds of the products of one decoding step of `rows` sequences.
static uint64_t step_ns(const struct weights *w, uint32_t layers, uint32_t rows,
                        const struct trial *t) {
    struct backend *b = w->backend;
    uint64_t best = UINT64_MAX;
    for (int run = 0; run < RUNS; run++) {
        uint64_t begun = clock_ns();
        for (uint32_t i = 0; i < layers; i++)
            for (int j = 0; j < WEIGHTS_LAYER_MATRICES; j++)
                b->ops->matmul(b, t->x, t->ldx, rows, w->layer[i].matrix[j], NULL, false, t->y,
                               t->ldy);
        b->ops->sync(b);
        uint64_t took = clock_ns() - begun;
        if (took < best) best = took;
    }
    return best;
}

static uint32_t faster_rows(struct weights *w, uint32_t layers, const struct trial *t) {
    for (uint32_t rows = ROWS_MOST; rows >= 1; rows /= 2) {
        set_few_rows(w, layers, rows);
        uint64_t stored = step_ns(w, layers, rows, t);
        set_few_rows(w, layers, 0);
        uint64_t unpacked = step_ns(w, layers, rows, t);
        if ((double)stored < WORTH_IT * (double)unpacked) return rows;
    }
    return 0;
}

int weights_choose(struct weights *w, const struct model_config *c, uint32_t layers,
                   struct err *e) {
    struct backend *b = w->backend;
    struct trial t = {.ldx = backend_row_stride(b, model_input_width(c)),
                      .ldy = model_output_width(c)};
    size_t x_bytes = (size_t)ROWS_MOST * t.ldx * b->operand_bytes;
    void *y = NULL;
    TRY(b->ops->alloc(b, x_bytes, "operands", &t.x, e)); // zeros
    if (b->ops->alloc(b, (size_t)ROWS_MOST * t.ldy * sizeof(float), "products", &y, e) != 0) {
        b->ops->free(b, t.x);
        return -1;
    }
    t.y = y;
    w->few_rows = faster_rows(w, layers, &t);
    b->ops->free(b, t.x);
    b->ops->free(b, y);
    set_few_rows(w, layers, w->few_rows);
    if (w->few_rows != 0) return 0;
    w->storage = BACKEND_UNPACKED;
    for (uint32_t i = 0; i < layers; i++)
        for (int j = 0; j < WEIGHTS_LAYER_MATRICES; j++)
            b->ops->matrix_unpacked_only(b, w->layer[i].matrix[j]);
    return 0;
}

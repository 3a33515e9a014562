// Which kernels serve matrix products on a GPU: beside the own kernels those of cuBLASLt that give
// the same bits (kernels/cuda/admit.h). What was chosen is kept in a file for later runs.
#ifndef LACUNA_ENGINE_BACKEND_PRODUCTS_H
#define LACUNA_ENGINE_BACKEND_PRODUCTS_H

#include "engine/backend.h"
#include "engine/base/json.h"
#include "kernels/cuda/ops.h"

struct backend_products;

struct backend_products_setup {
    const struct cuda_ops *table;
    struct cuda_device *device;
    const struct backend_device *facts;
    const char *which; // as in struct backend_options
    const char *cache;
};

// Only a `which` that is not known is an error: without cuBLASLt the own kernels serve.
int backend_products_open(const struct backend_products_setup *setup, struct backend_products **out,
                          struct err *e);
void backend_products_close(struct backend_products *p); // NULL is allowed

// Chooses for matrices of these shapes and calls of at most `rows` rows. A file that is damaged or
// cannot be written is warned of, and the choice is made anew.
void backend_products_expect(struct backend_products *p, const struct backend_shape *shapes,
                             int count, uint32_t rows);

// What serves which shape, for records.
json_t *backend_products_json(const struct backend_products *p);

#endif

#include "kernels/cuda/products.h"

#include "kernels/cuda/admit.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUMS_BYTES ((size_t)128 << 20) // most of sums that wait for a bias or a residual
#define SUMS_THREADS 256
#define SUMS_VECTOR 4

static const uint32_t ROWS[] = {CUDA_PRODUCT_ROWS};

struct products_entry {
    struct lt_shape shape;
    struct lt_product *product; // NULL: the library has none
};

struct cuda_product_list {
    enum cuda_products which;
    struct lt *lt;
    struct products_entry *entries;
    size_t count, capacity;
    struct cuda_area sums, workspace;
};

// ---- choosing ----------------------------------------------------------------------------------

uint64_t products_bytes(uint32_t rows) {
    return rows >= ROWS[sizeof ROWS / sizeof *ROWS - 1] ? SUMS_BYTES : 0;
}

int products_open(struct cuda_device *d, enum cuda_products which, uint64_t *version,
                  char why[256]) {
    products_close(d);
    *version = 0;
    if (which == CUDA_PRODUCTS_OWN) return 0;
    struct cuda_product_list *l = (struct cuda_product_list *)calloc(1, sizeof *l);
    if (l == NULL) {
        snprintf(why, 256, "no memory on the host");
        return -1;
    }
    if (!lt_open(&l->lt, why)) {
        free(l);
        return -1;
    }
    l->which = which;
    d->products = l;
    if (which == CUDA_PRODUCTS_ANY) area_reserve(d, &l->workspace, LT_WORKSPACE_BYTES);
    *version = lt_version(l->lt);
    return 0;
}

void products_close(struct cuda_device *d) {
    struct cuda_product_list *l = d->products;
    if (l == NULL) return;
    device_sync(d);
    graphs_drop(d);
    for (size_t i = 0; i < l->count; i++) lt_product_close(l->entries[i].product);
    free(l->entries);
    area_release(d, &l->sums);
    area_release(d, &l->workspace);
    lt_close(l->lt);
    free(l);
    d->products = NULL;
}

// Takes the product over.
static void keep(struct cuda_device *d, const struct lt_shape *shape, struct lt_product *product) {
    struct cuda_product_list *l = d->products;
    size_t bytes = (size_t)shape->rows * shape->N * sizeof(float);
    if (l->count == l->capacity) {
        size_t capacity = l->capacity > 0 ? 2 * l->capacity : 16;
        void *grown = realloc(l->entries, capacity * sizeof *l->entries);
        if (grown == NULL) {
            lt_product_close(product);
            return;
        }
        l->entries = (struct products_entry *)grown;
        l->capacity = capacity;
    }
    l->entries[l->count++] = {*shape, product};
    if (bytes <= SUMS_BYTES) area_reserve(d, &l->sums, bytes);
}

void products_choose(struct cuda_device *d, struct cuda_choice *c) {
    struct cuda_product_list *l = d->products;
    struct lt_shape shape = {c->rows, c->N, c->K};
    admit_choose(d, l->lt, c);
    if (c->admitted) keep(d, &shape, lt_product_open(l->lt, &shape, &c->algorithm));
}

bool products_recall(struct cuda_device *d, const struct cuda_choice *c) {
    struct cuda_product_list *l = d->products;
    struct lt_shape shape = {c->rows, c->N, c->K};
    if (!admit_holds(d, l->lt, c)) return false;
    keep(d, &shape, lt_product_open(l->lt, &shape, &c->algorithm));
    return true;
}

// ---- products ----------------------------------------------------------------------------------

// y = (sums + bias) + y, in the order and with the roundings of gemm_store.
static __global__ void __launch_bounds__(SUMS_THREADS)
    sums_add(const float *sums, float *y, uint32_t N, size_t vectors, const float *bias, bool add) {
    size_t i = (size_t)blockIdx.x * SUMS_THREADS + threadIdx.x;
    if (i >= vectors) return;
    float4 sum = ((const float4 *)sums)[i];
    if (bias != NULL) {
        const float *b = bias + i * SUMS_VECTOR % N;
        sum = make_float4(sum.x + b[0], sum.y + b[1], sum.z + b[2], sum.w + b[3]);
    }
    if (add) {
        float4 residual = ((const float4 *)y)[i];
        sum = make_float4(sum.x + residual.x, sum.y + residual.y, sum.z + residual.z,
                          sum.w + residual.w);
    }
    ((float4 *)y)[i] = sum;
}

static bool needs_sums(const struct gemm_call *c) {
    return c->bias != NULL || c->add;
}

static cudaError_t run(struct cuda_device *d, const struct lt_product *product,
                       const struct gemm_call *c) {
    struct cuda_product_list *l = d->products;
    float *to = needs_sums(c) ? (float *)l->sums.p : c->y;
    cudaError_t failed = lt_product_run(product, d->stream, c->x, c->w, to, l->workspace.p);
    if (failed != cudaSuccess || !needs_sums(c)) return failed;
    size_t vectors = (size_t)c->R * c->N / SUMS_VECTOR;
    LAUNCH(sums_add, (uint32_t)((vectors + SUMS_THREADS - 1) / SUMS_THREADS), SUMS_THREADS, 0,
           d->stream, to, c->y, c->N, vectors, c->bias, c->add);
    return cudaGetLastError();
}

// What lt.h promises to the library of every call.
static bool is_regular(const struct gemm_call *c) {
    uint32_t ld = (c->K + GEMM_ROW_ALIGNMENT - 1) / GEMM_ROW_ALIGNMENT * GEMM_ROW_ALIGNMENT;
    return c->ldx == ld && c->ldw == ld && c->ldy == c->N && c->N % LT_OUTPUTS == 0 &&
           (uintptr_t)c->y % 16 == 0;
}

static const struct products_entry *find(const struct cuda_product_list *l, uint32_t rows,
                                         const struct gemm_call *c) {
    for (size_t i = 0; i < l->count; i++) {
        const struct lt_shape *s = &l->entries[i].shape;
        if (s->rows == rows && s->N == c->N && s->K == c->K) return &l->entries[i];
    }
    return NULL;
}

static bool has_room(const struct cuda_product_list *l, uint32_t rows, const struct gemm_call *c) {
    return !needs_sums(c) || (size_t)rows * c->N * sizeof(float) <= l->sums.bytes;
}

// As the library likes it for just this call, whatever the bits.
static cudaError_t launch_any(struct cuda_device *d, const struct gemm_call *c) {
    struct cuda_product_list *l = d->products;
    const struct products_entry *entry = find(l, c->R, c);
    if (entry == NULL) {
        struct lt_shape shape = {c->R, c->N, c->K};
        struct cuda_algorithm algorithms[LT_CANDIDATES];
        bool found = lt_candidates(l->lt, &shape, true, algorithms) > 0;
        keep(d, &shape, found ? lt_product_open(l->lt, &shape, &algorithms[0]) : NULL);
        entry = find(l, c->R, c);
    }
    bool usable = entry != NULL && entry->product != NULL && has_room(l, c->R, c);
    return usable ? run(d, entry->product, c) : gemm_launch(d->stream, c);
}

// In pieces of the numbers of rows that were chosen for; the rest by the own kernels.
static cudaError_t launch_admitted(struct cuda_device *d, const struct gemm_call *call) {
    struct gemm_call c = *call;
    for (uint32_t rows : ROWS) {
        const struct products_entry *entry = c.R >= rows ? find(d->products, rows, &c) : NULL;
        if (entry == NULL || !has_room(d->products, rows, &c)) continue;
        for (uint32_t left = c.R; left >= rows; left = c.R) {
            c.R = rows;
            cudaError_t failed = run(d, entry->product, &c);
            if (failed != cudaSuccess) return failed;
            c.x = (const uint16_t *)c.x + (size_t)rows * c.ldx;
            c.y += (size_t)rows * c.ldy;
            c.R = left - rows;
        }
    }
    return c.R > 0 ? gemm_launch(d->stream, &c) : cudaSuccess;
}

cudaError_t products_launch(struct cuda_device *d, const struct gemm_call *call) {
    if (d->products == NULL || !is_regular(call)) return gemm_launch(d->stream, call);
    return d->products->which == CUDA_PRODUCTS_ANY ? launch_any(d, call) : launch_admitted(d, call);
}

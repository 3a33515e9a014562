// What the device can do at most: products at the shapes of a layer of Llama 3.1 8B, by the own
// kernels, with the algorithms of cuBLASLt that give the same bits, and by whatever that likes
// best; copies; and how long drawing tokens from its vocabulary takes.
#include "tests/gpu/gpu.h"
#include "tests/gpu/gpu_device.h"

#include "engine/backend_products_file.h"
#include "engine/base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RUNS 5

struct product {
    uint32_t R, N, K;
    void *x, *w;
    float *y;
};

static const char *const names[] = {[CUDA_PRODUCTS_OWN] = "own_flop_per_s",
                                    [CUDA_PRODUCTS_ADMITTED] = "admitted_flop_per_s",
                                    [CUDA_PRODUCTS_ANY] = "any_flop_per_s"};

static uint32_t stride_of(uint32_t n) {
    return (n + CUDA_ROW_ALIGNMENT - 1) / CUDA_ROW_ALIGNMENT * CUDA_ROW_ALIGNMENT;
}

// Random numbers: zeros cost less power and would flatter.
static void *operands(struct cuda_device *d, uint32_t rows, uint32_t K) {
    size_t n = (size_t)rows * stride_of(K);
    uint16_t *host = calloc(n, sizeof *host);
    struct rng r = rng_open(1, "gpu rates", "operands");
    void *p = NULL;
    if (host == NULL || gpu_ops()->alloc(d, n * sizeof *host, &p) != 0) abort();
    for (size_t i = 0; i < n; i++) {
        bool inside = i % stride_of(K) < K;
        host[i] = inside ? (uint16_t)(0x3f00u | (rng_u32(&r) & 0x80ffu)) : 0; // size 1, any sign
    }
    gpu_ops()->upload(d, p, host, n * sizeof *host);
    free(host);
    return p;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Of the fastest of some runs.
static double flop_per_s(struct cuda_device *d, const struct product *p) {
    double best = 0;
    for (int i = 0; i <= RUNS; i++) { // the first one warms up
        gpu_ops()->sync(d);
        double begun = now();
        gpu_ops()->matmul(d, p->x, stride_of(p->K), p->R, p->w, stride_of(p->K), p->N, p->K, NULL,
                          false, p->y, p->N);
        gpu_ops()->sync(d);
        double seconds = now() - begun;
        if (i == 1 || (i > 1 && seconds < best)) best = seconds;
    }
    return 2.0 * p->R * p->N * p->K / best;
}

static json_t *product_json(struct cuda_device *d, struct product p, bool library) {
    struct cuda_choice c = {.rows = p.R, .N = p.N, .K = p.K};
    json_t *j = json_object();
    char why[256];
    uint64_t version;
    json_put(j, "rows", json_integer(p.R));
    json_put(j, "outputs", json_integer(p.N));
    json_put(j, "depth", json_integer(p.K));
    p.x = operands(d, p.R, p.K);
    p.w = operands(d, p.N, p.K);
    void *y = NULL;
    if (gpu_ops()->alloc(d, sizeof(float) * p.R * p.N, &y) != 0) abort();
    p.y = y;
    for (int which = CUDA_PRODUCTS_OWN; which <= CUDA_PRODUCTS_ANY; which++) {
        if (which != CUDA_PRODUCTS_OWN && !library) continue;
        if (gpu_ops()->products(d, (enum cuda_products)which, &version, why) != 0 && library)
            fprintf(stderr, "%s\n", why);
        if (which == CUDA_PRODUCTS_ADMITTED) {
            gpu_ops()->choose(d, &c);
            json_put(j, "choice", product_choice_json(&c, false));
        }
        json_put(j, names[which], json_integer((json_int_t)flop_per_s(d, &p)));
    }
    gpu_ops()->products(d, CUDA_PRODUCTS_OWN, &version, why);
    gpu_ops()->release(d, p.x);
    gpu_ops()->release(d, p.w);
    gpu_ops()->release(d, p.y);
    return j;
}

// Logits as a model's: a long tail, a few far above it.
static void *logits(struct cuda_device *d, uint32_t rows, uint32_t n) {
    size_t count = (size_t)rows * n;
    float *host = calloc(count, sizeof *host);
    struct rng r = rng_open(1, "gpu rates", "logits");
    void *p = NULL;
    if (host == NULL || gpu_ops()->alloc(d, count * sizeof *host, &p) != 0) abort();
    for (size_t i = 0; i < count; i++) {
        double sum = rng_unit(&r) + rng_unit(&r) + rng_unit(&r) + rng_unit(&r) - 2;
        host[i] = (float)(5 * sum + (i % 1009 == 7 ? 8 : 0));
    }
    gpu_ops()->upload(d, p, host, count * sizeof *host);
    free(host);
    return p;
}

// Of the fastest of some runs; 0 as `temperature`: the largest logits.
static double draw_ms(struct cuda_device *d, const float *z, uint32_t rows, uint32_t n,
                      double temperature) {
    struct token_draw draws[CUDA_RESULT_ROWS];
    int32_t ids[CUDA_RESULT_ROWS];
    double best = 0;
    for (uint32_t i = 0; i < rows; i++)
        draws[i] = (struct token_draw){temperature, 0.95, (i + 0.5) / rows};
    for (int i = 0; i <= RUNS; i++) { // the first one warms up
        gpu_ops()->sync(d);
        double begun = now();
        gpu_ops()->draw(d, z, rows, n, draws, ids);
        double seconds = now() - begun;
        if (i == 1 || (i > 1 && seconds < best)) best = seconds;
    }
    return 1e3 * best;
}

static json_t *draws_json(struct cuda_device *d, uint32_t n) {
    static const uint32_t rows[] = {1, 16, CUDA_RESULT_ROWS};
    const struct cuda_limits limits = {.rows = CUDA_RESULT_ROWS,
                                       .H = 1,
                                       .G = 1,
                                       .E = 64,
                                       .L = 1,
                                       .sequences = CUDA_RESULT_ROWS,
                                       .positions = 1,
                                       .outputs = n};
    json_t *list = json_array();
    if (gpu_ops()->prepare(d, &limits) != 0) return list; // the failure is told at the end
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *z = logits(d, rows[i], n);
        json_t *j = json_object();
        json_put(j, "rows", json_integer(rows[i]));
        json_put(j, "logits", json_integer(n));
        json_put(j, "greedy_ms", json_real(draw_ms(d, z, rows[i], n, 0)));
        json_put(j, "drawn_ms", json_real(draw_ms(d, z, rows[i], n, 1)));
        json_array_append_new(list, j);
        gpu_ops()->release(d, z);
    }
    return list;
}

int gpu_rates(const char *size) {
    static const struct product full[] = {{.R = 4096, .N = 6144, .K = 4096},
                                          {.R = 4096, .N = 4096, .K = 4096},
                                          {.R = 4096, .N = 28672, .K = 4096},
                                          {.R = 4096, .N = 4096, .K = 14336}},
                                small[] = {{.R = 256, .N = 24, .K = 72}};
    bool is_small = strcmp(size, "small") == 0;
    const struct product *shapes = is_small ? small : full;
    size_t count = is_small ? 1 : sizeof full / sizeof *full;
    struct cuda_facts f;
    struct cuda_device *d = gpu_open(&f);
    if (d == NULL) return 1;
    double own = 0, copy = 0;
    size_t near = 0;
    gpu_ops()->ceilings(d, &own, &copy, &near);
    uint64_t version = 0;
    char why[256] = "";
    bool library = gpu_ops()->products(d, CUDA_PRODUCTS_ANY, &version, why) == 0;
    json_t *j = json_object(), *list = json_array();
    json_put(j, "own_matmul_flop_per_s", json_integer((json_int_t)own));
    json_put(j, "copy_bytes_per_s", json_integer((json_int_t)copy));
    json_put(j, "cublaslt_version", library ? json_integer((json_int_t)version) : json_text_c(why));
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, product_json(d, shapes[i], library));
    json_put(j, "products", list);
    json_put(j, "draws", draws_json(d, is_small ? 700 : 128256));
    gpu_print(j);
    const char *failure = gpu_ops()->failure(d);
    if (failure != NULL) fprintf(stderr, "%s\n", failure);
    bool measured = failure == NULL && own > 0 && copy > 0;
    gpu_ops()->close(d);
    return !measured;
}

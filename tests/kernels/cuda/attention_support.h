// Sequences with their KV pages on the device, calls of the attention kernels,
// and attention of one row in double precision.
#ifndef LACUNA_TESTS_KERNELS_CUDA_ATTENTION_SUPPORT_H
#define LACUNA_TESTS_KERNELS_CUDA_ATTENTION_SUPPORT_H

#include "tests/kernels/cuda/device_support.h"

#include "kernels/cuda/attention.h"

typedef cudaError_t attention_kernel(cudaStream_t, const struct attention_call *);

#define DEVICE_SEQUENCE_PAGES 6

// q, k and v of every position as bf16, and pages of two layers, the second of
// which is used. Slots that were never written hold NaNs.
struct device_sequence {
    struct attention_shape shape;
    uint32_t length, pages;
    uint16_t *q, *k, *v; // [length][H][E], [length][G][E] twice
    uint16_t *host[DEVICE_SEQUENCE_PAGES];
    void *page[DEVICE_SEQUENCE_PAGES], *list;
};

static inline size_t device_sequence_layer(const struct attention_shape *s) {
    return (size_t)2 * s->G * ATTENTION_PAGE * s->E; // elements
}

static inline struct attention_shape shape_of(uint32_t H, uint32_t G, uint32_t E, uint32_t window,
                                              double softcap) {
    struct attention_shape s = {
        .H = H, .G = G, .E = E, .scale = 1.0 / sqrt(E), .window = window, .softcap = softcap};
    s.page_offset = device_sequence_layer(&s) * sizeof(uint16_t);
    return s;
}

static inline uint16_t *device_sequence_random(struct rng *r, size_t n, float size) {
    uint16_t *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = num_bf16(ops_normal(r) * size);
    return x;
}

// Random q, k, v; no key is in the pages yet. `size` widens the scores.
static inline struct device_sequence
device_sequence_make(struct rng *r, struct attention_shape shape, uint32_t length, float size) {
    struct device_sequence s = {.shape = shape, .length = length};
    s.pages = (length + ATTENTION_PAGE - 1) / ATTENTION_PAGE;
    assert_true(s.pages <= DEVICE_SEQUENCE_PAGES);
    s.q = device_sequence_random(r, (size_t)length * shape.H * shape.E, size);
    s.k = device_sequence_random(r, (size_t)length * shape.G * shape.E, 1.0f);
    s.v = device_sequence_random(r, (size_t)length * shape.G * shape.E, 1.0f);
    size_t bytes = 2 * device_sequence_layer(&shape) * sizeof(uint16_t);
    for (uint32_t p = 0; p < s.pages; p++) {
        s.host[p] = malloc(bytes);
        assert_non_null(s.host[p]);
        memset(s.host[p], 0xff, bytes);
        s.page[p] = device_copy(s.host[p], bytes);
    }
    s.list = device_copy(s.page, sizeof s.page);
    return s;
}

static inline void device_sequence_free(struct device_sequence *s) {
    for (uint32_t p = 0; p < s->pages; p++) {
        free(s->host[p]);
        cudaFree(s->page[p]);
    }
    cudaFree(s->list);
    free(s->q);
    free(s->k);
    free(s->v);
}

// Puts K and V of positions [from, to) into the pages.
static inline void device_sequence_append(struct device_sequence *s, uint32_t from, uint32_t to) {
    uint32_t G = s->shape.G, E = s->shape.E;
    size_t layer = device_sequence_layer(&s->shape);
    for (uint32_t t = from; t < to; t++) {
        uint16_t *page = s->host[t / ATTENTION_PAGE] + layer;
        for (uint32_t g = 0; g < G; g++) {
            size_t slot = ((size_t)g * ATTENTION_PAGE + t % ATTENTION_PAGE) * E;
            memcpy(page + slot, s->k + ((size_t)t * G + g) * E, E * sizeof *page);
            memcpy(page + layer / 2 + slot, s->v + ((size_t)t * G + g) * E, E * sizeof *page);
        }
    }
    for (uint32_t p = from / ATTENTION_PAGE; p * ATTENTION_PAGE < to; p++)
        ASSERT_CUDA(cudaMemcpy(s->page[p], s->host[p], 2 * layer * sizeof(uint16_t),
                               cudaMemcpyHostToDevice));
    ASSERT_CUDA(cudaDeviceSynchronize()); // kernels may run in streams that do not wait
}

// Rows [from, to) of a sequence, whose keys are in the pages, with ranges to
// watch for the rows [watch_from, watch_to) of the sequence.
struct attend {
    const struct device_sequence *s;
    uint32_t from, to;
    struct attention_key_range ranges[4];
    uint32_t count, watch_from, watch_to;
    float *shares; // out: [watched][H][count], to be freed; NULL: nothing is watched
};

// Attends with `kernel` to all spans in one call. Returns bf16 [rows][H][E] in
// the order of the spans; *bad_row becomes the kernel's word.
static inline uint16_t *attend(attention_kernel *kernel, struct attend *spans, uint32_t count,
                               uint32_t *bad_row) {
    enum { MOST = 8 };
    struct attention_shape shape = spans[0].s->shape;
    size_t width = (size_t)shape.H * shape.E, ld = width + 8, rows = 0, at = 0;
    struct attention_span span[MOST] = {{0}};
    struct attention_watch watch[MOST] = {{0}};
    struct attention_limits limits = {.spans = count};
    assert_true(count <= MOST);
    for (uint32_t i = 0; i < count; i++) rows += spans[i].to - spans[i].from;
    uint16_t *q = calloc(rows * ld, sizeof *q);
    assert_non_null(q);
    for (uint32_t i = 0; i < count; i++) {
        struct attend *s = &spans[i];
        uint32_t n = s->to - s->from;
        span[i] = (struct attention_span){.first_row = (uint32_t)at,
                                          .rows = n,
                                          .first_position = s->from,
                                          .watch = s->count > 0 ? i : ATTENTION_UNWATCHED,
                                          .pages = s->s->list};
        for (uint32_t t = 0; t < n; t++)
            memcpy(q + (at + t) * ld, s->s->q + (s->from + t) * width, width * sizeof *q);
        at += n;
        if (n > limits.rows) limits.rows = n;
        if (s->to > limits.keys) limits.keys = s->to;
        if (s->count == 0) continue;
        if (s->count > limits.ranges) limits.ranges = s->count;
        uint32_t watched = s->watch_to - s->watch_from;
        watch[i] = (struct attention_watch){
            .ranges = device_copy(s->ranges, sizeof s->ranges),
            .count = s->count,
            .first_row = s->watch_from - s->from,
            .rows = watched,
            .shares = device_blank((size_t)watched * shape.H * s->count * sizeof(float))};
    }
    uint32_t none = UINT32_MAX;
    struct attention_call call = {.shape = shape,
                                  .limits = limits,
                                  .spans = device_copy(span, sizeof span),
                                  .watches = device_copy(watch, sizeof watch),
                                  .q = device_copy(q, rows * ld * sizeof *q),
                                  .ldq = (uint32_t)ld,
                                  .out = device_blank(rows * width * sizeof *q),
                                  .ldout = (uint32_t)width,
                                  .bad_row = device_copy(&none, sizeof none)};
    call.workspace = device_blank(attention_decode_workspace(&shape, &limits));
    ASSERT_CUDA(kernel(NULL, &call));
    uint16_t *out = device_take(call.out, rows * width * sizeof *out);
    uint32_t *bad = device_take(call.bad_row, sizeof *bad);
    *bad_row = *bad;
    for (uint32_t i = 0; i < count; i++) {
        if (spans[i].count == 0) continue;
        spans[i].shares = device_take(watch[i].shares, (size_t)watch[i].rows * shape.H *
                                                           watch[i].count * sizeof(float));
        cudaFree((void *)watch[i].ranges);
    }
    void *used[] = {(void *)call.spans, (void *)call.watches, (void *)call.q, call.workspace};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++) cudaFree(used[i]);
    free(bad);
    free(q);
    return out;
}

// Rows [from, to) of one sequence, alone and unwatched, without a bad row.
static inline uint16_t *attend_alone(attention_kernel *kernel, const struct device_sequence *s,
                                     uint32_t from, uint32_t to) {
    struct attend span = {.s = s, .from = from, .to = to};
    uint32_t bad;
    uint16_t *out = attend(kernel, &span, 1, &bad);
    assert_int_equal(bad, UINT32_MAX);
    return out;
}

// Attention of row t and head h in double precision: E outputs, the weighted
// mean of |v| of each in `size`, and the share on a range.
static inline double double_reference(const struct device_sequence *s, uint32_t t, uint32_t h,
                                      struct attention_key_range range, double *out, double *size) {
    const struct attention_shape *a = &s->shape;
    uint32_t g = h / (a->H / a->G), E = a->E, first = 0;
    if (a->window != 0 && t >= a->window) first = t - a->window + 1;
    double *score = calloc(t + 1, sizeof *score), max = -INFINITY, sum = 0, watched = 0;
    assert_non_null(score);
    for (uint32_t j = first; j <= t; j++) {
        const uint16_t *q = s->q + ((size_t)t * a->H + h) * E;
        const uint16_t *k = s->k + ((size_t)j * a->G + g) * E;
        for (uint32_t e = 0; e < E; e++)
            score[j] += (double)num_from_bf16(q[e]) * (double)num_from_bf16(k[e]);
        score[j] *= a->scale;
        if (a->softcap != 0) score[j] = a->softcap * tanh(score[j] / a->softcap);
        if (score[j] > max) max = score[j];
    }
    for (uint32_t e = 0; e < E; e++) out[e] = size[e] = 0;
    for (uint32_t j = first; j <= t; j++) {
        double p = exp(score[j] - max);
        sum += p;
        if (j >= range.first && j < range.end) watched += p;
        for (uint32_t e = 0; e < E; e++) {
            double v = (double)num_from_bf16(s->v[((size_t)j * a->G + g) * E + e]);
            out[e] += p * v;
            size[e] += p * fabs(v);
        }
    }
    for (uint32_t e = 0; e < E; e++) {
        out[e] /= sum;
        size[e] /= sum;
    }
    free(score);
    return watched / sum;
}

#endif

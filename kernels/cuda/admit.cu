#include "kernels/cuda/admit.h"

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/probe.h"
#include "kernels/cuda/stopwatch.cuh"

struct probes {
    struct cuda_device *d;
    struct gemm_call own; // x, w, and y by the own kernels
    float *y;             // by a candidate
    uint32_t *different;
};

static size_t result_words(const struct probes *p) {
    return (size_t)p->own.R * p->own.N;
}

static void probes_close(struct probes *p) {
    device_release(p->d, (void *)p->own.x);
    device_release(p->d, (void *)p->own.w);
    device_release(p->d, p->own.y);
    device_release(p->d, p->y);
    device_release(p->d, p->different);
}

static bool probes_open(struct cuda_device *d, const struct cuda_choice *c, struct probes *p) {
    uint32_t ld = (c->K + GEMM_ROW_ALIGNMENT - 1) / GEMM_ROW_ALIGNMENT * GEMM_ROW_ALIGNMENT;
    *p = {};
    p->d = d;
    p->own.R = c->rows;
    p->own.N = p->own.ldy = c->N;
    p->own.K = c->K;
    p->own.ldx = p->own.ldw = ld;
    void *x, *w = NULL, *own = NULL, *y = NULL, *different = NULL;
    bool done = device_alloc(d, (size_t)c->rows * ld * sizeof(uint16_t), &x) == 0 &&
                device_alloc(d, (size_t)c->N * ld * sizeof(uint16_t), &w) == 0 &&
                device_alloc(d, result_words(p) * sizeof(float), &own) == 0 &&
                device_alloc(d, result_words(p) * sizeof(float), &y) == 0 &&
                device_alloc(d, sizeof *p->different, &different) == 0;
    p->own.x = x;
    p->own.w = w;
    p->own.y = (float *)own;
    p->y = (float *)y;
    p->different = (uint32_t *)different;
    if (!done) probes_close(p);
    return done;
}

// The operands, and what the own kernels make of them.
static bool set_probe(struct probes *p, enum cuda_probe kind) {
    struct cuda_device *d = p->d;
    const struct gemm_call *c = &p->own;
    return device_check(d, probe_rows_launch(d->stream, kind, c->R, c->K, c->ldx, (uint16_t *)c->x),
                        "probes") &&
           device_check(d,
                        probe_weights_launch(d->stream, kind, c->N, c->K, c->ldw, (uint16_t *)c->w),
                        "probes") &&
           device_check(d, gemm_launch(d->stream, c), "probes");
}

enum outcome { EQUAL, DIFFERENT, FAILED };

static enum outcome compare(struct probes *p, const struct lt_product *candidate) {
    struct cuda_device *d = p->d;
    uint32_t different = 1;
    size_t words = result_words(p);
    device_check(d, cudaMemsetAsync(p->y, 0xff, words * sizeof *p->y, d->stream), "probes");
    device_check(d, cudaMemsetAsync(p->different, 0, sizeof different, d->stream), "probes");
    if (lt_product_run(candidate, d->stream, p->own.x, p->own.w, p->y, NULL) != cudaSuccess) {
        (void)cudaGetLastError();
        return FAILED;
    }
    device_check(d, probe_compare_launch(d->stream, p->own.y, p->y, words, p->different), "probes");
    device_download(d, &different, p->different, sizeof different);
    if (d->failed != cudaSuccess) return FAILED;
    return different == 0 ? EQUAL : DIFFERENT;
}

// Closes the candidates that differ, and counts in c what refused them and how many are left.
static void sift(struct probes *p, struct lt_product **candidates, int count,
                 struct cuda_choice *c) {
    for (int kind = 0; kind < CUDA_PROBES && set_probe(p, (enum cuda_probe)kind); kind++)
        for (int i = 0; i < count; i++) {
            enum outcome outcome = candidates[i] != NULL ? compare(p, candidates[i]) : EQUAL;
            if (outcome == EQUAL) continue;
            c->refused[kind] += outcome == DIFFERENT;
            lt_product_close(candidates[i]);
            candidates[i] = NULL;
        }
    for (int i = 0; i < count; i++)
        c->equal += candidates[i] != NULL && p->d->failed == cudaSuccess;
    c->failed = count - c->equal;
    for (int refused : c->refused) c->failed -= refused;
}

// The fastest of those that are left; -1: none, or the own kernels are as fast.
static int take_fastest(struct probes *p, struct lt_product *const *candidates, int count,
                        struct cuda_choice *c) {
    struct stopwatch w;
    int best = -1;
    if (stopwatch_open(p->d, &w)) {
        c->own_ms = stopwatch_fastest(&w, [&] { return gemm_launch(p->d->stream, &p->own); });
        for (int i = 0; i < count; i++) {
            if (candidates[i] == NULL) continue;
            float ms = stopwatch_fastest(&w, [&] {
                return lt_product_run(candidates[i], p->d->stream, p->own.x, p->own.w, p->y, NULL);
            });
            if (best >= 0 && ms >= c->ms) continue;
            best = i;
            c->ms = ms;
        }
    }
    stopwatch_close(&w);
    return p->d->failed == cudaSuccess && c->ms < c->own_ms ? best : -1;
}

void admit_choose(struct cuda_device *d, struct lt *lt, struct cuda_choice *c) {
    struct lt_shape shape = {c->rows, c->N, c->K};
    struct cuda_algorithm algorithms[LT_CANDIDATES];
    struct lt_product *candidates[LT_CANDIDATES];
    struct probes p;
    *c = {};
    c->rows = shape.rows;
    c->N = shape.N;
    c->K = shape.K;
    if (c->N % LT_OUTPUTS != 0 || !probes_open(d, c, &p)) return;
    c->offered = lt_candidates(lt, &shape, false, algorithms);
    for (int i = 0; i < c->offered; i++)
        candidates[i] = lt_product_open(lt, &shape, &algorithms[i]);
    sift(&p, candidates, c->offered, c);
    int best = c->equal > 0 ? take_fastest(&p, candidates, c->offered, c) : -1;
    if (best >= 0) {
        c->admitted = true;
        c->algorithm = algorithms[best];
    }
    for (int i = 0; i < c->offered; i++) lt_product_close(candidates[i]);
    probes_close(&p);
}

bool admit_holds(struct cuda_device *d, struct lt *lt, const struct cuda_choice *c) {
    struct lt_shape shape = {c->rows, c->N, c->K};
    struct lt_product *candidate = lt_product_open(lt, &shape, &c->algorithm);
    struct cuda_choice now = {};
    struct probes p;
    if (candidate == NULL) return false;
    if (probes_open(d, c, &p)) {
        sift(&p, &candidate, 1, &now);
        probes_close(&p);
    }
    lt_product_close(candidate);
    return now.equal == 1;
}

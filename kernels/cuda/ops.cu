// The table that the plug-in exports.
#include "kernels/cuda/ops.h"

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/sample.h"

#include <string.h>

#define SAMPLE_LIST_BYTES (CUDA_RESULT_ROWS * sizeof(struct sample_row))

#ifndef LACUNA_CUDA_BUILD
#define LACUNA_CUDA_BUILD "emulated"
#endif

// One row of a sequence is sampled from.
static uint32_t sampled_rows(const struct cuda_limits *l) {
    return l->sequences < CUDA_RESULT_ROWS ? l->sequences : CUDA_RESULT_ROWS;
}

static uint64_t scratch_bytes(const struct cuda_limits *l) {
    return pass_bytes(l) + weights_bytes() + products_bytes(l->rows) +
           argmax_workspace(CUDA_RESULT_ROWS, l->outputs) +
           sample_workspace(sampled_rows(l), l->outputs) + SAMPLE_LIST_BYTES;
}

static int prepare(struct cuda_device *d, const struct cuda_limits *l) {
    bool done = area_reserve(d, &d->partial, argmax_workspace(CUDA_RESULT_ROWS, l->outputs)) &&
                area_reserve(d, &d->sampling, sample_workspace(sampled_rows(l), l->outputs)) &&
                area_reserve(d, &d->sampled, SAMPLE_LIST_BYTES) &&
                area_reserve(d, &d->sampled_host, SAMPLE_LIST_BYTES);
    return done && pass_prepare(d, l) == 0 ? 0 : -1;
}

static void embed(struct cuda_device *d, const struct cuda_stored *rows, float *x) {
    struct stored_rows from = {rows->type, rows->rows, rows->K, rows->row_bytes,
                               (const uint8_t *)rows->data};
    device_check(d, embed_launch(d->stream, &from, d->pass.ids, d->pass.rows, x), "embedding");
}

// The frequencies are those of the model, pass after pass.
static void angles(struct cuda_device *d, const double *frequencies, uint32_t rotary,
                   float *cos_sin) {
    size_t bytes = rotary / 2 * sizeof *frequencies;
    bool known = bytes <= d->frequencies.bytes;
    if (!known &&
        (!area_reserve(d, &d->frequencies, bytes) || !area_reserve(d, &d->frequencies_host, bytes)))
        return;
    if (!known || memcmp(d->frequencies_host.p, frequencies, bytes) != 0) {
        device_sync(d);
        memcpy(d->frequencies_host.p, frequencies, bytes);
        device_upload(d, d->frequencies.p, d->frequencies_host.p, bytes);
    }
    device_check(d,
                 angles_launch(d->stream, (const double *)d->frequencies.p, rotary,
                               d->pass.positions, d->pass.rows, cos_sin),
                 "angles");
}

static void gather(struct cuda_device *d, const void *from, size_t row_bytes, void *to) {
    uint32_t words = (uint32_t)(row_bytes / sizeof(uint32_t));
    device_check(d, gather_launch(d->stream, from, words, d->pass.wanted, d->pass.wanted_count, to),
                 "wanted rows");
}

static void rmsnorm(struct cuda_device *d, const float *x, uint32_t R, uint32_t D,
                    const float *weight, float epsilon, void *out, uint32_t ldout) {
    device_check(d, rmsnorm_launch(d->stream, x, R, D, weight, epsilon, out, ldout), "norm");
}

static void rope(struct cuda_device *d, const float *x, uint32_t ldx, uint32_t R, uint32_t heads,
                 uint32_t E, uint32_t rotary, bool neighbours, const float *cos_sin, void *out,
                 uint32_t ldout) {
    device_check(
        d, rope_launch(d->stream, x, ldx, R, heads, E, rotary, neighbours, cos_sin, out, ldout),
        "rotation");
}

static void round_rows(struct cuda_device *d, const float *x, uint32_t ldx, uint32_t R, uint32_t n,
                       void *out, uint32_t ldout) {
    device_check(d, round_launch(d->stream, x, ldx, R, n, out, ldout), "rounding");
}

static void gate(struct cuda_device *d, bool gelu, const float *gate_up, uint32_t ld, uint32_t R,
                 uint32_t F, void *out, uint32_t ldout) {
    device_check(d, gate_launch(d->stream, gelu, gate_up, ld, R, F, out, ldout), "gate");
}

// In place of the largest, where a token is drawn. The caller waits, so that the list may change
// afterwards.
static void sample(struct cuda_device *d, const float *z, uint32_t R, uint32_t n,
                   const struct token_draw *draws, int32_t *results) {
    uint32_t count = 0;
    for (uint32_t r = 0; r < R; r++) count += draws[r].temperature > 0;
    if (count == 0 || !area_reserve(d, &d->sampling, sample_workspace(count, n)) ||
        !area_reserve(d, &d->sampled, SAMPLE_LIST_BYTES) ||
        !area_reserve(d, &d->sampled_host, SAMPLE_LIST_BYTES))
        return;
    struct sample_row *list = (struct sample_row *)d->sampled_host.p, *next = list;
    for (uint32_t r = 0; r < R; r++)
        if (draws[r].temperature > 0) *next++ = {draws[r], r};
    device_check(d,
                 cudaMemcpyAsync(d->sampled.p, list, count * sizeof *list, cudaMemcpyHostToDevice,
                                 d->stream),
                 "draws");
    device_check(d,
                 sample_launch(d->stream, z, n, (const struct sample_row *)d->sampled.p, count,
                               d->sampling.p, results),
                 "sampling");
}

static void draw_tokens(struct cuda_device *d, const float *z, uint32_t R, uint32_t n,
                        const struct token_draw *draws, int32_t *out) {
    if (!area_reserve(d, &d->partial, argmax_workspace(R, n))) return;
    int32_t *results = (int32_t *)pass_results(d);
    device_check(d, argmax_launch(d->stream, z, R, n, d->partial.p, results), "argmax");
    sample(d, z, R, n, draws, results);
    const void *told = pass_told(d);
    if (told != NULL) memcpy(out, told, R * sizeof *out);
}

static void log_sum_exp(struct cuda_device *d, const float *z, uint32_t R, uint32_t n, float *out) {
    float *results = (float *)pass_results(d);
    device_check(d, log_sum_exp_launch(d->stream, z, R, n, results), "log-sum-exp");
    const void *told = pass_told(d);
    if (told != NULL) memcpy(out, told, R * sizeof *out);
}

static const struct cuda_ops OPS = {
    CUDA_OPS_VERSION,
    LACUNA_CUDA_BUILD,
    device_open,
    device_close,
    device_failure,
    attention_supports,
    scratch_bytes,
    prepare,
    device_memory_free,
    device_alloc,
    device_release,
    device_upload,
    device_download,
    device_copy,
    device_sync,
    weights_unpack,
    products_open,
    products_choose,
    products_recall,
    weights_matmul,
    weights_matmul_stored,
    pass_begin,
    graphs_play,
    graphs_use,
    embed,
    angles,
    gather,
    rmsnorm,
    rope,
    round_rows,
    gate,
    pass_kv_append,
    pass_attention,
    draw_tokens,
    log_sum_exp,
    pass_fault,
    ceilings_measure,
};

extern "C" __attribute__((visibility("default"))) const struct cuda_ops *lacuna_cuda_ops(void) {
    return &OPS;
}

// A device in use: its stream, and memory that its ops share. Internal to the plug-in.
#ifndef LACUNA_KERNELS_CUDA_DEVICE_H
#define LACUNA_KERNELS_CUDA_DEVICE_H

#include "kernels/cuda/ops.h"

#include <cuda_runtime_api.h>

// Memory that is taken once, for the largest call that was planned, and again only for a larger
// one.
struct cuda_area {
    void *p;
    size_t bytes;
    bool pinned; // host memory that copies run beside the program from and to
};

// Spans by the kernel that they attend by: `prefill` takes those of many rows, `decode` of few.
struct cuda_span_lists {
    const struct attention_span *many, *few; // device
    uint32_t many_count, few_count;
    uint32_t many_rows, few_rows, many_keys, few_keys; // most of a span
};

// What `begin` made of a pass (kernels/cuda/pass.cu).
struct cuda_pass_state {
    struct cuda_area host, device; // the same bytes
    cudaEvent_t copied;            // the host's copy may change
    uint32_t rows, wanted_count;
    const int32_t *ids; // device
    const uint32_t *positions;
    const uint32_t *wanted; // device
    uint32_t span_count;
    const struct attention_span *spans;    // device, of all rows in order
    struct cuda_span_lists all, some;      // of the pass's spans, of its wanted spans
    const struct attention_watch *watches; // device, [layers][watch_count]
    uint32_t watch_count, ranges;          // ranges: most of one watch
};

// What decides where the lists of a decoding pass stand and which launches, grids and arguments its
// ops have: passes of one form differ in what the lists say, and in nothing else.
struct cuda_pass_form {
    uint32_t rows, wanted, watches, ranges;
    uint32_t keys, wanted_keys; // that grids are made for
};

struct cuda_device {
    int number;
    cudaStream_t stream;
    cudaError_t failed; // the first
    char failure[256];
    struct cuda_pass_state pass;
    struct cuda_area weights;                       // of a stored matrix, as bf16
    struct cuda_area staging;                       // of rows on their way from the file
    struct cuda_area workspace;                     // of attention
    struct cuda_area frequencies, frequencies_host; // of the rotation, as they were given last
    struct cuda_area told, told_host;               // what the host reads of a pass: see pass.cu
    bool told_now;                                  // the host's copy is that of the device
    struct cuda_area bounce;                        // pinned, of downloads
    struct cuda_area partial, sampling;             // of argmax, of sampling
    struct cuda_area sampled, sampled_host;         // list of the rows that are sampled from
    struct cuda_limits limits;
    struct cuda_product_list *products; // kernels/cuda/products.cu; NULL: the own kernels alone
    struct cuda_graphs *graphs;         // kernels/cuda/graphs.cu
};

#define CUDA_FAULT_KINDS 2
// What a pass tells the host stands together, so that one copy brings it: faults [layers]
// [CUDA_FAULT_KINDS], the least bad row or UINT32_MAX, and behind them the results of draw or
// log_sum_exp, [CUDA_RESULT_ROWS].

// Notes the first failure, or, of a pass that is being recorded, that the recording is spoilt.
// Returns whether the call succeeded.
bool device_check(struct cuda_device *d, cudaError_t result, const char *what);

// At least so many bytes; false, and a failure, when there are none.
bool area_reserve(struct cuda_device *d, struct cuda_area *a, size_t bytes);
void area_release(struct cuda_device *d, struct cuda_area *a);

int device_open(struct cuda_device **out, struct cuda_facts *facts, char why[256]);
void device_close(struct cuda_device *d);
const char *device_failure(struct cuda_device *d);
int device_memory_free(struct cuda_device *d, uint64_t *bytes);
int device_alloc(struct cuda_device *d, size_t bytes, void **out);
void device_release(struct cuda_device *d, void *p);
void device_upload(struct cuda_device *d, void *to, const void *host, size_t bytes);
void device_download(struct cuda_device *d, void *host, const void *from, size_t bytes);
void device_copy(struct cuda_device *d, void *to, const void *from, size_t bytes);
void device_sync(struct cuda_device *d);

// kernels/cuda/pass.cu
uint64_t pass_bytes(const struct cuda_limits *l);
int pass_prepare(struct cuda_device *d, const struct cuda_limits *l);
void pass_close(struct cuda_device *d);
void pass_begin(struct cuda_device *d, const struct cuda_pass *pass);
// The form of the pass that was begun; false: it reads more than one row of a sequence.
bool pass_form(const struct cuda_device *d, struct cuda_pass_form *out);
void pass_kv_append(struct cuda_device *d, const struct cuda_attention *a, const void *k,
                    const void *v, uint32_t ld);
void pass_attention(struct cuda_device *d, const struct cuda_attention *a, bool wanted,
                    const void *q, uint32_t ldq, void *out, uint32_t ldout);
void *pass_results(struct cuda_device *d); // device
// Copies what was told to the host; the results, or NULL after a failure. Waits.
const void *pass_told(struct cuda_device *d);
bool pass_fault(struct cuda_device *d, enum cuda_fault_kind *kind, uint32_t *layer, uint32_t *row);

// kernels/cuda/graphs.cu
int graphs_open(struct cuda_device *d);
void graphs_close(struct cuda_device *d);
void graphs_use(struct cuda_device *d, bool on);
const char *graphs_play(struct cuda_device *d, void (*work)(void *context), void *context);
bool graphs_recording(const struct cuda_device *d);
// Of the pass that is being recorded.
void graphs_spoil(struct cuda_device *d, const char *why);
// Forgets all recordings: memory that they may refer to is given back.
void graphs_drop(struct cuda_device *d);

// kernels/cuda/weights.cu
uint64_t weights_bytes(void);
bool weights_unpack(struct cuda_device *d, const struct cuda_stored *rows, void *to, uint32_t ld);
void weights_matmul(struct cuda_device *d, const void *x, uint32_t ldx, uint32_t R, const void *w,
                    uint32_t ldw, uint32_t N, uint32_t K, const float *bias, bool add, float *y,
                    uint32_t ldy);
void weights_matmul_stored(struct cuda_device *d, const void *x, uint32_t ldx, uint32_t R,
                           const struct cuda_stored *w, const float *bias, bool add, float *y,
                           uint32_t ldy);

// kernels/cuda/ceilings.cu
void ceilings_measure(struct cuda_device *d, double *flop_per_s, double *bytes_per_s,
                      size_t *near_bytes);

#endif

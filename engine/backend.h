// The fine seam: one table of ops per device, all mandatory. The layer loop (engine/forward.c)
// exists once and calls these in order; each op of a backend can be compared with the same op of
// another.
//
// Device memory is an address that only the backend may follow; bytes may be added to it. On the
// CPU it is ordinary memory. Ops may be queued; `download` and the ops that return a result wait
// for them. What a pass through the layers is about (its rows, spans and wanted rows) is told once,
// by `begin`; the ops behind it refer to it, so that nothing but addresses passes from layer to
// layer. Shape letters, operands and the arithmetic: kernels/cpu/ops.h and NUMERICS.md.
#ifndef LACUNA_ENGINE_BACKEND_H
#define LACUNA_ENGINE_BACKEND_H

#include "engine/base/err.h"
#include "engine/base/str.h"
#include "kernels/draw.h"
#include "kernels/quant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BACKEND_PAGE 512 // positions of a KV page = keys of an attention block

enum backend_storage {
    BACKEND_UNPACKED, // operands, re-ordered for speed
    BACKEND_STORED,   // the file's codes and scales, re-ordered, unpacked for each call; same bits.
                      // Formats that are not quantized are held unpacked
    BACKEND_BOTH,     // unpacked and stored: each call takes the faster one (matrix_few_rows)
    BACKEND_ROWS      // rows as they stand in the file, for `embed` alone
};

// Of a matrix that products are made with: N outputs of K elements.
struct backend_shape {
    uint32_t N, K;
};

// Rows of a matrix as they stand in the model file. BACKEND_ROWS needs the bytes as long as it
// lives, the others only while they load.
struct backend_part {
    struct str name; // tensor, for messages
    enum tensor_type type;
    uint32_t rows;
    const void *data; // rows x K elements on the host
};
#define BACKEND_PARTS 3 // q, k, v

struct backend_matrix; // the backend's own

const char *backend_storage_name(enum backend_storage storage); // "unpacked"

// Ranges of keys whose share of the attention is wanted, for some rows of a span: the sum of the
// unrounded weights over a range's visible keys by that over all visible keys (NUMERICS.md,
// Evidence). Ranges are on the host, shares on the device: those of layer 0, and of each next layer
// the pass's `shares_stride` numbers further. Watching changes no bit of the attention's output.
struct backend_key_range {
    uint32_t first, end; // absolute positions [first, end); may lie anywhere
};
struct backend_watch {
    const struct backend_key_range *ranges;
    uint32_t count;
    uint32_t row;  // the one that is watched, counted within the span: its last
    float *shares; // [H][count]
};

// Consecutive rows of one sequence that attend together.
struct backend_span {
    uint32_t first_row;
    uint32_t rows; // >= 1
    uint32_t first_position;
    uint8_t *const *pages; // device addresses of the sequence's pages; the list is on the host
    const struct backend_watch *watch; // NULL: nothing is watched
};

// The rows of one pass, from one or several sequences. Lists are on the host and stay as they are
// until the pass is over.
struct backend_pass {
    uint32_t rows;
    const int32_t *ids;        // [rows]
    const uint32_t *positions; // [rows] absolute
    const struct backend_span *spans;
    uint32_t span_count;
    // Some of the rows, ascending, and the spans that hold exactly these.
    const uint32_t *wanted; // [wanted_count]
    uint32_t wanted_count;
    const struct backend_span *wanted_spans;
    uint32_t wanted_span_count;
    size_t shares_stride;
};

// Angles of the rotation: cpu_rope_angles.
struct backend_rotation {
    double base;
    uint32_t rotary;
    const float *factors; // [rotary/2] on the host, or NULL
};

struct backend_attention {
    uint32_t layer;
    uint32_t H, G, E;
    double scale, softcap; // softcap 0: none
    uint32_t window;       // 0: full
    size_t page_offset;    // of this layer in a page
};

// What went wrong first, by layer, then in the order of the kinds, then by row.
enum backend_fault_kind {
    BACKEND_FAULT_KV,    // a key or value is not finite
    BACKEND_FAULT_SCORE, // an attention score is not finite
    BACKEND_FAULT_DEVICE // the device failed; `text` says how
};
struct backend_fault {
    enum backend_fault_kind kind;
    uint32_t layer, row;
    const char *text;
};

// Sizes of the largest calls; a backend plans its working memory from them.
struct backend_limits {
    uint32_t rows, K, N, H, G, E, L;
    uint32_t sequences, positions; // of a pass; of a sequence
    uint32_t ranges;               // of all watches of a pass
};

struct backend_options {
    const char *name;     // "auto", "cpu", "cuda"
    const char *numerics; // "bf16-1", "f32"
    const char *op_table; // of the CPU; NULL: the fastest that proves itself; "c", "avx2", ...
    int threads;          // 0: as many as the process may use
    const struct cuda_ops *cuda; // NULL: from the plug-in
    const char *products; // on a GPU: "own" kernels alone, "admitted" ones of cuBLASLt beside them
                          // (the same bits), "any" of it (other bits); NULL: "auto", as is fastest
    const char *cache;    // folder of what later runs may use again; NULL: none
    uint32_t E;           // elements of the heads that it must serve; 0: of any
    bool no_graphs;       // on a GPU: decoding passes are launched op by op, not replayed. The same
                          // bits; to compare speed
};

struct backend_ceilings {
    double flop_per_s;       // as its matrix products use arithmetic; 0: no measure
    double read_bytes_per_s; // memory of the size that was given, so caches count as they do there
    size_t near_bytes;       // the caches that its cores have for themselves, together
};

struct backend;

struct backend_ops {
    void (*close)(struct backend *b);

    // Working memory for calls up to these sizes: how much, and taking it (before the first op).
    uint64_t (*scratch_bytes)(struct backend *b, const struct backend_limits *limits);
    int (*prepare)(struct backend *b, const struct backend_limits *limits, struct err *e);
    // What the device can still give, now.
    int (*memory_free_bytes)(struct backend *b, uint64_t *out, struct err *e);

    // Told once, before other memory is taken: the shapes of the matrices that products of many
    // rows will be made with. A backend may try kernels.
    void (*expect)(struct backend *b, const struct backend_shape *shapes, int count);

    int (*alloc)(struct backend *b, size_t bytes, const char *what, void **out, struct err *e);
    void (*free)(struct backend *b, void *memory); // NULL is allowed
    void (*upload)(struct backend *b, void *to, const void *host, size_t bytes);
    void (*download)(struct backend *b, void *host, const void *from, size_t bytes);
    void (*copy)(struct backend *b, void *to, const void *from, size_t bytes); // device to device
    void (*sync)(struct backend *b);

    // y = x W^T with W[N][K], N = the rows of all parts. A NaN or an infinity names the tensor.
    int (*matrix_load)(struct backend *b, const struct backend_part *parts, int count, uint32_t K,
                       enum backend_storage storage, struct backend_matrix **out, struct err *e);
    void (*matrix_free)(struct backend *b, struct backend_matrix *m); // NULL is allowed
    // Calls of at most `rows` rows take the stored form of a matrix loaded as BACKEND_BOTH.
    void (*matrix_few_rows)(struct backend *b, struct backend_matrix *m, uint32_t rows);
    // Frees the stored form of a matrix that has both.
    void (*matrix_unpacked_only)(struct backend *b, struct backend_matrix *m);
    uint64_t (*matrix_bytes)(struct backend *b, const struct backend_part *parts, int count,
                             uint32_t K, enum backend_storage storage);
    // Bytes of K and V together of one layer in one page.
    size_t (*kv_layer_bytes)(struct backend *b, uint32_t G, uint32_t E);

    void (*begin)(struct backend *b, const struct backend_pass *pass);
    // Does work(context), which calls ops of the pass that was begun, none of which waits. A
    // backend may do again, without calling it, what it did for an earlier pass of the same form;
    // so with one context the calls and their operands follow from the pass's numbers of rows,
    // spans, wanted rows and watches alone.
    void (*play)(struct backend *b, void (*work)(void *context), void *context);
    // x[r] = dequantized fp32 row ids[r] of a matrix of one part, loaded as BACKEND_ROWS.
    void (*embed)(struct backend *b, const struct backend_matrix *rows, float *x);
    // cos_sin[r][rotary/2][2] of the positions of the pass.
    void (*angles)(struct backend *b, const struct backend_rotation *r, float *cos_sin);
    // to[i] = from[wanted[i]], rows of row_bytes.
    void (*gather)(struct backend *b, const void *from, size_t row_bytes, void *to);
    void (*rmsnorm)(struct backend *b, const float *x, uint32_t R, uint32_t D, const float *weight,
                    float epsilon, void *out, uint32_t ldout);
    void (*matmul)(struct backend *b, const void *x, uint32_t ldx, uint32_t R,
                   const struct backend_matrix *w, const float *bias, bool add, float *y,
                   uint32_t ldy);
    void (*rope)(struct backend *b, const float *x, uint32_t ldx, uint32_t R, uint32_t heads,
                 uint32_t E, uint32_t rotary, bool neighbours, const float *cos_sin, void *out,
                 uint32_t ldout);
    void (*round)(struct backend *b, const float *x, uint32_t ldx, uint32_t R, uint32_t n,
                  void *out, uint32_t ldout);
    // The next two are over the spans of the pass, or over its wanted spans. Values and scores that
    // are not finite are a fault of the pass.
    void (*kv_append)(struct backend *b, const struct backend_attention *a, const void *k,
                      const void *v, uint32_t ld);
    void (*attention)(struct backend *b, const struct backend_attention *a, bool wanted,
                      const void *q, uint32_t ldq, void *out, uint32_t ldout);
    void (*gate)(struct backend *b, bool gelu, const float *gate_up, uint32_t ld, uint32_t R,
                 uint32_t F, void *out, uint32_t ldout);
    // Row by row: the index that draws[r] (on the host) takes of n logits, -1 when one of them is
    // not finite.
    void (*draw)(struct backend *b, const float *z, uint32_t R, uint32_t n,
                 const struct token_draw *draws, int64_t *out);
    void (*log_sum_exp)(struct backend *b, const float *z, uint32_t R, uint32_t n, float *out);
    // Waits for all ops. True: one of this pass met a fault, and what they gave is worthless.
    bool (*fault)(struct backend *b, struct backend_fault *out);

    // What the device can do at most, measured now (milliseconds, and some readings of `bytes` at
    // `memory`, which is of this backend and was written before).
    void (*ceilings)(struct backend *b, const void *memory, size_t bytes,
                     struct backend_ceilings *out);
};

// A device beside the processor.
struct backend_device {
    char name[256];
    int capability;       // compute capability, 90 for 9.0
    char driver_name[64]; // "580.65.06", or ""
    int driver, runtime;  // CUDA versions, 13000 for 13.0
    int cublaslt;         // version, 130100 for 13.1.0; 0: it is not installed
    uint64_t memory_bytes;
};

struct backend {
    const struct backend_ops *ops;
    const char *name;                        // "cpu"
    const char *numerics;                    // id of the arithmetic, "bf16-1"
    const char *op_table;                    // "avx2"
    char note[512];                          // why `auto` came here, or ""
    const struct backend_device *device;     // NULL: the processor
    const struct backend_products *products; // what serves products (engine/backend_products.h), or
                                             // NULL
    uint32_t operand_bytes;
    uint32_t row_alignment; // row strides of operands are multiples of this many elements
    uint32_t pass_rows;     // of a pass that is not asked for otherwise
    int threads;
};

// The stride of operand rows of n elements, in elements.
uint32_t backend_row_stride(const struct backend *b, uint32_t n);

// `auto` takes the best device that is usable and says why in `note`; a name that cannot be served
// fails and says what is missing.
int backend_open(const struct backend_options *options, struct backend **out, struct err *e);
void backend_close(struct backend *b); // NULL is allowed

int backend_cpu_open(const struct backend_options *options, struct backend **out, struct err *e);
// The first GPU (engine/backend_plugin.h).
int backend_cuda_open(const struct backend_options *options, struct backend **out, struct err *e);

#endif

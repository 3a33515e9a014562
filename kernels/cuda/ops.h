// The GPU's ops, by NUMERICS.md: the table that engine/backend_cuda.c calls. Kernels live in a
// plug-in that is loaded when the program runs, so that one program runs everywhere; this header is
// all that the two know of each other.
//
// Shape letters and operands: kernels/cpu/ops.h. Operands are bf16, their rows a multiple of
// CUDA_ROW_ALIGNMENT elements apart and +0 behind their last element. Pointers are device addresses
// unless a comment says `host`. Ops are queued; the first one that fails is kept and told by
// `failure`, and what follows it is worthless.
#ifndef LACUNA_KERNELS_CUDA_OPS_H
#define LACUNA_KERNELS_CUDA_OPS_H

#include "kernels/draw.h"
#include "kernels/quant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_OPS_VERSION 6 // of this header
#define CUDA_OPS_SYMBOL "lacuna_cuda_ops"
#define CUDA_ROW_ALIGNMENT 64
#define CUDA_PAGE 512          // positions of a KV page
#define CUDA_CAPABILITY_MIN 80 // 8.0
#define CUDA_RESULT_ROWS 64    // of one call of draw or log_sum_exp
#define CUDA_GRAPHS_MOST 32    // recorded passes that are kept

struct cuda_device; // a device in use: its stream, working memory, first failure. One thread's

struct cuda_facts {
    char name[256];
    int capability;      // 90 for 9.0
    int driver, runtime; // CUDA versions, 13000 for 13.0
    int cublaslt;        // its version, 130100 for 13.1.0; 0: it is not installed
    int processors;
    uint64_t memory_bytes;
};

// Rows of a matrix as they stand in the model file.
struct cuda_stored {
    enum tensor_type type;
    uint32_t rows, K;
    size_t row_bytes;
    const void *data;
};

// Of a pass; as in engine/backend.h. Lists are on the host and stay until the next pass.
struct cuda_key_range {
    uint32_t first, end;
};
struct cuda_watch {
    const struct cuda_key_range *ranges; // host
    uint32_t count;
    float *shares; // [H][count] of layer 0, for the last row of the span
};
struct cuda_span {
    uint32_t first_row, rows, first_position;
    uint8_t *const *pages;          // host list of device addresses
    const struct cuda_watch *watch; // host, or NULL
};
struct cuda_pass {
    uint32_t rows;
    const int32_t *ids;        // host
    const uint32_t *positions; // host
    const struct cuda_span *spans, *wanted_spans;
    uint32_t span_count, wanted_span_count;
    const uint32_t *wanted; // host
    uint32_t wanted_count;
    size_t shares_stride; // of watches, from layer to layer
};

// An algorithm of cuBLASLt: what the library needs to run it again, and what it tells of it.
struct cuda_algorithm {
    uint64_t opaque[8];
    int32_t id, tile, stages;
};

// Operands that an algorithm is tried on, in this order, until it differs (kernels/cuda/probe.h).
enum cuda_probe {
    CUDA_PROBE_TINY,    // sums below the normal numbers
    CUDA_PROBE_COMPANY, // rows of FLAT elsewhere, among rows of zeros and of RAMP
    CUDA_PROBE_RAMP,    // magnitudes that grow along k, with alternating signs
    CUDA_PROBE_FLAT,    // normally distributed
    CUDA_PROBES
};

// What serves products of so many rows with an N x K matrix. Whatever it is, the bits are those of
// the own kernels (kernels/cuda/admit.h).
struct cuda_choice {
    uint32_t rows, N, K;
    bool admitted;                   // an algorithm of cuBLASLt serves; else the own kernels
    struct cuda_algorithm algorithm; // when admitted
    // Algorithms: offered by the library; with the own kernels' bits; refused by each probe; not
    // taken or not run by the library. The last three add up to the first.
    int offered, equal, refused[CUDA_PROBES], failed;
    float own_ms, ms; // of a product by the own kernels, by the fastest that is equal
};

struct cuda_attention {
    uint32_t layer;
    uint32_t H, G, E;
    double scale, softcap;
    uint32_t window;
    size_t page_offset;
};

// The largest calls.
struct cuda_limits {
    uint32_t rows, H, G, E, L;
    uint32_t sequences, positions, ranges; // of a pass, of a sequence, of all watches of a pass
    uint32_t outputs;                      // of a product
};

// Products of at least so many rows are cut into pieces of these, each of which may be served by
// cuBLASLt.
#define CUDA_PRODUCT_ROWS 4096, 1024, 256

enum cuda_products {
    CUDA_PRODUCTS_OWN,      // the own kernels alone
    CUDA_PRODUCTS_ADMITTED, // and algorithms of cuBLASLt that give the same bits
    CUDA_PRODUCTS_ANY // whatever cuBLASLt likes best, whatever the bits: only to compare speed
};

enum cuda_fault_kind { CUDA_FAULT_KV, CUDA_FAULT_SCORE };

struct cuda_ops {
    int version;
    const char *name; // of the build: "sm_80 sm_90", "emulated"

    // Opens the first device. -1 with `why` filled: no driver, no device, too old a one.
    int (*open)(struct cuda_device **out, struct cuda_facts *facts, char why[256]);
    void (*close)(struct cuda_device *d);
    const char *(*failure)(struct cuda_device *d); // NULL: none so far

    bool (*supports_head)(uint32_t E);
    uint64_t (*scratch_bytes)(const struct cuda_limits *l);
    int (*prepare)(struct cuda_device *d, const struct cuda_limits *l); // -1: out of memory
    int (*memory_free)(struct cuda_device *d, uint64_t *bytes);

    int (*alloc)(struct cuda_device *d, size_t bytes, void **out); // zeros; -1: out of memory
    void (*release)(struct cuda_device *d, void *p);
    void (*upload)(struct cuda_device *d, void *to, const void *host, size_t bytes);
    void (*download)(struct cuda_device *d, void *host, const void *from, size_t bytes);
    void (*copy)(struct cuda_device *d, void *to, const void *from, size_t bytes);
    void (*sync)(struct cuda_device *d);

    // to[n] = bf16 row n of `rows`, which are on the host; `to` NULL: only looks at them. False: an
    // element is not finite.
    bool (*unpack)(struct cuda_device *d, const struct cuda_stored *rows, void *to, uint32_t ld);
    // What may serve products; at first the own kernels alone. -1 with `why` filled: there is no
    // cuBLASLt (`version` of it otherwise), and the own kernels go on.
    int (*products)(struct cuda_device *d, enum cuda_products which, uint64_t *version,
                    char why[256]);
    // With CUDA_PRODUCTS_ADMITTED: tries what there is for the shape of `c`, keeps the best and
    // tells it. Or keeps what another run admitted; false: it does not give the own kernels' bits.
    void (*choose)(struct cuda_device *d, struct cuda_choice *c);
    bool (*recall)(struct cuda_device *d, const struct cuda_choice *c);
    // y = x W^T; W as bf16 rows, or as stored rows that are unpacked in parts.
    void (*matmul)(struct cuda_device *d, const void *x, uint32_t ldx, uint32_t R, const void *w,
                   uint32_t ldw, uint32_t N, uint32_t K, const float *bias, bool add, float *y,
                   uint32_t ldy);
    void (*matmul_stored)(struct cuda_device *d, const void *x, uint32_t ldx, uint32_t R,
                          const struct cuda_stored *w, const float *bias, bool add, float *y,
                          uint32_t ldy);

    void (*begin)(struct cuda_device *d, const struct cuda_pass *pass);
    // Does work(context), which calls ops of the pass that was begun, none of which waits; or
    // replays what it did for an earlier pass of the same form (kernels/cuda/graphs.cu). So with
    // one context the calls and their operands follow from the form alone: the number of rows, each
    // of a sequence of its own, of wanted rows and of watches. Returns, once, why passes are not
    // recorded any more, else NULL.
    const char *(*play)(struct cuda_device *d, void (*work)(void *context), void *context);
    void (*use_graphs)(struct cuda_device *d, bool on); // at first: on
    void (*embed)(struct cuda_device *d, const struct cuda_stored *rows, float *x);
    // cos_sin[r][rotary/2][2] of the positions of the pass; `frequencies` [rotary/2] on the host.
    void (*angles)(struct cuda_device *d, const double *frequencies, uint32_t rotary,
                   float *cos_sin);
    void (*gather)(struct cuda_device *d, const void *from, size_t row_bytes, void *to);
    void (*rmsnorm)(struct cuda_device *d, const float *x, uint32_t R, uint32_t D,
                    const float *weight, float epsilon, void *out, uint32_t ldout);
    void (*rope)(struct cuda_device *d, const float *x, uint32_t ldx, uint32_t R, uint32_t heads,
                 uint32_t E, uint32_t rotary, bool neighbours, const float *cos_sin, void *out,
                 uint32_t ldout);
    void (*round)(struct cuda_device *d, const float *x, uint32_t ldx, uint32_t R, uint32_t n,
                  void *out, uint32_t ldout);
    void (*gate)(struct cuda_device *d, bool gelu, const float *gate_up, uint32_t ld, uint32_t R,
                 uint32_t F, void *out, uint32_t ldout);
    void (*kv_append)(struct cuda_device *d, const struct cuda_attention *a, const void *k,
                      const void *v, uint32_t ld);
    void (*attention)(struct cuda_device *d, const struct cuda_attention *a, bool wanted,
                      const void *q, uint32_t ldq, void *out, uint32_t ldout);
    // Both wait; `draws` and `out` are on the host, of at most CUDA_RESULT_ROWS rows, and `out` is
    // left as it is after a failure.
    void (*draw)(struct cuda_device *d, const float *z, uint32_t R, uint32_t n,
                 const struct token_draw *draws, int32_t *out);
    void (*log_sum_exp)(struct cuda_device *d, const float *z, uint32_t R, uint32_t n, float *out);
    // Waits. True: of this pass the first value or score that is not finite, by layer, then kind,
    // then row.
    bool (*fault)(struct cuda_device *d, enum cuda_fault_kind *kind, uint32_t *layer,
                  uint32_t *row);

    // Measured: the kernels' own matrix products, copies of device memory.
    void (*ceilings)(struct cuda_device *d, double *flop_per_s, double *bytes_per_s,
                     size_t *near_bytes);
};

// What the plug-in exports under CUDA_OPS_SYMBOL.
typedef const struct cuda_ops *cuda_ops_function(void);

#ifdef __cplusplus
}
#endif

#endif

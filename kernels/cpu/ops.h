// The CPU's ops, by NUMERICS.md. Plain pointers; includes nothing of ours but its neighbours.
//
// Shape letters, used in all of kernels/ and engine/:
//   R rows (tokens of one call)   K inner size      N outputs of a matrix product
//   H query heads   G key/value heads   E head size   D model width   F hidden width   V vocabulary
//   S positions of a KV page (512)   L layers
//
// There is one table of ops per (numerics, instruction set); every table of one numerics id gives
// the same bits. An *operand* is an element as a matrix product takes it: bf16 (uint16_t) under
// `bf16-1`, float under `f32`. Row strides of operands are in elements and even; the pad element of
// an odd row is +0.
//
// Threads: ops that take a `struct cpu_pool` split the *outputs* over its threads, never a chain.
// FTZ and DAZ are set inside each op on each of its threads and restored before it returns. No op
// allocates; working memory comes from the pool.
#ifndef LACUNA_KERNELS_CPU_OPS_H
#define LACUNA_KERNELS_CPU_OPS_H

#include "kernels/draw.h"
#include "kernels/quant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPU_PANEL 16 // outputs of one panel = virtual lanes of a row reduction
#define CPU_PAGE 512 // positions of a KV page = keys of an attention block

enum cpu_numerics { CPU_BF16_1, CPU_F32 };
enum cpu_gate { CPU_GATE_SILU, CPU_GATE_GELU_TANH };
enum cpu_pairing { CPU_PAIR_HALVES, CPU_PAIR_NEIGHBOURS }; // (i, i + d/2) or (2i, 2i+1)

// Threads and working memory of a backend, for one op at a time. `scratch` holds `threads` slices
// of `slice_bytes`, each aligned to 64 bytes; cpu_slice_bytes says how much the largest call needs.
struct cpu_pool {
    struct team *team; // of `threads` or more; NULL where that is 1
    int threads;
    size_t slice_bytes;
    void *scratch;
    size_t cache_bytes; // of the cache that one core has for itself, for block sizes; 0: assumed
};

// Panels of one kind in a compact matrix; layout: kernels/cpu/compact.h.
struct cpu_run {
    uint32_t first_panel, panels;
    uint32_t group; // elements of k under one scale
    bool nibbles, offsets;
    int least_code;            // of nibbles: the number that 0 stands for
    size_t start, panel_bytes; // of the run in the matrix, of a panel
};

// A weight matrix W[N][K], y = x W^T, in panels of 16 outputs. Unpacked: for bf16-1
// [N/16][K/2][16][2] bf16 (pair i holds elements 2i, 2i+1; N and K padded with +0), for f32
// [N/16][K][16] float. Compact: codes and scales, unpacked in registers or into the pool's scratch.
// Both give the same bits; a matrix may have both.
#define CPU_RUNS 3
struct cpu_matrix {
    uint32_t N, K;
    const void *panels;     // or NULL
    const uint8_t *compact; // or NULL
    uint32_t few_rows;      // with panels: up to so many rows take the compact form
    struct cpu_run run[CPU_RUNS];
    int runs;
};

// Ranges of keys whose share of the attention is wanted, for some rows of a span. Watching changes
// no bit of the attention's output.
struct cpu_key_range {
    uint32_t first, end; // absolute positions [first, end); may lie anywhere
};
struct cpu_watch {
    const struct cpu_key_range *ranges;
    uint32_t count;
    uint32_t first_row, rows; // the rows that are watched, counted within the span
    float *shares;            // [rows][H][count] (NUMERICS.md, Evidence); ranges without a visible
                              // key: +0
};

// Rows that attend together: consecutive rows of one sequence.
struct cpu_span {
    uint32_t first_row;      // in q, k, v and out
    uint32_t rows;           // >= 1
    uint32_t first_position; // absolute position of first_row
    uint8_t *const *pages;   // this sequence's pages, block c at pages[c] + the call's layer offset
    const struct cpu_watch *watch; // NULL: nothing is watched
};

struct cpu_attention {
    uint32_t H, G, E;
    double scale;       // 1/sqrt(E) or the model's own
    double softcap;     // 0: none
    uint32_t window;    // 0: full; else query i sees keys i-window+1 .. i
    size_t page_offset; // bytes from a page's start to this layer's K panels; V follows K
};

// Bytes of one layer's K (or V) in one page: K is [G][512/16][E/2][16][2], V is
// [G][Ep/16][256][16][2] bf16 (f32: [G][512/16][E][16] and [G][Ep/16][512][16] float), with Ep = E
// rounded up to 16.
size_t cpu_kv_bytes(enum cpu_numerics numerics, uint32_t G, uint32_t E);

struct cpu_ops {
    const char *name; // "c", "avx2", "avx512f", "avx512_bf16"; f32: "c-f32", "avx2-f32"
    enum cpu_numerics numerics;
    uint32_t operand_bytes;

    // Puts one fp32 weight row (output n of N) into the panels of its matrix. Returns 0, or -1 when
    // the row holds a NaN or an infinity.
    int (*pack_row)(const float *row, uint32_t n, uint32_t K, void *panels);

    // y[r][n] = chain(x[r], W[n]) (+ bias[n]) (+ y[r][n] as it was, when `add`: residual + value).
    void (*matmul)(const struct cpu_pool *pool, const void *x, uint32_t ldx, uint32_t R,
                   const struct cpu_matrix *w, const float *bias, bool add, float *y, uint32_t ldy);

    // out[r] = operand(x[r] * rsqrt(mean(x[r]^2) + epsilon) * weight)
    void (*rmsnorm)(const struct cpu_pool *pool, const float *x, uint32_t R, uint32_t D,
                    const float *weight, float epsilon, void *out, uint32_t ldout);

    // out[r][h][i] = operand(rotated x[r*ldx + h*E + i]); the first `rotary` elements of each head
    // are rotated, the rest pass. cos_sin[r][rotary/2][2] are the angles of row r.
    void (*rope)(const struct cpu_pool *pool, const float *x, uint32_t ldx, uint32_t R,
                 uint32_t heads, uint32_t E, uint32_t rotary, enum cpu_pairing pairing,
                 const float *cos_sin, void *out, uint32_t ldout);

    // out[r][i] = operand(x[r*ldx + i]), i < n
    void (*round)(const struct cpu_pool *pool, const float *x, uint32_t ldx, uint32_t R, uint32_t n,
                  void *out, uint32_t ldout);

    // Writes k[r][G][E], v[r][G][E] (operands) of each span into its pages. Returns 0, or -1 with
    // *bad_row set when a value is not finite.
    int (*kv_append)(const struct cpu_pool *pool, const struct cpu_span *spans, uint32_t count,
                     const struct cpu_attention *a, const void *k, const void *v, uint32_t ld,
                     uint32_t *bad_row);

    // out[r][h][E] (operands) for each row of each span, over all keys at positions <= its own (and
    // inside the window); and the shares of watched rows. Returns 0, or -1 with *bad_row set when a
    // score is not finite.
    int (*attention)(const struct cpu_pool *pool, const struct cpu_span *spans, uint32_t count,
                     const struct cpu_attention *a, const void *q, uint32_t ldq, void *out,
                     uint32_t ldout, uint32_t *bad_row);

    // out[r][i] = operand(gate(gu[r*ldgu + i]) * gu[r*ldgu + F + i]), i < F
    void (*gate)(const struct cpu_pool *pool, enum cpu_gate kind, const float *gu, uint32_t ldgu,
                 uint32_t R, uint32_t F, void *out, uint32_t ldout);

    // Log-sum-exp of one row by NUMERICS.md (max + ln2 * log2(lane sum of exp2)).
    float (*log_sum_exp)(const float *z, uint32_t n);

    // Index of the largest of n, the lowest on a tie; -1 when a value is not finite.
    int64_t (*argmax)(const float *z, uint32_t n);
};

// The table of this name, or NULL with *why ("the processor has no AVX512_BF16", "probe differs").
// With name NULL the fastest table whose start-up probe equals the C table's bits.
const struct cpu_ops *cpu_ops_find(enum cpu_numerics numerics, const char *name, const char **why);
// All tables compiled in, fastest last; for tests and `lacuna bench`.
const struct cpu_ops *const *cpu_ops_all(int *count);

// Scratch that one thread needs for calls up to these sizes (any op, any table of the numerics).
size_t cpu_slice_bytes(enum cpu_numerics numerics, uint32_t rows, uint32_t K, uint32_t N,
                       uint32_t H, uint32_t G, uint32_t E);

// Angles for the rotation (NUMERICS.md): cos_sin[rotary/2][2] of one position. `factor[i]` divides
// the frequency of pair i (llama3 scaling and the like); NULL: none. Double inside, own functions.
void cpu_rope_angles(double base, uint32_t rotary, const float *factor, uint32_t position,
                     float *cos_sin);

// Row by row: the index that draws[r] takes of n logits (NUMERICS.md, "Choice of a token"), -1 when
// one is not finite. The slices are for N of at least n. Sampling goes on with FTZ and DAZ as they
// are.
void cpu_draw_rows(const struct cpu_ops *ops, const struct cpu_pool *pool, const float *z,
                   uint32_t R, uint32_t n, const struct token_draw *draws, int64_t *out);

// What a position is multiplied by to give the angle of each pair; [rotary/2].
void cpu_rope_frequencies(double base, uint32_t rotary, const float *factor, double *frequency);

#endif

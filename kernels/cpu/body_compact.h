// Products over compact weights (kernels/cpu/compact.h). Few rows: codes become weights in
// registers, next to the multiply-add. Many rows: panels are unpacked once into the thread's slice.
//
// Rounding to bf16. With W = 2^16 w: t = (1 - 2^-16) W rounds to 24 bits whose last is the last one
// of bf16(w), for the part of W above 16 bits is a multiple of it; so W - t, which is exact, is w
// to nearest, ties to even: the same bits but for w = -0, which gives +0. W never overflows.
#include "kernels/cpu/body.h"
#include "kernels/cpu/compact.h"
#include "kernels/cpu/unroll.h"

#define COMPACT_ROWS 4 // rows that meet the codes themselves

#if BODY_F32
#define COMPACT_LEAST_BITS 0x18000000u // 2^-79
#else
#define COMPACT_LEAST_BITS 0x1000u // 2^-95
#endif

// The sign of a zero weight shows only in a chain that has become -0, and only underflow makes one
// -0. Weights are multiples of 2^-24. Where no element of x but zeros is smaller than 2^-95 (f32:
// 2^-79), each product and sum is a multiple of 2^-126: nothing underflows.
static inline bool compact_sign_hidden(const OPERAND *x, uint32_t ldx, uint32_t R, uint32_t K) {
    uint32_t small = 0;
    for (uint32_t r = 0; r < R; r++) {
        for (uint32_t k = 0; k < K; k++) {
#if BODY_F32
            uint32_t magnitude = num_bits(x[(size_t)r * ldx + k]) & 0x7fffffffu;
#else
            uint32_t magnitude = x[(size_t)r * ldx + k] & 0x7fffu;
#endif
            small |= magnitude - 1u < COMPACT_LEAST_BITS - 1u;
        }
    }
    return small == 0;
}

// What a weight is multiplied by before it is rounded.
#define COMPACT_SHIFT (BODY_F32 ? 1.0f : 0x1p16f)

static inline struct lanes compact_round(struct lanes shifted) {
#if BODY_F32
    return shifted;
#else
    return lanes_sub(shifted, lanes_mul(shifted, lanes_set(0x0.ffffp0f)));
#endif
}

// The same with the sign of zero.
static inline struct lanes compact_round_signed(struct lanes shifted) {
    return lanes_copysign(compact_round(shifted), shifted);
}

struct compact_head {
    struct lanes scale, offset;
};

static inline struct compact_head compact_head_load(const struct cpu_run *run,
                                                    const uint8_t *group) {
    struct compact_head h;
    const float *scale = (const float *)(const void *)group;
    h.scale = lanes_mul(lanes_load(scale), lanes_set(COMPACT_SHIFT));
    h.offset = lanes_set(-0.0f);
    if (run->offsets) h.offset = lanes_mul(lanes_load(scale + CPU_PANEL), lanes_set(COMPACT_SHIFT));
    return h;
}

static inline size_t compact_head_bytes(const struct cpu_run *run) {
    return (run->offsets ? 2 : 1) * CPU_PANEL * sizeof(float);
}

// Codes of an even k and the odd k behind it, as numbers; nibbles from 0 up.
static inline struct lanes compact_codes(const uint8_t *codes, bool nibbles, struct lanes *odd) {
    if (nibbles) return lanes_load_nibbles(codes, odd);
    *odd = lanes_load_codes((const int8_t *)codes + CPU_PANEL);
    return lanes_load_codes((const int8_t *)codes);
}

#define COMPACT_BLOCK static inline __attribute__((always_inline)) void
#define COMPACT_WIDE 4 // most panels at once

#define COMPACT_PREFETCH 8192 // bytes ahead, shared by the panels read at once

// How far ahead of `done` bytes of a panel memory is asked for: behind the end of panels that are
// read at once, the next ones follow.
static inline size_t compact_ahead(size_t done, size_t panel_bytes, int panels) {
    size_t ahead = COMPACT_PREFETCH / (size_t)panels;
    return done + ahead < panel_bytes ? ahead : ahead + ((size_t)panels - 1) * panel_bytes;
}

// Rows x panels (both constants after inlining) over the whole depth, for rows whose chains hide
// the sign of zero weights. `a` is fp32, whatever the table's rows are.
COMPACT_BLOCK compact_block(const float *a, size_t lda, int rows, const struct cpu_run *run,
                            bool nibbles, const uint8_t *panel, int panels, uint32_t K, float *c,
                            size_t ldc) {
    struct lanes acc[COMPACT_ROWS][COMPACT_WIDE];
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int p = 0; p < panels; p++) acc[r][p] = lanes_set(0.0f);
    }
    const struct lanes least = lanes_set((float)run->least_code);
    const size_t head = compact_head_bytes(run), panel_bytes = run->panel_bytes;
    const size_t pair_bytes = nibbles ? CPU_PANEL : 2 * CPU_PANEL;
    const uint8_t *const start = panel;
    for (uint32_t k = 0; k < K; k += run->group) {
        const size_t ahead = compact_ahead((size_t)(panel - start), panel_bytes, panels);
        struct compact_head h[COMPACT_WIDE];
        UNROLL for (int p = 0; p < panels; p++) {
            const uint8_t *group = panel + p * panel_bytes;
            h[p] = compact_head_load(run, group);
            if (nibbles) h[p].offset = lanes_fma(h[p].scale, least, h[p].offset);
        }
        const uint8_t *codes = panel + head, *end = codes + run->group / 2 * pair_bytes;
        for (; codes < end; codes += pair_bytes, a += 2) {
            struct lanes even[COMPACT_WIDE], odd[COMPACT_WIDE];
            UNROLL for (int p = 0; p < panels; p++) {
                const uint8_t *at = codes + p * panel_bytes;
                __builtin_prefetch(at + ahead, 0, 3);
                even[p] = compact_codes(at, nibbles, &odd[p]);
                odd[p] = compact_round(lanes_fma(h[p].scale, odd[p], h[p].offset));
                even[p] = compact_round(lanes_fma(h[p].scale, even[p], h[p].offset));
            }
            UNROLL for (int r = 0; r < rows; r++) {
                struct lanes first = lanes_set(a[r * lda + !BODY_F32]);
                struct lanes second = lanes_set(a[r * lda + BODY_F32]);
                UNROLL for (int p = 0; p < panels; p++) acc[r][p] =
                    lanes_fma(first, BODY_F32 ? even[p] : odd[p], acc[r][p]);
                UNROLL for (int p = 0; p < panels; p++) acc[r][p] =
                    lanes_fma(second, BODY_F32 ? odd[p] : even[p], acc[r][p]);
            }
        }
        panel = end;
    }
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int p = 0; p < panels; p++)
            lanes_store(c + (size_t)r * ldc + p * CPU_PANEL, acc[r][p]);
    }
}

#define COMPACT_STEPS(rows, at_once)                                                               \
    for (; p + (at_once) <= panels; p += (at_once)) {                                              \
        const uint8_t *from = first + p * run->panel_bytes;                                        \
        float *to = c + (size_t)p * CPU_PANEL;                                                     \
        if (run->nibbles)                                                                          \
            compact_block(a, lda, rows, run, true, from, at_once, K, to, ldc);                     \
        else                                                                                       \
            compact_block(a, lda, rows, run, false, from, at_once, K, to, ldc);                    \
    }

#define COMPACT_CASE(rows, wide)                                                                   \
    case rows:                                                                                     \
        if ((wide) == 4) COMPACT_STEPS(rows, 4)                                                    \
        if ((wide) >= 2) COMPACT_STEPS(rows, 2)                                                    \
        COMPACT_STEPS(rows, 1)                                                                     \
        break

// As `tile`, over panels of one run; at most COMPACT_ROWS rows.
static void compact_tile(const float *a, size_t lda, uint32_t rows, const struct cpu_run *run,
                         const uint8_t *first, uint32_t panels, uint32_t K, float *c, size_t ldc) {
    uint32_t p = 0;
    switch (rows) {
        COMPACT_CASE(1, LANES_REGISTERS / 8);
        COMPACT_CASE(2, LANES_REGISTERS / 8);
        COMPACT_CASE(3, LANES_REGISTERS / 16);
        COMPACT_CASE(4, LANES_REGISTERS / 16);
    default: assert(false);
    }
}

// Panels [first, first + count) of a compact matrix as operands, with the signs of zeros.
ENV_WORK void compact_unpack(const struct cpu_matrix *w, uint32_t first, uint32_t count,
                             OPERAND *out) {
    const struct cpu_run *run = w->run;
    for (uint32_t p = first; p < first + count; p++) {
        while (p >= run->first_panel + run->panels) run++;
        const uint8_t *panel = w->compact + run->start + (p - run->first_panel) * run->panel_bytes;
        const struct lanes least = lanes_set((float)run->least_code);
        for (uint32_t k = 0; k < w->K; k += run->group) {
            struct compact_head h = compact_head_load(run, panel);
            panel += compact_head_bytes(run);
            for (uint32_t i = 0; i < run->group; i += 2, out += 2 * CPU_PANEL) {
                struct lanes odd, even = compact_codes(panel, run->nibbles, &odd);
                if (run->nibbles) {
                    even = lanes_add(even, least);
                    odd = lanes_add(odd, least);
                }
                even = compact_round_signed(lanes_fma(h.scale, even, h.offset));
                odd = compact_round_signed(lanes_fma(h.scale, odd, h.offset));
#if BODY_F32
                lanes_store(out, even);
                lanes_store(out + CPU_PANEL, odd);
#else
                lanes_store_bf16_pairs(out, even, odd);
#endif
                panel += run->nibbles ? CPU_PANEL : 2 * CPU_PANEL;
            }
        }
    }
}

// Rows of logits to draw from, and what must be drawn: the rule restated, serially over the whole
// sorted row, once with the program's exp and sums in double (every bit), once with expl and sums
// in long double (what is meant).
#ifndef LACUNA_TESTS_KERNELS_SAMPLE_SUPPORT_H
#define LACUNA_TESTS_KERNELS_SAMPLE_SUPPORT_H

#include "kernels/draw.h"
#include "tests/kernels/ops_support.h"

#include <float.h>

struct sample_place {
    float z;
    uint32_t id;
};

static inline int sample_descending(const void *a, const void *b) {
    const struct sample_place *x = a, *y = b;
    if (x->z != y->z) return x->z > y->z ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

// By exponents of 2 and 1/k! (NUMERICS.md), in any range.
static inline double sample_exp(double x) {
    static const double inverse_factorial[] = {
        0x1p+0,
        0x1p+0,
        0x1p-1,
        0x1.5555555555555p-3,
        0x1.5555555555555p-5,
        0x1.1111111111111p-7,
        0x1.6c16c16c16c17p-10,
        0x1.a01a01a01a01ap-13,
        0x1.a01a01a01a01ap-16,
        0x1.71de3a556c734p-19,
        0x1.27e4fb7789f5cp-22,
        0x1.ae64567f544e4p-26,
        0x1.1eed8eff8d898p-29,
        0x1.6124613a86d09p-33,
        0x1.93974a8c07c9dp-37,
    };
    if (x < -708.0) return 0.0;
    double n = nearbyint(x * 0x1.71547652b82fep+0);
    double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33, p = inverse_factorial[14];
    for (int k = 13; k >= 0; k--) p = p * r + inverse_factorial[k];
    return ldexp(p, (int)n);
}

static inline struct sample_place *sample_order(const float *z, uint32_t n) {
    struct sample_place *order = ops_alloc(n * sizeof *order);
    for (uint32_t i = 0; i < n; i++)
        order[i] = (struct sample_place){fabsf(z[i]) < FLT_MIN ? 0.0f : z[i], i};
    qsort(order, n, sizeof *order, sample_descending);
    return order;
}

#define SAMPLE_RESTATED(name, number, exp_function)                                                \
    static inline uint32_t name(const float *z, uint32_t n, const struct token_draw *d) {          \
        struct sample_place *order = sample_order(z, n);                                           \
        number *w = ops_alloc(n * sizeof *w), total = 0, kept_sum = 0, running = 0;                \
        for (uint32_t i = 0; i < n; i++)                                                           \
            total += w[i] =                                                                        \
                exp_function(((number)order[i].z - (number)order[0].z) / (number)d->temperature);  \
        uint32_t kept = 0, i = 0;                                                                  \
        while (kept < n && (kept == 0 || kept_sum < (number)d->top_p * total))                     \
            kept_sum += w[kept++];                                                                 \
        const number threshold = (number)d->u * kept_sum;                                          \
        while ((running += w[i]) <= threshold && i + 1 < kept) i++;                                \
        uint32_t id = order[i].id;                                                                 \
        free(order);                                                                               \
        free(w);                                                                                   \
        return id;                                                                                 \
    }
SAMPLE_RESTATED(sample_restated, double, sample_exp)
SAMPLE_RESTATED(sample_meant, long double, expl)

enum {
    SAMPLE_SMOOTH,
    SAMPLE_TIES,
    SAMPLE_EQUAL,
    SAMPLE_WILD,
    SAMPLE_EXTREME,
    SAMPLE_ZEROS,
    SAMPLE_KINDS
};

static inline float sample_value(struct rng *r, int kind) {
    const float extreme[] = {FLT_MAX, -FLT_MAX, FLT_MIN, -FLT_MIN, 0.0f, -0.0f, 1.0f, -1.0f};
    switch (kind) {
    case SAMPLE_TIES: return floorf(4.0f * ops_normal(r));
    case SAMPLE_EQUAL: return -2.5f;
    case SAMPLE_WILD: return ops_wild(r);
    case SAMPLE_EXTREME: return extreme[ops_below(r, 8)];
    case SAMPLE_ZEROS: return num_float(rng_u32(r) & 0x807fffffu); // and subnormals
    default: return 6.0f * ops_normal(r);
    }
}

static inline float *sample_row_of(struct rng *r, uint32_t n, int kind) {
    float *z = ops_alloc(n * sizeof *z);
    for (uint32_t i = 0; i < n; i++) z[i] = sample_value(r, kind);
    return z;
}

// Temperatures from where one token is left to where all are alike; every share; u at both ends and
// between. `plain`: no u or share at which a last bit decides.
static inline struct token_draw sample_draw(struct rng *r, bool plain) {
    static const double temperatures[] = {1e-6, 0.05, 0.3, 0.8, 1, 1.7, 25, 1e12},
                        shares[] = {1, 1, 0.95, 0.5, 1e-6, 1 - 0x1p-53};
    struct token_draw d = {temperatures[ops_below(r, 8)], shares[ops_below(r, plain ? 5 : 6)],
                           rng_unit(r)};
    uint32_t end = plain ? 9 : ops_below(r, 10);
    if (end < 2) d.u = end == 0 ? 0 : 1 - 0x1p-53;
    return d;
}

#endif

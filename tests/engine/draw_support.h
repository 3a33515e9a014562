// Tokens drawn by a backend, against the rule restated.
#ifndef LACUNA_TESTS_ENGINE_DRAW_SUPPORT_H
#define LACUNA_TESTS_ENGINE_DRAW_SUPPORT_H

#include "engine/backend.h"
#include "tests/kernels/sample_support.h"

enum { DRAW_ROWS = 150 }; // more than any backend takes at once

struct draw_call {
    uint32_t R, n;
    float *z; // host
    struct token_draw draws[DRAW_ROWS];
    int64_t expected[DRAW_ROWS];
};

// Rows of every kind, some of which are greedy, and some not finite.
static inline void draw_make(struct draw_call *c, struct rng *r, uint32_t R, uint32_t n) {
    *c = (struct draw_call){.R = R, .n = n, .z = ops_alloc((size_t)R * n * sizeof *c->z)};
    for (uint32_t i = 0; i < R; i++) {
        float *z = c->z + (size_t)i * n;
        int kind = (int)ops_below(r, SAMPLE_KINDS);
        for (uint32_t k = 0; k < n; k++) z[k] = sample_value(r, kind);
        c->draws[i] = sample_draw(r, false);
        if (ops_below(r, 4) == 0) c->draws[i] = (struct token_draw){0};
        bool bad = ops_below(r, 9) == 0, greedy = c->draws[i].temperature == 0;
        struct sample_place *order = sample_order(z, n);
        c->expected[i] = bad      ? -1
                         : greedy ? (int64_t)order[0].id
                                  : (int64_t)sample_restated(z, n, &c->draws[i]);
        if (bad) z[ops_below(r, n)] = ops_below(r, 2) == 0 ? NAN : -INFINITY;
        free(order);
    }
}

// `device` has room for the logits.
static inline void draw_check(struct backend *b, const struct draw_call *c, void *device) {
    int64_t got[DRAW_ROWS];
    b->ops->upload(b, device, c->z, (size_t)c->R * c->n * sizeof *c->z);
    b->ops->draw(b, device, c->R, c->n, c->draws, got);
    for (uint32_t i = 0; i < c->R; i++)
        if (got[i] != c->expected[i])
            fail_msg("row %u of %u, %u logits, T %g, top_p %g, u %.17g: %lld instead of %lld", i,
                     c->R, c->n, c->draws[i].temperature, c->draws[i].top_p, c->draws[i].u,
                     (long long)got[i], (long long)c->expected[i]);
}

// Calls of many sizes with the memory that was planned for at most R rows of n.
static inline void draw_check_backend(struct backend *b, struct rng *r, uint32_t R, uint32_t n,
                                      int calls) {
    struct err e = {0};
    void *device;
    ASSERT_OK(b->ops->alloc(b, (size_t)R * n * sizeof(float), "logits", &device, &e), e);
    for (int i = 0; i < calls; i++) {
        struct draw_call c;
        draw_make(&c, r, i == 0 ? R : 1 + ops_below(r, R), i == 0 ? n : 1 + ops_below(r, n));
        draw_check(b, &c, device);
        free(c.z);
    }
    b->ops->free(b, device);
}

#endif

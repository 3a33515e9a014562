#include "engine/bench_work.h"

#include "engine/backend.h"

// Elements of a layer's matrices.
static uint64_t layer_weights(const struct model_config *c) {
    uint64_t D = c->D, heads = (uint64_t)c->H * c->E, groups = (uint64_t)c->G * c->E;
    return D * (heads + 2 * groups) + heads * D + 3 * D * c->F;
}

uint64_t bench_layer_flop(const struct model_config *c, uint64_t rows) {
    return 2 * rows * layer_weights(c);
}

static uint64_t keys_at(const struct model_config *c, uint64_t position) {
    return c->window != 0 && position + 1 > c->window ? c->window : position + 1;
}

uint64_t bench_keys(const struct model_config *c, uint64_t first, uint64_t rows) {
    uint64_t end = first + rows, full = c->window == 0 || end < c->window ? end : c->window;
    if (full < first) full = first; // rows below `full` see all keys, the others a window
    return (full * (full + 1) - first * (first + 1)) / 2 + (end - full) * c->window;
}

// A query with a key, and its weight with a value, by all heads of one layer.
static uint64_t flop_per_key(const struct model_config *c) {
    return 4 * (uint64_t)c->H * c->E;
}

static const struct bench_weights *weights_read(const struct bench_shape *s, uint64_t rows) {
    return rows <= s->few_rows ? &s->few : &s->many;
}

struct bench_work bench_prefill_work(const struct bench_shape *s, uint32_t tokens) {
    const struct model_config *c = s->config;
    uint64_t weights = layer_weights(c), keys = bench_keys(c, 0, tokens), n = tokens;
    uint64_t kv_weights = 2 * (uint64_t)c->D * c->G * c->E, last_keys = keys_at(c, n - 1);
    uint64_t full_layers = (c->L - 1) * (2 * n * weights + keys * flop_per_key(c));
    uint64_t last_layer = 2 * (weights + (n - 1) * kv_weights) + last_keys * flop_per_key(c);
    struct bench_work w = {.flop = full_layers + last_layer + 2 * (uint64_t)c->D * c->V,
                           .bytes = weights_read(s, 1)->head_bytes};
    for (uint64_t done = 0; done < n; done += s->chunk_tokens) {
        uint64_t rows = n - done < s->chunk_tokens ? n - done : s->chunk_tokens;
        uint64_t seen = keys_at(c, done) + rows - 1;
        w.bytes += weights_read(s, rows)->layer_bytes + seen * s->kv_bytes;
    }
    return w;
}

struct bench_work bench_decode_work(const struct bench_shape *s, uint32_t depth, uint32_t tokens,
                                    uint32_t sequences) {
    const struct model_config *c = s->config;
    uint64_t weights = c->L * layer_weights(c) + (uint64_t)c->D * c->V;
    uint64_t keys = bench_keys(c, depth, tokens);
    uint64_t shared = depth / BACKEND_PAGE * BACKEND_PAGE;
    const struct bench_weights *read = weights_read(s, sequences);
    struct bench_work w = {.weights = tokens * weights, .keys = sequences * keys * c->L};
    w.flop = sequences * (2 * tokens * weights + keys * c->L * flop_per_key(c));
    for (uint64_t i = 0; i < tokens; i++) {
        uint64_t end = depth + i + 1, begin = end - keys_at(c, end - 1);
        uint64_t once = shared > begin ? shared - begin : 0;
        uint64_t own = end - begin - once;
        w.bytes += read->layer_bytes + read->head_bytes + (once + sequences * own) * s->kv_bytes;
    }
    return w;
}

// Models of real shapes with seeded random weights, written in seconds.
#include "tests/gpu/gpu.h"
#include "tests/support/gguf_writer.h"

#include "engine/base/rng.h"
#include "kernels/numerics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Weights repeat themselves after a number of elements that no row's length divides.
#define PERIOD 999983

struct shape {
    const char *name;
    uint32_t L, D, H, G, F, V, context;
};

// Of Llama 3.1 8B four of its 32 layers, and a quarter of its vocabulary.
static const struct shape shapes[] = {
    {"llama-8b-part", 4, 4096, 32, 8, 14336, 32064, 131072},
    {"small", 2, 256, 4, 2, 512, 512, 4096},
};

static uint16_t *draw_weights(void) {
    uint16_t *period = malloc(PERIOD * sizeof *period);
    struct rng r = rng_open(1, "gpu model", "weights");
    for (size_t i = 0; period != NULL && i < PERIOD; i++)
        period[i] = num_bf16((float)(2 * rng_unit(&r) - 1));
    return period;
}

// Uniform, of a size that keeps activations near 1.
static void put_matrix(struct gguf_writer *w, const uint16_t *drawn, const char *name, uint32_t row,
                       uint32_t rows) {
    uint64_t dim[2] = {row, rows};
    size_t n = (size_t)row * rows;
    float reach = sqrtf(3.0f / (float)row);
    uint16_t *scaled = malloc(PERIOD * sizeof *scaled), *all = malloc(n * sizeof *all);
    if (scaled == NULL || all == NULL) abort();
    for (size_t i = 0; i < PERIOD; i++) scaled[i] = num_bf16(num_from_bf16(drawn[i]) * reach);
    for (size_t at = 0; at < n; at += PERIOD)
        memcpy(all + at, scaled, (n - at < PERIOD ? n - at : PERIOD) * sizeof *all);
    gguf_writer_tensor_raw(w, name, TENSOR_BF16, 2, dim,
                           (struct str){(const char *)all, n * sizeof *all});
    free(scaled);
    free(all);
}

static void put_norm(struct gguf_writer *w, const char *name, uint32_t D) {
    uint64_t dim = D;
    float *ones = malloc(D * sizeof *ones);
    if (ones == NULL) abort();
    for (uint32_t i = 0; i < D; i++) ones[i] = 1;
    gguf_writer_tensor(w, name, TENSOR_F32, 1, &dim, ones);
    free(ones);
}

static void put_layer(struct gguf_writer *w, const uint16_t *drawn, const struct shape *s,
                      uint32_t index) {
    uint32_t kv = s->D / s->H * s->G;
    const struct {
        const char *name;
        uint32_t row, rows;
    } matrices[] = {
        {"attn_q", s->D, s->D},      {"attn_k", s->D, kv},     {"attn_v", s->D, kv},
        {"attn_output", s->D, s->D}, {"ffn_gate", s->D, s->F}, {"ffn_up", s->D, s->F},
        {"ffn_down", s->F, s->D},
    };
    char name[64];
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        snprintf(name, sizeof name, "blk.%u.%s.weight", index, matrices[i].name);
        put_matrix(w, drawn, name, matrices[i].row, matrices[i].rows);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "blk.%u.%s.weight", index, i ? "ffn_norm" : "attn_norm");
        put_norm(w, name, s->D);
    }
}

static void put_keys(struct gguf_writer *w, const struct shape *s) {
    gguf_writer_string(w, "general.architecture", STR("llama"));
    gguf_writer_string(w, "general.name", str_from(s->name));
    gguf_writer_u32(w, "llama.block_count", s->L);
    gguf_writer_u32(w, "llama.context_length", s->context);
    gguf_writer_u32(w, "llama.embedding_length", s->D);
    gguf_writer_u32(w, "llama.feed_forward_length", s->F);
    gguf_writer_u32(w, "llama.attention.head_count", s->H);
    gguf_writer_u32(w, "llama.attention.head_count_kv", s->G);
    gguf_writer_u32(w, "llama.rope.dimension_count", s->D / s->H);
    gguf_writer_f32(w, "llama.rope.freq_base", 500000);
    gguf_writer_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    gguf_writer_u32(w, "llama.vocab_size", s->V);
    tiny_tokenizer_write(w, &(struct tiny_model_options){.D = s->D, .H = s->H, .V = s->V});
}

int gpu_model(const char *name, const char *path) {
    const struct shape *s = NULL;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(name, shapes[i].name) == 0) s = &shapes[i];
    uint16_t *drawn = draw_weights();
    if (s == NULL || drawn == NULL) {
        fprintf(stderr, "no shape '%s', or no memory\n", name);
        free(drawn);
        return 2;
    }
    struct gguf_writer w = gguf_writer_open();
    put_keys(&w, s);
    put_matrix(&w, drawn, "token_embd.weight", s->D, s->V);
    for (uint32_t i = 0; i < s->L; i++) put_layer(&w, drawn, s, i);
    put_norm(&w, "output_norm.weight", s->D);
    gguf_writer_save(&w, path);
    gguf_writer_free(&w);
    free(drawn);
    return 0;
}

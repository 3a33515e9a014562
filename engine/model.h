// A loaded model file: its description as data (`model_config`) and where its tensors are. The
// forward pass (engine/forward.c) reads this and knows no architecture by name.
#ifndef LACUNA_ENGINE_MODEL_H
#define LACUNA_ENGINE_MODEL_H

#include "engine/base/hash.h"
#include "engine/base/json.h"
#include "engine/gguf.h"

// Shape letters as in kernels/cpu/ops.h.
struct model_config {
    const char *architecture; // "llama"
    struct str name;          // general.name, or empty
    uint32_t L, D, H, G, E, F, V;
    uint32_t trained_context;
    float norm_epsilon;
    double attention_scale;                  // 1/sqrt(E)
    double attention_softcap, logit_softcap; // 0: none
    uint32_t window;                         // 0: full attention in every layer
    bool gate_gelu;                          // false: SiLU
    bool tied_head;                          // the output head is the embedding
    double rope_base;
    uint32_t rope_dimensions;  // leading elements of a head that are rotated
    bool rope_neighbours;      // pairs (2i, 2i+1); else (i, i + rope_dimensions/2)
    const float *rope_factors; // [rope_dimensions/2] divisors of the frequencies, or NULL
    const char *rope_scaling;  // "none", "linear", "llama3"; for people and the record
    uint64_t parameters;
    uint64_t kv_bytes_per_token; // bf16
};

struct model_layer {
    const struct gguf_tensor *attention_norm, *q, *k, *v, *o;
    const struct gguf_tensor *q_bias, *k_bias, *v_bias; // or NULL
    const struct gguf_tensor *ffn_norm, *gate, *up, *down;
};

struct model {
    struct gguf *file;
    struct model_config config;
    const struct gguf_tensor *embedding, *output_norm, *output; // output == embedding when tied
    struct model_layer *layers;                                 // [L]
    char file_sha256[HASH_HEX_SIZE];      // of the whole file; filled by model_identify
    char tokenizer_sha256[HASH_HEX_SIZE]; // of all tokenizer.ggml.* keys but the chat template
    char template_sha256[HASH_HEX_SIZE];  // of the chat template's text; of nothing when absent
};

// Opens and checks a file: every expected tensor present exactly once with its shape and a
// supported type, none left over unnoticed, every required key there. Unsupported architectures,
// types and rope scalings are refused by name. Lives in the arena; model_close unmaps.
int model_open(const char *path, struct arena *a, struct model **out, struct err *e);
void model_close(struct model *m);

// Elements of a row: of q, k and v together; of the widest input and output of a layer's products.
uint32_t model_qkv_width(const struct model_config *c);
uint32_t model_input_width(const struct model_config *c);
uint32_t model_output_width(const struct model_config *c);

// Hashes (reads the whole file).
int model_identify(struct model *m, struct err *e);

// {"Q4_1":210,"F32":61}, for identity.json.
json_t *model_tensor_types(const struct model *m);

#endif

#include "engine/model.h"
#include "engine/rope.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// What each key of the architecture means to this program. A key that is not here might change what
// the model computes, so it is refused; NEUTRAL ones must have the value that changes nothing.
enum key_use { KEY_USED, KEY_IGNORED, KEY_NEUTRAL };
static const struct {
    const char *name;
    enum key_use use;
    double neutral;
} llama_keys[] = {
    {"llama.context_length", KEY_USED, 0},
    {"llama.embedding_length", KEY_USED, 0},
    {"llama.block_count", KEY_USED, 0},
    {"llama.feed_forward_length", KEY_USED, 0},
    {"llama.vocab_size", KEY_USED, 0},
    {"llama.tensor_data_layout", KEY_USED, 0},
    {"llama.tie_word_embeddings", KEY_USED, 0},
    {"llama.attention.head_count", KEY_USED, 0},
    {"llama.attention.head_count_kv", KEY_USED, 0},
    {"llama.attention.key_length", KEY_USED, 0},
    {"llama.attention.value_length", KEY_USED, 0},
    {"llama.attention.layer_norm_rms_epsilon", KEY_USED, 0},
    {"llama.attention.sliding_window", KEY_USED, 0},
    {"llama.attention.scale", KEY_USED, 0},
    {"llama.rope.dimension_count", KEY_USED, 0},
    {"llama.rope.freq_base", KEY_USED, 0},
    {"llama.rope.scale_linear", KEY_USED, 0},
    {"llama.rope.scaling.type", KEY_USED, 0},
    {"llama.rope.scaling.factor", KEY_USED, 0},
    {"llama.rope.scaling.low_freq_factor", KEY_USED, 0},
    {"llama.rope.scaling.high_freq_factor", KEY_USED, 0},
    {"llama.rope.scaling.original_context_length", KEY_USED, 0},
    {"llama.rope.scaling.finetuned", KEY_IGNORED, 0},
    {"llama.rope.scaling.attn_factor", KEY_NEUTRAL, 1},
    {"llama.attention.causal", KEY_NEUTRAL, 1},
    {"llama.attention.max_alibi_bias", KEY_NEUTRAL, 0},
    {"llama.attention.clamp_kqv", KEY_NEUTRAL, 0},
    {"llama.attn_logit_softcapping", KEY_NEUTRAL, 0},
    {"llama.final_logit_softcapping", KEY_NEUTRAL, 0},
    {"llama.expert_count", KEY_NEUTRAL, 0},
    {"llama.expert_used_count", KEY_NEUTRAL, 0},
    {"llama.use_parallel_residual", KEY_NEUTRAL, 0},
    {"llama.pooling_type", KEY_NEUTRAL, 0},
    {"llama.logit_scale", KEY_NEUTRAL, 1},
    {"llama.embedding_scale", KEY_NEUTRAL, 1},
    {"llama.residual_scale", KEY_NEUTRAL, 1},
};

static double value_number(const struct gguf_value *v) {
    switch (v->type) {
    case GGUF_F32:
    case GGUF_F64: return v->as.f;
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64: return (double)v->as.i;
    case GGUF_STRING:
    case GGUF_ARRAY: return NAN;
    default: return (double)v->as.u;
    }
}

static int check_keys(const struct gguf *g, struct err *e) {
    for (size_t i = 0; i < g->value_count; i++) {
        const struct gguf_value *v = &g->values[i];
        if (!str_starts(v->key, STR("llama."))) continue;
        size_t k = 0, count = sizeof llama_keys / sizeof *llama_keys;
        while (k < count && !str_equal_c(v->key, llama_keys[k].name)) k++;
        if (k == count)
            FAIL(e, ERR_MODEL,
                 "%s: the key " STR_FMT
                 " is not known and may change what the model computes; this "
                 "variant of llama is not supported",
                 g->path, STR_ARG(v->key));
        double value = value_number(v);
        if (llama_keys[k].use == KEY_NEUTRAL && value != llama_keys[k].neutral)
            FAIL(e, ERR_MODEL, "%s: the key %s is %g, but only models where it is %g are supported",
                 g->path, llama_keys[k].name, value, llama_keys[k].neutral);
    }
    return 0;
}

static int check_kind(const struct gguf *g, struct err *e) {
    struct str text;
    bool present;
    TRY(gguf_get_string(g, "general.type", &text, &present, e));
    if (present && !str_equal(text, STR("model")))
        FAIL(e, ERR_MODEL,
             "%s: general.type is '" STR_FMT "': this file is not a whole model (an adapter, a "
             "projector or a vocabulary); give the model file itself",
             g->path, STR_ARG(text));
    uint32_t shards = 1;
    TRY(gguf_get_u32(g, "split.count", &shards, &present, e));
    if (shards > 1)
        FAIL(e, ERR_MODEL,
             "%s: this is one of %u shards of a model; join them into one file first (llama.cpp's "
             "gguf-split --merge does that)",
             g->path, shards);
    TRY(gguf_need_string(g, "general.architecture", &text, e));
    if (!str_equal(text, STR("llama")))
        FAIL(e, ERR_MODEL, "%s: architecture '" STR_FMT "' is not supported; 'llama' is", g->path,
             STR_ARG(text));
    TRY(gguf_get_string(g, "llama.tensor_data_layout", &text, &present, e));
    if (present && !str_equal(text, STR("Meta AI original pth")))
        FAIL(e, ERR_MODEL,
             "%s: llama.tensor_data_layout is '" STR_FMT "'; only 'Meta AI original pth' (rotation "
             "pairs are neighbours) is supported",
             g->path, STR_ARG(text));
    return check_keys(g, e);
}

static int need_size(const struct gguf *g, const char *key, uint32_t *out, struct err *e) {
    TRY(gguf_need_u32(g, key, out, e));
    if (*out == 0) FAIL(e, ERR_MODEL, "%s: the key %s is 0", g->path, key);
    return 0;
}

// Head sizes default to D/H, key/value heads to H, the rotated part to the whole head.
static int read_heads(const struct gguf *g, struct model_config *c, struct err *e) {
    bool present;
    uint32_t value_length;
    TRY(need_size(g, "llama.attention.head_count", &c->H, e));
    c->G = c->H;
    TRY(gguf_get_u32(g, "llama.attention.head_count_kv", &c->G, &present, e));
    if (c->G == 0 || c->H % c->G != 0)
        FAIL(e, ERR_MODEL, "%s: %u query heads cannot share %u key/value heads evenly", g->path,
             c->H, c->G);
    c->E = value_length = c->D / c->H;
    TRY(gguf_get_u32(g, "llama.attention.key_length", &c->E, &present, e));
    if (!present && c->D % c->H != 0)
        FAIL(e, ERR_MODEL,
             "%s: llama.embedding_length %u is not a multiple of the %u heads, and "
             "llama.attention.key_length is missing",
             g->path, c->D, c->H);
    TRY(gguf_get_u32(g, "llama.attention.value_length", &value_length, &present, e));
    if (c->E < 2 || c->E % 2 != 0 || value_length != c->E)
        FAIL(e, ERR_MODEL,
             "%s: heads of %u key and %u value elements are not supported; both must be the same "
             "even number",
             g->path, c->E, value_length);
    c->rope_dimensions = c->E;
    TRY(gguf_get_u32(g, "llama.rope.dimension_count", &c->rope_dimensions, &present, e));
    if (c->rope_dimensions < 2 || c->rope_dimensions % 2 != 0 || c->rope_dimensions > c->E)
        FAIL(e, ERR_MODEL,
             "%s: llama.rope.dimension_count is %u; it must be even, and 2 to %u (the head size)",
             g->path, c->rope_dimensions, c->E);
    c->attention_scale = 1 / sqrt((double)c->E);
    float scale = 0;
    TRY(gguf_get_f32(g, "llama.attention.scale", &scale, &present, e));
    if (present && scale != 0) c->attention_scale = scale;
    return 0;
}

static int read_config(const struct gguf *g, struct model_config *c, struct err *e) {
    bool present;
    c->architecture = "llama";
    TRY(gguf_get_string(g, "general.name", &c->name, &present, e));
    TRY(need_size(g, "llama.context_length", &c->trained_context, e));
    TRY(need_size(g, "llama.embedding_length", &c->D, e));
    TRY(need_size(g, "llama.block_count", &c->L, e));
    TRY(need_size(g, "llama.feed_forward_length", &c->F, e));
    TRY(gguf_need_f32(g, "llama.attention.layer_norm_rms_epsilon", &c->norm_epsilon, e));
    if (!(c->norm_epsilon > 0 && c->norm_epsilon < 1))
        FAIL(e, ERR_MODEL,
             "%s: llama.attention.layer_norm_rms_epsilon is %g; it must be between 0 and 1",
             g->path, (double)c->norm_epsilon);
    TRY(read_heads(g, c, e));
    TRY(gguf_get_u32(g, "llama.attention.sliding_window", &c->window, &present, e));
    float base = 10000;
    TRY(gguf_get_f32(g, "llama.rope.freq_base", &base, &present, e));
    if (!(base > 1))
        FAIL(e, ERR_MODEL, "%s: llama.rope.freq_base is %g; it must be greater than 1", g->path,
             (double)base);
    c->rope_base = base;
    c->rope_neighbours = true;
    return 0;
}

// While tensors are bound: which of the file's tensors have been taken.
struct binding {
    struct model *m;
    bool *taken;
    struct err *e;
};

// Finds a tensor by name with the shape [rows][row] (rows 0: a vector). *out is NULL when it is
// absent and not required.
static int bind(struct binding *b, const char *name, uint64_t row, uint64_t rows, bool required,
                const struct gguf_tensor **out) {
    const struct gguf *g = b->m->file;
    const struct gguf_tensor *t = *out = gguf_tensor_find(g, name);
    char wanted[48];
    if (rows)
        snprintf(wanted, sizeof wanted, "%" PRIu64 " x %" PRIu64, row, rows);
    else
        snprintf(wanted, sizeof wanted, "%" PRIu64, row);
    if (!t && required)
        FAIL(b->e, ERR_MODEL, "%s: the tensor %s (%s) is missing; the file is not whole", g->path,
             name, wanted);
    if (!t) return 0;
    if (t->dim[0] != row || t->dim[1] != (rows ? rows : 1) || t->dim[2] != 1 || t->dim[3] != 1)
        FAIL(b->e, ERR_MODEL,
             "%s: the tensor %s has the shape %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64
             ", but the model's keys ask for %s",
             g->path, name, t->dim[0], t->dim[1], t->dim[2], t->dim[3], wanted);
    b->taken[t - g->tensors] = true;
    return 0;
}

static int bind_layer(struct binding *b, uint32_t index, struct model_layer *l) {
    const struct model_config *c = &b->m->config;
    uint64_t q = (uint64_t)c->H * c->E, kv = (uint64_t)c->G * c->E;
    const struct {
        const char *name;
        uint64_t row, rows;
        bool required;
        const struct gguf_tensor **out;
    } parts[] = {
        {"attn_norm.weight", c->D, 0, true, &l->attention_norm},
        {"attn_q.weight", c->D, q, true, &l->q},
        {"attn_k.weight", c->D, kv, true, &l->k},
        {"attn_v.weight", c->D, kv, true, &l->v},
        {"attn_output.weight", q, c->D, true, &l->o},
        {"attn_q.bias", q, 0, false, &l->q_bias},
        {"attn_k.bias", kv, 0, false, &l->k_bias},
        {"attn_v.bias", kv, 0, false, &l->v_bias},
        {"ffn_norm.weight", c->D, 0, true, &l->ffn_norm},
        {"ffn_gate.weight", c->D, c->F, true, &l->gate},
        {"ffn_up.weight", c->D, c->F, true, &l->up},
        {"ffn_down.weight", c->F, c->D, true, &l->down},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%u.%s", index, parts[i].name);
        TRY(bind(b, name, parts[i].row, parts[i].rows, parts[i].required, parts[i].out));
    }
    return 0;
}

// The vocabulary is what the embedding has rows for; other statements of it must agree.
static int bind_vocabulary(struct binding *b) {
    struct model *m = b->m;
    const struct gguf *g = m->file;
    struct model_config *c = &m->config;
    const struct gguf_tensor *embedding = gguf_tensor_find(g, "token_embd.weight");
    if (embedding && (embedding->dim[1] < 1 || embedding->dim[1] > INT32_MAX))
        FAIL(b->e, ERR_MODEL, "%s: the tensor token_embd.weight has %" PRIu64 " rows", g->path,
             embedding->dim[1]);
    c->V = embedding ? (uint32_t)embedding->dim[1] : 0;
    TRY(bind(b, "token_embd.weight", c->D, c->V, true, &m->embedding));
    bool present, tie = false;
    uint32_t stated = c->V;
    TRY(gguf_get_u32(g, "llama.vocab_size", &stated, &present, b->e));
    if (stated != c->V)
        FAIL(b->e, ERR_MODEL, "%s: llama.vocab_size is %u, but token_embd.weight has %u rows",
             g->path, stated, c->V);
    const struct gguf_value *tokens = gguf_find(g, "tokenizer.ggml.tokens");
    if (tokens && tokens->count != c->V)
        FAIL(b->e, ERR_MODEL,
             "%s: tokenizer.ggml.tokens has %" PRIu64 " entries, but token_embd.weight has %u rows",
             g->path, tokens->count, c->V);
    TRY(bind(b, "output.weight", c->D, c->V, false, &m->output));
    c->tied_head = m->output == NULL;
    TRY(gguf_get_bool(g, "llama.tie_word_embeddings", &tie, &present, b->e));
    if (present && tie != c->tied_head)
        FAIL(b->e, ERR_MODEL, "%s: llama.tie_word_embeddings is %s, but output.weight is %s",
             g->path, tie ? "true" : "false", c->tied_head ? "missing" : "there");
    if (c->tied_head) m->output = m->embedding;
    return 0;
}

// Llama 3.1 files carry their factors as the tensor rope_freqs.weight.
static int bind_rope_tensor(struct binding *b, struct arena *a) {
    struct model_config *c = &b->m->config;
    const struct gguf_tensor *t;
    uint32_t pairs = c->rope_dimensions / 2;
    TRY(bind(b, "rope_freqs.weight", pairs, 0, false, &t));
    if (!t) return 0;
    if (t->type != TENSOR_F32)
        FAIL(b->e, ERR_MODEL, "%s: the tensor rope_freqs.weight must be F32", b->m->file->path);
    float *factors = arena_array(a, pairs, sizeof *factors);
    tensor_dequantize(t->type, t->data, pairs, factors);
    for (uint32_t i = 0; i < pairs; i++)
        if (!(factors[i] > 0 && factors[i] <= FLT_MAX))
            FAIL(b->e, ERR_MODEL,
                 "%s: element %u of rope_freqs.weight is %g; factors are positive and finite",
                 b->m->file->path, i, (double)factors[i]);
    c->rope_factors = factors;
    c->rope_scaling = "llama3";
    return 0;
}

static int read_llama3(const struct gguf *g, struct model_config *c, float factor, struct arena *a,
                       struct err *e) {
    float low, high;
    uint32_t original;
    TRY(gguf_need_f32(g, "llama.rope.scaling.low_freq_factor", &low, e));
    TRY(gguf_need_f32(g, "llama.rope.scaling.high_freq_factor", &high, e));
    TRY(gguf_need_u32(g, "llama.rope.scaling.original_context_length", &original, e));
    if (!(low > 0 && high > low) || original == 0)
        FAIL(e, ERR_MODEL,
             "%s: llama3 scaling with low_freq_factor %g, high_freq_factor %g and "
             "original_context_length %u makes no sense",
             g->path, (double)low, (double)high, original);
    float *factors = arena_array(a, c->rope_dimensions / 2, sizeof *factors);
    struct rope_llama3 rule = {.factor = factor, .low = low, .high = high, .original = original};
    rope_factors_llama3(&rule, c->rope_base, c->rope_dimensions, factors);
    c->rope_factors = factors;
    c->rope_scaling = "llama3";
    return 0;
}

static int read_scaling(struct binding *b, struct arena *a) {
    const struct gguf *g = b->m->file;
    struct model_config *c = &b->m->config;
    struct str type = STR("none");
    float factor = 0;
    bool typed, present;
    c->rope_scaling = "none";
    TRY(gguf_get_f32(g, "llama.rope.scale_linear", &factor, &present, b->e));
    if (present) type = STR("linear");
    TRY(gguf_get_string(g, "llama.rope.scaling.type", &type, &typed, b->e));
    TRY(gguf_get_f32(g, "llama.rope.scaling.factor", &factor, &present, b->e));
    TRY(bind_rope_tensor(b, a));
    bool linear = str_equal(type, STR("linear")), llama3 = str_equal(type, STR("llama3"));
    if (!linear && !llama3 && !str_equal(type, STR("none")))
        FAIL(b->e, ERR_MODEL,
             "%s: rope scaling '" STR_FMT "' is not supported; 'none', 'linear' and 'llama3' are",
             g->path, STR_ARG(type));
    if (c->rope_factors && linear)
        FAIL(b->e, ERR_MODEL, "%s: has both linear rope scaling and the tensor rope_freqs.weight",
             g->path);
    if (c->rope_factors || (!linear && !llama3)) return 0;
    if (!(factor > 0))
        FAIL(b->e, ERR_MODEL, "%s: " STR_FMT " rope scaling has the factor %g; it must be positive",
             g->path, STR_ARG(type), (double)factor);
    if (llama3) return read_llama3(g, c, factor, a, b->e);
    float *factors = arena_array(a, c->rope_dimensions / 2, sizeof *factors);
    rope_factors_linear(factor, c->rope_dimensions, factors);
    c->rope_factors = factors;
    c->rope_scaling = "linear";
    return 0;
}

static int check_leftovers(const struct binding *b) {
    const struct gguf *g = b->m->file;
    size_t left = 0;
    const struct gguf_tensor *first = NULL;
    for (size_t i = g->tensor_count; i-- > 0;)
        if (!b->taken[i]) left++, first = &g->tensors[i];
    if (left)
        FAIL(b->e, ERR_MODEL,
             "%s: the tensor " STR_FMT "%s is not part of a llama model with %u layers as this "
             "program knows it; this variant is not supported",
             g->path, STR_ARG(first->name), left > 1 ? " (and others)" : "", b->m->config.L);
    return 0;
}

static int bind_tensors(struct model *m, struct arena *a, struct err *e) {
    const struct gguf *g = m->file;
    struct model_config *c = &m->config;
    struct binding b = {.m = m, .taken = arena_array(a, g->tensor_count, sizeof(bool)), .e = e};
    if (c->L > g->tensor_count)
        FAIL(e, ERR_MODEL, "%s: llama.block_count is %u, but the file has only %zu tensors",
             g->path, c->L, g->tensor_count);
    TRY(bind_vocabulary(&b));
    TRY(bind(&b, "output_norm.weight", c->D, 0, true, &m->output_norm));
    m->layers = arena_array(a, c->L, sizeof *m->layers);
    for (uint32_t i = 0; i < c->L; i++) TRY(bind_layer(&b, i, &m->layers[i]));
    TRY(read_scaling(&b, a));
    TRY(check_leftovers(&b));
    for (size_t i = 0; i < g->tensor_count; i++)
        if (!str_equal(g->tensors[i].name, STR("rope_freqs.weight")))
            c->parameters += g->tensors[i].elements;
    c->kv_bytes_per_token = (uint64_t)c->L * 2 * c->G * c->E * sizeof(uint16_t);
    return 0;
}

int model_open(const char *path, struct arena *a, struct model **out, struct err *e) {
    struct model *m = arena_alloc(a, sizeof *m);
    TRY(gguf_open(path, a, &m->file, e));
    if (check_kind(m->file, e) != 0 || read_config(m->file, &m->config, e) != 0 ||
        bind_tensors(m, a, e) != 0) {
        gguf_close(m->file);
        return -1;
    }
    *out = m;
    return 0;
}

void model_close(struct model *m) {
    if (m) gguf_close(m->file);
}

static uint32_t largest(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

uint32_t model_qkv_width(const struct model_config *c) {
    return (c->H + 2 * c->G) * c->E;
}

uint32_t model_input_width(const struct model_config *c) {
    return largest(largest(c->D, c->F), c->H * c->E);
}

uint32_t model_output_width(const struct model_config *c) {
    return largest(largest(2 * c->F, c->D), model_qkv_width(c));
}

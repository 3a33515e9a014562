// A whole Llama model with seeded random weights and a byte-level tokenizer, a few hundred KiB.
#include "engine/base/file.h"
#include "engine/base/rng.h"
#include "engine/rope.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/support.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTROL_TOKENS 3
#define BYTE_TOKENS 256
#define TYPE_NORMAL 1
#define TYPE_CONTROL 3
#define TYPE_UNUSED 5

static const char chatml[] =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' "
    "}}{% endif %}";

static struct tiny_model_options with_defaults(const struct tiny_model_options *given) {
    struct tiny_model_options o = *given;
    if (!o.L) o.L = 2;
    if (!o.D) o.D = 64;
    if (!o.H) o.H = 4;
    if (!o.G) o.G = o.H % 2 ? o.H : o.H / 2;
    if (!o.E) o.E = o.D / o.H;
    if (!o.F) o.F = 128;
    if (!o.V) o.V = 320;
    if (!o.context) o.context = 4096;
    if (!o.seed) o.seed = 1;
    if (o.rope_base == 0) o.rope_base = 10000;
    if (!o.name) o.name = "tiny";
    if (!o.pre) o.pre = "smollm";
    if (!o.chat_template) o.chat_template = chatml;
    assert(o.V >= CONTROL_TOKENS + BYTE_TOKENS);
    return o;
}

// GPT-2's byte alphabet: printable Latin-1 bytes stand for themselves, the others for the code
// points from 256 on, in order.
static size_t spell_byte(int byte, char out[4]) {
    int next = 256;
    for (int b = 0; b <= byte; b++) {
        bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        if (b == byte) return utf8_encode((uint32_t)(printable ? b : next), out);
        next += !printable;
    }
    return 0;
}

#define SPELL_BYTES 16

// Merges in rank order: a space and a letter, then pairs of frequent letters, then the two
// together. 26 + 144 + 144 of them; what V leaves over are unused tokens.
static bool spell_merge(size_t index, char left[SPELL_BYTES], char right[SPELL_BYTES]) {
    static const char frequent[] = "etaoinshrdlu";
    char space[4] = {0};
    space[spell_byte(' ', space)] = 0;
    left[0] = right[0] = 0;
    if (index < 26) {
        snprintf(left, SPELL_BYTES, "%s", space);
        snprintf(right, SPELL_BYTES, "%c", (char)('a' + index));
        return true;
    }
    index -= 26;
    char first = frequent[index / 12 % 12], second = frequent[index % 12];
    if (index < 144)
        snprintf(left, SPELL_BYTES, "%c", first);
    else if (index < 288)
        snprintf(left, SPELL_BYTES, "%s%c", space, first);
    else
        return false;
    snprintf(right, SPELL_BYTES, "%c", second);
    return true;
}

void tiny_tokenizer_write(struct gguf_writer *w, const struct tiny_model_options *given) {
    struct tiny_model_options o = with_defaults(given);
    static const char *const control[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    struct arena *a = arena_create("tokenizer");
    struct str *tokens = arena_array(a, o.V, sizeof *tokens);
    struct str *merges = arena_array(a, o.V, sizeof *merges);
    int32_t *types = arena_array(a, o.V, sizeof *types);
    uint32_t n = 0, merge_count = 0;
    for (; n < CONTROL_TOKENS; n++) tokens[n] = str_from(control[n]), types[n] = TYPE_CONTROL;
    for (int b = 0; b < BYTE_TOKENS; b++, n++) {
        char spelling[4];
        tokens[n] = str_copy(a, (struct str){spelling, spell_byte(b, spelling)});
        types[n] = TYPE_NORMAL;
    }
    for (size_t i = 0; n < o.V; i++, n++) {
        char left[SPELL_BYTES], right[SPELL_BYTES];
        bool merge = spell_merge(i, left, right);
        tokens[n] = str_from(merge ? arena_printf(a, "%s%s", left, right)
                                   : arena_printf(a, "<|unused_%zu|>", i));
        types[n] = merge ? TYPE_NORMAL : TYPE_UNUSED;
        if (merge) merges[merge_count++] = str_from(arena_printf(a, "%s %s", left, right));
    }
    gguf_writer_string(w, "tokenizer.ggml.model", STR("gpt2"));
    gguf_writer_string(w, "tokenizer.ggml.pre", str_from(o.pre));
    gguf_writer_strings(w, "tokenizer.ggml.tokens", tokens, o.V);
    gguf_writer_i32s(w, "tokenizer.ggml.token_type", types, o.V);
    gguf_writer_strings(w, "tokenizer.ggml.merges", merges, merge_count);
    gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", 1);
    gguf_writer_u32(w, "tokenizer.ggml.eos_token_id", 2);
    gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", o.adds_bos);
    if (o.chat_template[0])
        gguf_writer_string(w, "tokenizer.chat_template", str_from(o.chat_template));
    arena_destroy(a);
}

static void write_keys(struct gguf_writer *w, const struct tiny_model_options *o) {
    gguf_writer_string(w, "general.architecture", STR("llama"));
    gguf_writer_string(w, "general.type", STR("model"));
    gguf_writer_string(w, "general.name", str_from(o->name));
    gguf_writer_u32(w, "llama.block_count", o->L);
    gguf_writer_u32(w, "llama.context_length", o->context);
    gguf_writer_u32(w, "llama.embedding_length", o->D);
    gguf_writer_u32(w, "llama.feed_forward_length", o->F);
    gguf_writer_u32(w, "llama.attention.head_count", o->H);
    gguf_writer_u32(w, "llama.attention.head_count_kv", o->G);
    if (o->E * o->H != o->D) {
        gguf_writer_u32(w, "llama.attention.key_length", o->E);
        gguf_writer_u32(w, "llama.attention.value_length", o->E);
    }
    gguf_writer_u32(w, "llama.rope.dimension_count", o->E);
    gguf_writer_f32(w, "llama.rope.freq_base", o->rope_base);
    gguf_writer_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    gguf_writer_u32(w, "llama.vocab_size", o->V);
    if (o->window) gguf_writer_u32(w, "llama.attention.sliding_window", o->window);
    tiny_tokenizer_write(w, o);
}

// Uniform in centre +- reach, from a stream of the tensor's own name; never exactly zero.
static void write_random(struct gguf_writer *w, const struct tiny_model_options *o,
                         const char *name, enum tensor_type type, uint32_t row, uint32_t rows,
                         float centre, float reach) {
    uint64_t dim[2] = {row, rows};
    size_t n = (size_t)row * (rows ? rows : 1);
    float *values = malloc(n * sizeof *values);
    struct rng r = rng_open(o->seed, "tiny model", name);
    for (size_t i = 0; i < n; i++) {
        float u = (float)(2 * rng_unit(&r) - 1);
        values[i] = centre + reach * (u != 0.0f ? u : 0.5f);
    }
    gguf_writer_tensor(w, name, type, rows ? 2 : 1, dim, values);
    free(values);
}

static void write_layer(struct gguf_writer *w, const struct tiny_model_options *o, uint32_t index) {
    uint32_t q = o->H * o->E, kv = o->G * o->E;
    const struct {
        const char *name;
        uint32_t row, rows;
    } matrices[] = {
        {"attn_q", o->D, q},      {"attn_k", o->D, kv},     {"attn_v", o->D, kv},
        {"attn_output", q, o->D}, {"ffn_gate", o->D, o->F}, {"ffn_up", o->D, o->F},
        {"ffn_down", o->F, o->D},
    };
    char name[64];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "blk.%u.%s.weight", index, i ? "ffn_norm" : "attn_norm");
        write_random(w, o, name, TENSOR_F32, o->D, 0, 1.0f, 0.2f);
    }
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        snprintf(name, sizeof name, "blk.%u.%s.weight", index, matrices[i].name);
        float reach = sqrtf(3.0f / (float)matrices[i].row);
        write_random(w, o, name, o->type, matrices[i].row, matrices[i].rows, 0, reach);
    }
    for (int i = 0; o->biases && i < 3; i++) {
        snprintf(name, sizeof name, "blk.%u.attn_%c.bias", index, "qkv"[i]);
        write_random(w, o, name, TENSOR_F32, i ? kv : q, 0, 0, 0.3f);
    }
}

static void write_rope_factors(struct gguf_writer *w, const struct tiny_model_options *o) {
    uint64_t pairs = o->E / 2;
    float *factors = malloc(pairs * sizeof *factors);
    struct rope_llama3 rule = {.factor = 8, .low = 1, .high = 4, .original = 512};
    rope_factors_llama3(&rule, o->rope_base, o->E, factors);
    gguf_writer_tensor(w, "rope_freqs.weight", TENSOR_F32, 1, &pairs, factors);
    free(factors);
}

struct gguf_writer tiny_model_open(const struct tiny_model_options *given) {
    struct tiny_model_options o = with_defaults(given);
    struct gguf_writer w = gguf_writer_open();
    write_keys(&w, &o);
    write_random(&w, &o, "token_embd.weight", o.type, o.D, o.V, 0, 1.0f);
    if (o.llama3_scaling) write_rope_factors(&w, &o);
    for (uint32_t i = 0; i < o.L; i++) write_layer(&w, &o, i);
    write_random(&w, &o, "output_norm.weight", TENSOR_F32, o.D, 0, 1.0f, 0.2f);
    float reach = 4 * sqrtf(3.0f / (float)o.D);
    if (o.own_head) write_random(&w, &o, "output.weight", o.head_type, o.D, o.V, 0, reach);
    return w;
}

void tiny_model_write(const char *path, const struct tiny_model_options *o) {
    struct gguf_writer w = tiny_model_open(o);
    gguf_writer_save(&w, path);
    gguf_writer_free(&w);
}

void tiny_model_patch(const char *path, const char *tensor, uint64_t element, float value) {
    struct arena *a = arena_create("test");
    struct str bytes;
    struct gguf *g;
    struct err e = {0};
    ASSERT_OK(gguf_open(path, a, &g, &e), e);
    const struct gguf_tensor *t = gguf_tensor_find(g, tensor);
    assert_true(t != NULL && t->type == TENSOR_F32 && element < t->elements);
    size_t at = (size_t)(t->data - g->map.p) + element * sizeof value;
    gguf_close(g);
    ASSERT_OK(file_read(path, 64 << 20, a, &bytes, &e), e);
    char *copy = arena_memdup(a, bytes.p, bytes.n);
    memcpy(copy + at, &value, sizeof value);
    test_write_file(path, (struct str){copy, bytes.n});
    arena_destroy(a);
}

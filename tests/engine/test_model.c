// The llama model: what is required, what is optional, what is refused, and what a file is
// described as.
#include "engine/model.h"
#include "engine/model_describe.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct tiny_model_options small = {.D = 32, .H = 4, .G = 2, .F = 32, .V = 260};

static const char *model_path(struct arena *a) {
    return arena_printf(a, "%s/model.gguf", test_folder());
}

static struct model *open_model(const struct gguf_writer *w, struct arena *a) {
    struct model *m = NULL;
    struct err e = {0};
    gguf_writer_save(w, model_path(a));
    ASSERT_OK(model_open(model_path(a), a, &m, &e), e);
    return m;
}

// Frees the writer.
static void refuse_model(struct gguf_writer *w, const char *needle) {
    struct arena *a = arena_create("test");
    struct model *m;
    struct err e = {0};
    gguf_writer_save(w, model_path(a));
    gguf_writer_free(w);
    int result = model_open(model_path(a), a, &m, &e);
    ASSERT_FAILS(result, e, ERR_MODEL, needle);
    ASSERT_FAILS(result, e, ERR_MODEL, model_path(a));
    arena_destroy(a);
}

// The bytes of `name` in the keys or records are changed to `other`, of the same length.
static void rename_in(struct buf *b, const char *name, const char *other) {
    size_t at = str_find(buf_str(b), str_from(name), 0);
    assert_true(at != STR_NONE && strlen(name) == strlen(other));
    memcpy(b->p + at, other, strlen(other));
}

static void test_every_type(void **state) {
    (void)state;
    static const enum tensor_type types[] = {TENSOR_F32,  TENSOR_F16,  TENSOR_BF16, TENSOR_Q8_0,
                                             TENSOR_Q4_0, TENSOR_Q4_1, TENSOR_Q5_0, TENSOR_Q5_1,
                                             TENSOR_Q4_K, TENSOR_Q5_K, TENSOR_Q6_K};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct arena *a = arena_create("test");
        struct tiny_model_options o = {.type = types[i], .L = 1, .D = 256, .F = 256};
        struct gguf_writer w = tiny_model_open(&o);
        struct model *m = open_model(&w, a);
        assert_int_equal(m->layers[0].q->type, types[i]);
        assert_int_equal(m->embedding->type, types[i]);
        json_t *counts = model_tensor_types(m);
        const char *name = tensor_format_of(types[i])->name;
        json_int_t expected = types[i] == TENSOR_F32 ? 11 : 8;
        assert_int_equal(json_integer_value(json_object_get(counts, name)), expected);
        json_decref(counts);
        model_close(m);
        gguf_writer_free(&w);
        arena_destroy(a);
    }
}

static void test_config(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct tiny_model_options o = {.L = 3,
                                   .D = 64,
                                   .H = 6,
                                   .G = 2,
                                   .E = 16,
                                   .F = 96,
                                   .V = 270,
                                   .window = 40,
                                   .biases = true,
                                   .rope_base = 5e5f,
                                   .context = 777};
    struct gguf_writer w = tiny_model_open(&o);
    struct model *m = open_model(&w, a);
    const struct model_config *c = &m->config;
    assert_string_equal(c->architecture, "llama");
    assert_true(str_equal_c(c->name, "tiny"));
    assert_int_equal(c->L, 3);
    assert_int_equal(c->D, 64);
    assert_int_equal(c->H, 6);
    assert_int_equal(c->G, 2);
    assert_int_equal(c->E, 16);
    assert_int_equal(c->F, 96);
    assert_int_equal(c->V, 270);
    assert_int_equal(c->trained_context, 777);
    assert_int_equal(c->window, 40);
    assert_int_equal(c->rope_dimensions, 16);
    assert_true(c->rope_neighbours && !c->gate_gelu && c->tied_head);
    assert_true(c->rope_base == 5e5 && c->attention_scale == 0.25 && c->norm_epsilon == 1e-5f);
    assert_true(c->attention_softcap == 0 && c->logit_softcap == 0);
    assert_null(c->rope_factors);
    assert_string_equal(c->rope_scaling, "none");
    // q 64x96, k and v 64x32, o 96x64, three of 64x96, norms, biases; embedding and the last norm
    uint64_t layer = 64 * 96 + 2 * 64 * 32 + 96 * 64 + 3 * 64 * 96 + 2 * 64 + 96 + 32 + 32;
    assert_int_equal(c->parameters, 3 * layer + 270 * 64 + 64);
    assert_int_equal(c->kv_bytes_per_token, 3 * 2 * 2 * 16 * 2);
    for (uint32_t i = 0; i < 3; i++) {
        const struct model_layer *l = &m->layers[i];
        assert_true(l->q_bias && l->k_bias && l->v_bias);
        assert_int_equal(l->q->dim[1], 96);
        assert_int_equal(l->down->dim[0], 96);
        assert_true(str_equal_c(l->o->name, arena_printf(a, "blk.%u.attn_output.weight", i)));
    }
    model_close(m);
    gguf_writer_free(&w);
    arena_destroy(a);
}

// B19: an own head is used, an absent one is the embedding, and a statement of the file must agree.
static void test_heads(void **state) {
    (void)state;
    for (int own = 0; own < 2; own++)
        for (int stated = -1; stated < 2; stated++) {
            struct arena *a = arena_create("test");
            struct tiny_model_options o = small;
            o.own_head = own;
            struct gguf_writer w = tiny_model_open(&o);
            if (stated >= 0) gguf_writer_bool(&w, "llama.tie_word_embeddings", stated);
            if (stated >= 0 && stated == own) {
                refuse_model(&w, own ? "true, but output.weight is there"
                                     : "false, but output.weight is missing");
            } else {
                struct model *m = open_model(&w, a);
                assert_int_equal(m->config.tied_head, !own);
                assert_true((m->output == m->embedding) == !own);
                if (own) assert_true(str_equal_c(m->output->name, "output.weight"));
                model_close(m);
                gguf_writer_free(&w);
            }
            arena_destroy(a);
        }
}

// B19: each key that is required is named when it is missing; the others have documented defaults.
static void test_missing_keys(void **state) {
    (void)state;
    static const char *const required[] = {
        "general.architecture",
        "llama.context_length",
        "llama.embedding_length",
        "llama.block_count",
        "llama.feed_forward_length",
        "llama.attention.head_count",
        "llama.attention.layer_norm_rms_epsilon",
    };
    struct arena *a = arena_create("test");
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        struct gguf_writer w = tiny_model_open(&small);
        char *other = arena_strdup(a, required[i]);
        other[0] = 'x';
        rename_in(&w.keys, required[i], other);
        refuse_model(&w, arena_printf(a, "the required key %s", required[i]));
    }
    struct tiny_model_options o = small;
    o.G = o.H;
    struct gguf_writer w = tiny_model_open(&o);
    rename_in(&w.keys, "llama.attention.head_count_kv", "xlama.attention.head_count_kv");
    rename_in(&w.keys, "llama.rope.dimension_count", "xlama.rope.dimension_count");
    rename_in(&w.keys, "llama.rope.freq_base", "xlama.rope.freq_base");
    rename_in(&w.keys, "llama.vocab_size", "xlama.vocab_size");
    struct model *m = open_model(&w, a);
    assert_int_equal(m->config.G, 4);
    assert_int_equal(m->config.rope_dimensions, 8);
    assert_true(m->config.rope_base == 10000);
    model_close(m);
    gguf_writer_free(&w);
    arena_destroy(a);
}

// Each tensor of the model is missed by name when it is away, and noticed when it is not expected.
static void test_missing_tensors(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct gguf_writer w = tiny_model_open(&small);
    struct model *m = open_model(&w, a);
    for (size_t i = 0; i < m->file->tensor_count; i++) {
        struct gguf_writer damaged = tiny_model_open(&small);
        char *name = str_to_c(a, m->file->tensors[i].name), *other = arena_strdup(a, name);
        other[strlen(other) - 1] = 'T';
        rename_in(&damaged.records, name, other);
        refuse_model(&damaged, arena_printf(a, "the tensor %s (", name));
    }
    const uint64_t dim[1] = {8};
    const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct gguf_writer more = tiny_model_open(&small);
    gguf_writer_tensor(&more, "blk.0.attn_output.bias", TENSOR_F32, 1, dim, values);
    refuse_model(&more, "the tensor blk.0.attn_output.bias is not part of a llama model");
    more = tiny_model_open(&small);
    gguf_writer_tensor(&more, "blk.2.attn_norm.weight", TENSOR_F32, 1, dim, values);
    gguf_writer_tensor(&more, "stray", TENSOR_F32, 1, dim, values);
    refuse_model(&more, "blk.2.attn_norm.weight (and others) is not part of");
    model_close(m);
    gguf_writer_free(&w);
    arena_destroy(a);
}

// A second key of this name would be refused as a double, so the first is renamed away.
static void refuse_u32(const char *key, uint32_t value, const char *needle) {
    struct gguf_writer w = tiny_model_open(&small);
    if (str_find(buf_str(&w.keys), str_from(key), 0) != STR_NONE) {
        struct arena *a = arena_create("test");
        char *other = arena_strdup(a, key);
        other[0] = 'x';
        // "head_count" stands in "head_count_kv" too: the key is written with its length before it
        struct buf whole = {0};
        put_string(&whole, str_from(key));
        size_t at = str_find(buf_str(&w.keys), buf_str(&whole), 0);
        if (at != STR_NONE) memcpy(w.keys.p + at + 8, other, strlen(other));
        buf_free(&whole);
        arena_destroy(a);
    }
    gguf_writer_u32(&w, key, value);
    refuse_model(&w, needle);
}

static void test_wrong_sizes(void **state) {
    (void)state;
    refuse_u32("llama.block_count", 0, "llama.block_count is 0");
    refuse_u32("llama.block_count", 1, "blk.1.");
    refuse_u32("llama.block_count", 3, "the tensor blk.2.attn_norm.weight (32) is missing");
    refuse_u32("llama.block_count", UINT32_MAX,
               "llama.block_count is 4294967295, but the file has");
    refuse_u32("llama.context_length", 0, "llama.context_length is 0");
    refuse_u32("llama.embedding_length", 40, "token_embd.weight has the shape 32 x 260");
    refuse_u32("llama.embedding_length", 33, "not a multiple of the 4 heads");
    refuse_u32("llama.feed_forward_length", 64, "model's keys ask for 32 x 64");
    refuse_u32("llama.attention.head_count", 0, "head_count is 0");
    refuse_u32("llama.attention.head_count", 2, "blk.0.attn_k.weight has the shape 32 x 16");
    refuse_u32("llama.attention.head_count_kv", 0, "cannot share 0");
    refuse_u32("llama.attention.head_count_kv", 3, "4 query heads cannot share 3");
    refuse_u32("llama.attention.head_count_kv", 4, "blk.0.attn_k.weight has the shape 32 x 16");
    refuse_u32("llama.attention.key_length", 16, "16 key and 8 value");
    refuse_u32("llama.attention.value_length", 16, "8 key and 16 value elements");
    refuse_u32("llama.rope.dimension_count", 7, "dimension_count is 7");
    refuse_u32("llama.rope.dimension_count", 10, "2 to 8");
    refuse_u32("llama.vocab_size", 261, "vocab_size is 261, but token_embd.weight has 260");
}

static void refuse_f32(const char *name, const char *key, float value, const char *needle) {
    struct arena *a = arena_create("test");
    struct gguf_writer w = tiny_model_open(&small);
    char *other = arena_strdup(a, key);
    other[0] = 'x';
    if (name) rename_in(&w.keys, key, other);
    gguf_writer_f32(&w, key, value);
    refuse_model(&w, needle);
    arena_destroy(a);
}

static void refuse_string(const char *key, const char *value, const char *needle) {
    struct gguf_writer w = tiny_model_open(&small);
    gguf_writer_string(&w, key, str_from(value));
    refuse_model(&w, needle);
}

// What is not supported is refused by its name; unknown keys of the architecture may not be passed
// over.
static void test_unsupported(void **state) {
    (void)state;
    struct gguf_writer w = tiny_model_open(&small);
    rename_in(&w.keys, "llama", "gemma");
    refuse_model(&w, "architecture 'gemma' is not supported");
    w = tiny_model_open(&small);
    rename_in(&w.keys, "model", "lora!");
    refuse_model(&w, "general.type is 'lora!'");
    w = tiny_model_open(&small);
    gguf_writer_raw(&w, "split.count", GGUF_U16, STR("\3\0"));
    refuse_model(&w, "one of 3 shards");
    refuse_u32("llama.expert_count", 8, "llama.expert_count is 8, but only models where it is 0");
    refuse_u32("llama.new_idea", 1, "the key llama.new_idea is not known");
    refuse_string("llama.rope.scaling.type", "yarn", "rope scaling 'yarn' is not supported");
    refuse_string("llama.rope.scaling.type", "longrope", "'longrope' is not supported");
    refuse_string("llama.rope.scaling.type", "linear", "linear rope scaling has the factor 0");
    refuse_string("llama.tensor_data_layout", "reference", "tensor_data_layout is 'reference'");
    refuse_string("llama.rope.scaling.type", "llama3", "llama3 rope scaling has the factor 0");
    refuse_f32("", "llama.rope.freq_base", 1, "freq_base is 1");
    refuse_f32("", "llama.rope.freq_base", NAN, "freq_base is");
    refuse_f32("", "llama.attention.layer_norm_rms_epsilon", 0, "rms_epsilon is 0");
    refuse_f32("", "llama.attention.layer_norm_rms_epsilon", INFINITY, "rms_epsilon is inf");
    refuse_f32(NULL, "llama.logit_scale", 0.5f, "llama.logit_scale is 0.5");
}

static struct model *open_scaled(struct gguf_writer *w, struct arena *a) {
    struct model *m = open_model(w, a);
    gguf_writer_free(w);
    return m;
}

static void test_scaling(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct gguf_writer w = tiny_model_open(&small);
    gguf_writer_string(&w, "llama.rope.scaling.type", STR("linear"));
    gguf_writer_f32(&w, "llama.rope.scaling.factor", 2.5f);
    struct model *m = open_scaled(&w, a);
    assert_string_equal(m->config.rope_scaling, "linear");
    for (int i = 0; i < 4; i++) assert_true(m->config.rope_factors[i] == 2.5f);
    model_close(m);

    struct tiny_model_options o = small;
    o.llama3_scaling = true;
    w = tiny_model_open(&o);
    m = open_scaled(&w, a);
    const float *carried = m->config.rope_factors;
    assert_string_equal(m->config.rope_scaling, "llama3");
    assert_true(carried[0] == 1.0f && carried[3] == 8.0f);
    model_close(m);

    // The same rule by its numbers in keys.
    w = tiny_model_open(&small);
    gguf_writer_string(&w, "llama.rope.scaling.type", STR("llama3"));
    gguf_writer_f32(&w, "llama.rope.scaling.factor", 8);
    gguf_writer_f32(&w, "llama.rope.scaling.low_freq_factor", 1);
    gguf_writer_f32(&w, "llama.rope.scaling.high_freq_factor", 4);
    gguf_writer_u32(&w, "llama.rope.scaling.original_context_length", 512);
    m = open_scaled(&w, a);
    assert_memory_equal(m->config.rope_factors, carried, 4 * sizeof *carried);
    model_close(m);

    const uint64_t pairs[1] = {4};
    const float bad[4] = {1, 0, 2, 2};
    w = tiny_model_open(&small);
    gguf_writer_tensor(&w, "rope_freqs.weight", TENSOR_F32, 1, pairs, bad);
    refuse_model(&w, "element 1 of rope_freqs.weight is 0");
    w = tiny_model_open(&o);
    gguf_writer_string(&w, "llama.rope.scaling.type", STR("linear"));
    gguf_writer_f32(&w, "llama.rope.scaling.factor", 2);
    refuse_model(&w, "both linear rope scaling and the tensor");
    arena_destroy(a);
}

static char *identify(struct gguf_writer *w, struct arena *a, char **tokenizer, char **template) {
    struct err e = {0};
    struct model *m = open_scaled(w, a);
    ASSERT_OK(model_identify(m, &e), e);
    char hex[HASH_HEX_SIZE];
    ASSERT_OK(hash_file(model_path(a), hex, &e), e);
    assert_string_equal(hex, m->file_sha256);
    *tokenizer = arena_strdup(a, m->tokenizer_sha256);
    *template = arena_strdup(a, m->template_sha256);
    model_close(m);
    return arena_strdup(a, hex);
}

// Other weights, another template, another merge: each changes its own hash and no other's.
static void test_identity(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    char *file[4], *tokenizer[4], *template[4];
    struct tiny_model_options o = small;
    o.V = 300;
    for (int i = 0; i < 4; i++) {
        o.seed = i == 1 ? 2 : 1;
        o.chat_template = i == 2 ? "" : NULL;
        struct gguf_writer w = tiny_model_open(&o);
        if (i == 3) rename_in(&w.keys, "smollm", "gpt-2!");
        file[i] = identify(&w, a, &tokenizer[i], &template[i]);
        assert_true(i == 0 || strcmp(file[i], file[0]) != 0);
        assert_int_equal(strcmp(tokenizer[i], tokenizer[0]) == 0, i != 3);
        assert_int_equal(strcmp(template[i], template[0]) == 0, i != 2);
    }
    assert_string_equal(template[2],
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    arena_destroy(a);
}

static struct backend *open_backend(void) {
    struct err e = {0};
    struct backend *b;
    ASSERT_OK(backend_cpu_open(&(struct backend_options){.op_table = "c"}, &b, &e), e);
    return b;
}

static json_int_t integer(const json_t *o, const char *key) {
    return json_integer_value(json_object_get(o, key));
}

static void test_bytes(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct backend *b = open_backend();
    struct err e = {0};
    struct tiny_model_options o = {
        .L = 2, .D = 32, .H = 4, .G = 2, .E = 8, .F = 64, .V = 261, .type = TENSOR_Q8_0};
    struct gguf_writer w = tiny_model_open(&o);
    struct model *m = open_scaled(&w, a);
    ASSERT_OK(model_identify(m, &e), e);
    const uint64_t lengths[] = {1, 512, 513};
    json_t *json = model_describe_json(m, b, lengths, 3);
    // The embedding's rows are taken from the file itself, one a token.
    int matrices = 2 * (32 * 32 + 2 * 32 * 16 + 32 * 32 + 3 * 32 * 64), norms = 5 * 32 * 4;
    // 32 codes and a scale of four bytes, in panels of 16 outputs
    int stored = matrices / 32 * 36 + norms + 272 * 36;
    int unpacked = matrices * 2 + norms + 272 * 32 * 2;
    // The head size is padded from 8 to 16; pages hold 512 positions
    int page = 512 * 2 * 2 * (16 + 16) * 2;
    assert_int_equal(integer(json, "weight_bytes_stored"), stored);
    assert_int_equal(integer(json, "weight_bytes_unpacked"), unpacked);
    for (size_t i = 0; i < 3; i++) {
        const json_t *row = json_array_get(json_object_get(json, "memory"), i);
        int kv = i < 2 ? page : 2 * page;
        assert_int_equal(integer(row, "kv_bytes"), kv);
        assert_int_equal(integer(row, "stored_bytes"), stored + kv);
        assert_int_equal(integer(row, "unpacked_bytes"), unpacked + kv);
    }
    json_decref(json);
    backend_close(b);
    model_close(m);
    arena_destroy(a);
}

static void test_description(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct tiny_model_options o = small;
    o.name = "evil\033[2J\xe2\x80\xae name \xc3\xa9\xff";
    o.context = 1000;
    struct gguf_writer w = tiny_model_open(&o);
    struct err e = {0};
    struct model *m = open_scaled(&w, a);
    ASSERT_OK(model_identify(m, &e), e);
    uint64_t lengths[MODEL_MOST_LENGTHS];
    assert_int_equal(model_usual_lengths(m, lengths), 2);
    assert_int_equal(lengths[0], 512);
    assert_int_equal(lengths[1], 1000);
    lengths[1] = 2000;
    struct backend *b = open_backend();
    struct buf out = {0};
    model_describe_text(m, b, lengths, 2, &out);
    assert_true(utf8_valid(buf_str(&out)));
    static const char *const lines[] = {
        "evil?[2J? name \xc3\xa9?\n",
        "llama: 2 layers, width 32, feed-forward 32, vocabulary 260\n",
        "4 query heads and 2 key/value heads of 8 elements",
        "pairs (2i, 2i+1), 8 of 8 elements",
        "gpt2, pre-tokenizer smollm, 260 tokens\n",
        "F32 x 20, 20 in all\n",
        "2000  ",
        "beyond the trained context\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(out.p, lines[i])) fail_msg("no '%s' in:\n%s", lines[i], out.p);
    assert_non_null(strstr(out.p, m->file_sha256));
    buf_free(&out);
    json_t *json = model_describe_json(m, b, lengths, 2);
    assert_int_equal(integer(json, "kv_bytes_per_token"), 128);
    assert_string_equal(json_string_value(json_object_get(json, "sha256")), m->file_sha256);
    assert_int_equal(integer(json, "unused_bytes"), 0);
    json_t *row = json_array_get(json_object_get(json, "memory"), 1);
    assert_int_equal(integer(row, "tokens"), 2000);
    assert_int_equal(integer(row, "kv_bytes"), 4 * 512 * 2 * 2 * (16 + 16) * 2);
    json_decref(json);
    backend_close(b);
    model_close(m);
    arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),      cmocka_unit_test(test_config),
        cmocka_unit_test(test_heads),           cmocka_unit_test(test_missing_keys),
        cmocka_unit_test(test_missing_tensors), cmocka_unit_test(test_wrong_sizes),
        cmocka_unit_test(test_unsupported),     cmocka_unit_test(test_scaling),
        cmocka_unit_test(test_identity),        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_description),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

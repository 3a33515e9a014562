#include "engine/model_describe.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

size_t model_usual_lengths(const struct model *m, uint64_t out[MODEL_MOST_LENGTHS]) {
    size_t count = 0;
    for (uint64_t n = 512; n < m->config.trained_context; n *= 4) out[count++] = n;
    out[count++] = m->config.trained_context;
    return count;
}

static struct str text_of(const struct model *m, const char *key) {
    const struct gguf_value *v = gguf_find(m->file, key);
    return v && v->type == GGUF_STRING ? v->as.s : (struct str){"", 0};
}

static uint64_t token_count(const struct model *m) {
    const struct gguf_value *v = gguf_find(m->file, "tokenizer.ggml.tokens");
    return v ? v->count : 0;
}

// Bytes of the file that neither the tables nor the tensors account for, alignment aside.
static uint64_t unused_bytes(const struct model *m) {
    uint64_t used = 0, head = m->file->map.bytes;
    for (size_t i = 0; i < m->file->tensor_count; i++) {
        const struct gguf_tensor *t = &m->file->tensors[i];
        uint64_t begin = (uint64_t)(t->data - m->file->map.p), a = m->file->alignment;
        uint64_t left = m->file->map.bytes - begin, padded = (t->bytes + a - 1) / a * a;
        used += padded < left ? padded : left;
        if (begin < head) head = begin;
    }
    return m->file->map.bytes - head - used;
}

// A name from the file, safe to print.
static void add_plain(struct buf *out, struct str s) {
    for (size_t at = 0; at < s.n;) {
        uint32_t code_point;
        size_t n = utf8_decode(s, at, &code_point);
        bool acts = code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0) ||
                    (code_point >= 0x200e && code_point <= 0x202e) ||
                    (code_point >= 0x2060 && code_point <= 0x206f) || code_point == 0xfffd;
        if (acts)
            buf_add_char(out, '?');
        else
            buf_add(out, s.p + at, n);
        at += n;
    }
}

static void describe_shape(const struct model *m, struct buf *out) {
    const struct model_config *c = &m->config;
    buf_printf(out, "architecture  %s: %u layers, width %u, feed-forward %u, vocabulary %u\n",
               c->architecture, c->L, c->D, c->F, c->V);
    buf_printf(out, "attention     %u query heads and %u key/value heads of %u elements, ", c->H,
               c->G, c->E);
    if (c->window)
        buf_printf(out, "each token sees the last %u\n", c->window);
    else
        buf_printf(out, "each token sees all before it\n");
    buf_printf(out, "output head   %s\n", c->tied_head ? "the embedding (tied)" : "its own");
    buf_printf(out, "rotation      pairs (%s), %u of %u elements, base %g, scaling %s\n",
               c->rope_neighbours ? "2i, 2i+1" : "i, i + half", c->rope_dimensions, c->E,
               c->rope_base, c->rope_scaling);
    buf_printf(out, "context       %u tokens trained\n", c->trained_context);
    buf_printf(out, "parameters    %" PRIu64 "\n", c->parameters);
}

static void describe_types(const struct model *m, struct buf *out) {
    json_t *types = model_tensor_types(m), *count;
    const char *name;
    buf_printf(out, "tensors       ");
    json_object_foreach(types, name, count)
        buf_printf(out, "%s x %lld, ", name, (long long)json_integer_value(count));
    buf_printf(out, "%zu in all\n", m->file->tensor_count);
    json_decref(types);
}

static uint64_t kv_bytes(const struct model *m, struct backend *b, uint64_t tokens) {
    const struct model_config *c = &m->config;
    return (tokens + BACKEND_PAGE - 1) / BACKEND_PAGE * c->L *
           b->ops->kv_layer_bytes(b, c->G, c->E);
}

static void describe_memory(const struct model *m, struct backend *b, const uint64_t *lengths,
                            size_t count, struct buf *out) {
    uint64_t stored = weights_bytes(b, m, BACKEND_STORED);
    uint64_t unpacked = weights_bytes(b, m, BACKEND_UNPACKED);
    buf_printf(out, "\nKV cache      %" PRIu64 " bytes a token (bf16, pages of 512 tokens)\n",
               m->config.kv_bytes_per_token);
    buf_printf(out,
               "weights       %" PRIu64 " bytes stored (codes and scales), %" PRIu64
               " unpacked to bf16\n",
               stored, unpacked);
    if (count == 0) return;
    buf_printf(out, "\nmemory in bytes\n%10s  %16s  %16s  %16s\n", "tokens", "KV", "KV + stored",
               "KV + unpacked");
    for (size_t i = 0; i < count; i++) {
        uint64_t kv = kv_bytes(m, b, lengths[i]);
        buf_printf(out, "%10" PRIu64 "  %16" PRIu64 "  %16" PRIu64 "  %16" PRIu64 "%s\n",
                   lengths[i], kv, stored + kv, unpacked + kv,
                   lengths[i] > m->config.trained_context ? "  beyond the trained context" : "");
    }
}

void model_describe_text(const struct model *m, struct backend *b, const uint64_t *lengths,
                         size_t count, struct buf *out) {
    assert(m->file_sha256[0]);
    buf_printf(out, "file          ");
    add_plain(out, str_from(m->file->path));
    buf_printf(out, "\n              GGUF version %u, %zu bytes, %zu keys", m->file->version,
               m->file->map.bytes, m->file->value_count);
    uint64_t unused = unused_bytes(m);
    if (unused) buf_printf(out, ", %" PRIu64 " bytes that belong to nothing", unused);
    buf_printf(out, "\nname          ");
    add_plain(out, m->config.name.n ? m->config.name : STR("(none)"));
    buf_add_char(out, '\n');
    describe_shape(m, out);
    describe_types(m, out);
    buf_printf(out, "tokenizer     ");
    add_plain(out, text_of(m, "tokenizer.ggml.model"));
    buf_printf(out, ", pre-tokenizer ");
    struct str pre = text_of(m, "tokenizer.ggml.pre");
    add_plain(out, pre.n ? pre : STR("(none)"));
    buf_printf(out, ", %" PRIu64 " tokens\n", token_count(m));
    bool template = text_of(m, "tokenizer.chat_template").n != 0;
    buf_printf(out, "chat template %s\n", template ? "in the file" : "none");
    buf_printf(out, "\nSHA-256       %s  file\n", m->file_sha256);
    buf_printf(out, "              %s  tokenizer\n", m->tokenizer_sha256);
    if (template) buf_printf(out, "              %s  chat template\n", m->template_sha256);
    describe_memory(m, b, lengths, count, out);
}

static json_t *integer(uint64_t n) {
    return json_integer((json_int_t)n);
}

static json_t *rotation_json(const struct model_config *c) {
    struct buf base = {0};
    json_t *o = json_object();
    buf_printf(&base, "%.9g", c->rope_base); // exact things are no floating-point numbers in JSON
    json_put(o, "pairs", json_text_c(c->rope_neighbours ? "neighbours" : "halves"));
    json_put(o, "elements", integer(c->rope_dimensions));
    json_put(o, "base", json_text(buf_str(&base)));
    json_put(o, "scaling", json_text_c(c->rope_scaling));
    buf_free(&base);
    return o;
}

static json_t *memory_json(const struct model *m, struct backend *b, const uint64_t *lengths,
                           size_t count) {
    json_t *rows = json_array();
    uint64_t stored = weights_bytes(b, m, BACKEND_STORED);
    uint64_t unpacked = weights_bytes(b, m, BACKEND_UNPACKED);
    for (size_t i = 0; i < count; i++) {
        json_t *row = json_object();
        uint64_t kv = kv_bytes(m, b, lengths[i]);
        json_put(row, "tokens", integer(lengths[i]));
        json_put(row, "kv_bytes", integer(kv));
        json_put(row, "stored_bytes", integer(stored + kv));
        json_put(row, "unpacked_bytes", integer(unpacked + kv));
        json_array_append_new(rows, row);
    }
    return rows;
}

json_t *model_describe_json(const struct model *m, struct backend *b, const uint64_t *lengths,
                            size_t count) {
    const struct model_config *c = &m->config;
    const struct {
        const char *key;
        uint64_t value;
    } sizes[] = {
        {"layers", c->L},
        {"width", c->D},
        {"query_heads", c->H},
        {"kv_heads", c->G},
        {"head_elements", c->E},
        {"feed_forward", c->F},
        {"vocabulary", c->V},
        {"trained_context", c->trained_context},
        {"window", c->window},
        {"parameters", c->parameters},
        {"tokens", token_count(m)},
        {"kv_bytes_per_token", c->kv_bytes_per_token},
        {"weight_bytes_stored", weights_bytes(b, m, BACKEND_STORED)},
        {"weight_bytes_unpacked", weights_bytes(b, m, BACKEND_UNPACKED)},
    };
    assert(m->file_sha256[0]);
    json_t *o = json_object();
    json_put_bytes(o, "path", str_from(m->file->path));
    json_put(o, "bytes", integer(m->file->map.bytes));
    json_put(o, "gguf_version", integer(m->file->version));
    json_put(o, "sha256", json_text_c(m->file_sha256));
    json_put(o, "tokenizer_sha256", json_text_c(m->tokenizer_sha256));
    json_put(o, "template_sha256", json_text_c(m->template_sha256));
    json_put_bytes(o, "name", c->name);
    json_put(o, "architecture", json_text_c(c->architecture));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        json_put(o, sizes[i].key, integer(sizes[i].value));
    json_put(o, "tied_head", json_boolean(c->tied_head));
    json_put(o, "rotation", rotation_json(c));
    json_put(o, "tensor_types", model_tensor_types(m));
    json_put_bytes(o, "tokenizer", text_of(m, "tokenizer.ggml.model"));
    json_put_bytes(o, "pre_tokenizer", text_of(m, "tokenizer.ggml.pre"));
    json_put(o, "chat_template", json_boolean(text_of(m, "tokenizer.chat_template").n != 0));
    json_put(o, "unused_bytes", integer(unused_bytes(m)));
    json_put(o, "memory", memory_json(m, b, lengths, count));
    return o;
}

// What a record says about a model: hashes, tensor types, bytes.
#include "engine/model.h"
#include "kernels/cpu/compact.h"

static uint64_t round_up(uint64_t n, uint64_t to) {
    return (n + to - 1) / to * to;
}

static void hash_text(struct hash *h, struct str s) {
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)((uint64_t)s.n >> 8 * i);
    hash_add(h, length, sizeof length);
    hash_add(h, s.p, s.n);
}

// Keys in file order: the length of the name (u64, little-endian), the name, then type and value as
// they stand in the file.
static void hash_tokenizer(const struct gguf *g, char hex[HASH_HEX_SIZE]) {
    struct hash *h = hash_open();
    for (size_t i = 0; i < g->value_count; i++) {
        const struct gguf_value *v = &g->values[i];
        if (!str_starts(v->key, STR("tokenizer.ggml."))) continue;
        if (str_ends(v->key, STR(".chat_template"))) continue;
        hash_text(h, v->key);
        hash_add(h, v->raw.p, v->raw.n);
    }
    hash_close(h, hex);
}

int model_identify(struct model *m, struct err *e) {
    struct str text = {0};
    bool present;
    TRY(gguf_get_string(m->file, "tokenizer.chat_template", &text, &present, e));
    hash_bytes(text.p, text.n, m->template_sha256);
    hash_tokenizer(m->file, m->tokenizer_sha256);
    hash_bytes(m->file->map.p, m->file->map.bytes, m->file_sha256);
    return 0;
}

json_t *model_tensor_types(const struct model *m) {
    json_t *types = json_object();
    for (uint32_t type = 0; type <= TENSOR_BF16; type++) {
        json_int_t count = 0;
        for (size_t i = 0; i < m->file->tensor_count; i++)
            count += (uint32_t)m->file->tensors[i].type == type;
        if (count) json_put(types, tensor_format_of(type)->name, json_integer(count));
    }
    return types;
}

// Panels of 16 outputs, rows padded to an even size, two bytes an element.
static uint64_t panel_bytes(const struct gguf_tensor *t) {
    return round_up(t->dim[1], CPU_PANEL) * round_up(t->dim[0], 2) * sizeof(uint16_t);
}

// A matrix in memory. Formats that are not quantized have no compact form.
static uint64_t matrix_bytes(const struct gguf_tensor *t, bool unpacked) {
    struct cpu_compact_part part = {.type = t->type, .rows = (uint32_t)t->dim[1]};
    struct cpu_matrix w;
    uint64_t compact = unpacked ? 0 : cpu_compact_plan(&part, 1, (uint32_t)t->dim[0], &w);
    return compact != 0 ? compact : panel_bytes(t);
}

uint64_t model_weight_bytes(const struct model *m, bool unpacked) {
    uint64_t bytes = 0;
    const struct gguf *g = m->file;
    for (size_t i = 0; i < g->tensor_count; i++) {
        const struct gguf_tensor *t = &g->tensors[i];
        // Rows of the embedding are taken from the file itself, one a token.
        bool in_file = t->dims == 1 || t == m->embedding;
        bytes += in_file ? t->bytes : matrix_bytes(t, unpacked);
    }
    if (m->config.tied_head) bytes += matrix_bytes(m->embedding, unpacked);
    return bytes;
}

uint64_t model_kv_bytes(const struct model *m, uint64_t positions) {
    const struct model_config *c = &m->config;
    uint64_t pages = positions / CPU_PAGE + (positions % CPU_PAGE != 0);
    return pages * c->L * 2 * cpu_kv_bytes(CPU_BF16_1, c->G, c->E);
}

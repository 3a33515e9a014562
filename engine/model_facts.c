// What a record says about a model: hashes, tensor types.
#include "engine/model.h"

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

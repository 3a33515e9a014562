#include "tests/support/gguf_writer.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>

struct gguf_writer gguf_writer_open(void) {
    return (struct gguf_writer){.version = 3, .alignment = 32};
}

void gguf_writer_free(struct gguf_writer *w) {
    buf_free(&w->keys);
    buf_free(&w->records);
    buf_free(&w->data);
}

void put_number(struct buf *b, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) buf_add_char(b, (char)(value >> 8 * i));
}

void put_string(struct buf *b, struct str s) {
    put_number(b, s.n, 8);
    buf_add_str(b, s);
}

void gguf_writer_raw(struct gguf_writer *w, const char *key, uint32_t type, struct str value) {
    put_string(&w->keys, str_from(key));
    put_number(&w->keys, type, 4);
    buf_add_str(&w->keys, value);
    w->key_count++;
}

static void add_number(struct gguf_writer *w, const char *key, uint32_t type, uint64_t value,
                       size_t bytes) {
    struct buf b = {0};
    put_number(&b, value, bytes);
    gguf_writer_raw(w, key, type, buf_str(&b));
    buf_free(&b);
}

void gguf_writer_u32(struct gguf_writer *w, const char *key, uint32_t value) {
    add_number(w, key, GGUF_U32, value, 4);
}

static uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

void gguf_writer_f32(struct gguf_writer *w, const char *key, float value) {
    add_number(w, key, GGUF_F32, float_bits(value), 4);
}

void gguf_writer_bool(struct gguf_writer *w, const char *key, bool value) {
    add_number(w, key, GGUF_BOOL, value, 1);
}

void gguf_writer_string(struct gguf_writer *w, const char *key, struct str value) {
    struct buf b = {0};
    put_string(&b, value);
    gguf_writer_raw(w, key, GGUF_STRING, buf_str(&b));
    buf_free(&b);
}

void gguf_writer_strings(struct gguf_writer *w, const char *key, const struct str *s,
                         size_t count) {
    struct buf b = {0};
    put_number(&b, GGUF_STRING, 4);
    put_number(&b, count, 8);
    for (size_t i = 0; i < count; i++) put_string(&b, s[i]);
    gguf_writer_raw(w, key, GGUF_ARRAY, buf_str(&b));
    buf_free(&b);
}

void gguf_writer_i32s(struct gguf_writer *w, const char *key, const int32_t *values, size_t count) {
    struct buf b = {0};
    put_number(&b, GGUF_I32, 4);
    put_number(&b, count, 8);
    for (size_t i = 0; i < count; i++) put_number(&b, (uint32_t)values[i], 4);
    gguf_writer_raw(w, key, GGUF_ARRAY, buf_str(&b));
    buf_free(&b);
}

static void pad(struct buf *b, size_t alignment) {
    while (b->n % alignment != 0) buf_add_char(b, 0);
}

void gguf_writer_tensor_raw(struct gguf_writer *w, const char *name, uint32_t type, uint32_t dims,
                            const uint64_t *dim, struct str data) {
    pad(&w->data, w->alignment);
    put_string(&w->records, str_from(name));
    put_number(&w->records, dims, 4);
    for (uint32_t i = 0; i < dims; i++) put_number(&w->records, dim[i], 8);
    put_number(&w->records, type, 4);
    put_number(&w->records, w->data.n, 8);
    buf_add_str(&w->data, data);
    w->tensor_count++;
}

void gguf_writer_tensor(struct gguf_writer *w, const char *name, enum tensor_type type,
                        uint32_t dims, const uint64_t *dim, const float *values) {
    struct buf b = {0};
    size_t n = 1;
    for (uint32_t i = 0; i < dims; i++) n *= dim[i];
    tensor_quantize(type, values, n, &b);
    gguf_writer_tensor_raw(w, name, type, dims, dim, buf_str(&b));
    buf_free(&b);
}

void gguf_writer_bytes(const struct gguf_writer *w, struct buf *out) {
    buf_clear(out);
    buf_add(out, "GGUF", 4);
    put_number(out, w->version, 4);
    put_number(out, w->tensor_count, 8);
    put_number(out, w->key_count, 8);
    buf_add_str(out, buf_str(&w->keys));
    buf_add_str(out, buf_str(&w->records));
    pad(out, w->alignment);
    buf_add_str(out, buf_str(&w->data));
}

void test_write_file(const char *path, struct str bytes) {
    FILE *f = fopen(path, "wb");
    if (!f) fail_msg("%s: cannot be written", path);
    if (bytes.n) assert_int_equal(fwrite(bytes.p, 1, bytes.n, f), bytes.n);
    assert_int_equal(fclose(f), 0);
}

void gguf_writer_save(const struct gguf_writer *w, const char *path) {
    struct buf b = {0};
    gguf_writer_bytes(w, &b);
    test_write_file(path, buf_str(&b));
    buf_free(&b);
}

// libFuzzer target: any bytes as a model file. Opened or refused; what opens is read in full.
//
//   cmake -S . -B build/fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DLACUNA_FUZZ=ON
//   cmake --build build/fuzz --target fuzz_gguf
//   build/fuzz/fuzz_gguf CORPUS tests/engine/golden -max_len=65536
#include "engine/model_describe.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

// Dequantizes a tensor's first and last row block by block.
static void touch_tensor(const struct gguf_tensor *t) {
    const struct tensor_format *f = tensor_format_of(t->type);
    float values[256];
    assert(f && t->elements % f->block == 0 && t->bytes == t->elements / f->block * f->block_bytes);
    tensor_dequantize(t->type, t->data, f->block, values);
    tensor_dequantize(t->type, t->data + t->bytes - f->block_bytes, f->block, values);
}

static void touch_value(const struct gguf *g, const struct gguf_value *v, struct arena *a) {
    volatile uint8_t sink = 0;
    for (size_t i = 0; i < v->raw.n; i += 61) sink = (uint8_t)(sink + (uint8_t)v->raw.p[i]);
    if (v->type == GGUF_ARRAY && v->element == GGUF_STRING)
        for (uint64_t i = 0; i < v->count; i++)
            if (v->strings[i].n) sink = (uint8_t)(sink + (uint8_t)v->strings[i].p[0]);
    assert(gguf_find(g, str_to_c(a, v->key)) == v);
}

static void touch_model(struct model *m) {
    uint64_t lengths[MODEL_MOST_LENGTHS];
    struct err e;
    struct buf out = {0};
    struct backend *b;
    if (backend_cpu_open(&(struct backend_options){.op_table = "c"}, &b, &e) != 0) abort();
    if (model_identify(m, &e) == 0)
        model_describe_text(m, b, lengths, model_usual_lengths(m, lengths), &out);
    assert(utf8_valid(buf_str(&out)));
    backend_close(b);
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    char path[64];
    struct arena *a = arena_create("fuzz");
    struct gguf *g;
    struct model *m;
    struct err e;
    int file = memfd_create("fuzz", 0);
    if (file < 0 || write(file, bytes, n) != (ssize_t)n) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (gguf_open(path, a, &g, &e) == 0) {
        for (size_t i = 0; i < g->value_count; i++) touch_value(g, &g->values[i], a);
        for (size_t i = 0; i < g->tensor_count; i++) touch_tensor(&g->tensors[i]);
        gguf_close(g);
    }
    if (model_open(path, a, &m, &e) == 0) {
        touch_model(m);
        model_close(m);
    }
    close(file);
    arena_destroy(a);
    return 0;
}

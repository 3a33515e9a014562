// libFuzzer target for the tokenizer. The first byte chooses: the golden vocabulary with one of the
// rules and any text, or a vocabulary made of the input itself. Whatever is encoded must come back
// byte for byte.
#include "tests/support/gguf_writer.h"
#include "tests/support/golden_tokenizer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const rules[] = {"smollm", "gpt-2", "llama-bpe", "qwen2"};

static void round_trip(const struct tokenizer *t, struct str text, bool control) {
    struct token_list ids = {0};
    struct err e = {0};
    if (tokenizer_encode(t, text, control, &ids, &e) == 0) {
        struct buf back = bytes_of(t, &ids);
        if (!str_equal(buf_str(&back), text)) abort();
        buf_free(&back);
    } else if (ids.count != 0 || e.text[0] == 0) {
        abort();
    }
    token_list_free(&ids);
}

static void fuzz_text(uint8_t choice, struct str text) {
    static struct tokenizer *tokenizers[4];
    static struct arena *a;
    if (a == NULL) {
        a = arena_create("fuzz");
        for (int i = 0; i < 4; i++) {
            struct gguf *g;
            struct err e = {0};
            const char *path = LACUNA_SOURCE_DIR "/tests/engine/golden/vocabulary.gguf";
            if (gguf_open(path, a, &g, &e) != 0) abort();
            if (tokenizer_open(g, rules[i], a, &tokenizers[i], &e) != 0) abort();
        }
    }
    round_trip(tokenizers[choice & 3], text, choice & 4);
}

// Strings separated by NUL; each begins with its token type, or with 'm' for a merge.
struct lists {
    struct str tokens[1024], merges[1024];
    int32_t types[1024];
    size_t tokens_count, merge_count;
};

static void lists_split(struct str data, bool with_bytes, struct lists *l, char bytes[256][4]) {
    uint32_t next = 256;
    for (uint32_t b = 0; with_bytes && b < 256; b++) {
        bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        size_t n = utf8_encode(printable ? b : next++, bytes[b]);
        l->types[l->tokens_count] = 1;
        l->tokens[l->tokens_count++] = (struct str){bytes[b], n};
    }
    for (size_t at = 0; at < data.n;) {
        size_t end = str_find(data, (struct str){"", 1}, at);
        if (end == STR_NONE) end = data.n;
        struct str one = str_slice(data, at, end);
        at = end + 1;
        if (one.n == 0) continue;
        struct str rest = str_slice(one, 1, one.n);
        if (one.p[0] == 'm' && l->merge_count < 1024) l->merges[l->merge_count++] = rest;
        if (one.p[0] == 'm' || l->tokens_count == 1024) continue;
        l->types[l->tokens_count] = one.p[0] - '0';
        l->tokens[l->tokens_count++] = rest;
    }
}

static void fuzz_vocabulary(uint8_t choice, struct str data) {
    struct lists *l = calloc(1, sizeof *l);
    if (l == NULL) abort();
    char bytes[256][4];
    lists_split(data, choice & 8, l, bytes);
    struct gguf_writer w = gguf_writer_open();
    gguf_writer_string(&w, "tokenizer.ggml.model", STR("gpt2"));
    gguf_writer_strings(&w, "tokenizer.ggml.tokens", l->tokens, l->tokens_count);
    gguf_writer_i32s(&w, "tokenizer.ggml.token_type", l->types, l->tokens_count);
    gguf_writer_strings(&w, "tokenizer.ggml.merges", l->merges, l->merge_count);
    gguf_writer_u32(&w, "tokenizer.ggml.eos_token_id", choice);
    struct buf file = {0};
    gguf_writer_bytes(&w, &file);
    gguf_writer_free(&w);
    int fd = memfd_create("vocabulary", 0);
    if (fd < 0 || write(fd, file.p, file.n) != (ssize_t)file.n) abort();
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct arena *a = arena_create("fuzz");
    struct gguf *g;
    struct err e = {0};
    if (gguf_open(path, a, &g, &e) == 0) {
        struct tokenizer *t;
        if (tokenizer_open(g, rules[choice & 3], a, &t, &e) == 0) {
            round_trip(t, data, choice & 4);
            tokenizer_close(t);
        } else if (e.code != ERR_MODEL) {
            abort();
        }
        gguf_close(g);
    }
    arena_destroy(a);
    close(fd);
    buf_free(&file);
    free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    struct str rest = {(const char *)data + 1, size - 1};
    if (data[0] & 16)
        fuzz_vocabulary(data[0], rest);
    else
        fuzz_text(data[0], rest);
    return 0;
}

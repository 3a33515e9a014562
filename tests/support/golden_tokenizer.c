#include "tests/support/golden_tokenizer.h"
#include "engine/base/file.h"
#include "tests/support/support.h"

#include <string.h>

struct gguf *golden_gguf(struct arena *a) {
    struct gguf *g;
    struct err e = {0};
    ASSERT_OK(gguf_open(test_data(a, "engine/golden/vocabulary.gguf"), a, &g, &e), e);
    return g;
}

struct tokenizer *golden_tokenizer(struct arena *a, const char *pre) {
    struct tokenizer *t;
    struct err e = {0};
    ASSERT_OK(tokenizer_open(golden_gguf(a), pre, a, &t, &e), e);
    return t;
}

void golden_each(const char *relative, void (*check)(const json_t *row, int line, void *context),
                 void *context) {
    struct arena *a = arena_create("golden");
    struct str text;
    struct err e = {0};
    ASSERT_OK(file_read(test_data(a, relative), 1 << 24, a, &text, &e), e);
    int line = 0;
    for (size_t at = 0; at < text.n;) {
        size_t end = str_find(text, STR("\n"), at);
        if (end == STR_NONE) end = text.n;
        json_t *row;
        ASSERT_OK(json_parse(str_slice(text, at, end), relative, &row, &e), e);
        check(row, ++line, context);
        json_decref(row);
        at = end + 1;
    }
    assert_true(line > 0);
    arena_destroy(a);
}

struct token_list ids_of(const struct tokenizer *t, struct str text, bool control) {
    struct token_list ids = {0};
    struct err e = {0};
    ASSERT_OK(tokenizer_encode(t, text, control, &ids, &e), e);
    return ids;
}

struct buf bytes_of(const struct tokenizer *t, const struct token_list *ids) {
    struct buf b = {0};
    for (size_t i = 0; i < ids->count; i++) buf_add_str(&b, tokenizer_bytes(t, ids->ids[i]));
    return b;
}

bool ids_equal_json(const struct token_list *ids, const json_t *array) {
    if (ids->count != json_array_size(array)) return false;
    for (size_t i = 0; i < ids->count; i++) {
        if (ids->ids[i] != json_integer_value(json_array_get(array, i))) return false;
    }
    return true;
}

// Vocabularies that are hostile, damaged or unusual.
#include "tests/support/gguf_writer.h"
#include "tests/support/golden_tokenizer.h"
#include "tests/support/support.h"

#include <string.h>

#define MODEL "tokenizer.ggml.model"
#define PRE "tokenizer.ggml.pre"
#define TOKENS "tokenizer.ggml.tokens"
#define TYPES "tokenizer.ggml.token_type"
#define LIST_MOST 400

// What a test file holds; changed from the good one before it is written.
struct recipe {
    const char *model, *pre; // NULL: the key is left out
    struct str tokens[LIST_MOST];
    int32_t types[LIST_MOST];
    size_t token_count, type_count;
    struct str merges[16];
    size_t merge_count;
    int64_t bos, eos, eot, eom; // -1: left out
    int adds_bos;               // -1: left out
    bool no_types, no_tokens, no_merges, types_as_strings, tokens_as_numbers, merges_as_numbers;
    char bytes[256][4];
};

static void token_put(struct recipe *r, struct str text, int32_t type) {
    assert_true(r->token_count < LIST_MOST);
    r->types[r->token_count] = type;
    r->tokens[r->token_count++] = text;
    r->type_count = r->token_count;
}

static void merge_put(struct recipe *r, struct str line) {
    assert_true(r->merge_count < 16);
    r->merges[r->merge_count++] = line;
}

static struct recipe *recipe_good(struct arena *a) {
    struct recipe *r = arena_alloc(a, sizeof *r);
    r->model = "gpt2";
    r->pre = "gpt-2";
    r->bos = r->eos = r->eot = r->eom = -1;
    r->adds_bos = -1;
    uint32_t next = 256;
    for (uint32_t b = 0; b < 256; b++) {
        bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        size_t n = utf8_encode(printable ? b : next++, r->bytes[b]);
        token_put(r, (struct str){r->bytes[b], n}, 1);
    }
    token_put(r, STR("ab"), 1); // 256
    token_put(r, STR("abc"), 1);
    token_put(r, STR("<|end|>"), 3); // 258
    token_put(r,
              STR("\xC4\xA0"
                  "ab"),
              1); // 259
    merge_put(r, STR("a b"));
    merge_put(r, STR("ab c"));
    merge_put(r, STR("\xC4\xA0 ab"));
    return r;
}

static const struct gguf *recipe_file(const struct recipe *r, struct arena *a) {
    struct gguf_writer w = gguf_writer_open();
    if (r->model) gguf_writer_string(&w, MODEL, str_from(r->model));
    if (r->pre) gguf_writer_string(&w, PRE, str_from(r->pre));
    if (r->tokens_as_numbers)
        gguf_writer_i32s(&w, TOKENS, r->types, r->token_count);
    else if (!r->no_tokens)
        gguf_writer_strings(&w, TOKENS, r->tokens, r->token_count);
    if (r->types_as_strings)
        gguf_writer_strings(&w, TYPES, r->tokens, r->type_count);
    else if (!r->no_types)
        gguf_writer_i32s(&w, TYPES, r->types, r->type_count);
    if (r->merges_as_numbers)
        gguf_writer_i32s(&w, "tokenizer.ggml.merges", r->types, 4);
    else if (!r->no_merges)
        gguf_writer_strings(&w, "tokenizer.ggml.merges", r->merges, r->merge_count);
    static const char *const keys[] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                                       "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    const int64_t ids[] = {r->bos, r->eos, r->eot, r->eom};
    for (int i = 0; i < 4; i++) {
        if (ids[i] >= 0) gguf_writer_u32(&w, keys[i], (uint32_t)ids[i]);
    }
    if (r->adds_bos >= 0) gguf_writer_bool(&w, "tokenizer.ggml.add_bos_token", r->adds_bos == 1);
    const char *path = arena_printf(a, "%s/vocabulary.gguf", test_folder());
    gguf_writer_save(&w, path);
    gguf_writer_free(&w);
    struct gguf *g;
    struct err e = {0};
    ASSERT_OK(gguf_open(path, a, &g, &e), e);
    return g;
}

static struct tokenizer *recipe_open(const struct recipe *r, struct arena *a) {
    struct tokenizer *t;
    struct err e = {0};
    ASSERT_OK(tokenizer_open(recipe_file(r, a), NULL, a, &t, &e), e);
    return t;
}

static void assert_ids(const struct tokenizer *t, const char *text, bool control, size_t count,
                       const int32_t *expected) {
    struct token_list ids = ids_of(t, str_from(text), control);
    assert_int_equal(ids.count, count);
    assert_memory_equal(ids.ids, expected, count * sizeof *expected);
    token_list_free(&ids);
}
#define ASSERT_IDS(t, text, control, ...)                                                          \
    assert_ids(t, text, control, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t),               \
               (int32_t[]){__VA_ARGS__})

static void change_model(struct recipe *r) {
    r->model = "llama";
}
static void change_no_model(struct recipe *r) {
    r->model = NULL;
}
static void change_pre(struct recipe *r) {
    r->pre = "tekken";
}
static void change_no_pre(struct recipe *r) {
    r->pre = NULL;
}
static void change_no_tokens(struct recipe *r) {
    r->no_tokens = true;
}
static void change_tokens_type(struct recipe *r) {
    r->tokens_as_numbers = true;
}
static void change_empty(struct recipe *r) {
    r->token_count = r->type_count = 0;
}
static void change_no_types(struct recipe *r) {
    r->no_types = true;
}
static void change_types_type(struct recipe *r) {
    r->types_as_strings = true;
}
static void change_types_short(struct recipe *r) {
    r->type_count--;
}
static void change_type_0(struct recipe *r) {
    r->types[7] = 0;
}
static void change_type_7(struct recipe *r) {
    r->types[7] = 7;
}
static void change_type_negative(struct recipe *r) {
    r->types[7] = INT32_MIN;
}
static void change_no_merges(struct recipe *r) {
    r->no_merges = true;
}
static void change_merges_type(struct recipe *r) {
    r->merges_as_numbers = true;
}
static void change_merge_no_space(struct recipe *r) {
    r->merges[1] = STR("abc");
}
static void change_merge_spaces(struct recipe *r) {
    r->merges[1] = STR("ab c ");
}
static void change_merge_empty(struct recipe *r) {
    r->merges[1] = STR("");
}
static void change_merge_left(struct recipe *r) {
    r->merges[1] = STR(" c");
}
static void change_merge_unknown(struct recipe *r) {
    r->merges[1] = STR("ac b");
}
static void change_merge_unknown2(struct recipe *r) {
    r->merges[1] = STR("b ac");
}
static void change_merge_result(struct recipe *r) {
    r->merges[1] = STR("b c");
}
static void change_merge_alphabet(struct recipe *r) {
    r->merges[1] = STR("ab \xE6\x96\x87");
}
static void change_merge_not_utf8(struct recipe *r) {
    r->merges[1] = STR("ab \xFF");
}
static void change_merge_control(struct recipe *r) {
    r->types[256] = 3;
}
static void change_bos(struct recipe *r) {
    r->bos = 260;
}
static void change_eos(struct recipe *r) {
    r->eos = UINT32_MAX;
}
static void change_eot(struct recipe *r) {
    r->eot = 1u << 31;
}
static void change_no_bos(struct recipe *r) {
    r->adds_bos = 1;
}
static void change_long_control(struct recipe *r) {
    static char spelling[300];
    memset(spelling, '<', sizeof spelling);
    r->tokens[258] = (struct str){spelling, sizeof spelling};
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        void (*change)(struct recipe *r);
        const char *says;
    } cases[] = {
        {change_model, "tokenizer 'llama'"},
        {change_no_model, MODEL},
        {change_pre, "'tekken' is not supported"},
        {change_pre, "models[].pre_tokenizer"},
        {change_no_pre, "models[].pre_tokenizer"},
        {change_no_pre, PRE " is missing"},
        {change_no_tokens, TOKENS " is missing"},
        {change_tokens_type, TOKENS " is missing or not"},
        {change_empty, "0 tokens"},
        {change_no_types, TYPES " is missing"},
        {change_types_type, TYPES " is missing or not"},
        {change_types_short, "259 entries for 260 tokens"},
        {change_type_0, TYPES "[7] is 0"},
        {change_type_7, TYPES "[7] is 7"},
        {change_type_negative, TYPES "[7] is -2147483648"},
        {change_no_merges, "merges is missing"},
        {change_merges_type, "merges is missing or not"},
        {change_merge_no_space, "merges[1] is 'abc'"},
        {change_merge_spaces, "one space"},
        {change_merge_empty, "merges[1] is ''"},
        {change_merge_left, "merges[1] is ' c'"},
        {change_merge_unknown, "its first part"},
        {change_merge_unknown2, "its second part"},
        {change_merge_result, "the two parts joined"},
        {change_merge_alphabet, "byte alphabet"},
        {change_merge_not_utf8, "byte alphabet"},
        {change_merge_control, "merges[0]"},
        {change_bos, "bos_token_id is 260"},
        {change_eos, "eos_token_id is 4294967295"},
        {change_eot, "eot_token_id is 2147483648"},
        {change_no_bos, "bos_token_id is missing"},
        {change_long_control, "token 258"},
    };
    struct arena *a = arena_create("test");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct recipe *r = recipe_good(a);
        cases[i].change(r);
        struct tokenizer *t;
        struct err e = {0};
        ASSERT_FAILS(tokenizer_open(recipe_file(r, a), NULL, a, &t, &e), e, ERR_MODEL,
                     cases[i].says);
        assert_non_null(strstr(e.text, "vocabulary.gguf"));
    }
    arena_destroy(a);
}

static void test_explicit_override(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct recipe *r = recipe_good(a);
    r->pre = NULL;
    const struct gguf *g = recipe_file(r, a);
    struct tokenizer *t;
    struct err e = {0};
    ASSERT_FAILS(tokenizer_open(g, "guess", a, &t, &e), e, ERR_MODEL, "'guess' is not supported");
    ASSERT_OK(tokenizer_open(g, "qwen2", a, &t, &e), e);
    assert_string_equal(tokenizer_pre(t), "qwen2");
    tokenizer_close(t);
    ASSERT_OK(tokenizer_open(g, "default", a, &t, &e), e);
    assert_string_equal(tokenizer_pre(t), "default");
    ASSERT_IDS(t, "abc ab", false, 257, 259);
    tokenizer_close(t);
    arena_destroy(a);
}

// Duplicates: the last token of a kind counts; a control token never stands in for text.
static void test_duplicate_tokens(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct recipe *r = recipe_good(a);
    token_put(r, STR("ab"), 1);      // 260
    token_put(r, STR("<|end|>"), 3); // 261
    token_put(r, STR("ab"), 5);      // 262, unused
    token_put(r, STR("abc"), 3);     // 263, control
    struct tokenizer *t = recipe_open(r, a);
    ASSERT_IDS(t, "ab", false, 260);
    ASSERT_IDS(t, "abc", false, 257);
    ASSERT_IDS(t, "abc<|end|>", true, 263, 261);
    assert_true(str_equal_c(tokenizer_bytes(t, 256), "ab"));
    assert_true(str_equal_c(tokenizer_bytes(t, 262), "ab"));
    tokenizer_close(t);
    arena_destroy(a);
}

// User-defined tokens are found in all text, the leftmost and longest first; control tokens win.
static void test_user_defined_tokens(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct recipe *r = recipe_good(a);
    token_put(r, STR("  "), 4);       // 260
    token_put(r, STR("   "), 4);      // 261
    token_put(r, STR("<|end|>x"), 4); // 262
    token_put(r, STR(""), 4);         // 263, never found
    token_put(r, STR("<|end|>>"), 3); // 264
    struct tokenizer *t = recipe_open(r, a);
    ASSERT_IDS(t, "ab     ab", false, 256, 261, 260, 256);
    ASSERT_IDS(t, "<|end|>x", false, 262);
    ASSERT_IDS(t, "<|end|>x", true, 258, 'x');
    ASSERT_IDS(t, "<|end|>>ab", true, 264, 256);
    assert_false(tokenizer_is_control(t, 262));
    assert_true(tokenizer_is_control(t, 264));
    assert_true(str_equal_c(tokenizer_bytes(t, 261), "   "));
    assert_int_equal(tokenizer_find(t, STR("   ")), 261);
    tokenizer_close(t);
    arena_destroy(a);
}

// A vocabulary without some byte refuses text with that byte, says where, and appends nothing.
static void test_missing_byte(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct recipe *r = recipe_good(a);
    r->types[4] = 5;
    struct tokenizer *t = recipe_open(r, a);
    struct token_list ids = {0};
    struct err e = {0};
    token_list_add(&ids, 42);
    ASSERT_FAILS(tokenizer_encode(t, STR("abc \x04"), false, &ids, &e), e, ERR_INPUT,
                 "byte 0x04 at offset 4");
    assert_int_equal(ids.count, 1);
    token_list_free(&ids);
    ASSERT_IDS(t, "abc\x05", false, 257, 5);
    tokenizer_close(t);
    arena_destroy(a);
}

// B09: the union of what the keys declare and of the well-known spellings.
static void test_stops(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct recipe *r = recipe_good(a);
    token_put(r, STR("<|eot_id|>"), 3); // 260
    token_put(r, STR("<|im_end|>"), 1); // 261: a text token of that spelling does not stop
    r->eos = 10;
    r->eot = 11;
    r->eom = 10;
    struct tokenizer *t = recipe_open(r, a);
    size_t count;
    const int32_t *stops = tokenizer_stops(t, &count);
    const int32_t expected[] = {10, 11, 260, 258};
    assert_int_equal(count, 4);
    assert_memory_equal(stops, expected, sizeof expected);
    tokenizer_close(t);
    arena_destroy(a);
}

static void test_start_token_defaults(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct recipe *r = recipe_good(a);
    struct tokenizer *t = recipe_open(r, a);
    assert_int_equal(tokenizer_bos(t), -1);
    assert_false(tokenizer_adds_bos(t));
    tokenizer_close(t);
    r->pre = "llama-bpe";
    r->bos = 258;
    t = recipe_open(r, a);
    assert_true(tokenizer_adds_bos(t));
    tokenizer_close(t);
    r->adds_bos = 0;
    t = recipe_open(r, a);
    assert_false(tokenizer_adds_bos(t));
    tokenizer_close(t);
    arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_explicit_override),
        cmocka_unit_test(test_duplicate_tokens),
        cmocka_unit_test(test_user_defined_tokens),
        cmocka_unit_test(test_missing_byte),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_start_token_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

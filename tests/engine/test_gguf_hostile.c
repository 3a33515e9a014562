// Truncated, lying and hostile files: each is refused at once, with little memory, by a message
// that names the file and what is wrong. Under the address sanitizer nothing outside the file is
// touched.
#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "engine/gguf.h"
#include "engine/model.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_MS 50 // of processor time: how busy the machine is does not matter
#define LIMIT_BYTES (16u << 20)

static char path[256];

// Opens the file at `path` and expects a refusal. Leaves the error in *e.
static void expect_refusal(const char *needle, struct err *e) {
    struct arena *a = arena_create("test");
    struct gguf *g = NULL;
    *e = (struct err){0};
    uint64_t start = clock_cpu_ns();
    int result = gguf_open(path, a, &g, e);
    double ms = CLOCK_MS(clock_cpu_ns() - start);
    ASSERT_FAILS(result, *e, ERR_MODEL, needle);
    ASSERT_FAILS(result, *e, ERR_MODEL, path);
    if (ms > LIMIT_MS) fail_msg("%s took %.1f ms", needle, ms);
    assert_true(arena_bytes(a) < LIMIT_BYTES);
    arena_destroy(a);
}

static void refuse(struct str bytes, const char *needle) {
    struct err e;
    test_write_file(path, bytes);
    expect_refusal(needle, &e);
}

static void start_header(struct buf *b, uint32_t version, uint64_t tensors, uint64_t keys) {
    buf_clear(b);
    buf_add(b, "GGUF", 4);
    put_number(b, version, 4);
    put_number(b, tensors, 8);
    put_number(b, keys, 8);
}

// A whole model without a tokenizer, a few KiB.
static struct buf small_model(void) {
    struct tiny_model_options o = {.D = 8, .H = 2, .G = 1, .F = 8, .V = 259};
    struct gguf_writer w = tiny_model_open(&o);
    struct buf b = {0};
    gguf_writer_bytes(&w, &b);
    gguf_writer_free(&w);
    return b;
}

// B13: every prefix is refused, and the message tells how long the file is.
static void test_every_prefix(void **state) {
    (void)state;
    struct buf whole = small_model();
    struct err e;
    test_write_file(path, buf_str(&whole));
    for (size_t n = whole.n; n-- > 0;) {
        char bytes[32];
        assert_int_equal(truncate(path, (off_t)n), 0);
        expect_refusal("", &e);
        snprintf(bytes, sizeof bytes, "%zu", n);
        if (!strstr(e.text, bytes)) fail_msg("no '%s' in: %s", bytes, e.text);
        if (!strstr(e.text, n == 0 ? "empty" : n < 4 ? "needs" : "cut off"))
            fail_msg("%zu bytes: %s", n, e.text);
    }
    buf_free(&whole);
}

// B13: files that are something else, each recognised.
static void test_foreign_files(void **state) {
    (void)state;
    refuse(STR("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 98362432\n"),
           "git lfs pull");
    refuse(STR("<!DOCTYPE html><html><body>Sign in</body></html>"), "web page");
    refuse(STR("\xef\xbb\xbf \r\n<HTML lang=en>"), "web page");
    refuse(STR("<?xml version=\"1.0\"?><Error/>"), "web page");
    refuse(STR("PK\x03\x04zip"), "ZIP archive");
    refuse(STR("\x10\0\0\0\0\0\0\0{\"a\":{}}"), "safetensors");
    refuse(STR("lmgg....."), "before GGUF");
    refuse(STR("tjgg....."), "before GGUF");
    refuse(STR("FUGG\0\0\0\3"), "big-endian");
    refuse(STR("Entry not found"), "begins with bytes 45 6e 74 72");
    refuse(STR("gguf\3\0\0\0"), "begins with bytes 67 67 75 66");
    refuse(STR("ab"), "only 2 bytes");
    refuse(STR(""), "empty");
}

static void test_versions(void **state) {
    (void)state;
    static const struct {
        uint32_t version;
        const char *needle;
    } cases[] = {
        {0x03000000, "byte-swapped"}, {0x02000000, "big-endian"}, {0, "version 0 is not supported"},
        {1, "version 1 is not"},      {4, "version 4 is not"},    {0xffffffff, "is not supported"},
    };
    struct buf b = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start_header(&b, cases[i].version, 0, 0);
        refuse(buf_str(&b), cases[i].needle);
    }
    buf_free(&b);
}

static void add_tensor(struct buf *b, const char *name, uint32_t dims, const uint64_t *dim,
                       uint32_t listed, uint32_t type, uint64_t offset) {
    put_string(b, str_from(name));
    put_number(b, dims, 4);
    for (uint32_t i = 0; i < listed; i++) put_number(b, dim[i], 8);
    put_number(b, type, 4);
    put_number(b, offset, 8);
}

// B15: products that wrap, zeros, dimensions and types that do not exist. No data follows.
static void test_dimensions(void **state) {
    (void)state;
    static const struct {
        uint32_t dims, listed, type;
        uint64_t dim[4];
        const char *needle;
        size_t bytes; // of the file, 0: does not matter
    } cases[] = {
        {2, 2, 0, {UINT64_C(1) << 63, 2}, "more elements than", 67},
        {3, 3, 0, {UINT64_C(1) << 32, UINT64_C(1) << 32, 4}, "more elements than", 75},
        {4, 4, 0, {UINT64_MAX, 2, 1, 1}, "more elements than", 83},
        {1, 1, 0, {UINT64_C(1) << 62}, "more bytes than", 59},
        {2, 2, 0, {4, 0}, "dimension of 0", 67},
        {2, 2, 0, {0, 4}, "dimension of 0", 67},
        {0, 0, 0, {0}, "0 dimensions", 0},
        {5, 4, 0, {1, 1, 1, 1}, "5 dimensions", 0},
        {9, 4, 0, {1, 1, 1, 1}, "9 dimensions", 0},
        {UINT32_MAX, 4, 0, {1, 1, 1, 1}, "4294967295 dimensions", 0},
        {1, 1, UINT32_MAX, {32}, "type 4294967295", 0},
        {1, 1, 16, {256}, "type IQ2_XXS, which is not supported", 0},
        {1, 1, 4, {32}, "type Q4_2", 0},
        {2, 2, TENSOR_Q4_0, {33, 32}, "rows of 33 elements, but Q4_0 comes in blocks of 32", 0},
        {2, 2, TENSOR_Q4_0, {16, 2}, "blocks of 32", 0},
        {2, 2, TENSOR_Q6_K, {128, 2}, "blocks of 256", 0},
        {1, 1, 0, {UINT64_C(1) << 40}, "4398046511104 bytes) ends at byte", 0},
    };
    struct buf b = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start_header(&b, 3, 1, 0);
        add_tensor(&b, "t.w", cases[i].dims, cases[i].dim, cases[i].listed, cases[i].type, 0);
        if (cases[i].bytes) assert_int_equal(b.n, cases[i].bytes);
        refuse(buf_str(&b), cases[i].needle);
        refuse(buf_str(&b), "t.w");
    }
    buf_free(&b);
}

// B17: counts and lengths that the file cannot hold, nesting, types that do not exist.
static void test_lengths(void **state) {
    (void)state;
    struct buf b = {0};
    start_header(&b, 3, UINT64_C(1) << 63, UINT64_C(1) << 63);
    refuse(buf_str(&b), "claims 9223372036854775808 keys");
    start_header(&b, 3, UINT64_C(1) << 63, 0);
    refuse(buf_str(&b), "9223372036854775808 tensors");

    start_header(&b, 3, 0, 1);
    put_number(&b, UINT64_C(1) << 63, 8);
    buf_add_c(&b, "abc");
    assert_int_equal(b.n, 35);
    refuse(buf_str(&b), "needs 9223372036854775808 bytes");

    start_header(&b, 3, 0, 1);
    put_string(&b, STR("k"));
    put_number(&b, GGUF_STRING, 4);
    put_number(&b, UINT64_MAX, 8);
    refuse(buf_str(&b), "key k needs 18446744073709551615 bytes");

    start_header(&b, 3, 0, 1);
    put_string(&b, STR("k"));
    put_number(&b, GGUF_ARRAY, 4);
    put_number(&b, GGUF_U32, 4);
    put_number(&b, UINT64_C(1) << 62, 8);
    assert_int_equal(b.n, 49);
    refuse(buf_str(&b), "key k claims 4611686018427387904 elements");

    b.n -= 12;
    put_number(&b, 77, 4);
    put_number(&b, UINT64_C(1) << 60, 8);
    refuse(buf_str(&b), "key k has element type 77");

    b.n -= 12;
    put_number(&b, GGUF_STRING, 4);
    put_number(&b, 2, 8);
    put_string(&b, STR("first"));
    put_number(&b, 1000, 8);
    refuse(buf_str(&b), "key k, string 1 of 2 needs 1000 bytes");

    start_header(&b, 3, 0, 1);
    put_string(&b, STR("k"));
    put_number(&b, 13, 4);
    put_number(&b, 0, 8);
    refuse(buf_str(&b), "key k has value type 13");

    start_header(&b, 3, 0, 1);
    put_string(&b, STR("k"));
    put_number(&b, GGUF_ARRAY, 4);
    for (int i = 0; i < 5000; i++) {
        put_number(&b, GGUF_ARRAY, 4);
        put_number(&b, 1, 8);
    }
    assert_int_equal(b.n, 60037);
    refuse(buf_str(&b), "array of arrays");
    buf_free(&b);
}

// A sparse file of 1 GiB that does hold 2^27 - 1 strings, all empty.
static void test_huge_array(void **state) {
    (void)state;
    struct buf b = {0};
    struct err e;
    start_header(&b, 3, 0, 1);
    put_string(&b, STR("k"));
    put_number(&b, GGUF_ARRAY, 4);
    put_number(&b, GGUF_STRING, 4);
    put_number(&b, (1u << 27) - 100, 8);
    test_write_file(path, buf_str(&b));
    assert_int_equal(truncate(path, 1 << 30), 0);
    expect_refusal("134217628 strings; no more than 16777216 are accepted", &e);
    start_header(&b, 3, 1u << 24, 1u << 24);
    test_write_file(path, buf_str(&b));
    assert_int_equal(truncate(path, 1 << 30), 0);
    expect_refusal("16777216 keys and 16777216 tensors; no more than", &e);
    buf_free(&b);
}

static void refuse_key_name(struct str name, const char *needle) {
    struct buf b = {0};
    start_header(&b, 3, 0, 1);
    put_string(&b, name);
    put_number(&b, GGUF_BOOL, 4);
    put_number(&b, 1, 1);
    refuse(buf_str(&b), needle);
    buf_free(&b);
}

static void test_names(void **state) {
    (void)state;
    static char huge[70000];
    memset(huge, 'k', sizeof huge);
    refuse_key_name(STR(""), "a name of 0 bytes");
    refuse_key_name(STR("a\033[2Jb"), "holds byte 0x1b");
    refuse_key_name(STR("a b"), "holds byte 0x20");
    refuse_key_name(STR("a\0b"), "holds byte 0x00");
    refuse_key_name((struct str){huge, sizeof huge}, "a name of 70000 bytes");
    struct buf b = {0};
    const uint64_t dim[1] = {1};
    huge[300] = 0;
    start_header(&b, 3, 1, 0);
    add_tensor(&b, huge, 1, dim, 1, 0, 0);
    refuse(buf_str(&b), "a name of 300 bytes");
    buf_free(&b);
}

static void test_bools(void **state) {
    (void)state;
    struct gguf_writer w = gguf_writer_open();
    struct buf b = {0};
    gguf_writer_raw(&w, "k", GGUF_BOOL, STR("\2"));
    gguf_writer_bytes(&w, &b);
    refuse(buf_str(&b), "the bool 2");
    gguf_writer_free(&w);
    buf_free(&b);
}

static void test_alignment(void **state) {
    (void)state;
    static const uint32_t bad[] = {0, 1, 3, 4, 24, 48, 0x80000001u, UINT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct gguf_writer w = gguf_writer_open();
        struct buf b = {0};
        gguf_writer_u32(&w, "general.alignment", bad[i]);
        gguf_writer_bytes(&w, &b);
        refuse(buf_str(&b), "power of two");
        gguf_writer_free(&w);
        buf_free(&b);
    }
}

// Two tensors of 64 bytes each at the given offsets, with 128 bytes of data.
static struct buf two_tensors(const char *first, uint64_t at_first, const char *second,
                              uint64_t at_second) {
    struct buf b = {0};
    const uint64_t dim[2] = {4, 4};
    start_header(&b, 3, 2, 0);
    add_tensor(&b, first, 2, dim, 2, 0, at_first);
    add_tensor(&b, second, 2, dim, 2, 0, at_second);
    while (b.n % 32 != 0) buf_add_char(&b, 0);
    for (int i = 0; i < 128; i++) buf_add_char(&b, 'x');
    return b;
}

static void refuse_two(const char *first, uint64_t at_first, const char *second, uint64_t at_second,
                       const char *needle) {
    struct buf b = two_tensors(first, at_first, second, at_second);
    refuse(buf_str(&b), needle);
    buf_free(&b);
}

static void test_places(void **state) {
    (void)state;
    refuse_two("a", 0, "b", 32, "tensors a and b overlap");
    refuse_two("a", 32, "b", 32, "overlap");
    refuse_two("a", 0, "b", 96, "tensor b (F32 4 x 4, 64 bytes) ends at byte");
    refuse_two("a", 0, "b", UINT64_MAX - 31, "beyond what 64 bits can count");
    refuse_two("a", 0, "b", UINT64_MAX - 95, "beyond what 64 bits can count");
    refuse_two("a", 0, "b", 68, "not a multiple of the alignment 32");
    refuse_two("same", 0, "same", 64, "tensor same is in the file twice");
    struct buf b = two_tensors("a", 64, "b", 0); // any order is fine
    struct arena *a = arena_create("test");
    struct gguf *g;
    struct err e = {0};
    test_write_file(path, buf_str(&b));
    ASSERT_OK(gguf_open(path, a, &g, &e), e);
    gguf_close(g);
    arena_destroy(a);
    buf_free(&b);
}

static void test_double_key(void **state) {
    (void)state;
    struct gguf_writer w = gguf_writer_open();
    struct buf b = {0};
    gguf_writer_u32(&w, "llama.block_count", 2);
    gguf_writer_f32(&w, "between", 2);
    gguf_writer_string(&w, "llama.block_count", STR("2"));
    gguf_writer_bytes(&w, &b);
    refuse(buf_str(&b), "key llama.block_count is in the file twice");
    gguf_writer_free(&w);
    buf_free(&b);
}

// Reads all that an opened file offers, so that the sanitizers see it.
static double touch(const struct gguf *g, struct arena *a) {
    double sum = 0;
    for (size_t i = 0; i < g->value_count; i++) {
        const struct gguf_value *v = &g->values[i];
        for (size_t k = 0; k < v->raw.n; k++) sum += v->raw.p[k];
        if (v->type == GGUF_ARRAY && v->element == GGUF_STRING)
            for (uint64_t k = 0; k < v->count; k++) sum += (double)v->strings[k].n;
        assert_ptr_equal(gguf_find(g, str_to_c(a, v->key)), v);
    }
    return sum;
}

// A model with damage at random places: opened or refused, never a crash, always soon.
static void test_random_damage(void **state) {
    (void)state;
    struct buf whole = small_model();
    struct rng r = rng_open(11, "hostile", "damage");
    size_t head = whole.n - 9000 < 1600 ? whole.n : 1600;
    int opened = 0, refused = 0;
    char *copy = malloc(whole.n);
    test_write_file(path, buf_str(&whole));
    int file = open(path, O_WRONLY);
    for (int round = 0; round < 6000; round++) {
        memcpy(copy, whole.p, whole.n);
        for (uint64_t k = 0, edits = 1 + rng_below(&r, 4); k < edits; k++) {
            size_t at = (size_t)rng_below(&r, rng_below(&r, 2) ? head : whole.n);
            static const uint8_t special[] = {0, 1, 0x7f, 0x80, 0xff};
            copy[at] = (char)(rng_below(&r, 2) ? special[rng_below(&r, 5)] : rng_below(&r, 256));
        }
        assert_int_equal(pwrite(file, copy, whole.n, 0), whole.n);
        struct arena *a = arena_create("test");
        struct model *m;
        struct err e = {0};
        uint64_t start = clock_cpu_ns();
        int result = model_open(path, a, &m, &e);
        assert_true(CLOCK_MS(clock_cpu_ns() - start) < LIMIT_MS);
        if (result == 0) {
            opened++;
            touch(m->file, a);
            model_close(m);
        } else {
            refused++;
            assert_int_equal(e.code, ERR_MODEL);
            assert_non_null(strstr(e.text, path));
        }
        arena_destroy(a);
    }
    assert_true(opened > 100 && refused > 100);
    close(file);
    free(copy);
    buf_free(&whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_prefix), cmocka_unit_test(test_foreign_files),
        cmocka_unit_test(test_versions),     cmocka_unit_test(test_dimensions),
        cmocka_unit_test(test_lengths),      cmocka_unit_test(test_huge_array),
        cmocka_unit_test(test_names),        cmocka_unit_test(test_bools),
        cmocka_unit_test(test_alignment),    cmocka_unit_test(test_places),
        cmocka_unit_test(test_double_key),   cmocka_unit_test(test_random_damage),
    };
    snprintf(path, sizeof path, "%s/hostile.gguf", test_folder());
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Well-formed GGUF files: every value type, both versions, alignment, look-ups and typed reads.
#include "engine/gguf.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/support.h"

#include <string.h>

static const char *file_path(struct arena *a) {
    return arena_printf(a, "%s/file.gguf", test_folder());
}

static struct gguf *open_written(const struct gguf_writer *w, struct arena *a) {
    struct gguf *g = NULL;
    struct err e = {0};
    gguf_writer_save(w, file_path(a));
    ASSERT_OK(gguf_open(file_path(a), a, &g, &e), e);
    return g;
}

static void add_raw(struct gguf_writer *w, const char *key, uint32_t type, uint64_t value,
                    size_t bytes) {
    struct buf b = {0};
    put_number(&b, value, bytes);
    gguf_writer_raw(w, key, type, buf_str(&b));
    buf_free(&b);
}

static void test_scalars(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct gguf_writer w = gguf_writer_open();
    double d = -1.5e300;
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    add_raw(&w, "a.u8", GGUF_U8, 0xfe, 1);
    add_raw(&w, "a.i8", GGUF_I8, 0xfe, 1);
    add_raw(&w, "a.u16", GGUF_U16, 0xfffe, 2);
    add_raw(&w, "a.i16", GGUF_I16, 0xfffe, 2);
    add_raw(&w, "a.u32", GGUF_U32, 0xfffffffe, 4);
    add_raw(&w, "a.i32", GGUF_I32, 0xfffffffe, 4);
    add_raw(&w, "a.u64", GGUF_U64, UINT64_MAX - 1, 8);
    add_raw(&w, "a.i64", GGUF_I64, UINT64_MAX - 1, 8);
    add_raw(&w, "a.f64", GGUF_F64, bits, 8);
    gguf_writer_f32(&w, "a.f32", 0.1f);
    gguf_writer_bool(&w, "a.bool", true);
    gguf_writer_string(&w, "a.string", STR("caf\xc3\xa9"));
    gguf_writer_string(&w, "a.empty", STR(""));
    struct gguf *g = open_written(&w, a);
    assert_int_equal(g->value_count, 13);
    assert_int_equal(gguf_find(g, "a.u8")->as.u, 254);
    assert_int_equal(gguf_find(g, "a.i8")->as.i, -2);
    assert_int_equal(gguf_find(g, "a.u16")->as.u, 65534);
    assert_int_equal(gguf_find(g, "a.i16")->as.i, -2);
    assert_int_equal(gguf_find(g, "a.u32")->as.u, 4294967294);
    assert_int_equal(gguf_find(g, "a.i32")->as.i, -2);
    assert_true(gguf_find(g, "a.u64")->as.u == UINT64_MAX - 1);
    assert_true(gguf_find(g, "a.i64")->as.i == -2);
    assert_true(gguf_find(g, "a.f64")->as.f == d);
    assert_true(gguf_find(g, "a.f32")->as.f == (double)0.1f);
    assert_int_equal(gguf_find(g, "a.bool")->as.u, 1);
    assert_true(str_equal_c(gguf_find(g, "a.string")->as.s, "caf\xc3\xa9"));
    assert_int_equal(gguf_find(g, "a.empty")->as.s.n, 0);
    assert_null(gguf_find(g, "a.u"));
    assert_null(gguf_find(g, "a.u323"));
    gguf_close(g);
    gguf_writer_free(&w);
    arena_destroy(a);
}

static void test_typed_reads(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct gguf_writer w = gguf_writer_open();
    add_raw(&w, "n.u16", GGUF_U16, 77, 2);
    add_raw(&w, "n.negative", GGUF_I32, 0xffffffff, 4);
    add_raw(&w, "n.wide", GGUF_U64, UINT64_C(1) << 32, 8);
    add_raw(&w, "n.infinite", GGUF_F32, 0x7f800000, 4);
    add_raw(&w, "n.nan", GGUF_F32, 0x7fc00000, 4);
    gguf_writer_string(&w, "n.text", STR("eight"));
    struct gguf *g = open_written(&w, a);
    struct err e = {0};
    uint32_t n = 5;
    float f = 2;
    bool present, flag = true;
    struct str s = STR("before");
    ASSERT_OK(gguf_need_u32(g, "n.u16", &n, &e), e);
    assert_int_equal(n, 77);
    ASSERT_OK(gguf_get_u32(g, "n.absent", &n, &present, &e), e);
    assert_false(present);
    assert_int_equal(n, 77);
    ASSERT_FAILS(gguf_need_u32(g, "n.absent", &n, &e), e, ERR_MODEL,
                 "n.absent (an integer) is missing");
    ASSERT_FAILS(gguf_need_u32(g, "n.negative", &n, &e), e, ERR_MODEL, "n.negative is -1");
    ASSERT_FAILS(gguf_need_u32(g, "n.wide", &n, &e), e, ERR_MODEL, "n.wide is 4294967296");
    ASSERT_FAILS(gguf_need_u32(g, "n.text", &n, &e), e, ERR_MODEL, "n.text is of type string");
    ASSERT_FAILS(gguf_need_f32(g, "n.u16", &f, &e), e, ERR_MODEL, "n.u16 is of type u16");
    ASSERT_FAILS(gguf_need_f32(g, "n.infinite", &f, &e), e, ERR_MODEL, "n.infinite is inf");
    ASSERT_FAILS(gguf_need_f32(g, "n.nan", &f, &e), e, ERR_MODEL, "n.nan is");
    ASSERT_FAILS(gguf_get_bool(g, "n.u16", &flag, &present, &e), e, ERR_MODEL, "a bool is needed");
    ASSERT_FAILS(gguf_need_string(g, "n.u16", &s, &e), e, ERR_MODEL, "a string is needed");
    ASSERT_FAILS(gguf_need_string(g, "n.absent", &s, &e), e, ERR_MODEL, file_path(a));
    assert_true(str_equal_c(s, "before"));
    gguf_close(g);
    gguf_writer_free(&w);
    arena_destroy(a);
}

static void test_arrays(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct gguf_writer w = gguf_writer_open();
    const struct str words[] = {STR("one"), STR(""), STR("three\0four")};
    const int32_t numbers[] = {7, -7};
    gguf_writer_strings(&w, "words", words, 3);
    gguf_writer_i32s(&w, "numbers", numbers, 2);
    gguf_writer_i32s(&w, "nothing", numbers, 0);
    w.version = 2;
    struct gguf *g = open_written(&w, a);
    assert_int_equal(g->version, 2);
    const struct gguf_value *v = gguf_find(g, "words");
    assert_int_equal(v->element, GGUF_STRING);
    assert_int_equal(v->count, 3);
    for (int i = 0; i < 3; i++) assert_true(str_equal(v->strings[i], words[i]));
    v = gguf_find(g, "numbers");
    assert_int_equal(v->element, GGUF_I32);
    assert_memory_equal(v->data, numbers, sizeof numbers); // little-endian machine
    assert_int_equal(v->raw.n, 4 + 4 + 8 + 8);
    assert_int_equal(gguf_find(g, "nothing")->count, 0);
    gguf_close(g);
    gguf_writer_free(&w);
    arena_destroy(a);
}

// Data of tensors is found whatever the alignment, dimensions are kept in file order.
static void test_tensors(void **state) {
    (void)state;
    static const uint32_t alignments[] = {8, 32, 64, 4096};
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        struct arena *a = arena_create("test");
        struct gguf_writer w = gguf_writer_open();
        if (alignments[i] != 32) gguf_writer_u32(&w, "general.alignment", alignments[i]);
        w.alignment = alignments[i];
        const uint64_t dim[4] = {3, 2, 1, 2}, one[1] = {5};
        float values[12];
        for (int k = 0; k < 12; k++) values[k] = (float)k + 0.25f;
        gguf_writer_tensor(&w, "b.weight", TENSOR_F32, 4, dim, values);
        gguf_writer_tensor(&w, "a.weight", TENSOR_F16, 1, one, values + 3);
        struct gguf *g = open_written(&w, a);
        assert_int_equal(g->alignment, alignments[i]);
        const struct gguf_tensor *t = gguf_tensor_find(g, "b.weight");
        assert_int_equal(t->dims, 4);
        assert_memory_equal(t->dim, dim, sizeof dim);
        assert_int_equal(t->elements, 12);
        assert_int_equal(t->bytes, 48);
        assert_memory_equal(t->data, values, sizeof values);
        float read[5];
        t = gguf_tensor_find(g, "a.weight");
        assert_int_equal(t->dim[3], 1);
        tensor_dequantize(t->type, t->data, 5, read);
        assert_memory_equal(read, values + 3, sizeof read);
        assert_null(gguf_tensor_find(g, "a"));
        gguf_close(g);
        gguf_writer_free(&w);
        arena_destroy(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_typed_reads),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Products by cuBLASLt in whole models: what is admitted changes no bit, is kept in a file, and is
// proved again before it is used again.
#include "tests/support/engine_probe.h"
#include "tests/support/simt.h"
#include "tests/support/support.h"

#include "engine/backend_plugin.h"
#include "engine/backend_products.h"
#include "engine/backend_products_file.h"
#include "engine/base/file.h"

#include <string.h>

#define COUNT 260 // a piece of 256 rows and a rest
#define SHAPES 4  // of a layer's matrices

const struct cuda_ops *lacuna_cuda_ops(void);

static const char *model_path;
static int32_t ids[COUNT];
static uint64_t reference[COUNT];

// Hashes of the logits (NULL: nothing is computed); *products gets what serves the products.
static void logits(const char *which, const char *cache, uint64_t hashes[COUNT],
                   json_t **products) {
    struct session_options o = {.backend = "cuda",
                                .chunk_tokens = 320,
                                .context_tokens = 320,
                                .weights = "unpacked",
                                .products = which,
                                .cache = cache};
    struct probe p = probe_open(model_path, &o);
    if (hashes != NULL) probe_feed(&p, probe_sequence(&p), ids, COUNT, hashes);
    if (products != NULL) *products = backend_products_json(session_backend(p.session)->products);
    probe_close(&p);
}

static int64_t number(const json_t *o, const char *key) {
    return json_integer_value(json_object_get(o, key));
}

// Opens a session of admitted products, whose shapes have `equal` algorithms each. Returns how many
// cuBLASLt serves.
static int opened(const char *cache, uint64_t hashes[COUNT], int equal) {
    json_t *products, *c;
    size_t i;
    int by_library = 0;
    logits("admitted", cache, hashes, &products);
    assert_true(number(products, "cublaslt") > 0);
    json_t *choices = json_object_get(products, "choices");
    assert_int_equal(json_array_size(choices), SHAPES);
    json_array_foreach(choices, i, c) {
        assert_int_equal(number(c, "rows"), 256);
        assert_int_equal(number(c, "equal"), equal);
        assert_int_equal(number(json_object_get(c, "refused"), "tiny"), 1);
        assert_int_equal(number(json_object_get(c, "refused"), "company"), 1);
        assert_int_equal(number(c, "offered"), equal + 2);
        bool ours = strcmp(json_string_value(json_object_get(c, "by")), "own kernel") == 0;
        assert_int_equal(json_object_get(c, "algorithm") == NULL, ours);
        by_library += !ours;
    }
    json_decref(products);
    return by_library;
}

// The same, held to the reference.
static int admitted(const char *cache, int equal) {
    uint64_t got[COUNT];
    int by_library = opened(cache, got, equal);
    assert_int_equal(probe_differences(reference, got, COUNT), 0);
    return by_library;
}

static void test_bits_do_not_change(void **state) {
    (void)state;
    assert_true(admitted(NULL, 1) > 0); // the stand-in is many times as fast
    struct simt_options before = simt_get_options(), none = before;
    none.blas_in_order = false;
    simt_set_options(&none);
    assert_int_equal(admitted(NULL, 0), 0);
    simt_set_options(&before);

    // What the library likes best does change them.
    uint64_t got[COUNT];
    logits("any", NULL, got, NULL);
    assert_true(probe_differences(reference, got, COUNT) > 0);
}

// In the emulator nobody pays for probes who does not ask.
static void test_auto_is_own_in_the_emulator(void **state) {
    (void)state;
    uint64_t got[COUNT];
    json_t *products;
    logits(NULL, NULL, got, &products);
    assert_int_equal(probe_differences(reference, got, COUNT), 0);
    assert_string_equal(json_string_value(json_object_get(products, "by")), "own");
    json_decref(products);
    struct backend *b;
    struct err e = {0};
    struct backend_options o = {.name = "cuda", .products = "fast"};
    ASSERT_FAILS(backend_open(&o, &b, &e), e, ERR_CONFIG, "products by 'fast' are not known");
}

static char *cache_file(const char *folder) {
    char **names;
    size_t count;
    struct err e = {0};
    ASSERT_OK(file_list(folder, test_arena, &names, &count, &e), e);
    assert_int_equal(count, 1);
    return path_join(test_arena, folder, names[0]);
}

static json_t *key_in(const char *path) {
    json_t *whole;
    struct err e = {0};
    ASSERT_OK(json_read_file(path, 1 << 20, &whole, &e), e);
    json_t *key = json_incref(json_object_get(whole, "key"));
    json_decref(whole);
    return key;
}

static uint64_t launches_of(const char *cache) {
    uint64_t before = simt_counted().launches;
    opened(cache, NULL, 1);
    return simt_counted().launches - before;
}

static void test_choices_are_kept(void **state) {
    (void)state;
    const char *cache = path_join(test_arena, test_folder(), "kept/deep");
    uint64_t first = launches_of(cache);
    char *path = cache_file(cache);
    struct str kept = test_read(test_arena, path);
    assert_true(launches_of(cache) < first);
    struct str after = test_read(test_arena, path);
    assert_int_equal(after.n, kept.n);
    assert_memory_equal(after.p, kept.p, kept.n);

    // Damaged: refused with words, and made anew.
    char *broken = arena_memdup(test_arena, kept.p, kept.n);
    char *digit = strstr(broken, "\"words\": \"") + strlen("\"words\": \"") + 20;
    *digit = *digit == '7' ? '8' : '7';
    const struct str files[] = {
        str_from(""), str_from("{\"key\": 1}"), {broken, kept.n}, {kept.p, kept.n / 2}};
    json_t *key = key_in(path);
    struct product_choices c;
    struct err e = {0};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        test_write(path, files[i]);
        ASSERT_FAILS(products_file_read(path, key, &c, &e), e, ERR_INPUT, path);
        opened(cache, NULL, 1);
        ASSERT_OK(products_file_read(path, key, &c, &e), e);
        assert_int_equal(c.count, SHAPES);
        product_choices_free(&c);
    }
    json_t *other = json_deep_copy(key);
    json_put(other, "device", json_text_c("another"));
    ASSERT_FAILS(products_file_read(path, other, &c, &e), e, ERR_INPUT, "of another device");
    json_decref(other);
    json_decref(key);
}

// A file may say what it likes: what does not give the bits now is refused.
static void test_kept_algorithms_are_proved(void **state) {
    (void)state;
    const char *cache = path_join(test_arena, test_folder(), "proved");
    enum { WORD_OF_ID = 1, SLICED = 1, IN_ORDER = 2 }; // of the stand-in
    opened(cache, NULL, 1);
    char *path = cache_file(cache);
    json_t *key = key_in(path);
    struct product_choices c;
    struct err e = {0};
    ASSERT_OK(products_file_read(path, key, &c, &e), e);
    for (size_t i = 0; i < c.count; i++) {
        c.list[i].admitted = true;
        memset(&c.list[i].algorithm, 0, sizeof c.list[i].algorithm);
        c.list[i].algorithm.opaque[0] = 0x746d6973;
        c.list[i].algorithm.opaque[WORD_OF_ID] = i == 0 ? IN_ORDER : SLICED;
    }
    ASSERT_OK(products_file_write(path, key, &c, &e), e);
    product_choices_free(&c);
    admitted(cache, 1);
    ASSERT_OK(products_file_read(path, key, &c, &e), e);
    assert_int_equal(c.count, SHAPES);
    for (size_t i = 0; i < c.count; i++)
        if (c.list[i].admitted)
            assert_int_equal(c.list[i].algorithm.opaque[WORD_OF_ID] & 0xffffffffu, IN_ORDER);
    product_choices_free(&c);
    json_decref(key);
}

static int make_reference(void **state) {
    (void)state;
    model_path = probe_model(
        "products",
        &(struct tiny_model_options){
            .type = TENSOR_Q8_0, .D = 64, .H = 2, .G = 1, .F = 96, .biases = true, .seed = 6});
    probe_ids(2, 320, ids, COUNT);
    logits("own", NULL, reference, NULL);
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, test_arena_open, test_arena_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_bits_do_not_change), TEST(test_auto_is_own_in_the_emulator),
        TEST(test_choices_are_kept), TEST(test_kept_algorithms_are_proved)};
    simt_from_environment();
    backend_plugin_use(lacuna_cuda_ops());
    return cmocka_run_group_tests_name("cuda products", tests, make_reference, NULL);
}

// engine/base: known answers from outside (Random123, FIPS 180-4, RFC 3629) and the promises of the
// headers.
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/hash.h"
#include "engine/base/json.h"
#include "engine/base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// Vectors of philox4x32-10 from the Random123 distribution's kat_vectors.
static void philox_known_answers(void **state) {
    (void)state;
    static const uint32_t vector[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        rng_philox(vector[i], vector[i] + 4, out);
        assert_memory_equal(out, vector[i] + 6, sizeof out);
    }
}

static void streams_are_independent_and_repeatable(void **state) {
    (void)state;
    struct rng a = rng_open(7, "repeat 3", "filler"), b = rng_open(7, "repeat 3", "filler");
    struct rng other = rng_open(7, "repeat 3", "vars");
    int equal = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t x = rng_u64(&a);
        assert_true(x == rng_u64(&b));
        equal += x == rng_u64(&other);
    }
    assert_int_equal(equal, 0);
    struct rng sampling = rng_open(7, "repeat 3", "sample 0"), walker = sampling;
    for (uint64_t i = 0; i < 50; i++) assert_true(rng_unit(&walker) == rng_unit_at(&sampling, i));
}

static void below_is_uniform(void **state) {
    (void)state;
    struct rng r = rng_open(11, "test", "below");
    int count[7] = {0};
    for (int i = 0; i < 70000; i++) count[rng_below(&r, 7)]++;
    for (int i = 0; i < 7; i++) assert_in_range(count[i], 9600, 10400);
    double sum = 0;
    for (int i = 0; i < 10000; i++) {
        double u = rng_unit(&r);
        assert_true(u >= 0 && u < 1);
        sum += u;
    }
    assert_true(sum > 4850 && sum < 5150);
}

static void sha256_known_answers(void **state) {
    (void)state;
    char hex[HASH_HEX_SIZE];
    hash_bytes("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hash_bytes("", 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    int32_t ids[2] = {0x64636261, 0x68676665}; // "abcdefgh" in little-endian
    hash_ids(ids, 2, hex);
    assert_string_equal(hex, "9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab");
}

static void utf8_rules(void **state) {
    (void)state;
    uint32_t c;
    assert_int_equal(utf8_decode(STR("\xE2\x82\xAC"), 0, &c), 3);
    assert_int_equal(c, 0x20AC);
    // Maximal subparts: each of these is one replacement of the given length.
    assert_int_equal(utf8_decode(STR("\xE2\x82x"), 0, &c), 2);
    assert_int_equal(c, 0xFFFD);
    assert_int_equal(utf8_decode(STR("\xC0\x80"), 0, &c), 1);
    assert_int_equal(utf8_decode(STR("\xED\xA0\x80"), 0, &c), 1);
    assert_int_equal(utf8_decode(STR("\xF4\x90\x80\x80"), 0, &c), 1);
    assert_false(utf8_valid(STR("ok\xFF")));
    assert_int_equal(utf8_first_bad(STR("ok\xFF")), 2);
    for (size_t at = 0; at < 40; at++) { // wherever it stands, and whatever stands there
        char text[43];
        memset(text, 'a', sizeof text);
        memcpy(text + at, "\xE2\x82\xAC", 3);
        assert_int_equal(utf8_first_bad((struct str){text, sizeof text}), sizeof text);
        text[at + 2] = 'a';
        assert_int_equal(utf8_first_bad((struct str){text, sizeof text}), at);
        assert_int_equal(utf8_first_bad((struct str){text, at}), at);
    }
    for (uint32_t point = 1; point < 0x110000; point += 97) {
        if (point >= 0xD800 && point <= 0xDFFF) continue;
        char bytes[4];
        size_t n = utf8_encode(point, bytes);
        assert_int_equal(utf8_decode((struct str){bytes, n}, 0, &c), n);
        assert_int_equal(c, point);
    }
}

static void heads_end_between_characters(void **state) {
    (void)state;
    struct rng r = rng_open(20, "test", "heads");
    for (int round = 0; round < 200; round++) {
        struct buf text = {0};
        size_t ends[31] = {0}, count = 1 + rng_below(&r, 30);
        for (size_t i = 0; i < count; i++) {
            static const uint32_t most[] = {0x80, 0x800, 0xD800, 0x110000};
            uint32_t c = (uint32_t)rng_below(&r, most[rng_below(&r, 4)]);
            char bytes[4];
            buf_add(&text, bytes, utf8_encode(c >= 0xD800 && c < 0xE000 ? 'x' : c, bytes));
            ends[i + 1] = text.n;
        }
        for (size_t most = 0; most <= text.n + 1; most++) {
            size_t k = count;
            while (ends[k] > most) k--;
            struct str head = str_head(buf_str(&text), most);
            assert_true(head.p == text.p && head.n == ends[k]);
        }
        buf_free(&text);
    }
}

static void nearest_word(void **state) {
    (void)state;
    static const char *const words[] = {"depths", "constraints", "repeats"};
    assert_string_equal(str_nearest("dephts", words, 3), "depths");
    assert_null(str_nearest("colour", words, 3));
}

static void json_keeps_order_and_bytes(void **state) {
    (void)state;
    struct err e = {0};
    json_t *o = json_object();
    json_put(o, "z", json_integer(1));
    json_put(o, "a", json_text(STR("tab\t\"q\" \xC3\xA9/")));
    json_put_bytes(o, "raw", STR("\xFF\x00\x01"));
    struct buf text = {0};
    json_compact(o, &text);
    assert_string_equal(text.p,
                        "{\"z\":1,\"a\":\"tab\\t\\\"q\\\" \xC3\xA9/\",\"raw_base64\":\"/wAB\"}");
    json_t *again;
    ASSERT_OK(json_parse(buf_str(&text), "text", &again, &e), e);
    struct arena *a = arena_create("test");
    struct str bytes;
    ASSERT_OK(json_get_bytes(again, "raw", "text", a, &bytes, &e), e);
    assert_true(str_equal(bytes, STR("\xFF\x00\x01")));
    static const char *const no_base64[] = {"!!!!", "AAA", "====", "AA=A", "=AAA"};
    for (size_t i = 0; i < sizeof no_base64 / sizeof *no_base64; i++) {
        json_put(again, "raw_base64", json_text_c(no_base64[i]));
        ASSERT_FAILS(json_get_bytes(again, "raw", "text", a, &bytes, &e), e, ERR_INPUT, "base64");
    }
    json_t *none;
    ASSERT_FAILS(json_parse(STR("{\"a\":1,\"a\":2}"), "text", &none, &e), e, ERR_INPUT, "text");
    arena_destroy(a);
    buf_free(&text);
    json_decref(o);
    json_decref(again);
}

static void arenas_grow_and_reset(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    for (int round = 0; round < 3; round++) {
        char *large = arena_alloc(a, 1 << 20), *small[100];
        memset(large, 1, 1 << 20);
        for (int i = 0; i < 100; i++) {
            small[i] = arena_alloc(a, 100);
            for (int j = 0; j < 100; j++) assert_int_equal(small[i][j], 0);
            memset(small[i], i, 100);
        }
        for (int i = 0; i < 100; i++) assert_int_equal(small[i][99], i);
        arena_reset(a);
    }
    arena_destroy(a);
    struct err e = {0};
    void *p;
    ASSERT_FAILS(mem_alloc((size_t)1 << 62, "the test", &p, &e), e, ERR_MEMORY, "the test");
    ASSERT_OK(mem_alloc(5000000, "the test", &p, &e), e);
    assert_int_equal((uintptr_t)p % 64, 0);
    memset(p, 1, 5000000);
    mem_free(p);
}

static void error_text_is_cut_at_a_character(void **state) {
    (void)state;
    struct err e = {0};
    char text[2 * sizeof e.text];
    for (size_t i = 0; i + 3 < sizeof text; i += 3) memcpy(text + i, "\xE2\x82\xAC", 4);
    ERR_SET(&e, ERR_INPUT, "x%s", text);
    assert_true(utf8_valid(str_from(e.text)));
    ERR_SET(&e, ERR_INPUT, "inner");
    err_prefix(&e, "file %s", "f");
    assert_string_equal(e.text, "file f: inner");
}

static void files_are_written_whole(void **state) {
    (void)state;
    struct err e = {0};
    struct arena *a = arena_create("test");
    char *path = path_join(a, test_folder(), "deep/er/file");
    ASSERT_OK(file_make_directory(path_folder(a, path), &e), e);
    ASSERT_OK(file_write_atomic(path, STR("one"), &e), e);
    // Every fail point inside one atomic write: the old or the new text, never anything else.
    for (int kind = FILE_FAULT_EXIT; kind <= FILE_FAULT_NO_SPACE; kind++) {
        bool finished = false;
        for (int point = 1; !finished; point++) {
            pid_t child = fork();
            if (child == 0) {
                file_fail_at(point, (enum file_fault)kind);
                _exit(file_write_atomic(path, STR("two two"), NULL) == 0 ? 0 : 1);
            }
            int status;
            waitpid(child, &status, 0);
            assert_true(WIFEXITED(status));
            finished = WEXITSTATUS(status) == 0;
            struct str text;
            ASSERT_OK(file_read(path, 100, a, &text, &e), e);
            assert_true(str_equal_c(text, "one") || str_equal_c(text, "two two"));
            if (!finished) ASSERT_OK(file_write_atomic(path, STR("one"), &e), e);
            assert_true(point < 10);
        }
    }
    struct str text;
    ASSERT_FAILS(file_read(path, 3, a, &text, &e), e, ERR_INPUT, "deep/er/file");
    ASSERT_FAILS(file_read("/dev/null", 3, a, &text, &e), e, ERR_IO, "regular");
    ASSERT_FAILS(file_make_directory_exclusive(path_folder(a, path), &e), e, ERR_RECORD, "exists");
    arena_destroy(a);
}

static void locks_exclude(void **state) {
    (void)state;
    struct err e = {0};
    struct arena *a = arena_create("test");
    char *path = path_join(a, test_folder(), "lock");
    struct file_lock *lock, *second;
    ASSERT_OK(file_lock_take(path, &lock, &e), e);
    ASSERT_FAILS(file_lock_take(path, &second, &e), e, ERR_RECORD, "another process");
    file_lock_release(lock);
    ASSERT_OK(file_lock_take(path, &second, &e), e);
    file_lock_release(second);
    arena_destroy(a);
}

// A folder that the user may not enter is not taken for one without the file.
static void a_forbidden_file_is_there(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct err e = {0};
    char *folder = path_join(a, test_folder(), "closed"), *path = path_join(a, folder, "file");
    ASSERT_OK(file_make_directory(folder, &e), e);
    assert_false(file_exists(path));
    ASSERT_OK(file_write_atomic(path, STR("x"), &e), e);
    assert_int_equal(chmod(folder, 0), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0) _exit(9);
        struct str text;
        bool denied = file_read(path, 10, a, &text, &e) != 0 && e.code == ERR_IO;
        _exit(file_exists(path) && denied && strstr(e.text, "Permission denied") != NULL ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(status, 0);
    arena_destroy(a);
}

static void lists_grow_by_one(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    uint64_t *first = NULL, *second = NULL;
    for (size_t n = 0; n < 1000; n++) { // two in one arena, so that a missing byte of room shows
        first = arena_more(a, first, n, sizeof *first);
        second = arena_more(a, second, n, sizeof *second);
        assert_true(first[n] == 0 && second[n] == 0);
        first[n] = n * 31;
        second[n] = n * 37 + 1;
        for (size_t i = 0; i <= n; i++) assert_true(first[i] == i * 31 && second[i] == i * 37 + 1);
    }
    assert_in_range(arena_bytes(a), 2 * 2000 * 8, 2 * 2100 * 8);
    arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_grow_by_one),
        cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(streams_are_independent_and_repeatable),
        cmocka_unit_test(below_is_uniform),
        cmocka_unit_test(sha256_known_answers),
        cmocka_unit_test(utf8_rules),
        cmocka_unit_test(heads_end_between_characters),
        cmocka_unit_test(nearest_word),
        cmocka_unit_test(json_keeps_order_and_bytes),
        cmocka_unit_test(arenas_grow_and_reset),
        cmocka_unit_test(error_text_is_cut_at_a_character),
        cmocka_unit_test(files_are_written_whole),
        cmocka_unit_test(locks_exclude),
        cmocka_unit_test(a_forbidden_file_is_there),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}

// Ids equal to HF tokenizers' (tests/oracle/make_tokenizer_goldens.py), and bytes that come back.
#include "engine/base/clock.h"
#include "engine/base/hash.h"
#include "engine/base/rng.h"
#include "engine/pretokenizer.h"
#include "tests/support/golden_tokenizer.h"
#include "tests/support/support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define RULES 4
static const char *const rules[RULES] = {"smollm", "gpt-2", "llama-bpe", "qwen2"};

struct fixture {
    struct arena *a;
    struct tokenizer *t[RULES];
    struct pretokenizer *pre[RULES];
    struct pretokenizer_scan *scan[RULES];
};

static struct fixture fixture_open(void) {
    struct fixture f = {.a = arena_create("test")};
    for (int i = 0; i < RULES; i++) {
        struct err e = {0};
        f.t[i] = golden_tokenizer(f.a, rules[i]);
        ASSERT_OK(pretokenizer_open(str_from(rules[i]), &f.pre[i], &e), e);
        f.scan[i] = pretokenizer_scan_open(f.pre[i]);
    }
    return f;
}

static void fixture_close(struct fixture *f) {
    for (int i = 0; i < RULES; i++) {
        tokenizer_close(f->t[i]);
        pretokenizer_scan_close(f->scan[i]);
        pretokenizer_close(f->pre[i]);
    }
    arena_destroy(f->a);
}

static struct str json_str(const json_t *s) {
    return (struct str){json_string_value(s), json_string_length(s)};
}

// The pieces that merging starts from; ids alone would not show a wrong border where nothing
// merges.
static void check_pieces(const struct fixture *f, int rule, struct str text, const json_t *lengths,
                         int line) {
    struct err e = {0};
    size_t count = 0;
    for (size_t at = 0, end = 0; at < text.n; at = end) {
        ASSERT_OK(pretokenizer_next(f->scan[rule], text, at, &end, &e), e);
        json_int_t expected = json_integer_value(json_array_get(lengths, count++));
        if ((json_int_t)(end - at) != expected) {
            fail_msg("line %d, %s: a piece of %zu bytes at %zu, expected %d", line, rules[rule],
                     end - at, at, (int)expected);
        }
    }
    assert_int_equal(count, json_array_size(lengths));
}

static void check_line(const json_t *row, int line, void *context) {
    const struct fixture *f = context;
    struct str text = json_str(json_array_get(row, 0));
    for (int i = 0; i < RULES; i++) {
        const json_t *expected = json_array_get(row, (size_t)i + 1);
        if (json_is_null(expected)) expected = json_array_get(row, 1);
        struct token_list ids = ids_of(f->t[i], text, false);
        if (!ids_equal_json(&ids, expected)) {
            fail_msg("line %d, %s: other ids for '" STR_FMT "'", line, rules[i], STR_ARG(text));
        }
        const json_t *lengths = json_array_get(row, (size_t)i + 1 + RULES);
        if (json_is_null(lengths)) lengths = json_array_get(row, 1 + RULES);
        check_pieces(f, i, text, lengths, line);
        struct buf back = bytes_of(f->t[i], &ids);
        assert_true(str_equal(buf_str(&back), text));
        buf_free(&back);
        token_list_free(&ids);
    }
}

static void test_golden_lines(void **state) {
    (void)state;
    struct fixture f = fixture_open();
    golden_each("engine/golden/tokenizer.jsonl", check_line, &f);
    fixture_close(&f);
}

static void check_long(const json_t *row, int line, void *context) {
    const struct fixture *f = context;
    struct buf text = {0};
    buf_add_str(&text, json_str(json_object_get(row, "before")));
    struct str unit = json_str(json_object_get(row, "unit"));
    json_int_t times = json_integer_value(json_object_get(row, "times"));
    for (json_int_t i = 0; i < times; i++) buf_add_str(&text, unit);
    buf_add_str(&text, json_str(json_object_get(row, "after")));
    for (int i = 0; i < RULES; i++) {
        uint64_t start = clock_cpu_ns();
        struct token_list ids = ids_of(f->t[i], buf_str(&text), false);
        double seconds = (double)(clock_cpu_ns() - start) / 1e9;
        if (seconds > 2) fail_msg("line %d, %s: took %.1f s", line, rules[i], seconds);
        char sha256[HASH_HEX_SIZE];
        hash_ids(ids.ids, ids.count, sha256);
        assert_int_equal(ids.count, json_integer_value(
                                        json_object_get(json_object_get(row, "tokens"), rules[i])));
        assert_string_equal(
            sha256, json_string_value(json_object_get(json_object_get(row, "sha256"), rules[i])));
        token_list_free(&ids);
    }
    buf_free(&text);
}

static void *long_runs(void *context) {
    golden_each("engine/golden/long.jsonl", check_long, context);
    return context;
}

// Recursion in proportion to the input would end a small stack. The sanitizers' own frames are
// larger.
#ifdef __SANITIZE_ADDRESS__
#define SMALL_STACK (1024 * 1024)
#else
#define SMALL_STACK (256 * 1024)
#endif

static void test_long_runs(void **state) {
    (void)state;
    struct fixture f = fixture_open();
    pthread_attr_t attributes;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, SMALL_STACK), 0);
    assert_int_equal(pthread_create(&thread, &attributes, long_runs, &f), 0);
    void *done = NULL;
    assert_int_equal(pthread_join(thread, &done), 0);
    assert_ptr_equal(done, &f);
    pthread_attr_destroy(&attributes);
    fixture_close(&f);
}

static void test_word_of_a_megabyte(void **state) {
    (void)state;
    struct fixture f = fixture_open();
    struct rng r = rng_open(3, "test", "word");
    size_t n = 1 << 20;
    char *word = malloc(n);
    assert_non_null(word);
    for (size_t i = 0; i < n; i++) word[i] = "etaoinshrdlu"[rng_below(&r, 12)];
    for (int i = 0; i < RULES; i++) {
        uint64_t start = clock_cpu_ns();
        struct token_list ids = ids_of(f.t[i], (struct str){word, n}, false);
        double seconds = (double)(clock_cpu_ns() - start) / 1e9;
        if (seconds > 2) fail_msg("%s: took %.1f s", rules[i], seconds);
        struct buf back = bytes_of(f.t[i], &ids);
        assert_int_equal(back.n, n);
        assert_memory_equal(back.p, word, n);
        buf_free(&back);
        token_list_free(&ids);
    }
    free(word);
    fixture_close(&f);
}

// Random bytes, and random slices of hard text, come back unchanged with every rule.
static void test_round_trip(void **state) {
    (void)state;
    static const char hard[] =
        "é|e\xCC\x81 \xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9 <|im_end|>\r\n"
        "\xED\xA0\x80 \xC0\xAF \xF4\x90\x80\x80 १२３ <|eot_id|>x\xFF\xFE";
    struct fixture f = fixture_open();
    struct rng r = rng_open(20261130, "test", "round trip");
    for (int round = 0; round < 3000; round++) {
        char text[400];
        size_t n = rng_below(&r, sizeof text);
        uint64_t kind = rng_below(&r, 3);
        for (size_t i = 0; i < n; i++) {
            if (kind == 0) text[i] = (char)rng_below(&r, 256);
            if (kind == 1) text[i] = hard[rng_below(&r, sizeof hard - 1)];
        }
        while (kind == 2 && n >= sizeof hard) n /= 2;
        if (kind == 2) memcpy(text, hard + rng_below(&r, sizeof hard - n), n);
        struct tokenizer *t = f.t[round % RULES];
        struct token_list ids = ids_of(t, (struct str){text, n}, rng_below(&r, 2) == 1);
        struct buf back = bytes_of(t, &ids);
        assert_int_equal(back.n, n);
        if (n > 0) assert_memory_equal(back.p, text, n);
        buf_free(&back);
        token_list_free(&ids);
    }
    fixture_close(&f);
}

// The rule for bytes that are not UTF-8: each is its own token, and the text on either side is
// tokenized as a text of its own.
static void test_bytes_that_are_not_utf8(void **state) {
    (void)state;
    static const struct {
        const char *before, *bad, *after;
    } cases[] = {
        {"the answer", "\xFF", " was"},
        {"", "\x80", ""},
        {"a ", "\xC3", " b"},
        {"caf", "\xE4\xB8", "\xC3\xA9"},
        {"lone ", "\xED\xA0\x80", " surrogate"},
        {"over", "\xC0\xAF", "long"},
        {"beyond ", "\xF4\x90\x80\x80", "\n\n"},
        {"two  ", "\xFE\xFF", "  spaces"},
        {"cut ", "\xF0\x9F\x91", ""},
    };
    struct fixture f = fixture_open();
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (int i = 0; i < RULES; i++) {
            struct token_list expected = ids_of(f.t[i], str_from(cases[c].before), false);
            for (const char *p = cases[c].bad; *p != 0; p++) {
                int32_t id = tokenizer_find(f.t[i], (struct str){p, 1});
                assert_true(id >= 0);
                token_list_add(&expected, id);
            }
            struct err e = {0};
            ASSERT_OK(tokenizer_encode(f.t[i], str_from(cases[c].after), false, &expected, &e), e);
            struct buf text = {0};
            buf_printf(&text, "%s%s%s", cases[c].before, cases[c].bad, cases[c].after);
            struct token_list ids = ids_of(f.t[i], buf_str(&text), false);
            assert_int_equal(ids.count, expected.count);
            assert_memory_equal(ids.ids, expected.ids, ids.count * sizeof *ids.ids);
            buf_free(&text);
            token_list_free(&ids);
            token_list_free(&expected);
        }
    }
    fixture_close(&f);
}

static void test_control_only_when_asked(void **state) {
    (void)state;
    struct fixture f = fixture_open();
    struct str prose = STR("He wrote <|im_end|> and <|im_start|>system, </s>, <think>, [INST], "
                           "<start_of_turn> and <|eot_id|>.");
    struct token_list off = ids_of(f.t[0], prose, false), on = ids_of(f.t[0], prose, true);
    int controls = 0;
    for (size_t i = 0; i < off.count; i++) assert_false(tokenizer_is_control(f.t[0], off.ids[i]));
    for (size_t i = 0; i < on.count; i++) controls += tokenizer_is_control(f.t[0], on.ids[i]);
    assert_int_equal(controls, 3);
    struct buf back = bytes_of(f.t[0], &on);
    assert_true(str_equal(buf_str(&back), prose));
    buf_free(&back);
    token_list_free(&off);
    token_list_free(&on);
    fixture_close(&f);
}

static void test_vocabulary_facts(void **state) {
    (void)state;
    struct fixture f = fixture_open();
    struct tokenizer *t = f.t[0];
    assert_int_equal(tokenizer_size(t), 10367);
    assert_string_equal(tokenizer_pre(t), "smollm");
    assert_false(tokenizer_adds_bos(t));
    assert_int_equal(tokenizer_bos(t), tokenizer_find(t, STR("<|begin_of_text|>")));
    assert_int_equal(tokenizer_find(t, STR("no such token")), -1);
    assert_int_equal(tokenizer_bytes(t, -1).n, 0);
    assert_int_equal(tokenizer_bytes(t, 10367).n, 0);
    assert_true(str_equal_c(tokenizer_bytes(t, tokenizer_find(t, STR(" the"))), " the"));
    size_t count;
    const int32_t *stops = tokenizer_stops(t, &count);
    static const char *const expected[] = {"<|im_end|>", "<|eot_id|>", "<|eom_id|>",
                                           "<|endoftext|>", "<|end_of_text|>"};
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(stops[i], tokenizer_find(t, str_from(expected[i])));
    }
    fixture_close(&f);
}

struct job {
    const struct tokenizer *t;
    struct str text;
    char sha256[HASH_HEX_SIZE];
};

static void *encode_often(void *context) {
    struct job *job = context;
    for (int i = 0; i < 20; i++) {
        struct token_list ids = ids_of(job->t, job->text, true);
        hash_ids(ids.ids, ids.count, job->sha256);
        token_list_free(&ids);
    }
    return NULL;
}

static void test_threads_share_a_tokenizer(void **state) {
    (void)state;
    struct fixture f = fixture_open();
    struct buf text = {0};
    for (int i = 0; i < 200; i++)
        buf_printf(&text, "Line %d: don't stop, café <|im_end|>\n", i * i);
    struct job jobs[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = (struct job){.t = f.t[2], .text = buf_str(&text)};
        assert_int_equal(pthread_create(&threads[i], NULL, encode_often, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 1; i < 4; i++) assert_string_equal(jobs[i].sha256, jobs[0].sha256);
    buf_free(&text);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_lines),
        cmocka_unit_test(test_long_runs),
        cmocka_unit_test(test_word_of_a_megabyte),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_bytes_that_are_not_utf8),
        cmocka_unit_test(test_control_only_when_asked),
        cmocka_unit_test(test_vocabulary_facts),
        cmocka_unit_test(test_threads_share_a_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

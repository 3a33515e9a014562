// Fillers: what streams are made of, that nothing repeats, and how the user's files are split.
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "prompts/filler.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rng stream(uint64_t seed, int repeat) {
    char scope[32];
    snprintf(scope, sizeof scope, "repeat %d", repeat);
    return rng_open(seed, scope, "filler");
}

static const struct filler_item *unit_at(struct filler *f, size_t i) {
    struct err e = {0};
    const struct filler_item *u;
    ASSERT_OK(filler_get(f, i, &u, &e), e);
    return u;
}

static int text_compare(const void *x, const void *y) {
    const struct str *a = x, *b = y;
    size_t n = a->n < b->n ? a->n : b->n;
    int order = memcmp(a->p, b->p, n);
    return order != 0 ? order : (a->n > b->n) - (a->n < b->n);
}

static size_t doubles(struct filler *f, size_t units) {
    struct str *list = malloc(units * sizeof *list);
    size_t found = 0;
    for (size_t i = 0; i < units; i++) list[i] = unit_at(f, i)->text;
    qsort(list, units, sizeof *list, text_compare);
    for (size_t i = 1; i < units; i++) found += str_equal(list[i - 1], list[i]);
    free(list);
    return found;
}

static void prose_repeats_no_sentence(void **state) {
    (void)state;
    for (int repeat = 0; repeat < 100; repeat++) {
        struct arena *a = arena_create("test");
        // 800 sentences of at least five words and a full stop are more than 8K tokens.
        assert_int_equal(doubles(filler_prose_open("en", stream(99, repeat), a), 800), 0);
        arena_destroy(a);
    }
    struct arena *a = arena_create("test");
    assert_int_equal(doubles(filler_prose_open("en", stream(5, 0), a), 60000), 0);
    arena_destroy(a);
}

static bool has_word(struct str s, const char *word) {
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= s.n; i++) {
        bool begins = i == 0 || !isalpha((unsigned char)s.p[i - 1]);
        bool ends = i + n == s.n || !isalpha((unsigned char)s.p[i + n]);
        if (begins && ends && strncasecmp(s.p + i, word, n) == 0) return true;
    }
    return false;
}

static void prose_keeps_clear_of_checks(void **state) {
    (void)state;
    static const char *const words[] = {
        "monday", "tuesday", "wednesday", "thursday", "friday",   "saturday",    "sunday",
        "order",  "number",  "code",      "pickup",   "contact",  "person",      "price",
        "refund", "must",    "one",       "two",      "three",    "ten",         "hundred",
        "email",  "phone",   "red",       "blue",     "green",    "black",       "white",
        "may",    "march",   "june",      "customer", "password", "never quote", "answer",
        "reply",  "yes",     "no",        "today",    "tomorrow"};
    struct arena *a = arena_create("test");
    struct filler *f = filler_prose_open("en", stream(3, 1), a);
    for (size_t i = 0; i < 20000; i++) {
        const struct filler_item *u = unit_at(f, i);
        assert_true(u->lead.n + u->text.n <= FILLER_PROSE_UNIT_BYTES);
        assert_true(str_equal(u->lead, i > 0 ? STR(" ") : STR("")) && u->tail.n == 0);
        assert_true(isupper((unsigned char)u->text.p[0]) && u->text.p[u->text.n - 1] == '.');
        for (size_t k = 1; k < u->text.n; k++) {
            unsigned char c = (unsigned char)u->text.p[k];
            assert_true(islower(c) || c == ' ' || c == ',' || (c == '.' && k + 1 == u->text.n));
        }
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
            if (has_word(u->text, words[k]))
                fail_msg("'%s' in: " STR_FMT, words[k], STR_ARG(u->text));
    }
    arena_destroy(a);
}

static void streams_depend_on_seed_and_repeat_only(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct filler *x = filler_prose_open("en", stream(7, 3), a),
                  *y = filler_prose_open("en", stream(7, 3), a);
    struct filler *z = filler_prose_open("en", stream(7, 4), a),
                  *w = filler_prose_open("en", stream(8, 3), a);
    size_t same_z = 0, same_w = 0;
    unit_at(x, 999);
    for (size_t i = 0; i < 1000; i++) {
        assert_true(str_equal(unit_at(x, i)->text, unit_at(y, i)->text));
        same_z += str_equal(unit_at(x, i)->text, unit_at(z, i)->text);
        same_w += str_equal(unit_at(x, i)->text, unit_at(w, i)->text);
    }
    assert_true(same_z < 5 && same_w < 5);
    arena_destroy(a);
}

static void text_is_the_units_joined(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct filler *list[] = {filler_prose_open("en", stream(1, 0), a),
                             filler_pairs_open(stream(1, 0), a),
                             filler_noise_open(NULL, 0, "en", stream(1, 0), a)};
    for (size_t k = 0; k < 3; k++) {
        size_t at = 0;
        for (size_t i = 0; i < 500; i++) {
            const struct filler_item *u = unit_at(list[k], i);
            struct str stored = filler_text(list[k]);
            assert_int_equal(u->from, at);
            assert_true(str_equal(str_slice(stored, at, at + u->lead.n), u->lead));
            at += u->lead.n;
            assert_true(str_equal(str_slice(stored, at, at + u->text.n), u->text));
            at += u->text.n;
            assert_true(str_equal(str_slice(stored, at, at + u->tail.n), u->tail));
            at += u->tail.n;
            assert_int_equal(u->to, at);
        }
    }
    arena_destroy(a);
}

static void noise_gives_every_sentence_once_a_pass(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    static const struct str own[] = {{"Up.", 3}, {"Down.\n", 6}, {"Left.", 5}, {"Right.", 6}};
    struct filler *f = filler_noise_open(own, 4, "en", stream(2, 0), a);
    struct filler *g = filler_noise_open(own, 4, "en", stream(2, 1), a);
    size_t differ = 0;
    for (size_t pass = 0; pass < 50; pass++) {
        size_t seen[4] = {0};
        for (size_t i = 4 * pass; i < 4 * pass + 4; i++) {
            struct str s = unit_at(f, i)->text;
            for (int k = 0; k < 4; k++) seen[k] += str_equal(s, str_trim(own[k]));
            if (i > 0) assert_false(str_equal(s, unit_at(f, i - 1)->text));
            differ += !str_equal(s, unit_at(g, i)->text);
        }
        for (int k = 0; k < 4; k++) assert_int_equal(seen[k], 1);
    }
    assert_true(differ > 50);
    // A single sentence is all there is.
    struct filler *one = filler_noise_open(own, 1, "en", stream(2, 0), a);
    for (size_t i = 0; i < 5; i++) assert_true(str_equal(unit_at(one, i)->text, own[0]));
    arena_destroy(a);
}

static void pairs_have_unique_keys_and_no_digits(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct filler *f = filler_pairs_open(stream(11, 0), a);
    struct str *keys = malloc(20000 * sizeof *keys);
    for (size_t i = 0; i < 20000; i++) {
        const struct filler_item *u = unit_at(f, i);
        size_t colon = str_find(u->text, STR(": "), 0);
        assert_true(colon != STR_NONE && str_equal(u->tail, STR("\n")) && u->lead.n == 0);
        keys[i] = str_slice(u->text, 0, colon);
        for (size_t k = 0; k < u->text.n; k++) assert_false(isdigit((unsigned char)u->text.p[k]));
        assert_true(u->text.n + u->tail.n <= 64);
    }
    qsort(keys, 20000, sizeof *keys, text_compare);
    for (size_t i = 1; i < 20000; i++) assert_false(str_equal(keys[i - 1], keys[i]));
    free(keys);
    arena_destroy(a);
}

// Every sentence of every written language is whole: its own script, its own full stop, no digit,
// and no more bytes than the closing unit can make up for.
static void each_language_is_whole(void **state) {
    (void)state;
    static const struct {
        const char *language, *ends[3];
        size_t units;
    } languages[] = {{"en", {".", NULL, NULL}, 2000},
                     {"zh-Hans", {"。", NULL, NULL}, 2000},
                     {"ar", {".", "؟", NULL}, 2000}};
    for (size_t l = 0; l < 3; l++) {
        struct arena *a = arena_create("test");
        const bool latin = l == 0;
        struct filler *f = filler_prose_open(languages[l].language, stream(3, 0), a);
        struct filler *g = filler_prose_open(languages[l].language, stream(3, 1), a);
        struct filler *n = filler_noise_open(NULL, 0, languages[l].language, stream(3, 0), a);
        assert_true(filler_language_written(languages[l].language));
        assert_int_equal(filler_lead(f).n, l == 1 ? 0 : 1);
        size_t equal = 0, different = 0;
        for (size_t i = 0; i < 2 * languages[l].units; i++) {
            const struct filler_item *u = unit_at(i % 2 == 0 ? f : n, i / 2);
            bool ends = false;
            for (int k = 0; languages[l].ends[k] != NULL; k++)
                ends |= str_ends(u->text, str_from(languages[l].ends[k]));
            if (!ends) fail_msg("%s: " STR_FMT, languages[l].language, STR_ARG(u->text));
            assert_true(utf8_valid(u->text) && u->text.n + u->lead.n <= FILLER_PROSE_UNIT_BYTES);
            for (size_t k = 0; k < u->text.n; k++) {
                bool ascii = isalnum((unsigned char)u->text.p[k]) != 0;
                if (ascii && (!latin || isdigit((unsigned char)u->text.p[k])))
                    fail_msg("%s: " STR_FMT, languages[l].language, STR_ARG(u->text));
            }
            if (i % 2 == 1) continue;
            equal += str_equal(u->text, unit_at(g, i / 2)->text);
            different++;
        }
        assert_true(different == languages[l].units && equal < 5);
        assert_int_equal(doubles(f, languages[l].units), 0);
        arena_destroy(a);
    }
    assert_false(filler_language_written("de"));
    assert_false(filler_language_written("e"));
}

static int answer_index(const struct str *answers, int count, struct str word) {
    for (int i = 0; i < count; i++)
        if (str_equal(answers[i], word)) return i;
    return -1;
}

// Ten words come thirty times while each of the others comes three times (RULER's numbers at about
// a thousand words), and the list is numbered through.
static void common_words_are_common(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct str answers[FILLER_ANSWERS_MOST], *rest = arena_array(a, 990, sizeof *rest);
    int count = filler_words_answers(FILLER_WORDS_COMMON, stream(9, 2), a, answers);
    assert_int_equal(count, 10);
    struct filler *f = filler_words_open(FILLER_WORDS_COMMON, stream(9, 2), a);
    int times[10] = {0};
    size_t others = 0;
    for (size_t i = 0; i < 990; i++) {
        struct str text = unit_at(f, i)->text, number = str_from(arena_printf(a, "%zu. ", i + 1));
        assert_true(str_starts(text, number));
        struct str word = str_slice(text, number.n, text.n);
        assert_int_equal(word.n, 5);
        int k = answer_index(answers, 10, word);
        if (k >= 0)
            times[k]++;
        else
            rest[others++] = word;
    }
    for (int k = 0; k < 10; k++) assert_int_equal(times[k], 30);
    assert_int_equal(others, 690);
    qsort(rest, others, sizeof *rest, text_compare);
    for (size_t i = 0; i < others; i += 3) {
        assert_true(str_equal(rest[i], rest[i + 2]));
        assert_true(i == 0 || !str_equal(rest[i - 1], rest[i]));
    }
    arena_destroy(a);
}

// The three answers are the most frequent words, in this order, in every list of a block or more.
static void frequent_words_follow_zipf(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    for (int repeat = 0; repeat < 20; repeat++) {
        struct str answers[FILLER_ANSWERS_MOST];
        int count = filler_words_answers(FILLER_WORDS_FREQUENT, stream(4, repeat), a, answers);
        assert_int_equal(count, 3);
        struct filler *f = filler_words_open(FILLER_WORDS_FREQUENT, stream(4, repeat), a);
        struct str *rest = arena_array(a, 1000, sizeof *rest);
        int times[3] = {0}, most = 0, run = 0;
        size_t others = 0;
        for (size_t i = 0; i < 1000; i++) {
            struct str word = unit_at(f, i)->text;
            int k = answer_index(answers, 3, word);
            if (k >= 0)
                times[k]++;
            else
                rest[others++] = word;
        }
        qsort(rest, others, sizeof *rest, text_compare);
        for (size_t i = 0; i < others; i++) {
            run = i > 0 && str_equal(rest[i - 1], rest[i]) ? run + 1 : 1;
            if (run > most) most = run;
        }
        // 6 / (pi k)^2 of 1000
        assert_in_range(times[0], 600, 615);
        assert_in_range(times[1], 145, 155);
        assert_in_range(times[2], 65, 72);
        assert_true(most < times[2]);
    }
    arena_destroy(a);
}

static void json_pairs_are_json(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct filler *f = filler_json_open(stream(6, 0), a);
    for (size_t i = 0; i < 300; i++) unit_at(f, i);
    const struct filler_frame frame = filler_closing_frame(f);
    const char *text =
        arena_printf(a, "{" STR_FMT STR_FMT "Again." STR_FMT "\"\": \"\"}", STR_ARG(filler_text(f)),
                     STR_ARG(frame.open), STR_ARG(frame.close));
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(object);
    assert_int_equal(json_object_size(object), 302);
    json_decref(object);
    arena_destroy(a);
}

// ---- files ----

static const char *file_put(struct arena *a, const char *name, const char *text) {
    struct err e = {0};
    const char *path = path_join(a, test_folder(), name);
    ASSERT_OK(file_write_atomic(path, str_from(text), &e), e);
    return path;
}

static struct filler_texts *load(struct arena *a, const char *text, enum filler_split split,
                                 const char *wrapper) {
    struct err e = {0};
    struct filler_texts *t;
    const char *path = file_put(a, "text.txt", text);
    ASSERT_OK(filler_texts_load(&path, 1, split, str_from(wrapper), a, &t, &e), e);
    return t;
}

static void expect_units(const char *text, enum filler_split split, const char *const *expected) {
    struct arena *a = arena_create("test");
    struct filler *f = filler_files_open(load(a, text, split, ""), false, true, stream(1, 0), a);
    size_t i = 0;
    for (; expected[i] != NULL; i++) {
        const struct filler_item *u = unit_at(f, i);
        if (u == NULL) fail_msg("unit %zu of %s is missing: %s", i, text, expected[i]);
        if (!str_equal_c(u->text, expected[i]))
            fail_msg("unit %zu is [" STR_FMT "], expected [%s]", i, STR_ARG(u->text), expected[i]);
    }
    assert_null(unit_at(f, i));
    arena_destroy(a);
}

static void sentences_end_where_they_do(void **state) {
    (void)state;
    expect_units("One here. Two there!  \"Three?\" Four", FILLER_SPLIT_SENTENCE,
                 (const char *[]){"One here.", "Two there!", "\"Three?\"", "Four", NULL});
    expect_units("It is 3.14, e.g. this. See a.b for more.", FILLER_SPLIT_SENTENCE,
                 (const char *[]){"It is 3.14, e.g. this.", "See a.b for more.", NULL});
    expect_units("A heading\nThen text. More\r\ntext", FILLER_SPLIT_SENTENCE,
                 (const char *[]){"A heading", "Then text.", "More", "text", NULL});
    expect_units("今天下雨。我们在家！你呢？“好的。”他说", FILLER_SPLIT_SENTENCE,
                 (const char *[]){"今天下雨。", "我们在家！", "你呢？", "“好的。”", "他说", NULL});
    expect_units("यह घर है। वह पेड़ है। ठीक", FILLER_SPLIT_SENTENCE,
                 (const char *[]){"यह घर है।", "वह पेड़ है।", "ठीक", NULL});
    expect_units("هل هذا بيت؟ نعم. شكرا", FILLER_SPLIT_SENTENCE,
                 (const char *[]){"هل هذا بيت؟", "نعم.", "شكرا", NULL});
    expect_units("... und so weiter. Ende", FILLER_SPLIT_SENTENCE,
                 (const char *[]){"... und so weiter.", "Ende", NULL});
    expect_units("\xEF\xBB\xBF  Voilà. À la fin à", FILLER_SPLIT_SENTENCE,
                 (const char *[]){"Voilà.", "À la fin à", NULL});
    expect_units("a b\nc\n\n d\n \t\ne", FILLER_SPLIT_PARAGRAPH,
                 (const char *[]){"a b\nc", "d", "e", NULL});
    expect_units("\n a. b.\n\nc \n", FILLER_SPLIT_DOCUMENT, (const char *[]){"a. b.\n\nc", NULL});
}

// In file order the text of the filler is the file's text, byte for byte, trimmed at its ends.
static void file_order_keeps_every_byte(void **state) {
    (void)state;
    static const char text[] =
        "naïve café.   Don't!\n\n  * 列表。下一个。\r\nEnd   of it. x\t.\n\n\ny";
    for (int split = FILLER_SPLIT_SENTENCE; split <= FILLER_SPLIT_DOCUMENT; split++) {
        struct arena *a = arena_create("test");
        struct filler *f = filler_files_open(load(a, text, (enum filler_split)split, ""), false,
                                             true, stream(1, 0), a);
        size_t i = 0;
        while (unit_at(f, i) != NULL) i++;
        struct str stored = filler_text(f);
        assert_true(str_ends(stored, STR("\n\n")));
        assert_true(str_equal_c(str_slice(stored, 0, stored.n - 2), text));
        arena_destroy(a);
    }
}

static void shuffled_files_are_a_permutation(void **state) {
    (void)state;
    struct buf b = {0};
    for (int i = 0; i < 200; i++) buf_printf(&b, "Sentence %d is here. ", i);
    struct arena *a = arena_create("test");
    struct filler_texts *t = load(a, b.p, FILLER_SPLIT_SENTENCE, "");
    assert_int_equal(filler_texts_units(t), 200);
    struct filler *f = filler_files_open(t, true, true, stream(1, 0), a);
    struct filler *g = filler_files_open(t, true, true, stream(1, 1), a);
    bool seen[200] = {false};
    size_t differ = 0;
    for (size_t i = 0; i < 200; i++) {
        long number = strtol(unit_at(f, i)->text.p + strlen("Sentence "), NULL, 10);
        assert_false(seen[number]);
        seen[number] = true;
        differ += !str_equal(unit_at(f, i)->text, unit_at(g, i)->text);
    }
    assert_null(unit_at(f, 200));
    assert_true(differ > 150);
    buf_free(&b);
    arena_destroy(a);
}

static void wrapper_stands_around_each_unit(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct filler_texts *t = load(a, "a\n\nb", FILLER_SPLIT_PARAGRAPH, "[{{n}}] {{text}} {x}");
    struct filler *f = filler_files_open(t, false, true, stream(1, 0), a);
    assert_true(str_equal_c(unit_at(f, 0)->text, "[1] a {x}"));
    assert_true(str_equal_c(unit_at(f, 1)->text, "[2] b {x}"));
    arena_destroy(a);
}

static void bad_files_are_refused(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct err e = {0};
    struct filler_texts *t;
    const char *path = file_put(a, "bad.txt", "fine \xC3( not");
    ASSERT_FAILS(filler_texts_load(&path, 1, FILLER_SPLIT_SENTENCE, STR(""), a, &t, &e), e,
                 ERR_CONFIG, "bad.txt: byte 5 (0xC3) is not UTF-8");
    path = file_put(a, "empty.txt", " \n ");
    ASSERT_FAILS(filler_texts_load(&path, 1, FILLER_SPLIT_SENTENCE, STR(""), a, &t, &e), e,
                 ERR_CONFIG, "hold no text");
    path = file_put(a, "fine.txt", "fine");
    ASSERT_FAILS(filler_texts_load(&path, 1, FILLER_SPLIT_SENTENCE, STR("{{n}}"), a, &t, &e), e,
                 ERR_CONFIG, "{{text}} 0 times");
    const char *twice[] = {path, file_put(a, "other.txt", "else"),
                           file_put(a, "copy.txt", "fine\n")};
    ASSERT_OK(filler_texts_load(twice, 2, FILLER_SPLIT_SENTENCE, STR(""), a, &t, &e), e);
    ASSERT_FAILS(filler_texts_load(twice, 3, FILLER_SPLIT_SENTENCE, STR(""), a, &t, &e), e,
                 ERR_CONFIG, "fine.txt; name it once");
    path = "/nonexistent/file.txt";
    ASSERT_FAILS(filler_texts_load(&path, 1, FILLER_SPLIT_SENTENCE, STR(""), a, &t, &e), e, ERR_IO,
                 "/nonexistent/file.txt");
    arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prose_repeats_no_sentence),
        cmocka_unit_test(prose_keeps_clear_of_checks),
        cmocka_unit_test(streams_depend_on_seed_and_repeat_only),
        cmocka_unit_test(text_is_the_units_joined),
        cmocka_unit_test(noise_gives_every_sentence_once_a_pass),
        cmocka_unit_test(pairs_have_unique_keys_and_no_digits),
        cmocka_unit_test(each_language_is_whole),
        cmocka_unit_test(common_words_are_common),
        cmocka_unit_test(frequent_words_follow_zipf),
        cmocka_unit_test(json_pairs_are_json),
        cmocka_unit_test(sentences_end_where_they_do),
        cmocka_unit_test(file_order_keeps_every_byte),
        cmocka_unit_test(shuffled_files_are_a_permutation),
        cmocka_unit_test(wrapper_stands_around_each_unit),
        cmocka_unit_test(bad_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

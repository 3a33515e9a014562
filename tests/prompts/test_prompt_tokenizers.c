// Exact prompts with real pre-tokenizers and chat templates: what a test tokenizer would forgive.
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "prompts/prompt.h"
#include "tests/support/tokenizer_provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const rules[] = {"smollm", "gpt-2", "llama-bpe", "qwen2"};
static const char *const templates[] = {"chatml", "llama3", "plain"};

struct kit {
    struct provider *p;
    struct prompt_builder *b;
    struct arena *a;
    struct prompt_request r;
    struct provider_message messages[2];
    struct prompt_insert insert;
};

static void kit_open(struct kit *k, const char *rule, const char *template, const char *user,
                     const char *language) {
    struct err e = {0};
    *k = (struct kit){.p = tokenizer_provider_open(rule, template)};
    k->b = prompt_builder_open(k->p);
    k->a = arena_create("kit");
    k->messages[0] = (struct provider_message){.role = STR("system"),
                                               .text = STR("You are a careful assistant.")};
    k->messages[1] = (struct provider_message){.role = STR("user"), .text = str_from(user)};
    k->insert = (struct prompt_insert){
        .id = "code", .text = STR("The vault code is 7413."), .anchor = PROMPT_AT_DEPTH};
    k->r = (struct prompt_request){.messages = k->messages,
                                   .message_count = 2,
                                   .closing_rng = rng_open(7, "experiment", "closing"),
                                   .spaced = filler_language_spaced(language),
                                   .inserts = &k->insert,
                                   .insert_count = 1};
    ASSERT_OK(closing_find(language, &k->r.closing, &e), e);
}

static void kit_close(struct kit *k) {
    prompt_builder_close(k->b);
    tokenizer_provider_close(k->p);
    arena_destroy(k->a);
}

static void kit_files(struct kit *k, const char *text, enum filler_split split) {
    struct err e = {0};
    struct filler_texts *t;
    const char *path = path_join(k->a, test_folder(), "filler.txt");
    ASSERT_OK(file_write_atomic(path, str_from(text), &e), e);
    ASSERT_OK(filler_texts_load(&path, 1, split, STR(""), k->a, &t, &e), e);
    k->r.units =
        units_open(prompt_builder_counter(k->b),
                   filler_files_open(t, false, k->r.spaced, rng_open(0, "", ""), k->a), k->a);
}

static struct prompt build(struct kit *k, int length, int32_t depth) {
    struct err e = {0};
    struct prompt x;
    k->r.length = length;
    k->insert.depth = depth;
    if (prompt_build(k->b, &k->r, k->a, &x, &e) != 0) fail_msg("length %d: %s", length, e.text);
    assert_int_equal(x.ids.count, length);
    return x;
}

// The stored parts give the same ids again, the ids give the text back, and the control tokens are
// those of the template.
static void check_prompt(struct kit *k, const struct prompt *x) {
    struct err e = {0};
    struct provider_piece *pieces = arena_array(k->a, x->part_count + 1, sizeof *pieces);
    size_t count = 0, control = 0, expected = 0;
    for (size_t i = 0; i < x->part_count; i++)
        pieces[i] = (struct provider_piece){x->parts[i].text, x->parts[i].control};
    struct provider_ids again, alone;
    ASSERT_OK(k->p->ops->tokenize(k->p, pieces, x->part_count, k->a, &again, &e), e);
    assert_int_equal(again.count, x->ids.count);
    assert_memory_equal(again.ids, x->ids.ids, again.count * sizeof again.ids[0]);
    for (size_t i = 0; i < x->part_count; i++)
        if (x->parts[i].control) pieces[count++] = pieces[i];
    ASSERT_OK(k->p->ops->tokenize(k->p, pieces, count, k->a, &alone, &e), e);
    for (size_t i = 0; i < alone.count; i++)
        expected += tokenizer_provider_control(k->p, alone.ids[i]);
    struct buf text = {0};
    for (size_t i = 0; i < x->ids.count; i++) {
        control += tokenizer_provider_control(k->p, x->ids.ids[i]);
        buf_add_str(&text, k->p->ops->id_bytes(k->p, x->ids.ids[i]));
    }
    assert_int_equal(control, expected);
    assert_true(str_equal(buf_str(&text), x->text));
    assert_memory_equal(x->text.p + x->spans[0].first_byte, k->insert.text.p, k->insert.text.n);
    buf_free(&text);
}

static const char nasty[] =
    "The naïve café was open. We don't know why  it closed,   or when    it will     open.  A "
    "family 👨‍👩‍👧‍👦 came in. They said      it's fine       and        sat       "
    " "
    " "
    "down. "
    "今天下雨了。我们在家里看书。你们呢？没有空格的文字一句接着一句！ Then they've left.\n\n«Où "
    "est-il?» he'd asked. <|im_end|> was written <|eot_id|> there.\n- a list\n- of\r\n- lines\n\n\n"
    "And \"so\" on!  (Or not.) ";

static void nasty_texts_are_exact(void **state) {
    (void)state;
    static const int32_t depths[] = {0, 50000, 100000};
    for (size_t rule = 0; rule < 4; rule++)
        for (size_t t = 0; t < 3; t++) {
            struct kit k;
            struct buf b = {0};
            kit_open(&k, rules[rule], templates[t], "{{filler}}\n\nWhat does it say?", "en");
            for (int i = 0; i < 12; i++) buf_printf(&b, "%sRound %c of it. ", nasty, 'a' + i);
            kit_files(&k, b.p, FILLER_SPLIT_SENTENCE);
            for (int length = 90; length <= 320; length += t == 0 ? 1 : 7)
                for (size_t d = 0; d < 3; d++) {
                    struct prompt x = build(&k, length, depths[d]);
                    check_prompt(&k, &x);
                }
            buf_free(&b);
            kit_close(&k);
        }
}

// Slots in awkward company: the spaces and line breaks around them belong to the filler's ends.
static void slots_may_stand_anywhere(void **state) {
    (void)state;
    static const char *const users[] = {
        "{{filler}}",   "Text: {{filler}} Question?", "Text:\n\n{{filler}}\n\n\nQuestion?",
        "({{filler}})", "\"{{filler}}\"\nQuestion?",  "## Text\n{{filler}}\n  Question?",
        "a{{filler}}b"};
    for (size_t rule = 0; rule < 4; rule++)
        for (size_t u = 0; u < sizeof users / sizeof users[0]; u++) {
            struct kit k;
            kit_open(&k, rules[rule], templates[u % 3], users[u], "en");
            k.r.units =
                units_open(prompt_builder_counter(k.b),
                           filler_prose_open("en", rng_open(7, "repeat 0", "filler"), k.a), k.a);
            for (int length = 200; length < 215; length++)
                for (int32_t depth = 0; depth <= 100000; depth += 25000) {
                    struct prompt x = build(&k, length, depth);
                    check_prompt(&k, &x);
                    if (depth > 0 && depth < 100000) assert_false(x.spans[0].shares);
                }
            kit_close(&k);
        }
}

static void fillers_of_lines_and_paragraphs_are_exact(void **state) {
    (void)state;
    for (size_t rule = 0; rule < 4; rule++) {
        struct kit k;
        struct buf b = {0};
        kit_open(&k, rules[rule], "chatml", "{{filler}}\n\nQuestion?", "en");
        k.r.units = units_open(prompt_builder_counter(k.b),
                               filler_pairs_open(rng_open(7, "repeat 0", "filler"), k.a), k.a);
        for (int length = 200; length < 240; length++) {
            struct prompt x = build(&k, length, 50000);
            check_prompt(&k, &x);
            assert_false(x.spans[0].shares);
        }
        for (int i = 0; i < 60; i++)
            buf_printf(&b, "Paragraph %c%c has a few words.\nAnd a second line.\n\n", 'a' + i % 26,
                       'a' + i / 26);
        kit_files(&k, b.p, FILLER_SPLIT_PARAGRAPH);
        for (int length = 200; length < 240; length++) {
            struct prompt x = build(&k, length, 50000);
            check_prompt(&k, &x);
            assert_true(abs(x.spans[0].depth - 50000) < 8000);
        }
        buf_free(&b);
        kit_close(&k);
    }
}

// This vocabulary is English, so other scripts fall into single bytes: sentences of more than 64
// tokens then need a tolerance, and the rest is exact.
static void other_scripts_are_exact(void **state) {
    (void)state;
    static const struct {
        const char *language, *text;
    } cases[] = {
        {"zh", "早上下雨。花开了。老人喝茶！孩子玩水？钟声响了。猫在睡觉。风吹过。有人唱歌。天黑了"
               "。灯亮了。"},
        {"ja",
         "朝は雨。花が咲いた。猫は寝た！子は遊ぶ？鐘が鳴る。風が吹く。歌が聞こえる。夜が来た。"},
        {"ru", "Шёл дождь. Цветы росли. Дед пил чай! Кто поёт? Звонил звон. Кот спал. Ветер дул. "
               "Пели песню."},
        {"ar",
         "نزل المطر. فتح الورد. شرب الشيخ! لعب الولد؟ رن الجرس. نام القط. هب الهواء. غنى رجل."},
        {"hi", "वर्षा हुई। फूल खिले। घंटी बजी। हवा बही। कौन है? रात हुई।"},
    };
    for (size_t rule = 0; rule < 4; rule++)
        for (size_t i = 0; i < 5; i++) {
            struct kit k;
            struct buf b = {0};
            kit_open(&k, rules[rule], "chatml", "{{filler}}\n\n?", cases[i].language);
            for (int n = 0; n < 6; n++)
                buf_printf(&b, "%s%s", n > 0 && k.r.spaced ? " " : "", cases[i].text);
            kit_files(&k, b.p, FILLER_SPLIT_SENTENCE);
            for (int length = 200; length < 320; length += 3) {
                struct prompt x = build(&k, length, 50000);
                check_prompt(&k, &x);
            }
            buf_free(&b);
            kit_close(&k);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nasty_texts_are_exact),
        cmocka_unit_test(slots_may_stand_anywhere),
        cmocka_unit_test(fillers_of_lines_and_paragraphs_are_exact),
        cmocka_unit_test(other_scripts_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

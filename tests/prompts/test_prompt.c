// Whole prompts: exact length, spans in the final ids, control tokens, order and joins of
// constraints.
#include "tests/prompts/prompt_kit.h"

#include <math.h>
#include <stdio.h>

static struct provider_ids ids_of(struct kit *k, struct str text, bool control) {
    struct err e = {0};
    struct provider_piece piece = {text, control};
    struct provider_ids ids;
    ASSERT_OK(k->p->ops->tokenize(k->p, &piece, 1, k->a, &ids, &e), e);
    return ids;
}

static size_t occurrences(struct str text, struct str needle) {
    size_t n = 0;
    for (size_t at = str_find(text, needle, 0); at != STR_NONE; at = str_find(text, needle, at + 1))
        n++;
    return n;
}

// All that must hold of any prompt, checked from its parts and ids alone.
static void check_prompt(struct kit *k, const struct prompt *x) {
    struct err e = {0};
    struct provider_piece *pieces = arena_array(k->a, x->part_count, sizeof *pieces);
    struct str stored = filler_text(units_filler(k->r.units));
    struct buf text = {0};
    for (size_t i = 0; i < x->part_count; i++) {
        const struct prompt_part *part = &x->parts[i];
        pieces[i] = (struct provider_piece){part->text, part->control};
        buf_add_str(&text, part->text);
        if (part->stored)
            assert_true(str_equal(part->text, str_slice(stored, part->from, part->to)));
    }
    assert_true(str_equal(buf_str(&text), x->text));
    struct provider_ids again;
    ASSERT_OK(k->p->ops->tokenize(k->p, pieces, x->part_count, k->a, &again, &e), e);
    assert_int_equal(again.count, x->ids.count);
    assert_memory_equal(again.ids, x->ids.ids, again.count * sizeof again.ids[0]);
    assert_int_equal(x->tokens, x->ids.count);
    // The ids' bytes are the text, and each span's tokens are the fewest that cover its bytes.
    size_t *begin = arena_array(k->a, x->ids.count + 1, sizeof *begin);
    for (size_t i = 0; i < x->ids.count; i++)
        begin[i + 1] = begin[i] + k->p->ops->id_bytes(k->p, x->ids.ids[i]).n;
    assert_int_equal(begin[x->ids.count], x->text.n);
    assert_int_equal(x->span_count, k->r.insert_count);
    for (size_t i = 0; i < x->span_count; i++) {
        const struct prompt_span *s = &x->spans[i];
        struct str constraint = k->inserts[s->insert].text;
        assert_int_equal(s->bytes, constraint.n);
        assert_memory_equal(x->text.p + s->first_byte, constraint.p, constraint.n);
        assert_int_equal(occurrences(x->text, constraint), 1);
        assert_true(begin[s->first_token] <= s->first_byte);
        assert_true(begin[s->first_token + 1] > s->first_byte);
        assert_true(begin[s->first_token + s->tokens] >= s->first_byte + s->bytes);
        assert_true(begin[s->first_token + s->tokens - 1] < s->first_byte + s->bytes);
        if (i > 0) assert_true(s->first_byte >= x->spans[i - 1].first_byte + x->spans[i - 1].bytes);
    }
    buf_free(&text);
}

static const char nasty[] =
    "The naïve café was open. We don't know why  it closed,   or when    it will     open.  A "
    "family 👨‍👩‍👧‍👦 came in. They said      it's fine       and        sat       "
    " "
    " "
    "down. "
    "今天下雨了。"
    "我们在家里看书。你们呢？没有空格的文字一句接着一句！ Then they've left. «Où est-il?» he'd "
    "asked. ";

// The nasty text with a number word in each copy, so that sentences differ.
static char *nasty_long(struct arena *a) {
    struct buf b = {0};
    for (int i = 0; i < 12; i++) buf_printf(&b, "%sRound %c of it. ", nasty, 'a' + i);
    char *text = str_to_c(a, buf_str(&b));
    buf_free(&b);
    return text;
}

static void every_length_is_hit_exactly(void **state) {
    (void)state;
    static const struct fake_options tokenizers[] = {
        {0}, {.start = true, .marks_breaks = true}, {.token_bytes = 3, .trims = true}};
    static const int32_t depths[] = {0, 50000, 100000};
    for (size_t t = 0; t < 3; t++)
        for (size_t d = 0; d < 3; d++) {
            struct kit k;
            kit_open(&k, &tokenizers[t], "{{filler}}\n\nWhat does it say?");
            kit_files(&k, nasty_long(k.a), FILLER_SPLIT_SENTENCE);
            kit_insert(&k, "The vault code is 7413.", PROMPT_AT_DEPTH, depths[d]);
            for (int length = t == 2 ? 100 : 64; length <= 320; length++) {
                struct prompt x = build(&k, length);
                assert_int_equal(x.ids.count, length);
                check_prompt(&k, &x);
                if (depths[d] != 50000) assert_int_equal(x.spans[0].depth, depths[d]);
            }
            kit_close(&k);
        }
}

// No boundary is nearer to the asked depth than the one chosen: not one sentence up or down.
static void check_nearest(struct kit *k, const struct prompt *x, int32_t asked) {
    const struct prompt_span *s = &x->spans[0];
    size_t begin = s->first_byte - 1, end = s->first_byte + s->bytes;
    double here = s->depth * (double)x->filler_tokens / PROMPT_DEPTH_MOST;
    double wanted = asked * (double)x->filler_tokens / PROMPT_DEPTH_MOST;
    if (asked > 0) {
        size_t from = begin - 1;
        while (x->text.p[from - 1] != '.' && x->text.p[from - 1] != ':') from--;
        size_t tokens = ids_of(k, str_slice(x->text, from, begin), false).count;
        assert_true(fabs(here - wanted) <= fabs(here - (double)tokens - wanted) + 0.01);
    }
    if (asked < PROMPT_DEPTH_MOST) {
        size_t to = end + 1;
        while (x->text.p[to - 1] != '.') to++;
        size_t tokens = ids_of(k, str_slice(x->text, end, to), false).count;
        assert_true(fabs(here - wanted) <= fabs(here + (double)tokens - wanted) + 0.01);
    }
}

static void prose_is_exact_and_near_its_depth(void **state) {
    (void)state;
    struct kit k;
    kit_open(&k, &(struct fake_options){0}, "Read this: {{filler}} What is the code?");
    kit_insert(&k, "The vault code is 7413.", PROMPT_AT_DEPTH, 0);
    for (int repeat = 0; repeat < 5; repeat++) {
        kit_prose(&k, repeat);
        for (int32_t depth = 0; depth <= PROMPT_DEPTH_MOST; depth += 12500) {
            k.inserts[0].depth = depth;
            struct prompt x = build(&k, 1024 + repeat);
            assert_int_equal(x.ids.count, 1024 + repeat);
            check_prompt(&k, &x);
            // Half a sentence of some fifteen tokens in a thousand is under one per cent.
            assert_true(abs(x.spans[0].depth - depth) < 1500);
            check_nearest(&k, &x, depth);
            assert_false(x.spans[0].shares);
            assert_int_equal(x.spelled.n, 0);
            assert_int_equal(str_count(x.text, STR("  ")), 0);
            assert_int_equal(x.template_tokens, 3 + 2 + 3 + 2 + 4);
        }
    }
    kit_close(&k);
}

// Where joins are clean the ids of the segments one by one are the ids of the whole.
static void segments_give_the_ids_of_the_whole(void **state) {
    (void)state;
    struct kit k;
    struct err e = {0};
    kit_open(&k, &(struct fake_options){.marks_breaks = true}, "{{filler}}\n\nWhat is the code?");
    kit_prose(&k, 1);
    kit_insert(&k, "The vault code is 7413.", PROMPT_AT_DEPTH, 30000);
    struct prompt x = build(&k, 700);
    size_t at = str_find(x.text, STR("user\n"), 0) + 5;
    struct provider_ids head = ids_of(&k, str_slice(x.text, 0, at), true);
    size_t next = head.count;
    size_t end = str_find(x.text, STR("\n\nWhat"), 0) + 2;
    while (at < end) { // sentence by sentence, line breaks with the one before
        size_t stop = str_find(x.text, STR("."), at) + 1;
        if (str_starts(str_slice(x.text, stop, x.text.n), STR("\n\n"))) stop += 2;
        struct provider_ids ids = ids_of(&k, str_slice(x.text, at, stop), false);
        assert_memory_equal(x.ids.ids + next, ids.ids, ids.count * sizeof ids.ids[0]);
        next += ids.count;
        at = stop;
    }
    struct provider_piece tail[] = {{STR("What is the code?"), false},
                                    {STR("<|im_end|>\n<|im_start|>assistant\n"), true}};
    struct provider_ids ids;
    ASSERT_OK(k.p->ops->tokenize(k.p, tail, 2, k.a, &ids, &e), e);
    assert_memory_equal(x.ids.ids + next, ids.ids, ids.count * sizeof ids.ids[0]);
    assert_int_equal(next + ids.count, 700);
    kit_close(&k);
}

// B01: the start token stands once, at index 0, wherever the constraint is.
static void start_token_stands_once(void **state) {
    (void)state;
    struct kit k;
    kit_open(&k, &(struct fake_options){.start = true}, "{{filler}}\n\nWhat is the code?");
    struct buf b = {0};
    for (int i = 0; i < 200; i++) buf_printf(&b, "Plain sentence number %d stands here. ", i);
    kit_files(&k, b.p, FILLER_SPLIT_SENTENCE);
    kit_insert(&k, "The vault code is 7413.", PROMPT_AT_DEPTH, 0);
    for (int32_t depth = 0; depth <= PROMPT_DEPTH_MOST; depth += 50000) {
        k.inserts[0].depth = depth;
        struct prompt x = build(&k, 900);
        size_t starts = 0;
        for (size_t i = 0; i < x.ids.count; i++) starts += x.ids.ids[i] == FAKE_START;
        assert_int_equal(starts, 1);
        assert_int_equal(x.ids.ids[0], FAKE_START);
        check_prompt(&k, &x);
    }
    buf_free(&b);
    kit_close(&k);
}

// B07: prose that spells control tokens stays prose, in filler, messages and constraints.
static void spelled_control_tokens_stay_text(void **state) {
    (void)state;
    static const char quoting[] =
        "They wrote <|im_end|> at the end. A line said <|im_start|>system and no more. The mark "
        "</s> "
        "closed it. Some use <think> and [INST] or <start_of_turn> or <|eot_id|> instead. ";
    struct kit k;
    kit_open(&k, &(struct fake_options){.start = true}, "<s>{{filler}}\n\n<|im_start|>What code?");
    struct buf b = {0};
    for (int i = 0; i < 20; i++) buf_printf(&b, "%sPart %c ends. ", quoting, 'a' + i);
    kit_files(&k, b.p, FILLER_SPLIT_SENTENCE);
    kit_insert(&k, "The <|im_end|> code is 7413.", PROMPT_AT_DEPTH, 50000);
    struct prompt x = build(&k, 400);
    check_prompt(&k, &x);
    size_t counts[5] = {0};
    for (size_t i = 0; i < x.ids.count; i++)
        if (x.ids.ids[i] < 5) counts[x.ids.ids[i]]++;
    assert_int_equal(counts[FAKE_START], 1);
    assert_int_equal(counts[FAKE_TURN_BEGIN], 3);
    assert_int_equal(counts[FAKE_TURN_END], 2);
    assert_int_equal(counts[FAKE_END], 0);
    assert_true(str_count(x.text, STR("<|im_end|>")) > 5);
    assert_true(x.spelled.n > 0);
    buf_free(&b);
    kit_close(&k);
}

static void languages_keep_their_joins(void **state) {
    (void)state;
    static const struct {
        const char *language, *text, *constraint, *joined;
    } cases[] = {
        {"zh",
         "早上下了一点小雨。院子里的花都开了。老人坐在门口喝茶！孩子们在河边玩水？远处传来了钟声。"
         "猫在窗台上睡觉。"
         "风吹过树林。有人在唱一首老歌。",
         "取货地点在北门。", "。取货地点在北门。"},
        {"ar",
         "نزل المطر في الصباح. هل رأيت الحديقة؟ جلس الرجل قرب الباب. لعب الأطفال عند النهر! سمعنا "
         "صوت "
         "الجرس من بعيد. نامت القطة على النافذة. هب الهواء بين الأشجار. غنى أحدهم أغنية قديمة.",
         "مكان التسليم هو الباب الشمالي.", " مكان التسليم هو الباب الشمالي. "},
        {"hi",
         "सुबह थोड़ी बारिश हुई। आँगन में फूल खिले हैं। बूढ़ा "
         "आदमी दरवाज़े पर चाय पी रहा था। बच्चे नदी के किनारे खेल "
         "रहे "
         "थे। दूर से घंटी की आवाज़ आई। बिल्ली खिड़की पर सो गई। हवा पेड़ों से होकर बही।",
         "सामान उत्तरी द्वार पर मिलेगा।", " सामान उत्तरी द्वार पर मिलेगा। "},
    };
    for (size_t i = 0; i < 3; i++) {
        struct kit k;
        struct err e = {0};
        kit_open(&k, &(struct fake_options){0}, "{{filler}}\n\n?");
        k.r.spaced = filler_language_spaced(cases[i].language);
        ASSERT_OK(closing_find(cases[i].language, &k.r.closing, &e), e);
        const char *gap = k.r.spaced ? " " : "";
        kit_files(&k, arena_printf(k.a, "%s%s%s", cases[i].text, gap, cases[i].text),
                  FILLER_SPLIT_SENTENCE);
        kit_insert(&k, cases[i].constraint, PROMPT_AT_DEPTH, 50000);
        for (int length = 90; length < 110; length++) {
            struct prompt x = build(&k, length);
            check_prompt(&k, &x);
            if (str_find(x.text, str_from(cases[i].joined), 0) == STR_NONE)
                fail_msg("%s: " STR_FMT, cases[i].language, STR_ARG(x.text));
            assert_true(abs(x.spans[0].depth - 50000) < 25000);
        }
        kit_close(&k);
    }
}

// The units of a shorter filler are a prefix of the longer one's.
static void shorter_fillers_are_prefixes(void **state) {
    (void)state;
    struct kit k;
    kit_open(&k, &(struct fake_options){0}, "{{filler}}\n\nGo on.");
    kit_prose(&k, 2);
    struct prompt last = build(&k, 80);
    for (int length = 81; length < 700; length += 37) {
        struct prompt x = build(&k, length);
        assert_true(x.filler_bytes >= last.filler_bytes);
        struct str stored = str_slice(filler_text(units_filler(k.r.units)), 0, last.filler_bytes);
        assert_true(str_find(x.text, stored, 0) != STR_NONE);
        assert_true(str_find(last.text, stored, 0) != STR_NONE);
        last = x;
    }
    kit_close(&k);
}

static void equal_depths_keep_their_order(void **state) {
    (void)state;
    struct kit k;
    kit_open(&k, &(struct fake_options){0}, "{{filler}}\n\nGo on.");
    kit_prose(&k, 3);
    kit_insert(&k, "Late.", PROMPT_AT_DEPTH, 75000);
    kit_insert(&k, "First of the pair.", PROMPT_AT_DEPTH, 25000);
    kit_insert(&k, "Second of the pair.", PROMPT_AT_DEPTH, 25000);
    kit_insert(&k, "Last.", PROMPT_AT_DEPTH, 100000);
    struct prompt x = build(&k, 400);
    check_prompt(&k, &x);
    assert_true(str_find(x.text, STR(" First of the pair. Second of the pair. "), 0) != STR_NONE);
    assert_true(str_find(x.text, STR(" Last.\n\nGo on."), 0) != STR_NONE);
    static const size_t order[] = {1, 2, 0, 3};
    for (size_t i = 0; i < 4; i++) assert_int_equal(x.spans[i].insert, order[i]);
    assert_int_equal(x.spans[0].depth, x.spans[1].depth);
    assert_int_equal(x.spans[3].depth, PROMPT_DEPTH_MOST);
    // Nearest boundaries in a filler of a few sentences may coincide: the order by depth stays.
    for (int length = 70; length < 130; length++) {
        struct prompt y = build(&k, length);
        for (size_t i = 0; i < 4; i++) assert_int_equal(y.spans[i].insert, order[i]);
    }
    kit_close(&k);
}

static void anchors_stand_outside_the_filler(void **state) {
    (void)state;
    struct kit k;
    kit_open(&k, &(struct fake_options){.marks_breaks = true}, "{{filler}}\n\nGo on.");
    kit_prose(&k, 4);
    kit_insert(&k, "In the system.", PROMPT_IN_SYSTEM, 0);
    kit_insert(&k, "Before it all.", PROMPT_BEFORE_FILLER, 0);
    kit_insert(&k, "After it all.", PROMPT_AFTER_FILLER, 0);
    kit_insert(&k, "At the start.", PROMPT_AT_DEPTH, 0);
    for (int length = 100; length < 200; length += 9) {
        struct prompt x = build(&k, length);
        check_prompt(&k, &x);
        assert_true(str_find(x.text, STR("assistant. In the system.<|im_end|>"), 0) != STR_NONE);
        assert_true(str_find(x.text, STR("user\nBefore it all.\n\nAt the start. "), 0) != STR_NONE);
        assert_true(str_find(x.text, STR(".\n\nAfter it all.\n\nGo on."), 0) != STR_NONE);
        static const int32_t depth[] = {PROMPT_DEPTH_NONE, PROMPT_DEPTH_NONE, 0, PROMPT_DEPTH_NONE};
        for (size_t i = 0; i < 4; i++) assert_int_equal(x.spans[i].depth, depth[i]);
    }
    // The slot may stand in the system message itself, and the filler in front of the text.
    k.messages[0].text = STR("Facts: {{filler}}");
    k.messages[1].text = STR("Go on.");
    struct prompt x = build(&k, 200);
    check_prompt(&k, &x);
    assert_true(str_find(x.text, STR("After it all. In the system.<|im_end|>"), 0) != STR_NONE);
    kit_close(&k);
}

// By role: a paragraph of its own, whatever line breaks the message has there already.
static void roles_are_places(void **state) {
    (void)state;
    struct kit k;
    kit_open(&k, &(struct fake_options){.marks_breaks = true}, "Hello.\n");
    k.messages[2] =
        (struct provider_message){.role = STR("user"), .text = STR("{{filler}}\n\nGo on.\r\n")};
    k.r.message_count = 3;
    kit_prose(&k, 4);
    kit_insert(&k, "Rule one.", PROMPT_LAST_USER, 0);
    kit_insert(&k, "Rule two.", PROMPT_FIRST_USER, 0);
    kit_insert(&k, "Rule three.", PROMPT_FIRST_USER, 0);
    kit_insert(&k, "Rule four.", PROMPT_LAST_USER, 0);
    for (int length = 100; length < 150; length += 7) {
        struct prompt x = build(&k, length);
        check_prompt(&k, &x);
        assert_true(str_find(x.text, STR("user\nRule two. Rule three.\n\nHello.\n<|im_end|>"), 0) !=
                    STR_NONE);
        assert_true(str_find(x.text, STR("Go on.\r\n\nRule one. Rule four.<|im_end|>"), 0) !=
                    STR_NONE);
        for (size_t i = 0; i < 4; i++) assert_int_equal(x.spans[i].depth, PROMPT_DEPTH_NONE);
    }
    // One message may be the first and the last, hold the filler, or be empty otherwise.
    k.r.message_count = 2;
    k.messages[1].text = STR("{{filler}}");
    struct prompt x = build(&k, 150);
    check_prompt(&k, &x);
    assert_true(str_find(x.text, STR("user\nRule two. Rule three.\n\n"), 0) != STR_NONE);
    assert_true(str_find(x.text, STR("\n\nRule one. Rule four.<|im_end|>"), 0) != STR_NONE);
    kit_close(&k);
}

// Constraints that a message holds already, before or behind the filler.
static void in_place_is_byte_for_byte(void **state) {
    (void)state;
    static const char user[] = "First  RULE-A,then {{filler}}\tRULE-B\r\n (RULE-C)";
    for (int trims = 0; trims < 2; trims++) {
        struct kit k;
        kit_open(&k, &(struct fake_options){.trims = trims}, user);
        kit_prose(&k, 1);
        for (char c = 'A'; c <= 'C'; c++) {
            const char rule[] = {'R', 'U', 'L', 'E', '-', c, '\0'};
            kit_insert(&k, arena_strdup(k.a, rule), PROMPT_IN_PLACE, 0);
            k.inserts[c - 'A'].message = 1;
            k.inserts[c - 'A'].at = str_find(str_from(user), str_from(rule), 0);
        }
        struct prompt x = build(&k, 120);
        check_prompt(&k, &x);
        for (size_t i = 0; i < 3; i++) assert_int_equal(x.spans[i].insert, i);
        assert_true(str_find(x.text, STR("First  RULE-A,then "), 0) != STR_NONE);
        assert_true(str_find(x.text, STR("\tRULE-B\r\n (RULE-C)<|im_end|>"), 0) != STR_NONE);
        kit_close(&k);
    }
}

static void lines_stay_lines(void **state) {
    (void)state;
    struct kit k;
    kit_open(&k, &(struct fake_options){0}, "{{filler}}\n\nGo on.");
    kit_filler(&k, filler_pairs_open(rng_open(7, "repeat 0", "filler"), k.a));
    kit_insert(&k, "vault: 7413", PROMPT_AT_DEPTH, 0);
    for (int32_t depth = 0; depth <= PROMPT_DEPTH_MOST; depth += 25000) {
        k.inserts[0].depth = depth;
        struct prompt x = build(&k, 300);
        check_prompt(&k, &x);
        assert_true(str_find(x.text, STR("\nvault: 7413\n"), 0) != STR_NONE);
        assert_int_equal(str_count(x.text, STR("\n\n")), 1);
    }
    kit_close(&k);
}

static void short_arm_has_just_so_much_filler(void **state) {
    (void)state;
    struct kit k;
    kit_open(&k, &(struct fake_options){0}, "{{filler}}\n\nGo on.");
    kit_prose(&k, 5);
    kit_insert(&k, "The code is 7413.", PROMPT_AT_DEPTH, 33333);
    kit_insert(&k, "The place is the gate.", PROMPT_AT_DEPTH, 66667);
    for (k.r.filler_tokens = 5; k.r.filler_tokens < 120; k.r.filler_tokens++) {
        struct prompt x = build(&k, -1);
        check_prompt(&k, &x);
        assert_int_equal(x.filler_tokens, k.r.filler_tokens);
    }
    kit_close(&k);
}

static void depth_one_hundred_stands_behind_the_closing_unit(void **state) {
    (void)state;
    struct kit k;
    kit_open(&k, &(struct fake_options){0}, "{{filler}}\n\nGo on.");
    kit_prose(&k, 6);
    kit_insert(&k, "The code is 7413.", PROMPT_AT_DEPTH, PROMPT_DEPTH_MOST);
    struct prompt x = build(&k, 200);
    struct buf end = {0};
    buf_printf(&end, " " STR_FMT " The code is 7413.\n\nGo on.", STR_ARG(x.closing));
    assert_true(str_find(x.text, buf_str(&end), 0) != STR_NONE);
    buf_free(&end);
    kit_close(&k);
}

static void estimates_come_near(void **state) {
    (void)state;
    struct kit k;
    kit_open(&k, &(struct fake_options){.estimates = true}, "{{filler}}\n\nGo on.");
    kit_prose(&k, 7);
    kit_insert(&k, "The code is 7413.", PROMPT_AT_DEPTH, 50000);
    for (int length = 100; length < 400; length += 7) {
        struct prompt x = build(&k, length);
        assert_int_equal(x.ids.count, 0);
        assert_true(abs((int)x.tokens - length) <= 2);
        assert_int_equal(x.tokens, (x.text.n + 3) / 4);
        assert_memory_equal(x.text.p + x.spans[0].first_byte, "The code is 7413.", 17);
        assert_true(abs((int)x.spans[0].first_token - (int)x.spans[0].first_byte / 4) <= 1);
    }
    kit_close(&k);
}

static void long_units_need_a_tolerance(void **state) {
    (void)state;
    struct kit k;
    struct err e = {0};
    struct prompt x;
    struct buf b = {0};
    for (int i = 0; i < 30; i++) {
        buf_printf(&b, "Document %d", i);
        for (int w = 0; w < 100; w++) buf_add_c(&b, " word");
        buf_add_c(&b, ".\n\n");
    }
    kit_open(&k, &(struct fake_options){0}, "{{filler}}\n\nGo on.");
    kit_files(&k, b.p, FILLER_SPLIT_PARAGRAPH);
    k.r.length = 1160;
    ASSERT_FAILS(prompt_build(k.b, &k.r, k.a, &x, &e), e, ERR_CONFIG, "lengths.tolerance to ");
    double needed = strtod(strstr(e.text, "lengths.tolerance to ") + 21, NULL);
    k.r.tolerance_ppm = (int32_t)(needed * 10000) - 2000;
    assert_int_equal(prompt_build(k.b, &k.r, k.a, &x, &e), -1);
    k.r.tolerance_ppm = (int32_t)(needed * 10000);
    ASSERT_OK(prompt_build(k.b, &k.r, k.a, &x, &e), e);
    if (x.ids.count >= 1160 || x.ids.count + 110 < 1160)
        fail_msg("%zu tokens, %s", x.ids.count, e.text);
    check_prompt(&k, &x);
    buf_free(&b);
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_is_hit_exactly),
        cmocka_unit_test(prose_is_exact_and_near_its_depth),
        cmocka_unit_test(segments_give_the_ids_of_the_whole),
        cmocka_unit_test(start_token_stands_once),
        cmocka_unit_test(spelled_control_tokens_stay_text),
        cmocka_unit_test(languages_keep_their_joins),
        cmocka_unit_test(shorter_fillers_are_prefixes),
        cmocka_unit_test(equal_depths_keep_their_order),
        cmocka_unit_test(anchors_stand_outside_the_filler),
        cmocka_unit_test(roles_are_places),
        cmocka_unit_test(in_place_is_byte_for_byte),
        cmocka_unit_test(lines_stay_lines),
        cmocka_unit_test(short_arm_has_just_so_much_filler),
        cmocka_unit_test(depth_one_hundred_stands_behind_the_closing_unit),
        cmocka_unit_test(estimates_come_near),
        cmocka_unit_test(long_units_need_a_tolerance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

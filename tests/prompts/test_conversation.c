// Filler of whole exchanges: roles kept, exact or as near as whole exchanges come, constraints in
// user turns at the nearest boundary; with real pre-tokenizers and chat templates.
#include "tests/support/support.h"

#include "engine/base/rng.h"
#include "prompts/conversation.h"
#include "prompts/turns.h"
#include "tests/support/tokenizer_provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXCHANGES 40

struct kit {
    struct provider *p;
    struct prompt_builder *b;
    struct arena *a;
    struct exchange exchanges[EXCHANGES];
    struct prompt_request r;
    struct provider_message messages[3];
    struct prompt_insert inserts[4];
};

static const char *const words[] = {"belt",       "drum",  "please",      "the",
                                    "<|im_end|>", "order", "caf\xC3\xA9", "don't",
                                    "5,00",       "\r\n",  "ja",          "\xE5\xA5\xBD"};

static struct str text_draw(struct rng *r, int least, int most, struct arena *a) {
    struct buf b = {0};
    int n = least + (int)rng_below(r, (uint64_t)(most - least + 1));
    for (int i = 0; i < n; i++) buf_printf(&b, "%s%s", i > 0 ? " " : "", words[rng_below(r, 12)]);
    buf_add_char(&b, '.');
    struct str s = str_copy(a, buf_str(&b));
    buf_free(&b);
    return s;
}

// Exchanges of one or two questions and answers.
static void exchanges_draw(struct kit *k, uint64_t seed) {
    struct rng r = rng_open(seed, "test", "exchanges");
    for (int i = 0; i < EXCHANGES; i++) {
        size_t count = rng_below(&r, 3) == 0 ? 4 : 2;
        struct turn *turns = arena_array(k->a, count, sizeof *turns);
        for (size_t t = 0; t < count; t++)
            turns[t].m =
                (struct provider_message){.role = t % 2 == 0 ? STR("user") : STR("assistant"),
                                          .text = text_draw(&r, 3, 30, k->a)};
        k->exchanges[i] = (struct exchange){turns, count, "turns.jsonl"};
    }
}

static void kit_filler(struct kit *k, bool shuffle, uint64_t seed, size_t exchanges) {
    struct filler *f = filler_chat_open(k->exchanges, exchanges, shuffle,
                                        rng_open(seed, "repeat 0", "filler"), k->a);
    k->r.chat = chat_units_open(k->p, f, k->a);
}

static void kit_open(struct kit *k, const char *rule, const char *template, uint64_t seed) {
    struct err e = {0};
    *k = (struct kit){.p = tokenizer_provider_open(rule, template)};
    k->b = prompt_builder_open(k->p);
    k->a = arena_create("kit");
    k->messages[0] = (struct provider_message){.role = STR("system"), .text = STR("Be kind.")};
    k->messages[1] = (struct provider_message){.role = STR("chat"), .text = STR("{{filler}}")};
    k->messages[2] = (struct provider_message){.role = STR("user"), .text = STR("Where is it?")};
    k->r = (struct prompt_request){.messages = k->messages,
                                   .message_count = 3,
                                   .closing_rng = rng_open(7, "experiment", "closing"),
                                   .spaced = true,
                                   .inserts = k->inserts};
    ASSERT_OK(closing_find("en", &k->r.closing, &e), e);
    exchanges_draw(k, seed);
    kit_filler(k, false, seed, EXCHANGES);
}

static void kit_close(struct kit *k) {
    prompt_builder_close(k->b);
    tokenizer_provider_close(k->p);
    arena_destroy(k->a);
}

static void kit_insert(struct kit *k, const char *text, enum prompt_anchor anchor, int32_t depth) {
    k->inserts[k->r.insert_count++] = (struct prompt_insert){
        .id = text, .text = str_from(text), .anchor = anchor, .depth = depth};
}

static struct prompt build(struct kit *k, int length) {
    struct err e = {0};
    struct prompt x;
    k->r.length = length;
    if (prompt_build(k->b, &k->r, k->a, &x, &e) != 0) fail_msg("length %d: %s", length, e.text);
    return x;
}

static struct provider_ids ids_of(struct kit *k, const struct provider_piece *pieces,
                                  size_t count) {
    struct err e = {0};
    struct provider_ids ids = {0};
    if (count > 0) ASSERT_OK(k->p->ops->tokenize(k->p, pieces, count, k->a, &ids, &e), e);
    return ids;
}

// What the conversation must be: the first exchanges' turns one after the other, apart from the
// paragraphs that were put into user turns. The number of exchanges in the prompt comes back.
static size_t check_turns(struct kit *k, const struct prompt *x, bool trims) {
    size_t at = 0, exchange = 0;
    for (; exchange < EXCHANGES; exchange++) {
        const struct exchange *e = &k->exchanges[exchange];
        struct str first = e->turns[0].m.text;
        if (str_find(x->text, trims ? str_trim(first) : first, at) == STR_NONE) break;
        for (size_t t = 0; t < e->count; t++) {
            struct str text = e->turns[t].m.text;
            size_t found = str_find(x->text, trims ? str_trim(text) : text, at);
            assert_true(found != STR_NONE);
            at = found + text.n;
        }
    }
    assert_true(str_find(x->text, STR("Where is it?"), at) != STR_NONE);
    return exchange;
}

static void check_prompt(struct kit *k, const struct prompt *x) {
    struct provider_piece *pieces = arena_array(k->a, x->part_count + 1, sizeof *pieces);
    struct str stored = filler_text(chat_units_filler(k->r.chat));
    size_t control = 0, expected = 0, stored_bytes = 0;
    for (size_t i = 0; i < x->part_count; i++) {
        const struct prompt_part *part = &x->parts[i];
        pieces[i] = (struct provider_piece){part->text, part->control};
        if (!part->stored) continue;
        assert_true(str_equal(part->text, str_slice(stored, part->from, part->to)));
        assert_true(part->to <= x->filler_bytes);
        stored_bytes += part->text.n;
    }
    if (x->filler_bytes > 1500) assert_true(2 * stored_bytes > x->filler_bytes);
    struct provider_ids again = ids_of(k, pieces, x->part_count);
    assert_int_equal(again.count, x->ids.count);
    assert_memory_equal(again.ids, x->ids.ids, again.count * sizeof again.ids[0]);
    for (size_t i = 0; i < x->ids.count; i++)
        control += tokenizer_provider_control(k->p, x->ids.ids[i]);
    for (size_t i = 0; i < x->part_count; i++) {
        if (!x->parts[i].control) continue;
        struct provider_ids ids = ids_of(k, &pieces[i], 1);
        for (size_t t = 0; t < ids.count; t++)
            expected += tokenizer_provider_control(k->p, ids.ids[t]);
    }
    assert_int_equal(control, expected);
    assert_int_equal(x->span_count, k->r.insert_count);
    for (size_t i = 0; i < x->span_count; i++) {
        const struct prompt_span *s = &x->spans[i];
        struct str text = k->inserts[s->insert].text;
        assert_int_equal(s->bytes, text.n);
        assert_memory_equal(x->text.p + s->first_byte, text.p, text.n);
    }
}

static const char *const templates[] = {"chatml", "llama3", "smollm2", "qwen2.5", "llama3.1"};

static void lengths_are_exact_or_near(void **state) {
    (void)state;
    for (int t = 0; t < 5; t++) {
        struct kit k;
        const bool llama = t == 1 || t == 4;
        kit_open(&k, llama ? "llama-bpe" : "smollm", templates[t], 11 + (uint64_t)t);
        kit_insert(&k, "The code is 7413.", PROMPT_AT_DEPTH, 50000);
        k.r.tolerance_ppm = 400000;
        int exact = 0, count = 0;
        size_t before = 0;
        for (int length = 300; length < 1500; length += 61, count++) {
            struct prompt x = build(&k, length);
            check_prompt(&k, &x);
            size_t units = check_turns(&k, &x, llama);
            assert_true(units >= before); // a longer prompt begins with a shorter one's exchanges
            before = units;
            uint32_t next;
            struct err e = {0};
            ASSERT_OK(chat_units_tokens(k.r.chat, units, &next, &e), e);
            assert_true(x.ids.count <= (size_t)length);
            exact += x.ids.count == (size_t)length;
            // No room is left for the next exchange, and a closing unit fills what it can.
            size_t rest = (size_t)length - x.ids.count;
            if (rest > 0) assert_true(rest + CLOSING_TOKENS_MOST < next + 8);
            if (rest > 0) assert_true(x.closing.n > 0);
        }
        assert_true(exact > count / 4);
        kit_close(&k);
    }
}

// The token at which a text begins, told by the bytes of the ids.
static size_t token_at(struct kit *k, const struct prompt *x, size_t byte) {
    size_t at = 0, i = 0;
    while (i < x->ids.count && at < byte) at += k->p->ops->id_bytes(k->p, x->ids.ids[i++]).n;
    return i;
}

static void constraints_stand_at_the_nearest_boundary(void **state) {
    (void)state;
    struct kit k;
    kit_open(&k, "smollm", "chatml", 5);
    kit_insert(&k, "The code is 7413.", PROMPT_AT_DEPTH, 0);
    k.r.tolerance_ppm = 400000;
    for (int32_t depth = 0; depth <= PROMPT_DEPTH_MOST; depth += 6250) {
        k.inserts[0].depth = depth;
        struct prompt x = build(&k, 1100);
        check_prompt(&k, &x);
        const struct prompt_span *s = &x.spans[0];
        // A paragraph of a user's turn.
        struct str before = str_slice(x.text, 0, s->first_byte);
        struct str behind = str_slice(x.text, s->first_byte + s->bytes, x.text.n);
        bool begins =
            str_ends(before, STR("<|im_start|>user\n")) && str_starts(behind, STR("\n\n"));
        bool ends = str_ends(before, STR("\n\n")) && str_starts(behind, STR("<|im_end|>\n"));
        assert_true(begins || ends);
        // The depth that is told is the one in the ids.
        size_t first = token_at(&k, &x, str_find(x.text, k.exchanges[0].turns[0].m.text, 0));
        if (s->first_token < first) first = s->first_token; // it stands before the first turn
        double real = 100000.0 * (double)(s->first_token - first) / x.filler_tokens;
        if (depth < PROMPT_DEPTH_MOST) assert_in_range(abs(s->depth - (int32_t)real), 0, 600);
        // No exchange of this draw is longer than a fifth of the filler, so half of that is far.
        assert_in_range(abs(s->depth - depth), 0, 10000);
        if (depth == 0) assert_true(begins && s->depth == 0);
        if (depth == PROMPT_DEPTH_MOST) {
            assert_int_equal(s->depth, PROMPT_DEPTH_MOST);
            assert_true(str_starts(behind, STR("\n\nWhere is it?<|im_end|>")));
        }
    }
    kit_close(&k);
}

static void anchors_and_order(void **state) {
    (void)state;
    struct kit k;
    kit_open(&k, "smollm", "chatml", 5);
    kit_insert(&k, "Rule C.", PROMPT_AFTER_FILLER, 0);
    kit_insert(&k, "Rule A.", PROMPT_AT_DEPTH, 0);
    kit_insert(&k, "Rule L.", PROMPT_LAST_USER, 0);
    kit_insert(&k, "Rule S.", PROMPT_IN_SYSTEM, 0);
    k.r.tolerance_ppm = 400000;
    struct prompt x = build(&k, 600);
    check_prompt(&k, &x);
    static const size_t order[] = {3, 1, 0, 2};
    for (size_t i = 0; i < 4; i++) assert_int_equal(x.spans[i].insert, order[i]);
    assert_true(str_find(x.text, STR("Be kind. Rule S.<|im_end|>\n<|im_start|>user\nRule A.\n\n"),
                         0) != STR_NONE);
    assert_true(str_find(x.text,
                         STR("user\nRule C.\n\nWhere is it?\n\nRule L.<|im_end|>\n<|im_start|>"
                             "assistant\n"),
                         0) != STR_NONE);
    assert_int_equal(x.spans[2].depth, PROMPT_DEPTH_NONE);
    // A rule that stands behind the conversation already.
    k.messages[2].text = STR("Where? NO PRICE.");
    k.r.insert_count = 0;
    kit_insert(&k, "NO PRICE.", PROMPT_IN_PLACE, 0);
    k.inserts[0].message = 2;
    k.inserts[0].at = 7;
    x = build(&k, 600);
    assert_true(str_find(x.text, STR("user\nWhere? NO PRICE.<|im_end|>"), 0) != STR_NONE);
    assert_int_equal(x.spans[0].bytes, 9);
    kit_close(&k);
}

static void orders_are_drawn(void **state) {
    (void)state;
    struct kit k;
    kit_open(&k, "smollm", "chatml", 5);
    k.r.tolerance_ppm = 400000;
    kit_filler(&k, true, 1, EXCHANGES);
    struct prompt one = build(&k, 900), shorter = build(&k, 500);
    kit_filler(&k, true, 1, EXCHANGES);
    struct prompt again = build(&k, 900);
    kit_filler(&k, true, 2, EXCHANGES);
    struct prompt other = build(&k, 900);
    assert_true(str_equal(one.text, again.text));
    assert_false(str_equal(one.text, other.text));
    size_t same = 0;
    while (same < shorter.text.n && one.text.p[same] == shorter.text.p[same]) same++;
    assert_true(2 * same > shorter.text.n); // as far as the shorter one's last user turn
    kit_close(&k);
}

static void short_arm_has_whole_exchanges(void **state) {
    (void)state;
    struct kit k;
    kit_open(&k, "smollm", "chatml", 5);
    kit_insert(&k, "The code is 7413.", PROMPT_AT_DEPTH, 50000);
    for (int tokens = 1; tokens < 300; tokens += 37) {
        k.r.filler_tokens = tokens;
        struct prompt x = build(&k, -1);
        check_prompt(&k, &x);
        size_t units = check_turns(&k, &x, false);
        assert_true(units >= 1 && x.filler_tokens >= (uint32_t)tokens && x.closing.n == 0);
        uint32_t last;
        struct err e = {0};
        ASSERT_OK(chat_units_tokens(k.r.chat, units - 1, &last, &e), e);
        assert_true(units == 1 || x.filler_tokens - last < (uint32_t)tokens);
    }
    kit_close(&k);
}

static void what_cannot_be_built_is_said(void **state) {
    (void)state;
    struct kit k;
    struct err e = {0};
    struct prompt x;
    kit_open(&k, "smollm", "chatml", 5);
    int failed = 0;
    // What plan says is enough is enough, and what it says is needed is.
    for (int length = 400; length < 1200; length += 53) {
        k.r.length = length;
        k.r.tolerance_ppm = 0;
        if (prompt_build(k.b, &k.r, k.a, &x, &e) == 0) {
            assert_int_equal(x.ids.count, length);
            continue;
        }
        failed++;
        const char *needed = strstr(e.text, "lengths.tolerance to ");
        if (needed == NULL || strstr(e.text, "is enough for all") == NULL) fail_msg("%s", e.text);
        double share = strtod(needed + 21, NULL);
        k.r.tolerance_ppm = (int32_t)(10000 * share);
        ASSERT_OK(prompt_build(k.b, &k.r, k.a, &x, &e), e);
        k.r.tolerance_ppm = (int32_t)(10000 * (share - 0.25));
        assert_int_equal(prompt_build(k.b, &k.r, k.a, &x, &e), -1);
    }
    assert_true(failed > 3);
    k.r.tolerance_ppm = 0;
    k.r.length = 30;
    ASSERT_FAILS(prompt_build(k.b, &k.r, k.a, &x, &e), e, ERR_CONFIG, "no room for filler");
    kit_filler(&k, false, 5, 3);
    k.r.length = 1500;
    ASSERT_FAILS(prompt_build(k.b, &k.r, k.a, &x, &e), e, ERR_CONFIG,
                 "the filler is too small: behind all 3 exchanges");
    k.messages[2].role = STR("assistant");
    ASSERT_FAILS(prompt_build(k.b, &k.r, k.a, &x, &e), e, ERR_CONFIG, "a user message must stand");
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_exact_or_near),
        cmocka_unit_test(constraints_stand_at_the_nearest_boundary),
        cmocka_unit_test(anchors_and_order),
        cmocka_unit_test(orders_are_drawn),
        cmocka_unit_test(short_arm_has_whole_exchanges),
        cmocka_unit_test(what_cannot_be_built_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

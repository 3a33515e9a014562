#include "tests/support/fast_folder.h"
#include "tests/support/sample_record.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/rng.h"

#include <stdio.h>
#include <string.h>

static const char *fresh(struct arena *a, const char *name) {
    static int number;
    return arena_printf(a, "%s/%s-%d", fast_folder(), name, number++);
}

static struct str slurp(struct arena *a, const char *folder, const char *name) {
    return test_read(a, path_join(a, folder, name));
}

static void put_file(struct arena *a, const char *folder, const char *name, struct str text) {
    test_write(path_join(a, folder, name), text);
}

static void assert_same_text(struct str a, struct str b) {
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.p, b.p, a.n);
}

static void assert_same_file(struct arena *a, const char *left, const char *right,
                             const char *name) {
    assert_same_text(slurp(a, left, name), slurp(a, right, name));
}

static void assert_same_trial(const struct record_trial *t, const struct record_trial *u) {
    assert_string_equal(t->key, u->key);
    assert_string_equal(t->arm, u->arm);
    assert_int_equal(t->length, u->length);
    assert_true((t->placement == NULL) == (u->placement == NULL));
    assert_true((t->case_id == NULL) == (u->case_id == NULL));
    assert_string_equal(t->prompt_sha256, u->prompt_sha256);
    assert_string_equal(t->ids_sha256, u->ids_sha256);
    assert_int_equal(t->prompt_tokens, u->prompt_tokens);
    assert_int_equal(t->shared_tokens, u->shared_tokens);
    assert_string_equal(t->seed, u->seed);
    assert_int_equal(t->var_count, u->var_count);
    for (int i = 0; i < t->var_count; i++) {
        assert_string_equal(t->vars[i].constraint, u->vars[i].constraint);
        assert_string_equal(t->vars[i].name, u->vars[i].name);
        assert_same_text(t->vars[i].value, u->vars[i].value);
    }
    assert_int_equal(t->distractor_count, u->distractor_count);
    for (int i = 0; i < t->distractor_count; i++)
        assert_same_text(t->distractors[i].vars[0].value, u->distractors[i].vars[0].value);
    assert_int_equal(t->spans[0].only_digits, u->spans[0].only_digits);
    assert_int_equal(t->spans[0].question_word_count, u->spans[0].question_word_count);
    assert_int_equal(t->span_count, u->span_count);
    assert_int_equal(t->spans[0].first_byte, u->spans[0].first_byte);
    assert_string_equal(t->spans[0].depth, u->spans[0].depth);
}

static void assert_same_outcome(const struct record_outcome *o, const struct record_outcome *p) {
    assert_int_equal(o->trial, p->trial);
    assert_string_equal(o->key, p->key);
    assert_int_equal(o->status, p->status);
    if (o->status != STATUS_OK) {
        assert_string_equal(o->reason_code, p->reason_code);
        assert_string_equal(o->reason_text, p->reason_text);
        return;
    }
    assert_same_text(o->reply, p->reply);
    assert_true((o->ids == NULL) == (p->ids == NULL));
    assert_int_equal(o->id_count, p->id_count);
    for (size_t i = 0; i < o->id_count; i++) assert_int_equal(o->ids[i], p->ids[i]);
    assert_string_equal(o->finish, p->finish);
    assert_int_equal(o->reasoning_counted, p->reasoning_counted);
    assert_int_equal(o->reasoning_tokens, p->reasoning_tokens);
    assert_int_equal(o->answer[1], p->answer[1]);
    assert_int_equal(o->verdict_count, p->verdict_count);
    assert_string_equal(o->verdicts[0].by, p->verdicts[0].by);
    assert_int_equal(o->verdicts[0].match[1], p->verdicts[0].match[1]);
    assert_int_equal(o->verdicts[1].near_count, p->verdicts[1].near_count);
    for (int i = 0; i < o->verdicts[1].near_count; i++)
        assert_same_text(o->verdicts[1].near[i], p->verdicts[1].near[i]);
    assert_int_equal(o->verdicts[1].copied_count, p->verdicts[1].copied_count);
    for (int i = 0; i < o->verdicts[1].copied_count; i++)
        assert_same_text(o->verdicts[1].copied[i], p->verdicts[1].copied[i]);
}

static void assert_sound(const char *folder, bool expected) {
    struct buf findings = {0};
    struct err e = {0};
    bool sound;
    ASSERT_OK(record_verify(folder, true, &findings, &sound, &e), e);
    if (sound != expected) fail_msg("sound %d: %s", sound, findings.p == NULL ? "" : findings.p);
    buf_free(&findings);
}

static void test_round_trip(void **state) {
    (void)state;
    struct sample s;
    sample_make(&s, 1, 60, true);
    struct arena *a = s.arena;
    struct err e = {0};
    const char *folder = fresh(a, "round");
    ASSERT_OK(sample_run(&s, folder, 1, &e), e);
    struct record *r;
    ASSERT_OK(record_open(folder, a, &r, &e), e);
    assert_int_equal(r->trial_count, 60);
    assert_int_equal(r->done_count, 60);
    assert_false(r->torn);
    for (int i = 0; i < 60; i++) {
        assert_same_trial(&s.trials[i], &r->trials[i]);
        assert_same_outcome(&s.outcomes[i], r->outcomes[i]);
        assert_int_equal(record_find(r, s.trials[i].key), i);
        struct record_part *parts;
        size_t count;
        struct str text;
        ASSERT_OK(record_get_prompt(r, s.trials[i].prompt_sha256, a, &parts, &count, &text, &e), e);
        assert_same_text(text, s.prompts[i]);
        assert_int_equal(count, 3);
        assert_true(parts[0].control && !parts[1].control && !parts[2].control);
        for (int k = 0; k < 3; k++) assert_same_text(parts[k].text, s.parts[i][k].text);
    }
    assert_int_equal(record_find(r, "no such key"), -1);
    record_close(r);
    assert_sound(folder, true);
    sample_free(&s);
}

// The words of the record are a contract: names, order and spelling of RECORD.md.
static void test_spelling(void **state) {
    (void)state;
    struct sample s;
    sample_make(&s, 2, 5, false);
    struct arena *a = s.arena;
    struct err e = {0};
    const char *folder = fresh(a, "spelling");
    struct record_outcome *o = &s.outcomes[0];
    o->reply = STR("Order 19763 \xe2\x82\xac");
    o->verdicts[0].match[0] = 6;
    o->verdicts[0].match[1] = 11;
    int32_t ids[] = {5, 4097};
    o->ids = ids;
    o->id_count = 2;
    o->tokens = 2;
    o->finish = "stop";
    o->answer[1] = o->reply.n;
    ASSERT_OK(sample_run(&s, folder, 2, &e), e);
    char hex[HASH_HEX_SIZE];
    ASSERT_OK(hash_file(path_join(a, folder, "identity.json"), hex, &e), e);
    const char *expected = arena_printf(
        a,
        "{\"line\":0,\"previous\":\"%s\",\"trial\":0,\"key\":\"m/placed/0/é-0/0/0\",\"attempt\":1,"
        "\"status\":\"ok\",\"reply\":{\"text\":\"Order 19763 €\",\"ids\":[5,4097],\"tokens\":2,"
        "\"finish\":\"stop\",\"answer\":[0,15]},\"verdicts\":[{\"constraint\":\"order\","
        "\"verdict\":\"met\",\"by\":\"value\",\"match\":[6,11]},{\"constraint\":\"day\","
        "\"verdict\":\"omitted\",\"near\":[\"Thursday\",{\"text_base64\":\"/w==\"}]}]}\n",
        hex);
    struct str ledger = slurp(a, folder, "trials.jsonl");
    assert_true(str_starts(ledger, str_from(expected)));
    // each line carries the hash of the line before, its line break included
    size_t end = str_find(ledger, STR("\n"), 0) + 1;
    hash_bytes(ledger.p, end, hex);
    const char *link = arena_printf(a, "{\"line\":1,\"previous\":\"%s\",", hex);
    assert_true(str_starts(str_slice(ledger, end, ledger.n), str_from(link)));
    struct str plan = slurp(a, folder, "plan.jsonl");
    assert_true(str_starts(plan, STR("{\"trial\":0,\"key\":\"m/placed/0/é-0/0/0\",\"model\":\"m\","
                                     "\"arm\":\"placed\",\"length\":512,\"placement\":"
                                     "\"order-moves\",\"depth\":\"50.000\",\"repeat\":0,"
                                     "\"sample\":0,\"case\":null,\"prompt_sha256\":\"")));
    assert_true(str_find(plan, STR("\"reply_tokens_max\":96,\"seed\":\""), 0) != STR_NONE);
    assert_true(
        str_find(plan,
                 STR("\"day\":{\"day\":\"Monday\"}},\"distractors\":[{\"constraint\":\"order\","
                     "\"vars\":{\"code\":\"48213\"}},{\"constraint\":\"order\",\"vars\":{\"code\":"
                     "\"ü\"}}],\"spans\":["),
                 0) != STR_NONE);
    assert_true(str_find(plan,
                         STR("\"salience\":{\"only_digits\":true,\"question_words\":[\"order\"]}"),
                         0) != STR_NONE);
    assert_true(str_find(ledger, STR("\"copied\":[\"Thursday\"]}"), 0) != STR_NONE);
    assert_true(
        str_find(
            plan,
            STR("\"place\":\"Zürich\"},\"day\":{\"day\":\"Monday\"}},\"spans\":[{"
                "\"constraint\":\"order\",\"first_token\":4,\"tokens\":11,"
                "\"first_byte\":17,\"bytes\":26,\"depth\":\"49.868\",\"place\":\"middle\"}]}\n"),
            0) != STR_NONE);
    sample_free(&s);
}

// Whatever order replies come in, the ledger is the same.
static void test_any_order(void **state) {
    (void)state;
    struct sample s;
    sample_make(&s, 3, 40, true);
    struct arena *a = s.arena;
    struct err e = {0};
    const char *first = NULL;
    for (uint64_t seed = 0; seed < 5; seed++) {
        const char *folder = fresh(a, "order");
        ASSERT_OK(sample_run(&s, folder, seed, &e), e);
        if (first == NULL) first = folder;
        assert_same_file(a, first, folder, "trials.jsonl");
        assert_same_file(a, first, folder, "evidence.jsonl");
        assert_same_file(a, first, folder, "plan.jsonl");
        char **names;
        size_t count;
        ASSERT_OK(file_list(path_join(a, folder, "pending"), a, &names, &count, &e), e);
        assert_int_equal(count, 0);
    }
    sample_free(&s);
}

// B47: cut at every byte of the last record, with and without a blank line behind, then resumed.
static void test_torn_last_line(void **state) {
    (void)state;
    struct sample s;
    sample_make(&s, 4, 5, false);
    struct err e = {0};
    const char *whole = fresh(s.arena, "torn");
    ASSERT_OK(sample_run(&s, whole, 1, &e), e);
    struct str ledger = slurp(s.arena, whole, "trials.jsonl");
    size_t last = ledger.n - 1;
    while (ledger.p[last - 1] != '\n') last--;
    struct arena *a = arena_create("test");
    for (size_t cut = last; cut < ledger.n; cut++)
        for (int blank = 0; blank < 2; blank++) {
            struct buf text = {0};
            buf_add(&text, ledger.p, cut);
            // A whole record that only lost its line break becomes whole again by one.
            if (blank && cut > last) buf_add_c(&text, "\n\n");
            put_file(a, whole, "trials.jsonl", buf_str(&text));
            struct record *r;
            ASSERT_OK(record_open(whole, a, &r, &e), e);
            bool whole_line = blank && cut == ledger.n - 1;
            assert_int_equal(r->done_count, whole_line ? 5 : 4);
            assert_int_equal(r->torn, cut > last);
            record_close(r);
            if (cut > last) assert_sound(whole, false);
            ASSERT_OK(sample_run(&s, whole, 1, &e), e);
            assert_same_text(slurp(a, whole, "trials.jsonl"), ledger);
            assert_sound(whole, true);
            const char *aside = path_join(a, whole, "trials.jsonl.torn-1");
            assert_int_equal(file_exists(aside), cut > last);
            if (cut > last) {
                struct str kept = slurp(a, whole, "trials.jsonl.torn-1");
                size_t from = whole_line ? ledger.n : last;
                assert_same_text(kept, str_slice(buf_str(&text), from, text.n));
            }
            ASSERT_OK(file_remove(aside, &e), e);
            buf_free(&text);
            arena_reset(a);
        }
    arena_destroy(a);
    sample_free(&s);
}

// Damage before the last line is refused, naming the line, by readers and by the writer.
static void test_damage_inside(void **state) {
    (void)state;
    struct sample s;
    sample_make(&s, 5, 5, false);
    struct arena *a = s.arena;
    struct err e = {0};
    const char *folder = fresh(a, "damage");
    ASSERT_OK(sample_run(&s, folder, 1, &e), e);
    struct str ledger = slurp(a, folder, "trials.jsonl");
    size_t second = str_find(ledger, STR("\n"), 0) + 1;
    size_t third = str_find(ledger, STR("\n"), second) + 1;
    for (size_t at = second; at < third; at++) {
        char *copy = arena_memdup(a, ledger.p, ledger.n);
        copy[at] ^= 1;
        put_file(a, folder, "trials.jsonl", (struct str){copy, ledger.n});
        struct record *r;
        assert_int_equal(record_open(folder, a, &r, &e), -1);
        assert_int_equal(e.code, ERR_RECORD);
        assert_true(strstr(e.text, "trials.jsonl:2") || strstr(e.text, "trials.jsonl:3"));
        assert_int_equal(sample_run(&s, folder, 1, &e), -1);
        assert_same_text(slurp(a, folder, "trials.jsonl"), (struct str){copy, ledger.n});
        assert_sound(folder, false);
    }
    // a line removed, doubled, exchanged
    struct buf text = {0};
    buf_add(&text, ledger.p, second);
    buf_add(&text, ledger.p + third, ledger.n - third);
    put_file(a, folder, "trials.jsonl", buf_str(&text));
    struct record *r;
    ASSERT_FAILS(record_open(folder, a, &r, &e), e, ERR_RECORD, "trials.jsonl:2");
    buf_clear(&text);
    buf_add(&text, ledger.p, third);
    buf_add(&text, ledger.p + second, ledger.n - second);
    put_file(a, folder, "trials.jsonl", buf_str(&text));
    ASSERT_FAILS(record_open(folder, a, &r, &e), e, ERR_RECORD, "trials.jsonl:3");
    buf_free(&text);
    sample_free(&s);
}

// Strings of a hostile record are input too: any change gives an error or the same record, never
// more.
static void test_hostile_bytes(void **state) {
    (void)state;
    static const char *const names[] = {"identity.json",      "plan.jsonl",      "trials.jsonl",
                                        "inputs/index.jsonl", "inputs/pack.zst", "manifest.json",
                                        "inputs/index.jsonl", "inputs/pack.zst"};
    struct sample s;
    sample_make(&s, 6, 12, true);
    struct err e = {0};
    const char *folder = fresh(s.arena, "hostile");
    ASSERT_OK(sample_run(&s, folder, 1, &e), e);
    struct rng r = rng_open(6, "test", "hostile");
    struct arena *a = arena_create("test");
    int refused = 0;
    for (int round = 0; round < 1500; round++) {
        arena_reset(a);
        const char *name = names[rng_below(&r, sizeof names / sizeof *names)];
        struct str good = slurp(a, folder, name);
        char *copy = arena_memdup(a, good.p, good.n);
        static const char spice[] = "0123456789-{}[]\",:\\ue\n\xff";
        for (uint64_t k = 0, n = 1 + rng_below(&r, 3); k < n; k++)
            copy[rng_below(&r, good.n)] = spice[rng_below(&r, sizeof spice - 1)];
        size_t n = rng_below(&r, 4) == 0 ? (size_t)rng_below(&r, good.n) : good.n;
        put_file(a, folder, name, (struct str){copy, n});
        struct record *record;
        struct buf findings = {0};
        bool sound;
        if (record_open(folder, a, &record, &e) == 0) {
            for (int64_t i = 0; i < record->trial_count; i++) {
                struct record_part *parts;
                size_t count;
                struct str text;
                if (record_get_prompt(record, record->trials[i].prompt_sha256, a, &parts, &count,
                                      &text, &e) == 0)
                    assert_same_text(text, s.prompts[i]);
            }
            record_close(record);
        } else {
            refused++;
            assert_true(strstr(e.text, folder) != NULL);
        }
        record_verify(folder, true, &findings, &sound, &e);
        buf_free(&findings);
        put_file(a, folder, name, good);
    }
    assert_true(refused > 500);
    assert_sound(folder, true);
    arena_destroy(a);
    sample_free(&s);
}

// A copy published without its prompts is whole but for them, and says so when asked for all.
static void test_verify_without_prompts(void **state) {
    (void)state;
    struct sample s;
    sample_make(&s, 7, 6, false);
    struct err e = {0};
    const char *folder = fresh(s.arena, "published");
    ASSERT_OK(sample_run(&s, folder, 1, &e), e);
    ASSERT_OK(file_remove(path_join(s.arena, folder, "inputs/pack.zst"), &e), e);
    bool sound;
    struct buf findings = {0};
    ASSERT_OK(record_verify(folder, true, &findings, &sound, &e), e);
    assert_false(sound);
    assert_non_null(strstr(findings.p, "inputs/pack.zst"));
    ASSERT_OK(record_verify(folder, false, &findings, &sound, &e), e);
    assert_true(sound);
    buf_free(&findings);
    sample_free(&s);
}

// Any flipped bit of plan, ledger (its last line aside), fillers and prompts is found.
static void test_verify_finds(void **state) {
    (void)state;
    static const char *const names[] = {"identity.json", "plan.jsonl", "trials.jsonl",
                                        "inputs/pack.zst"};
    struct sample s;
    sample_make(&s, 7, 6, false);
    struct err e = {0};
    const char *folder = fresh(s.arena, "verify");
    ASSERT_OK(sample_run(&s, folder, 1, &e), e);
    struct rng r = rng_open(7, "test", "verify");
    struct arena *a = arena_create("test");
    for (int round = 0; round < 400; round++) {
        arena_reset(a);
        const char *name = names[round % 4];
        struct str good = slurp(a, folder, name);
        size_t most = good.n;
        if (round % 4 == 2) // nothing follows the last line that could know it
            while (most > 1 && good.p[most - 2] != '\n') most--;
        char *copy = arena_memdup(a, good.p, good.n);
        copy[rng_below(&r, most - 1)] ^= (char)(1u << rng_below(&r, 8));
        put_file(a, folder, name, (struct str){copy, good.n});
        struct buf findings = {0};
        bool sound = true;
        if (record_verify(folder, true, &findings, &sound, &e) == 0 && sound)
            fail_msg("a changed bit of %s was not found (round %d)", name, round);
        buf_free(&findings);
        put_file(a, folder, name, good);
    }
    assert_sound(folder, true);
    arena_destroy(a);
    sample_free(&s);
}

// Retries follow the last first attempt; the highest attempt counts.
static void test_retries(void **state) {
    (void)state;
    struct sample s;
    sample_make(&s, 8, 20, true);
    struct arena *a = s.arena;
    struct err e = {0};
    const char *folder = fresh(a, "retry");
    struct record_writer *w;
    bool complete;
    ASSERT_OK(sample_open(&s, folder, &w, &complete, &e), e);
    int failed = -1;
    for (int i = 0; i < 20; i++) {
        if (s.outcomes[i].status == STATUS_ERROR) failed = i;
        ASSERT_OK(record_put_outcome(w, &s.outcomes[i], NULL, &e), e);
        if (failed == i && i < 19)
            ASSERT_FAILS(record_put_outcome(w, &s.outcomes[i], NULL, &e), e, ERR_RECORD,
                         "not to be tried again");
    }
    assert_true(failed >= 0);
    record_writer_close(w);
    struct record_header header = {
        .folder = folder, .resolved = s.resolved, .identity = s.identity};
    enum record_state now;
    ASSERT_OK(record_writer_open(&header, s.request_sha256, &w, &now, &e), e);
    assert_int_equal(now, RECORD_COMPLETE);
    ASSERT_OK(record_resume(w, s.identity, s.manifest, &e), e);
    int64_t *missing;
    assert_int_equal(record_missing(w, false, a, &missing), 0);
    int64_t count = record_missing(w, true, a, &missing);
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(s.outcomes[missing[i]].status, STATUS_ERROR);
    assert_true(count > 0);
    struct record_outcome good = s.outcomes[failed == 0 ? 1 : 0];
    good.trial = failed;
    good.key = s.trials[failed].key;
    good.status = STATUS_OK;
    good.finish = "stop";
    ASSERT_OK(record_put_outcome(w, &good, NULL, &e), e);
    ASSERT_FAILS(record_put_outcome(w, &good, NULL, &e), e, ERR_RECORD, "not to be tried again");
    record_writer_close(w);
    struct record *r;
    ASSERT_OK(record_open(folder, a, &r, &e), e);
    assert_int_equal(r->outcomes[failed]->attempt, 2);
    assert_int_equal(r->outcomes[failed]->status, STATUS_OK);
    assert_int_equal(r->attempt_count, 21);
    record_close(r);
    assert_sound(folder, true);
    sample_free(&s);
}

// B49: another identity is refused with the fields that differ; changed checks point at `score`.
static void test_other_identity(void **state) {
    (void)state;
    struct sample s;
    sample_make(&s, 9, 6, false);
    struct arena *a = s.arena;
    struct err e = {0};
    const char *folder = fresh(a, "identity");
    struct record_writer *w;
    bool complete;
    ASSERT_OK(sample_open(&s, folder, &w, &complete, &e), e);
    for (int i = 0; i < 3; i++) ASSERT_OK(record_put_outcome(w, &s.outcomes[i], NULL, &e), e);
    record_writer_close(w);
    struct str before = slurp(a, folder, "trials.jsonl");

    const char *other = "b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c";
    json_t *model = json_array_get(json_object_get(s.identity, "models"), 0);
    json_t *identity = json_deep_copy(s.identity);
    json_object_set_new(model, "sha256", json_string(other));
    ASSERT_FAILS(sample_run(&s, folder, 1, &e), e, ERR_RECORD, "models[0].sha256: ");
    assert_non_null(strstr(e.text, "b5bb9d8014a0... asked for"));
    assert_null(strstr(e.text, "numerics"));
    json_decref(s.identity);
    s.identity = identity;

    json_object_set_new(s.identity, "checks_sha256", json_string(other));
    ASSERT_FAILS(sample_run(&s, folder, 1, &e), e, ERR_RECORD, "lacuna score");
    json_object_set_new(s.identity, "numerics", json_string("f32"));
    ASSERT_FAILS(sample_run(&s, folder, 1, &e), e, ERR_RECORD, "numerics: \"none\"");
    assert_null(strstr(e.text, "lacuna score"));
    json_object_set_new(s.identity, "numerics", json_string("none"));
    json_object_set_new(s.identity, "checks_sha256", json_string(s.request_sha256));

    // the request itself is another one: the resolved experiment says where
    char request[HASH_HEX_SIZE];
    memcpy(request, s.request_sha256, sizeof request);
    memcpy(s.request_sha256, other, sizeof request);
    json_t *constraint = json_array_get(json_object_get(s.resolved, "constraints"), 0);
    json_object_set_new(constraint, "value", json_string("{{place}}"));
    ASSERT_FAILS(sample_run(&s, folder, 1, &e), e, ERR_RECORD, "constraints[0].value");
    json_object_set_new(constraint, "value", json_string("{{code}}"));
    memcpy(s.request_sha256, request, sizeof request);

    assert_same_text(slurp(a, folder, "trials.jsonl"), before);
    // another build goes on and is noted
    json_object_set_new(json_object_get(s.manifest, "program"), "commit", json_string("decaf"));
    ASSERT_OK(sample_run(&s, folder, 1, &e), e);
    struct str sessions = slurp(a, folder, "sessions.jsonl");
    assert_true(str_find(sessions, STR("by another build"), 0) != STR_NONE);
    assert_true(str_find(sessions, STR("decaf"), 0) != STR_NONE);
    sample_free(&s);
}

// B51: two writers, foreign folders, a complete run.
static void test_whose_folder(void **state) {
    (void)state;
    struct sample s;
    sample_make(&s, 10, 4, false);
    struct arena *a = s.arena;
    struct err e = {0};
    const char *folder = fresh(a, "whose");
    struct record_writer *w, *second = NULL;
    bool complete;
    ASSERT_OK(sample_open(&s, folder, &w, &complete, &e), e);
    ASSERT_OK(record_put_outcome(w, &s.outcomes[0], NULL, &e), e);
    struct str before = slurp(a, folder, "trials.jsonl");
    ASSERT_FAILS(sample_open(&s, folder, &second, &complete, &e), e, ERR_RECORD, "another process");
    assert_same_text(slurp(a, folder, "trials.jsonl"), before);
    record_writer_close(w);
    ASSERT_OK(sample_run(&s, folder, 1, &e), e);
    ASSERT_OK(sample_open(&s, folder, &w, &complete, &e), e);
    assert_true(complete);

    const char *foreign = fresh(a, "foreign");
    ASSERT_OK(file_make_directory(foreign, &e), e);
    put_file(a, foreign, "thesis.tex", STR("years of work"));
    ASSERT_FAILS(sample_run(&s, foreign, 1, &e), e, ERR_RECORD, "thesis.tex");
    char **names;
    size_t count;
    ASSERT_OK(file_list(foreign, a, &names, &count, &e), e);
    assert_int_equal(count, 1);
    ASSERT_FAILS(sample_run(&s, path_join(a, foreign, "thesis.tex"), 1, &e), e, ERR_RECORD,
                 "is there and no folder");
    ASSERT_FAILS(sample_run(&s, "/proc/lacuna/run", 1, &e), e, ERR_IO, "/proc/lacuna");

    const char *empty = fresh(a, "empty");
    ASSERT_OK(file_make_directory(empty, &e), e);
    ASSERT_OK(sample_run(&s, empty, 1, &e), e);
    assert_same_file(a, folder, empty, "trials.jsonl");
    sample_free(&s);
}

// Readers keep quiet about keys that they do not know.
static void test_unknown_keys(void **state) {
    (void)state;
    struct sample s;
    sample_make(&s, 11, 1, false);
    struct arena *a = s.arena;
    struct err e = {0};
    const char *folder = fresh(a, "unknown");
    ASSERT_OK(sample_run(&s, folder, 1, &e), e);
    struct str ledger = slurp(a, folder, "trials.jsonl");
    const char *changed = arena_printf(a, "{\"later\":{\"a\":[1]},%s", ledger.p + 1);
    put_file(a, folder, "trials.jsonl", str_from(changed));
    struct record *r;
    ASSERT_OK(record_open(folder, a, &r, &e), e);
    assert_same_outcome(r->outcomes[0], &s.outcomes[0]);
    record_close(r);
    sample_free(&s);
}

int main(void) {
    log_set_level(LOG_QUIET);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_spelling),
        cmocka_unit_test(test_any_order),     cmocka_unit_test(test_torn_last_line),
        cmocka_unit_test(test_damage_inside), cmocka_unit_test(test_hostile_bytes),
        cmocka_unit_test(test_verify_finds),  cmocka_unit_test(test_verify_without_prompts),
        cmocka_unit_test(test_retries),       cmocka_unit_test(test_other_identity),
        cmocka_unit_test(test_whose_folder),  cmocka_unit_test(test_unknown_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

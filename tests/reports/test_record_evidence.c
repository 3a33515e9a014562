// evidence.jsonl keeps step with the ledger: whatever order outcomes come in, wherever a run was
// cut, and whatever somebody changed afterwards.
#include "tests/support/fast_folder.h"
#include "tests/support/sample_record.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/log.h"

#include <string.h>

#define TRIALS 7

static const char *fresh(struct arena *a) {
    static int number;
    return arena_printf(a, "%s/evidence-%d", fast_folder(), number++);
}

static struct str slurp(struct arena *a, const char *folder, const char *name) {
    return test_read(a, path_join(a, folder, name));
}

static void put_file(struct arena *a, const char *folder, const char *name, struct str text) {
    test_write(path_join(a, folder, name), text);
}

static void assert_text(struct str a, struct str b) {
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.p, b.p, a.n);
}

// Where line `number` begins; behind the last line: the end.
static size_t line_at(struct str text, int number) {
    size_t at = 0;
    for (int i = 0; i < number && at < text.n; i++) at = str_find(text, STR("\n"), at) + 1;
    return at;
}

static bool is_sound(const char *folder, const char *finding) {
    struct buf findings = {0};
    struct err e = {0};
    bool sound;
    ASSERT_OK(record_verify(folder, true, &findings, &sound, &e), e);
    if (!sound && (findings.p == NULL || strstr(findings.p, finding) == NULL))
        fail_msg("'%s' is not among the findings:\n%s", finding, findings.p);
    buf_free(&findings);
    return sound;
}

static void assert_shares(const struct record_shares *a, const struct record_shares *b) {
    for (int i = 0; i < ROWS_COUNT; i++) assert_int_equal(a->of[i], b->of[i]);
}

static void test_round_trip(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct sample s;
        struct err e = {0};
        struct record *r;
        sample_make(&s, 40 + seed, TRIALS, true);
        const char *folder = fresh(s.arena);
        ASSERT_OK(sample_run(&s, folder, seed, &e), e);
        ASSERT_OK(record_open(folder, s.arena, &r, &e), e);
        for (int i = 0; i < TRIALS; i++) {
            const struct record_evidence *v, *w = s.outcomes[i].evidence;
            ASSERT_OK(record_get_evidence(r, i, s.arena, &v, &e), e);
            assert_true((v == NULL) == (s.outcomes[i].status != STATUS_OK));
            if (v == NULL) continue;
            assert_int_equal(v->layers, w->layers);
            assert_int_equal(v->heads, w->heads);
            assert_string_equal(v->attention->constraint, w->attention->constraint);
            assert_int_equal(v->attention->prompt_tokens, w->attention->prompt_tokens);
            assert_int_equal(v->attention->reply_tokens, w->attention->reply_tokens);
            assert_shares(&v->attention->mean, &w->attention->mean);
            for (int h = 0; h < w->layers * w->heads; h++) {
                assert_shares(&v->attention->all[h], &w->attention->all[h]);
                assert_int_equal(v->attention->strongest[h].head, w->attention->strongest[h].head);
            }
        }
        record_close(r);
        sample_free(&s);
    }
}

// Cut at every byte of its last line, alone and together with the ledger: the latter is what a kill
// leaves behind, the former is damage.
static void test_cut(void **state) {
    (void)state;
    struct sample s;
    struct err e = {0};
    sample_make(&s, 50, 4, false);
    const char *folder = fresh(s.arena);
    ASSERT_OK(sample_run(&s, folder, 1, &e), e);
    struct str ledger = slurp(s.arena, folder, "trials.jsonl");
    struct str whole = slurp(s.arena, folder, "evidence.jsonl");
    struct str shorter = str_slice(ledger, 0, line_at(ledger, 3));
    struct arena *a = arena_create("test");
    for (size_t cut = line_at(whole, 3); cut <= whole.n; cut += cut + 9 < whole.n ? 7 : 1) {
        struct record *r;
        put_file(a, folder, "evidence.jsonl", str_slice(whole, 0, cut));
        if (cut < whole.n) {
            assert_int_equal(record_open(folder, a, &r, &e), -1);
            assert_int_equal(e.code, ERR_RECORD);
            assert_false(is_sound(folder, "3 of the 4 lines"));
            assert_int_equal(sample_run(&s, folder, 1, &e), -1);
        }
        put_file(a, folder, "trials.jsonl", shorter);
        ASSERT_OK(record_open(folder, a, &r, &e), e);
        assert_int_equal(r->done_count, 3);
        record_close(r);
        ASSERT_OK(sample_run(&s, folder, 1, &e), e);
        assert_text(slurp(a, folder, "trials.jsonl"), ledger);
        assert_text(slurp(a, folder, "evidence.jsonl"), whole);
        assert_true(is_sound(folder, ""));
        arena_reset(a);
    }
    arena_destroy(a);
    sample_free(&s);
}

// Evidence behind a complete ledger belongs to nothing; starting the run again sets it aside.
static void test_surplus(void **state) {
    (void)state;
    struct sample s;
    struct err e = {0};
    sample_make(&s, 51, 4, false);
    const char *folder = fresh(s.arena);
    ASSERT_OK(sample_run(&s, folder, 1, &e), e);
    struct str whole = slurp(s.arena, folder, "evidence.jsonl");
    struct buf more = {0};
    buf_add_str(&more, whole);
    buf_add_str(&more, str_slice(whole, 0, line_at(whole, 1)));
    put_file(s.arena, folder, "evidence.jsonl", buf_str(&more));
    assert_false(is_sound(folder, "belong to no line of the ledger"));
    ASSERT_OK(sample_run(&s, folder, 1, &e), e);
    assert_text(slurp(s.arena, folder, "evidence.jsonl"), whole);
    assert_true(is_sound(folder, ""));
    buf_free(&more);
    sample_free(&s);
}

// Every change of a bit within a line is refused by readers and found by verify.
static void test_damage(void **state) {
    (void)state;
    struct sample s;
    struct err e = {0};
    sample_make(&s, 52, 4, false);
    const char *folder = fresh(s.arena);
    ASSERT_OK(sample_run(&s, folder, 1, &e), e);
    struct str whole = slurp(s.arena, folder, "evidence.jsonl");
    struct arena *a = arena_create("test");
    for (size_t at = line_at(whole, 1); at < line_at(whole, 2); at += 3) {
        struct record *r;
        char *copy = arena_memdup(a, whole.p, whole.n);
        copy[at] ^= 1;
        put_file(a, folder, "evidence.jsonl", (struct str){copy, whole.n});
        assert_int_equal(record_open(folder, a, &r, &e), -1);
        assert_int_equal(e.code, ERR_RECORD);
        assert_true(strstr(e.text, "evidence.jsonl:2") || strstr(e.text, "evidence.jsonl:3"));
        assert_false(is_sound(folder, "evidence.jsonl:"));
        arena_reset(a);
    }
    arena_destroy(a);
    sample_free(&s);
}

// A file that is gone is told from one that is empty.
static void test_missing(void **state) {
    (void)state;
    struct sample s;
    struct err e = {0};
    struct record *r;
    sample_make(&s, 55, 4, false);
    const char *folder = fresh(s.arena);
    ASSERT_OK(sample_run(&s, folder, 1, &e), e);
    put_file(s.arena, folder, "evidence.jsonl", STR(""));
    ASSERT_FAILS(record_open(folder, s.arena, &r, &e), e, ERR_RECORD, "ends before the evidence");
    assert_false(is_sound(folder, "0 of the 4 lines"));
    ASSERT_OK(file_remove(path_join(s.arena, folder, "evidence.jsonl"), &e), e);
    const char *missing = "evidence.jsonl: is missing; the ledger has 4 outcomes";
    ASSERT_FAILS(record_open(folder, s.arena, &r, &e), e, ERR_RECORD, missing);
    ASSERT_FAILS(sample_run(&s, folder, 1, &e), e, ERR_RECORD, missing);
    assert_false(is_sound(folder, missing));
    sample_free(&s);
}

// No chain guards the last line, so what it must hold is looked for in it: the heads of `full`.
static void test_heads_missing(void **state) {
    (void)state;
    struct sample s;
    struct err e = {0};
    struct record *r;
    sample_make(&s, 54, 4, false);
    const char *folder = fresh(s.arena);
    ASSERT_OK(sample_run(&s, folder, 1, &e), e);
    struct str whole = slurp(s.arena, folder, "evidence.jsonl");
    size_t at = str_find(whole, STR("\"all\""), line_at(whole, 3));
    assert_true(at != STR_NONE);
    char *copy = arena_memdup(s.arena, whole.p, whole.n);
    copy[at + 1] = 'A'; // an unknown key
    put_file(s.arena, folder, "evidence.jsonl", (struct str){copy, whole.n});
    assert_int_equal(record_open(folder, s.arena, &r, &e), -1);
    assert_int_equal(e.code, ERR_RECORD);
    assert_non_null(strstr(e.text, "has not all heads"));
    assert_false(is_sound(folder, "has not all heads"));
    sample_free(&s);
}

static void test_not_watched(void **state) {
    (void)state;
    struct sample s;
    struct err e = {0};
    struct record *r;
    sample_make(&s, 53, 4, false);
    json_put(s.identity, "evidence", json_text_c("off"));
    for (int i = 0; i < 4; i++) s.outcomes[i].evidence = NULL;
    const char *folder = fresh(s.arena);
    ASSERT_OK(sample_run(&s, folder, 1, &e), e);
    assert_false(file_exists(path_join(s.arena, folder, "evidence.jsonl")));
    assert_true(is_sound(folder, ""));
    const struct record_evidence *v;
    ASSERT_OK(record_open(folder, s.arena, &r, &e), e);
    ASSERT_OK(record_get_evidence(r, 0, s.arena, &v, &e), e);
    assert_null(v);
    assert_string_equal(r->evidence_sha256, "");
    record_close(r);
    put_file(s.arena, folder, "evidence.jsonl", STR("{}\n"));
    assert_false(is_sound(folder, "nothing was watched"));
    sample_free(&s);
}

int main(void) {
    log_set_level(LOG_QUIET);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_cut),
        cmocka_unit_test(test_surplus),       cmocka_unit_test(test_damage),
        cmocka_unit_test(test_heads_missing), cmocka_unit_test(test_not_watched),
        cmocka_unit_test(test_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

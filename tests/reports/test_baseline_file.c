// Baseline files: canonical, and strict on reading whoever wrote them.
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/rng.h"
#include "reports/baseline_file.h"
#include "tests/support/compared_run.h"
#include "tests/support/fast_folder.h"

#include <stdio.h>
#include <string.h>

static double half(const struct record_trial *t) {
    (void)t;
    return 0.5;
}

static struct simulated_run run;
static struct buf text; // its baseline file
static const char *path;

static int setup(void **state) {
    (void)state;
    test_arena = arena_create("test");
    path = path_join(test_arena, fast_folder(), "base.jsonl");
    simulated_open(&run, half);
    run.x.repeats = 2;
    compared_run(&run, 3, "w");
    run.r.outcomes[1]->status = STATUS_ERROR;
    run.r.outcomes[2]->ids = NULL;        // a provider that tells none
    run.r.outcomes[3]->verdict_count = 1; // a placement that leaves the other one out
    struct baseline b;
    struct err e = {0};
    compared_side(&run, &b);
    ASSERT_OK(baseline_write(&b, &text, &e), e);
    baseline_close(&b);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    buf_free(&text);
    simulated_close(&run);
    arena_destroy(test_arena);
    return 0;
}

static int read_text(struct str content, struct baseline *b, struct err *e) {
    test_write(path, content);
    return baseline_read(path, test_arena, b, e);
}

static void reads_what_it_wrote(void **state) {
    (void)state;
    struct baseline b, side;
    struct err e = {0};
    ASSERT_OK(read_text(buf_str(&text), &b, &e), e);
    compared_side(&run, &side);
    assert_int_equal(b.trial_count, side.trial_count);
    assert_int_equal(b.constraint_count, 2);
    for (int64_t i = 0; i < b.trial_count; i++) {
        const struct baseline_trial *l = &b.trials[i], *r = &side.trials[i];
        assert_string_equal(l->key, r->key);
        assert_string_equal(l->cell, r->cell);
        assert_string_equal(l->prompt, r->prompt);
        assert_string_equal(l->reply, r->reply);
        assert_string_equal(l->ids, r->ids);
        assert_int_equal(l->status, r->status);
        assert_int_equal(l->length, r->length);
        assert_int_equal(l->repeat, r->repeat);
        assert_int_equal(l->placed, r->placed);
        if (r->verdicts != NULL) assert_string_equal(l->verdicts, r->verdicts);
        if (r->verdicts == NULL) assert_null(l->verdicts);
    }
    struct buf again = {0};
    ASSERT_OK(baseline_write(&b, &again, &e), e);
    assert_true(str_equal(buf_str(&again), buf_str(&text)));
    buf_free(&again);
    baseline_close(&b);
    baseline_close(&side);
}

static void only_whole_runs(void **state) {
    (void)state;
    struct baseline b;
    struct buf out = {0};
    struct err e = {0};
    compared_side(&run, &b);
    run.r.partial = true;
    assert_int_equal(baseline_write(&b, &out, &e), -1);
    assert_non_null(strstr(e.text, "is partial"));
    run.r.partial = false;
    run.r.done_count--;
    assert_int_equal(baseline_write(&b, &out, &e), -1);
    assert_non_null(strstr(e.text, "is not finished"));
    run.r.done_count++;
    run.r.torn = true;
    assert_int_equal(baseline_write(&b, &out, &e), -1);
    run.r.torn = false;
    baseline_close(&b);
    buf_free(&out);
}

// Whatever byte is another one, and wherever the file is cut.
static void damage_is_found(void **state) {
    (void)state;
    struct rng r = rng_open(11, "test", "damage");
    struct buf copy = {0};
    for (int i = 0; i < 600; i++) {
        buf_clear(&copy);
        size_t at = (size_t)rng_below(&r, text.n);
        buf_add(&copy, text.p, i % 2 == 0 ? text.n : at);
        if (i % 2 == 0) copy.p[at] = (char)(copy.p[at] ^ (char)(1 + rng_below(&r, 255)));
        struct baseline b;
        struct err e = {0};
        assert_int_equal(read_text(buf_str(&copy), &b, &e), -1);
        assert_non_null(strstr(e.text, "base.jsonl"));
    }
    buf_free(&copy);
}

// As a version control system may check it out.
static void carriage_returns_are_named(void **state) {
    (void)state;
    struct buf copy = {0};
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\n') buf_add_char(&copy, '\r');
        buf_add_char(&copy, text.p[i]);
    }
    struct baseline b;
    struct err e = {0};
    assert_int_equal(read_text(buf_str(&copy), &b, &e), -1);
    assert_non_null(strstr(e.text, "end with carriage returns"));
    buf_free(&copy);
}

// The last line's hash made anew: somebody who wants to.
static void seal(struct buf *b) {
    size_t at = b->n - 1;
    while (at > 0 && b->p[at - 1] != '\n') at--;
    char hex[HASH_HEX_SIZE];
    hash_bytes(b->p, at, hex);
    b->n = at;
    buf_printf(b, "{\"sha256\":\"%s\"}\n", hex);
}

static void forge(const char *from, const char *to, const char *complaint) {
    size_t at = str_find(buf_str(&text), str_from(from), 0);
    if (at == STR_NONE) fail_msg("not there: %s", from);
    struct buf b = {0};
    buf_add(&b, text.p, at);
    buf_add_c(&b, to);
    buf_add(&b, text.p + at + strlen(from), text.n - at - strlen(from));
    seal(&b);
    struct baseline side;
    struct err e = {0};
    if (read_text(buf_str(&b), &side, &e) == 0) fail_msg("%s -> %s was read", from, to);
    if (strstr(e.text, complaint) == NULL) fail_msg("no '%s' in: %s", complaint, e.text);
    buf_free(&b);
}

static void forgeries_are_refused(void **state) {
    (void)state;
    forge("\"lacuna_baseline\":1", "\"lacuna_baseline\":2", "format 2");
    forge("{\"lacuna_baseline\"", "{\"other\":1,\"lacuna_baseline\"", "not spelled");
    forge("\"experiment\":\"simulated\"", "\"experiment\": \"simulated\"", "not spelled");
    forge("\"order\",\"price\"", "\"order\",\"order\"", "twice");
    forge("\"order\",\"price\"", "\"order\",7", "is no name");
    forge("\"trials\":", "\"trials\":-", "trials");
    forge("\"trials\":", "\"trials\":9", "trials");
    forge("\"identity\":{", "\"identity\":{\"format\":1.5,", "");
    forge("\"repeat\":1", "\"repeat\":1000000000", "\"repeat\" is 1000000000");
    forge("\"repeat\":1", "\"repeat\":-1", "\"repeat\" is -1");
    forge("\"repeat\":1", "\"repeat\":1e0", "integer");
    forge("\"length\":512", "\"length\":-512", "\"length\" is -512");
    forge("\"verdicts\":\"", "\"verdicts\":\"m", "letters");
    forge("\"verdicts\":\"om", "\"verdicts\":\"xm", "letters");
    forge("\"finish\":\"stop\"", "\"finish\":\"stop\",\"more\":1", "not spelled");
    forge("\"finish\":\"stop\"", "\"finish\":7", "finish");
    forge("\"status\":\"error\"", "\"status\":\"ok\"", "status");
    forge("{\"key\":\"toy/", "{\"key\":\"toy2/", "no model");
    forge("{\"key\":\"toy/", "{\"key\":\"", "no model");
    forge("@middle/0/0\"", "@start/0/0\"", "twice");
    forge("\"prompt\":\"", "\"prompt\":\"Z", "32 hex digits");
    forge("\"ids\":null", "\"ids\":\"\"", "32 hex digits");
}

// Random edits under a true hash: refused, or read as what they spell.
static void random_forgeries(void **state) {
    (void)state;
    struct rng r = rng_open(12, "test", "forgeries");
    int kept = 0;
    for (int i = 0; i < 1500; i++) {
        struct buf b = {0}, again = {0};
        buf_add(&b, text.p, text.n);
        size_t at = (size_t)rng_below(&r, text.n - 100);
        static const char signs[] = "{}[]\",:0123456789abcdefmovu/-\\\n u";
        b.p[at] = signs[rng_below(&r, sizeof signs - 1)];
        seal(&b);
        struct baseline side;
        struct err e = {0};
        if (read_text(buf_str(&b), &side, &e) == 0) {
            ASSERT_OK(baseline_write(&side, &again, &e), e);
            assert_true(str_equal(buf_str(&again), buf_str(&b)));
            baseline_close(&side);
            kept++;
        }
        buf_free(&b);
        buf_free(&again);
    }
    assert_true(kept > 0 && kept < 1500);
}

static void other_files(void **state) {
    (void)state;
    static const char *const texts[] = {
        "", "\n", "{}", "{}\n", "lacuna: 1\n", "[]\n[]\n", "{\"sha256\":\"\"}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct baseline b;
        struct err e = {0};
        assert_int_equal(read_text(str_from(texts[i]), &b, &e), -1);
        assert_true(e.code == ERR_INPUT || e.code == ERR_RECORD);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_it_wrote),
        cmocka_unit_test(only_whole_runs),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(forgeries_are_refused),
        cmocka_unit_test(carriage_returns_are_named),
        cmocka_unit_test(random_forgeries),
        cmocka_unit_test(other_files),
    };
    return cmocka_run_group_tests_name("baseline_file", tests, setup, teardown);
}

// The run loop on the scripted fixture: order, errors, equal trials, hanging, resuming.
#include "tests/support/fast_folder.h"
#include "tests/support/sample_run.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/log.h"
#include "evals/run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER                                                                                     \
    "{\"reply\": \"The order number is {{0}}, the pickup day {{1}}.\", \"copy_after\": "           \
    "[\"The order number is \", \"The pickup day is \"]}"

static const char *fresh(struct arena *a, const char *name) {
    static int number;
    return arena_printf(a, "%s/%s-%d", fast_folder(), name, number++);
}

static struct record *open_record(struct arena *a, const char *folder) {
    struct record *r;
    struct err e = {0};
    ASSERT_OK(record_open(folder, a, &r, &e), e);
    return r;
}

static void assert_sound(const char *folder) {
    struct buf findings = {0};
    struct err e = {0};
    bool sound;
    ASSERT_OK(record_verify(folder, true, &findings, &sound, &e), e);
    if (!sound) fail_msg("%s", findings.p);
    buf_free(&findings);
}

static void run_ok(const char *experiment, const char *folder, struct run_result *result) {
    struct err e = {0};
    ASSERT_OK(sample_run_report(experiment, folder, false, result, &e), e);
}

// Replies out of order give the same record as replies in order; a complete run is not repeated.
static void test_order_does_not_matter(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    const char *first = sample_experiment(a, fast_folder(), "x", 3, "\"in_flight\": 1", ANSWER);
    const char *left = fresh(a, "first"), *right = fresh(a, "shuffled");
    struct run_result result;
    run_ok(first, left, &result);
    assert_int_equal(result.done, result.planned);
    assert_false(result.was_complete);
    struct record *r = open_record(a, left);
    assert_int_equal(r->done_count, result.planned);
    int met = 0;
    for (int64_t i = 0; i < r->trial_count; i++) {
        const struct record_outcome *o = r->outcomes[i];
        assert_int_equal(o->status, STATUS_OK);
        assert_int_equal(o->verdict_count, 2);
        bool absent = strcmp(r->trials[i].arm, "absent") == 0;
        assert_true((o->verdicts[0].verdict == VERDICT_MET) != absent);
        met += o->verdicts[0].verdict == VERDICT_MET;
    }
    assert_true(met > 0);
    record_close(r);
    assert_sound(left);
    // only the ledger can be compared: the rules file, and so the identity, is another one
    const char *second = sample_experiment(a, fast_folder(), "y", 3,
                                           "\"in_flight\": 7, \"order\": \"shuffled\"", ANSWER);
    run_ok(second, right, &result);
    struct record *l = open_record(a, left), *s = open_record(a, right);
    assert_int_equal(l->trial_count, s->trial_count);
    for (int64_t i = 0; i < l->trial_count; i++) {
        assert_string_equal(l->trials[i].key, s->trials[i].key);
        assert_true(str_equal(l->outcomes[i]->reply, s->outcomes[i]->reply));
    }
    record_close(l);
    record_close(s);
    run_ok(second, right, &result);
    assert_true(result.was_complete);
    arena_destroy(a);
}

// Errors are outcomes: the run goes on, and `retry_errors` tries them again when the cause is gone.
static void test_errors_are_recorded(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    const char *flag = path_join(a, fast_folder(), "broken");
    FILE *f = fopen(flag, "w");
    assert_non_null(f);
    fclose(f);
    const char *experiment =
        sample_experiment(a, fast_folder(), "e", 3, "\"in_flight\": 3",
                          "{\"key\": \"@middle/\", \"while_file\": \"broken\", \"error\": \"no "
                          "<b>luck</b>\"}," ANSWER);
    const char *folder = fresh(a, "errors");
    struct run_result result;
    struct err e = {0};
    run_ok(experiment, folder, &result);
    assert_int_equal(result.done, result.planned);
    struct record *r = open_record(a, folder);
    int errors = 0;
    for (int64_t i = 0; i < r->trial_count; i++) {
        bool middle = strstr(r->trials[i].key, "@middle/") != NULL;
        assert_int_equal(r->outcomes[i]->status, middle ? STATUS_ERROR : STATUS_OK);
        if (middle) assert_string_equal(r->outcomes[i]->reason_text, "no <b>luck</b>");
        errors += middle;
    }
    assert_true(errors > 0);
    record_close(r);
    assert_sound(folder);
    assert_int_equal(unlink(flag), 0);
    run_ok(experiment, folder, &result); // without being asked nothing is tried again
    assert_true(result.was_complete);
    ASSERT_OK(sample_run_report(experiment, folder, true, &result, &e), e);
    r = open_record(a, folder);
    for (int64_t i = 0; i < r->trial_count; i++)
        assert_int_equal(r->outcomes[i]->status, STATUS_OK);
    assert_int_equal(r->attempt_count, r->trial_count + errors);
    record_close(r);
    assert_sound(folder);
    arena_destroy(a);
}

static void test_cut_and_odd_replies(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    const char *experiment = sample_experiment(
        a, fast_folder(), "o", 3, "\"in_flight\": 2",
        "{\"key\": \"@start/\", \"reply_base64\": \"/wBhgA==\"},"
        "{\"key\": \"@end/\", \"reply\": \"a a a a a a a a a a a a a a a a a a a a a a a a a a a a "
        "a a a a a a a a a a a a a a a a a a a a a a a a a\"}," ANSWER);
    const char *folder = fresh(a, "odd");
    struct run_result result;
    run_ok(experiment, folder, &result);
    struct record *r = open_record(a, folder);
    for (int64_t i = 0; i < r->trial_count; i++) {
        const struct record_outcome *o = r->outcomes[i];
        if (strstr(r->trials[i].key, "@start/") != NULL) {
            assert_int_equal(o->reply.n, 4);
            assert_memory_equal(o->reply.p, "\xff\0a\x80", 4);
        } else if (strstr(r->trials[i].key, "@end/") != NULL) {
            assert_int_equal(o->tokens, 40);
            assert_int_equal(o->id_count, 40);
            assert_string_equal(o->finish, "length");
        }
    }
    record_close(r);
    assert_sound(folder);
    arena_destroy(a);
}

static void on_alarm(int number) {
    (void)number;
    run_interrupt();
}

// Ctrl-C while a reply hangs ends the run at once; the same command goes on from there.
static void test_interrupt(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    const char *flag = path_join(a, fast_folder(), "stuck");
    FILE *f = fopen(flag, "w");
    assert_non_null(f);
    fclose(f);
    const char *experiment = sample_experiment(
        a, fast_folder(), "h", 3, "\"in_flight\": 4",
        "{\"key\": \"@middle/1/\", \"while_file\": \"stuck\", \"hang_ms\": 600000}," ANSWER);
    const char *folder = fresh(a, "hang"), *whole = fresh(a, "whole");
    struct run_result result;
    signal(SIGALRM, on_alarm);
    struct itimerval soon = {.it_value = {.tv_usec = 300000}};
    assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
    run_ok(experiment, folder, &result);
    assert_true(result.interrupted);
    assert_true(result.done < result.planned && result.done > 0);
    assert_int_equal(unlink(flag), 0);
    run_ok(experiment, folder, &result);
    assert_false(result.interrupted);
    assert_int_equal(result.done, result.planned);
    run_ok(experiment, whole, &result);
    assert_equal_runs(whole, folder);
    assert_sound(folder);
    arena_destroy(a);
}

static size_t count_in_file(struct arena *a, const char *folder, const char *name,
                            const char *what) {
    return str_count(test_read(a, path_join(a, folder, name)), str_from(what));
}

// Equal ids and equal sampling stream: computed once, a line for each, also across a resume.
static void test_equal_trials(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct err e = {0};
    sample_experiment(a, fast_folder(), "g", 3, "\"in_flight\": 2, \"order\": \"shuffled\"",
                      "{\"reply\": \"{{sample}} {{0}}\", \"copy_after\": [\"number is \"]}");
    const char *experiment = sample_equal_experiment(a, fast_folder(), "g");
    const char *folder = fresh(a, "equal");
    struct run_result result;
    run_ok(experiment, folder, &result);
    assert_int_equal(result.planned, 18);
    struct record *r = open_record(a, folder);
    int pairs = 0;
    for (int64_t i = 0; i < r->trial_count; i++)
        for (int64_t k = i + 1; k < r->trial_count; k++) {
            const struct record_trial *t = &r->trials[i], *u = &r->trials[k];
            if (strcmp(t->ids_sha256, u->ids_sha256) != 0) continue;
            bool same = strcmp(t->seed, u->seed) == 0;
            assert_int_equal(str_equal(r->outcomes[i]->reply, r->outcomes[k]->reply), same);
            pairs += same;
        }
    record_close(r);
    assert_int_equal(pairs, 6);
    assert_int_equal(count_in_file(a, folder, "timings.jsonl", "\"same_as\":\""), 6);
    // A ledger cut between the two of a pair: the second takes the first one's recorded reply.
    for (int64_t keep = 1; keep < 18; keep++) {
        struct str ledger;
        ASSERT_OK(file_read(path_join(a, folder, "trials.jsonl"), 1 << 24, a, &ledger, &e), e);
        size_t end = 0;
        for (int64_t i = 0; i < keep; i++) end = str_find(ledger, STR("\n"), end) + 1;
        const char *path = path_join(a, folder, "trials.jsonl");
        ASSERT_OK(file_write_atomic(path, str_slice(ledger, 0, end), &e), e);
        run_ok(experiment, folder, &result);
        assert_int_equal(result.done, 18);
        struct str again;
        ASSERT_OK(file_read(path, 1 << 24, a, &again, &e), e);
        assert_true(str_equal(again, ledger));
    }
    assert_sound(folder);
    arena_destroy(a);
}

// B49: what is another model, template, pattern or setting is not taken for the same run.
static void test_other_runs_are_refused(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    struct err e = {0};
    struct run_result result;
    const char *experiment =
        sample_experiment(a, fast_folder(), "z", 1, "\"in_flight\": 1", ANSWER);
    const char *folder = fresh(a, "refused");
    run_ok(experiment, folder, &result);
    struct str before;
    ASSERT_OK(file_read(path_join(a, folder, "trials.jsonl"), 1 << 24, a, &before, &e), e);
    // the same names, another model
    sample_experiment(a, fast_folder(), "z", 1, "\"in_flight\": 2", ANSWER);
    ASSERT_FAILS(sample_run_report(experiment, folder, false, &result, &e), e, ERR_RECORD,
                 "models[0].sha256");
    assert_null(strstr(e.text, "lacuna score"));
    sample_experiment(a, fast_folder(), "z", 1, "\"in_flight\": 1", ANSWER);
    // one thing changed in the experiment
    static const char *const changes[][3] = {
        {"seed: 11", "seed: 12", "seed: 11 in the record, 12 asked for"},
        {"State the order number", "Name the order number", "prompt.messages[0].text"},
        {"max_tokens: 40", "max_tokens: 41", "generation.max_tokens"},
        {"kind: prose", "kind: noise", "prompt.filler.kind"},
        {"value: \"{{code}}\"", "met: \"{{code}}\"", "lacuna score"},
        {"repeats: 1", "repeats: 1\ntolerate: {unscored: 7%}", "lacuna score"},
    };
    struct str text;
    ASSERT_OK(file_read(experiment, 1 << 20, a, &text, &e), e);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        size_t at = str_find(text, str_from(changes[i][0]), 0);
        assert_true(at != STR_NONE);
        struct buf changed = {0};
        buf_add_str(&changed, str_slice(text, 0, at));
        buf_add_c(&changed, changes[i][1]);
        buf_add_str(&changed, str_slice(text, at + strlen(changes[i][0]), text.n));
        ASSERT_OK(file_write_atomic(experiment, buf_str(&changed), &e), e);
        buf_free(&changed);
        ASSERT_FAILS(sample_run_report(experiment, folder, false, &result, &e), e, ERR_RECORD,
                     changes[i][2]);
    }
    ASSERT_OK(file_write_atomic(experiment, text, &e), e);
    struct str after;
    ASSERT_OK(file_read(path_join(a, folder, "trials.jsonl"), 1 << 24, a, &after, &e), e);
    assert_true(str_equal(before, after));
    run_ok(experiment, folder, &result);
    assert_true(result.was_complete);
    arena_destroy(a);
}

// B51: twelve at once into one folder: one runs, the others say so and change nothing; into folders
// of their own: all are whole and equal. Then two resumes at once.
static void test_many_at_once(void **state) {
    (void)state;
    struct arena *a = arena_create("test");
    const char *experiment = sample_experiment(
        a, fast_folder(), "m", 3, "\"in_flight\": 4, \"order\": \"shuffled\"",
        "{\"delay_ms\": 10, \"reply\": \"It is {{0}}.\", \"copy_after\": [\"number is \"]}");
    const char *shared = fresh(a, "shared"), *own[12];
    pid_t children[24];
    for (int i = 0; i < 24; i++) {
        if (i < 12) own[i] = fresh(a, "own");
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            assert_non_null(freopen("/dev/null", "w", stderr));
            _exit(sample_run_child(experiment, i < 12 ? own[i] : shared));
        }
    }
    int good = 0;
    for (int i = 0; i < 24; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        if (i < 12) assert_int_equal(WEXITSTATUS(status), 0);
        if (i >= 12) good += WEXITSTATUS(status) == 0;
    }
    assert_true(good >= 1);
    for (int i = 0; i < 12; i++) assert_equal_runs(own[0], own[i]);
    assert_equal_runs(own[0], shared);
    assert_sound(shared);
    arena_destroy(a);
}

int main(void) {
    log_set_level(LOG_QUIET);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_does_not_matter), cmocka_unit_test(test_errors_are_recorded),
        cmocka_unit_test(test_cut_and_odd_replies),   cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_equal_trials),          cmocka_unit_test(test_other_runs_are_refused),
        cmocka_unit_test(test_many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

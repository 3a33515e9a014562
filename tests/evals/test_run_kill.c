// Runs that are killed: at every write, sync and rename, on a full disk, and at random moments.
// After resuming, identity, plan, inputs, ledger and reports equal those of a run that nobody
// disturbed.
#include "tests/support/fast_folder.h"
#include "tests/support/sample_run.h"
#include "tests/support/support.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/rng.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLED_AT_POINT 137

// Instrumented processes start slowly: they take every fifth point and fewer kills, the others all.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STRIDE = 5, KILLS_SCRIPT = 20, KILLS_LOCAL = 10 };
#else
enum { STRIDE = 1, KILLS_SCRIPT = 120, KILLS_LOCAL = 40 };
#endif

static const char *const rules =
    "{\"reply\": \"Order {{0}}, {{1}}.\", \"copy_after\": [\"The order "
    "number is \", \"The pickup day is \"]}";

struct bench {
    struct arena *arena;
    const char *experiment, *whole; // a run that nobody disturbed
    int64_t trials;
};

static const char *fresh(struct arena *a) {
    static int number;
    return arena_printf(a, "%s/run-%d", fast_folder(), number++);
}

static const char *points_path(void) {
    static char path[128];
    snprintf(path, sizeof path, "%s/points", fast_folder());
    return path;
}

// How many points the last run that came to its end has passed.
static int64_t points_passed(void) {
    long long n = 0;
    FILE *f = fopen(points_path(), "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lld", &n), 1);
    fclose(f);
    return n;
}

// Every run happens in a child, so that threads and locks of one never meet those of another.
static int run_child(const char *experiment, const char *folder, int64_t at,
                     enum file_fault fault) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(9);
        if (at > 0) file_fail_at(at, fault);
        int code = sample_run_child(experiment, folder);
        FILE *points = fopen(points_path(), "w");
        if (points == NULL || fprintf(points, "%lld", (long long)file_fail_points_passed()) < 0)
            _exit(9);
        fclose(points);
        _exit(code);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void open_bench(struct bench *b, const char *experiment) {
    b->experiment = experiment;
    b->whole = fresh(b->arena);
    assert_int_equal(run_child(experiment, b->whole, 0, FILE_FAULT_EXIT), 0);
    struct record *r;
    struct err e = {0};
    ASSERT_OK(record_open(b->whole, b->arena, &r, &e), e);
    b->trials = r->trial_count;
    assert_int_equal(r->done_count, b->trials);
    record_close(r);
}

static void finish(const struct bench *b, const char *folder) {
    assert_int_equal(run_child(b->experiment, folder, 0, FILE_FAULT_EXIT), 0);
    assert_equal_runs(b->whole, folder);
}

static void kill_at_points(const struct bench *b, enum file_fault fault, int64_t first,
                           int64_t last, int64_t stride) {
    for (int64_t at = first; at <= last; at += stride) {
        const char *folder = fresh(b->arena);
        assert_int_equal(run_child(b->experiment, folder, at, fault), KILLED_AT_POINT);
        finish(b, folder);
        fast_folder_drop(folder);
    }
}

// All points of a run that begins anew, one kill each.
static void test_every_point(void **state) {
    (void)state;
    static const enum file_fault faults[] = {FILE_FAULT_EXIT, FILE_FAULT_EXIT_HALF,
                                             FILE_FAULT_EXIT_BEHIND};
    struct bench b = {.arena = arena_create("test")};
    open_bench(&b, sample_experiment(b.arena, fast_folder(), "p", 1,
                                     "\"in_flight\": 3, \"order\": \"shuffled\"", rules));
    // planning, beginning, at least two a trial, four reports
    const int64_t points = points_passed();
    assert_true(points > 20 + 2 * b.trials);
    for (int kind = 0; kind < 3; kind++) kill_at_points(&b, faults[kind], 1, points, STRIDE);
    arena_destroy(b.arena);
}

// The local engine writes evidence beside the ledger: at least four points a trial.
static void test_points_between_evidence_and_ledger(void **state) {
    (void)state;
    struct bench b = {.arena = arena_create("test")};
    open_bench(&b, sample_local_experiment(b.arena, fast_folder(), "e", 1));
    const int64_t points = points_passed();
    assert_true(points > 20 + 4 * b.trials);
    for (int first = 0; first < 2; first++)
        kill_at_points(&b, first == 0 ? FILE_FAULT_EXIT_HALF : FILE_FAULT_EXIT_BEHIND, 20 + first,
                       points, 3 * STRIDE);
    arena_destroy(b.arena);
}

// After a first kill at every seventh point the resume is killed at every fourth of its own points,
// each time at others, so that all of them have their turn.
static void test_every_point_of_a_resume(void **state) {
    (void)state;
    struct bench b = {.arena = arena_create("test")};
    open_bench(&b, sample_experiment(b.arena, fast_folder(), "q", 1,
                                     "\"in_flight\": 3, \"order\": \"shuffled\"", rules));
    const int64_t points = points_passed();
    int64_t killed_twice = 0;
    for (int64_t first = 5; first <= points; first += 7 * STRIDE) {
        bool more = true; // a point whose action fails by itself (the folder exists) kills nobody
        for (int64_t second = 1 + first % 4; more; second += 4 * STRIDE) {
            const char *folder = fresh(b.arena);
            int code = run_child(b.experiment, folder, first, FILE_FAULT_EXIT_HALF);
            assert_int_equal(code, KILLED_AT_POINT);
            code = run_child(b.experiment, folder, second, FILE_FAULT_EXIT_HALF);
            killed_twice += code != 0;
            more = code != 0 || second < points_passed();
            finish(&b, folder);
            fast_folder_drop(folder);
        }
    }
    assert_true(killed_twice > 150 / (STRIDE * STRIDE));
    arena_destroy(b.arena);
}

static void assert_prefix(struct arena *a, const char *whole, const char *folder) {
    struct str all, some;
    struct err e = {0};
    const char *path = path_join(a, folder, "trials.jsonl");
    if (!file_exists(path)) return;
    ASSERT_OK(file_read(path_join(a, whole, "trials.jsonl"), (size_t)1 << 30, a, &all, &e), e);
    ASSERT_OK(file_read(path, (size_t)1 << 30, a, &some, &e), e);
    assert_true(str_starts(all, some));
}

// The disk is full once, at each point: the message names a file of the run, and nothing is lost.
static void test_full_disk(void **state) {
    (void)state;
    struct bench b = {.arena = arena_create("test")};
    open_bench(&b, sample_experiment(b.arena, fast_folder(), "d", 1,
                                     "\"in_flight\": 3, \"order\": \"shuffled\"", rules));
    const int64_t points = points_passed();
    for (int64_t at = 1; at <= points; at += STRIDE) {
        const char *folder = fresh(b.arena);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct run_result result;
            struct err e = {0};
            if (freopen("/dev/null", "w", stderr) == NULL) _exit(9);
            file_fail_at(at, FILE_FAULT_NO_SPACE);
            if (sample_run_report(b.experiment, folder, false, &result, &e) == 0) _exit(0);
            bool named = strstr(e.text, fast_folder()) != NULL;
            _exit(e.code == ERR_IO && named && strstr(e.text, "No space") != NULL ? 1 : 2);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) != 1)
            fail_msg("point %lld: code %d, no message that names the file", (long long)at,
                     WEXITSTATUS(status));
        assert_prefix(b.arena, b.whole, folder);
        finish(&b, folder);
        fast_folder_drop(folder);
    }
    arena_destroy(b.arena);
}

// ---- random moments ----------------------------------------------------------------------------

static int64_t count_lines(struct arena *a, const char *folder) {
    struct file_map map;
    struct err e = {0};
    if (file_map_open(path_join(a, folder, "trials.jsonl"), &map, &e) != 0) return 0;
    struct str text = {(const char *)map.p, map.bytes};
    int64_t lines = text.n == 0 ? 0 : (int64_t)str_count(text, STR("\n"));
    file_map_close(&map);
    return lines;
}

// Starts or resumes the run and kills it `wait_us` after a first ledger line was seen. True when
// the kill came between the first and the last line; *ended: the run ended before.
static bool kill_once(const struct bench *b, const char *folder, useconds_t wait_us, bool *ended) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(9);
        _exit(sample_run_child(b->experiment, folder));
    }
    struct arena *a = arena_create("test");
    int status = 0;
    pid_t gone = 0;
    while (count_lines(a, folder) == 0 && (gone = waitpid(child, &status, WNOHANG)) == 0)
        usleep(200);
    usleep(wait_us);
    if (gone == 0) {
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
    }
    *ended = WIFEXITED(status);
    if (*ended) assert_int_equal(WEXITSTATUS(status), 0);
    int64_t lines = count_lines(a, folder);
    arena_destroy(a);
    return !*ended && lines >= 1 && lines < b->trials;
}

// Kills the same run again and again until it ends: later kills come during a resume.
static void kill_many(const struct bench *b, int wanted, useconds_t longest_us) {
    struct rng r = rng_open(4, "test", "kills");
    int kills = 0, in_resume = 0;
    while (kills < wanted) {
        const char *folder = fresh(b->arena);
        bool ended = false;
        for (int round = 0; !ended && round < 6; round++) {
            bool between = kill_once(b, folder, (useconds_t)rng_below(&r, longest_us), &ended);
            kills += between;
            in_resume += between && round > 0;
        }
        finish(b, folder);
        fast_folder_drop(folder);
    }
    assert_true(in_resume > wanted / 20);
}

static void test_random_moments(void **state) {
    (void)state;
    struct bench b = {.arena = arena_create("test")};
    const char *slow = "{\"reply\": \"Order {{0}}.\", \"copy_after\": [\"The order number is \"], "
                       "\"delay_ms\": 1}";
    open_bench(&b, sample_experiment(b.arena, fast_folder(), "r", 3,
                                     "\"in_flight\": 4, \"order\": \"shuffled\"", slow));
    kill_many(&b, KILLS_SCRIPT, 30000);
    arena_destroy(b.arena);
}

// The same with the local engine: caches, shared prefixes and batches begin anew in each process.
static void test_random_moments_local(void **state) {
    (void)state;
    struct bench b = {.arena = arena_create("test")};
    open_bench(&b, sample_local_experiment(b.arena, fast_folder(), "l", 3));
    kill_many(&b, KILLS_LOCAL, 100000);
    arena_destroy(b.arena);
}

int main(void) {
    log_set_level(LOG_QUIET);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_point),
        cmocka_unit_test(test_points_between_evidence_and_ledger),
        cmocka_unit_test(test_every_point_of_a_resume),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_random_moments),
        cmocka_unit_test(test_random_moments_local),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

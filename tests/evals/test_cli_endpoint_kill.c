// Runs on a server that are killed at random moments: nothing that was recorded is asked for again,
// every trial is there once, and the record is that of a run which nobody disturbed. The
// environment may ask for more kills than a test suite has time for: LACUNA_KILLS=200.
#include "tests/support/fast_folder.h"
#include "tests/support/sample_run.h"
#include "tests/support/served_model.h"
#include "tests/support/support.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/rng.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIALS = 90, IN_FLIGHT = 8, KILLS = 40 };

static pid_t begin(const char *experiment, const char *folder) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execl(LACUNA_BINARY_DIR "/lacuna", "lacuna", "run", experiment, "-o", folder, (char *)NULL);
    _exit(9);
}

static void whole_run(const char *experiment, const char *folder) {
    int status;
    pid_t child = begin(experiment, folder);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Does this file hold an outcome that is not in the ledger yet?
static bool waits(const struct record *r, const char *path) {
    struct err e = {0};
    json_t *line;
    if (!str_ends(str_from(path), STR(".json"))) return false; // was being written
    ASSERT_OK(json_read_file(path, 1 << 20, &line, &e), e);
    json_int_t trial = json_integer_value(json_object_get(line, "trial"));
    json_decref(line);
    return r->outcomes[trial] == NULL;
}

// Outcomes on the disk: in the ledger, and those that wait for their turn.
static int64_t recorded(const char *folder) {
    struct err e = {0};
    struct record *r;
    const char *pending = path_join(test_arena, folder, "pending");
    size_t count = 0;
    char **names;
    if (!file_exists(path_join(test_arena, folder, "identity.json")) || !file_exists(pending))
        return 0;
    ASSERT_OK(record_open(folder, test_arena, &r, &e), e);
    ASSERT_OK(file_list(pending, test_arena, &names, &count, &e), e);
    int64_t done = r->done_count;
    for (size_t i = 0; i < count; i++) done += waits(r, path_join(test_arena, pending, names[i]));
    record_close(r);
    return done;
}

static void nothing_is_asked_for_twice(void **state) {
    (void)state;
    struct served_model m = {.shuffled = true};
    served_model_open(&m);
    const char *experiment =
        served_experiment(test_arena, fast_folder(), "k", &m, 10, "in_flight: 8");
    const char *whole = arena_printf(test_arena, "%s/whole", fast_folder());
    whole_run(experiment, whole);
    assert_int_equal(http_server_requests(m.server), TRIALS);
    struct rng draw = rng_open(11, "test", "kills");
    const char *wanted = getenv("LACUNA_KILLS");
    const int kills_wanted = wanted != NULL ? (int)strtol(wanted, NULL, 10) : KILLS;
    int kills = 0, while_asking = 0, run = 0;
    int64_t lost = 0;
    for (; kills < kills_wanted; run++) {
        const char *folder = arena_printf(test_arena, "%s/run-%d", fast_folder(), run);
        for (int64_t done = 0; done < TRIALS && kills < kills_wanted;) {
            int before = http_server_requests(m.server), status;
            pid_t child = begin(experiment, folder);
            usleep((useconds_t)rng_below(&draw, 250000));
            kill(child, SIGKILL);
            assert_int_equal(waitpid(child, &status, 0), child);
            kills += WIFSIGNALED(status);
            http_server_settle(m.server);
            int64_t now = recorded(folder), asked = http_server_requests(m.server) - before;
            assert_in_range(now, done, TRIALS);
            assert_in_range(asked, now - done, TRIALS - done); // those in flight were lost
            assert_true(asked - (now - done) <= IN_FLIGHT);
            while_asking += WIFSIGNALED(status) && asked > 0 && now < TRIALS;
            lost += asked - (now - done);
            done = now;
        }
        int before = http_server_requests(m.server);
        int64_t done = recorded(folder);
        whole_run(experiment, folder);
        assert_int_equal(http_server_requests(m.server) - before, TRIALS - done);
        assert_equal_runs(whole, folder);
        fast_folder_drop(folder);
    }
    print_message("%d kills, %d of them while replies were awaited, in %d runs of %d trials; %lld "
                  "replies were lost in flight\n",
                  kills, while_asking, run, TRIALS, (long long)lost);
    served_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_asked_for_twice, test_arena_open,
                                        test_arena_close),
    };
    return cmocka_run_group_tests_name("cli_endpoint_kill", tests, NULL, NULL);
}

// A team calls each thread once, whoever slept before, and its meetings hold every thread back.
#include "kernels/cpu/team.h"
#include "tests/support/support.h"

#include <string.h>
#include <unistd.h>

enum { MOST = 24, ITEMS = 1000 };

struct tally {
    int n;
    int calls[MOST];      // by thread; not atomic: each thread has its own
    int taken[ITEMS];     // by item of its part
    int round[MOST];      // of meetings
    _Atomic uint32_t low; // of all that was reported
    atomic_bool early;    // somebody passed a meeting before all had come
};

static void count(void *call, int thread, int n) {
    struct tally *t = call;
    uint32_t from, to;
    if (n != t->n) return; // then calls stays 0
    t->calls[thread]++;
    team_part(ITEMS, thread, n, &from, &to);
    for (uint32_t i = from; i < to; i++) t->taken[i]++;
    team_report(&t->low, 1000u - (uint32_t)thread);
}

static void assert_counted(struct team *team, int n, int calls) {
    struct tally t = {.n = n, .low = UINT32_MAX};
    for (int i = 0; i < calls; i++) team_run(team, n, count, &t);
    for (int i = 0; i < MOST; i++) assert_int_equal(t.calls[i], i < n ? calls : 0);
    for (int i = 0; i < ITEMS; i++) assert_int_equal(t.taken[i], calls);
    assert_int_equal(t.low, 1001 - n);
}

static void test_each_thread_once(void **state) {
    (void)state;
    assert_counted(NULL, 1, 3);
    for (int threads = 1; threads <= MOST; threads = threads * 2 + 1) {
        struct team *team = team_open(threads);
        assert_non_null(team);
        for (int n = 1; n <= threads; n++) assert_counted(team, n, 50);
        assert_counted(team, threads, 1000);
        team_close(team);
    }
}

static void test_wakes_sleepers(void **state) {
    (void)state;
    struct team *team = team_open(4);
    assert_non_null(team);
    for (int i = 0; i < 20; i++) {
        usleep(i % 2 == 0 ? 3000 : 150); // asleep, and just about to be
        assert_counted(team, 2 + i % 3, 2);
    }
    team_close(team);
    for (int i = 0; i < 50; i++) team_close(team_open(1 + i % 5)); // without any call
}

static void slow_worker(void *call, int thread, int n) {
    (void)n;
    if (thread == 1) usleep(3000); // the caller sleeps until this is done
    ((struct tally *)call)->calls[thread]++;
}

static void test_waits_for_the_last(void **state) {
    (void)state;
    struct team *team = team_open(3);
    assert_non_null(team);
    struct tally t = {0};
    for (int i = 1; i <= 10; i++) {
        team_run(team, 3, slow_worker, &t);
        for (int thread = 0; thread < 3; thread++) assert_int_equal(t.calls[thread], i);
    }
    team_close(team);
}

static struct team *meeting;

static void meet(void *call, int thread, int n) {
    struct tally *t = call;
    for (int round = 1; round <= 40; round++) {
        t->round[thread] = round;
        if (thread == round % n) usleep(round % 8 == 0 ? 500 : 0);
        team_meet(meeting, n);
        for (int i = 0; i < n; i++)
            if (t->round[i] != round) t->early = true;
        team_meet(meeting, n); // before the next round is written
    }
}

static void test_meetings(void **state) {
    (void)state;
    for (int threads = 1; threads <= 9; threads += 2) {
        struct tally t = {0};
        meeting = team_open(threads);
        assert_non_null(meeting);
        team_run(meeting, threads, meet, &t);
        assert_false(t.early);
        for (int i = 0; i < threads; i++) assert_int_equal(t.round[i], 40);
        team_close(meeting);
    }
}

static void test_processors(void **state) {
    (void)state;
    int processors = team_processors();
    assert_true(processors >= 1 && processors <= sysconf(_SC_NPROCESSORS_CONF));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_thread_once),   cmocka_unit_test(test_wakes_sleepers),
        cmocka_unit_test(test_waits_for_the_last), cmocka_unit_test(test_meetings),
        cmocka_unit_test(test_processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

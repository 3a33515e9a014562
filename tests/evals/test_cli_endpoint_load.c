// Many requests in flight at a server that refuses and drops some: everything is answered, and
// memory and open files stay where they are. With the address sanitizer the program itself says
// what it has not given back. Ten minutes of it: tests/bench/bench_endpoint.c.
#include "tests/support/fast_folder.h"
#include "tests/support/served_load.h"
#include "tests/support/support.h"

#include <stdlib.h>

#define MIB (1l << 20)

// A forgotten request would keep its prompt, its reply and libcurl's handle, some 8 KiB. The
// address sanitizer keeps for a while what was given back.
#ifdef __SANITIZE_ADDRESS__
#define GROWTH_BYTES_MOST (512 * MIB)
#else
#define GROWTH_BYTES_MOST (16 * MIB)
#endif

enum { REQUESTS = 4800, IN_FLIGHT = 64, FILES_BESIDE = 24 };

static void memory_and_files_stay_where_they_are(void **state) {
    (void)state;
    const struct served_load load = {.program = LACUNA_BINARY_DIR "/lacuna",
                                     .folder = fast_folder(),
                                     .requests = REQUESTS,
                                     .prompt_tokens = 512,
                                     .reply_tokens = 100,
                                     .in_flight = IN_FLIGHT,
                                     .delay_ms = 30,
                                     .faults = true};
    struct served_load_result r = served_load_run(&load);
    assert_int_equal(r.exit_code, 0);
    assert_in_range(r.most_at_once, IN_FLIGHT / 4, IN_FLIGHT);
    assert_in_range(r.requests, REQUESTS * 102 / 100, REQUESTS * 105 / 100);
    assert_true(r.sample_count >= 8);
    // From the middle on: replies that wait for an earlier one make the memory grow at first.
    const struct served_load_sample *middle = &r.samples[r.sample_count / 2];
    for (const struct served_load_sample *s = middle; s < r.samples + r.sample_count; s++) {
        if (s->own_bytes > middle->own_bytes + GROWTH_BYTES_MOST ||
            s->files > IN_FLIGHT + FILES_BESIDE)
            fail_msg("at %.1f s: %d files, %.1f MiB (%.1f MiB at %.1f s)", s->seconds, s->files,
                     (double)s->own_bytes / MIB, (double)middle->own_bytes / MIB, middle->seconds);
    }
    free(r.samples);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_and_files_stay_where_they_are),
    };
    return cmocka_run_group_tests_name("cli_endpoint_load", tests, NULL, NULL);
}

// What every test program includes: cmocka, and temporary folders that clean up after themselves.
#ifndef LACUNA_TESTS_SUPPORT_H
#define LACUNA_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above first
#include <cmocka.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/base/str.h"

// A fresh folder below the system's temporary folder; removed with all it holds at exit. Static
// text that stays valid to the end of the program.
const char *test_folder(void);

// An arena for one test, opened and dropped by cmocka around each test that names these two.
extern struct arena *test_arena;
int test_arena_open(void **state);
int test_arena_close(void **state);

// PATH of a committed file below tests/, or below the folder that LACUNA_TESTS names, in the arena.
char *test_data(struct arena *a, const char *relative);

// A file of these bytes; without the syncs of file_write_atomic, of which hundreds take seconds.
void test_write(const char *path, struct str content);
// The bytes of a file, in the arena.
struct str test_read(struct arena *a, const char *path);

// Fails the test with the error's text unless `result` is 0.
#define ASSERT_OK(result, e)                                                                       \
    do {                                                                                           \
        if ((result) != 0) fail_msg("%s:%d: %s", (e).file ? (e).file : "?", (e).line, (e).text);   \
    } while (0)

// The call fails with this code and its text contains `needle`.
#define ASSERT_FAILS(result, e, expected_code, needle)                                             \
    do {                                                                                           \
        assert_int_equal((result), -1);                                                            \
        if ((e).code != (expected_code) || strstr((e).text, (needle)) == NULL)                     \
            fail_msg("code %d, text: %s (expected code %d, text with '%s')", (int)(e).code,        \
                     (e).text, (int)(expected_code), (needle));                                    \
    } while (0)

#endif

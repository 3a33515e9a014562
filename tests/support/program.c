#include "tests/support/program.h"

#include "tests/support/fast_folder.h"
#include "tests/support/support.h"

#include "engine/base/file.h"

#include <stdlib.h>
#include <sys/wait.h>

struct str program_out, program_said;

int program_run(const char *arguments) {
    const char *command = arena_printf(test_arena, "cd %s && %s/lacuna %s > out 2> said",
                                       fast_folder(), LACUNA_BINARY_DIR, arguments);
    int status = system(command);
    assert_true(WIFEXITED(status));
    program_out = test_read(test_arena, path_join(test_arena, fast_folder(), "out"));
    program_said = test_read(test_arena, path_join(test_arena, fast_folder(), "said"));
    return WEXITSTATUS(status);
}

void expect_exit(int code, const char *arguments) {
    int was = program_run(arguments);
    if (was != code)
        fail_msg("%s: exit code %d\n" STR_FMT STR_FMT, arguments, was, STR_ARG(program_out),
                 STR_ARG(program_said));
}

void assert_holds(struct str text, const char *what) {
    if (str_find(text, str_from(what), 0) == STR_NONE)
        fail_msg("no '%s' in:\n" STR_FMT, what, STR_ARG(text));
}

struct str file_of(const char *run, const char *name) {
    return test_read(test_arena, arena_printf(test_arena, "%s/%s/%s", fast_folder(), run, name));
}

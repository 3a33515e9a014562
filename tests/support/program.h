// The program itself, as a user runs it, for tests of whole verbs.
#ifndef LACUNA_TESTS_PROGRAM_H
#define LACUNA_TESTS_PROGRAM_H

#include "engine/base/str.h"

// What the last call wrote to its standard output and error; in test_arena.
extern struct str program_out, program_said;

// `lacuna ARGUMENTS` in fast_folder(), through a shell; returns the exit code.
int program_run(const char *arguments);
// Fails the test, showing what was written, unless that is the exit code.
void expect_exit(int code, const char *arguments);

void assert_holds(struct str text, const char *what);
// A file of a run's folder below fast_folder(), in test_arena.
struct str file_of(const char *run, const char *name);

#endif

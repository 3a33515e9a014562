// A run of the program on a served model, watched from outside while many requests fly: its CPU
// time, memory and open files. The server lives in the watching process.
#ifndef LACUNA_TESTS_SERVED_LOAD_H
#define LACUNA_TESTS_SERVED_LOAD_H

#include <stdbool.h>

struct served_load {
    const char *program; // lacuna
    const char *folder;  // experiment and run are written there
    int requests;        // a multiple of 3
    int prompt_tokens;   // of each, about
    int reply_tokens;    // about
    int in_flight;
    int delay_ms;  // of each reply
    bool faults;   // some requests are refused or dropped, and sent again
    bool progress; // a line a minute on stderr
};
// Bytes and counts as /proc tells them.
struct served_load_sample {
    double seconds; // since the first request
    long own_bytes; // memory that no file stands behind
    int files;
};
struct served_load_result {
    int exit_code;      // of the program; -1: a signal ended it
    int requests;       // that came, those sent again among them
    int most_at_once;   // that the server had
    double plan_cpu_ms; // of the program, up to the first request: reading, planning, storing
    double ask_cpu_ms;  // from then until the last request had come
    double rest_cpu_ms; // behind it: the last replies, the reports
    struct served_load_sample *samples; // ten a second up to the last request; the caller's (free)
    int sample_count;
};
// Fails the test (or ends the program) when the run cannot be watched.
struct served_load_result served_load_run(const struct served_load *load);

#endif

// Errors of the whole program: one struct, one polarity.
//
// A fallible function returns 0 or -1 and fills a `struct err`, always its last parameter. The text
// says what is wrong, where (file, key, line) and what to do; it is printed to the user as it is.
// Programmer errors are `assert`s, which stay on in every build (see CMakeLists.txt).
#ifndef LACUNA_ENGINE_BASE_ERR_H
#define LACUNA_ENGINE_BASE_ERR_H

// What kind of failure: decides the exit code (evals/cli.h) and nothing else.
enum err_code {
    ERR_NONE = 0,
    ERR_USAGE,     // command line: unknown verb, bad option                       exit 2
    ERR_CONFIG,    // experiment file, or a plan that it cannot give               exit 2
    ERR_INPUT,     // data that came from outside is not what it claims to be      exit 1
    ERR_MODEL,     // a model file is damaged, hostile or not supported            exit 1
    ERR_IO,        // the operating system refused: open, write, sync, rename      exit 1
    ERR_MEMORY,    // a large buffer does not fit; the text has the byte table     exit 1
    ERR_NUMERIC,   // a value that is not finite; names layer and position         exit 1
    ERR_PROVIDER,  // a provider failed for this trial                             exit 1
    ERR_RECORD,    // a run folder is foreign, damaged or locked                   exit 1
    ERR_UNDECIDED, // cannot decide: no baseline, plans differ, underpowered       exit 3
    ERR_CANCELLED, // interrupted by the user
};

struct err {
    enum err_code code;
    const char *file; // source file and line that raised it, static storage
    int line;
    char text[8192]; // UTF-8, cut at a character boundary when it is longer
};

// Fills `e` (when not NULL) and returns -1. Use through FAIL, or directly before a clean-up `goto`.
__attribute__((format(printf, 5, 6))) int
err_set(struct err *e, enum err_code code, const char *file, int line, const char *format, ...);

// Puts "prefix: " before the text of an error that a callee raised. Returns -1.
__attribute__((format(printf, 2, 3))) int err_prefix(struct err *e, const char *format, ...);

#define ERR_SET(e, code, ...) err_set((e), (code), __FILE__, __LINE__, __VA_ARGS__)

// Return-if-failed macros: FAIL raises, TRY forwards.
#define FAIL(e, code, ...) return ERR_SET(e, code, __VA_ARGS__)
#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((call) != 0) return -1;                                                                \
    } while (0)

#endif

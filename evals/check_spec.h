// A composite check as the experiment file gives it: a tree of one verb each (`check` and
// `violated_check` of a constraint). What the verbs mean is in evals/check_tree.h.
#ifndef LACUNA_EVALS_CHECK_SPEC_H
#define LACUNA_EVALS_CHECK_SPEC_H

#include "engine/base/err.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum check_verb {
    CHECK_ALL,
    CHECK_ANY,
    CHECK_NOT,
    CHECK_ORDER,
    CHECK_PATTERN,
    CHECK_VALUE,
    CHECK_NUMBER,
    CHECK_COUNT,
    CHECK_LINE,
    CHECK_PARAGRAPH,
    CHECK_WORDS,
    CHECK_SENTENCES,
    CHECK_PARAGRAPHS,
    CHECK_LINES,
    CHECK_LETTERS,
    CHECK_JSON,
    CHECK_TOOL_CALL,
};
#define CHECK_VERBS (CHECK_TOOL_CALL + 1)
extern const char *const check_verbs[]; // their keys, NULL behind the last

// How a text is rewritten before it is looked at, always in this order; a node's rewriting holds
// for everything below it.
#define CHECK_STRIP_MARKDOWN 1u
#define CHECK_NFKC 2u
#define CHECK_FOLD_CASE 4u
#define CHECK_FOLD_SPACE 8u
extern const char *const check_rewritings[]; // their words, bit by bit, NULL behind the last

struct check_bounds {
    bool has_least, has_most;
    int64_t least, most;
};

enum check_type {
    CHECK_TYPE_ANY,
    CHECK_TYPE_OBJECT,
    CHECK_TYPE_ARRAY,
    CHECK_TYPE_STRING,
    CHECK_TYPE_NUMBER,
    CHECK_TYPE_INTEGER,
    CHECK_TYPE_BOOLEAN,
    CHECK_TYPE_NULL,
};
extern const char *const check_types[]; // from CHECK_TYPE_OBJECT on, NULL behind the last

// What stands at a place of a JSON value. Texts have p == NULL where they are not given.
struct check_pointer {
    struct str pointer; // RFC 6901; empty: the whole value
    struct str equals, pattern;
    bool absent; // `exists: false`: nothing may stand there
    enum check_type type;
};

struct check_spec {
    enum check_verb verb;
    const char *where; // "check.all[1]", for messages
    bool ignore_case, multiline, dotall;
    unsigned rewriting;
    struct str pattern, value; // of pattern, value, count; p == NULL: not given
    struct str separator;      // of paragraph, paragraphs; p == NULL: blank lines
    int number;                // of line, paragraph: from 1, or from -1 backwards
    struct check_bounds bounds;
    struct check_spec *parts; // of all, any, order, count (`of`); one of not, line, paragraph
    int part_count;
    bool block;        // json: a fenced block anywhere, not the whole reply
    struct str name;   // tool_call
    struct str equals; // number
    int64_t within;    // number: millionths
    struct check_pointer *pointers;
    int pointer_count;
};

// Calls `visit` for each text that may hold variables, in file order; stops with -1 when it does.
int check_spec_each(const struct check_spec *s,
                    int (*visit)(void *context, const char *where, struct str text, bool pattern,
                                 struct err *e),
                    void *context, struct err *e);

#endif

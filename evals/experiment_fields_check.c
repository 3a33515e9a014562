// The fields of composite checks (`check` and `violated_check` of a constraint). The table refers
// to itself: FIELD_AGAIN marks where.
#include "evals/check_spec.h"
#include "evals/experiment_fields.h"

#include <stdint.h>

static const char *const json_words[] = {"whole", "block", NULL};

// Bounds of a count; kept equal wherever something is counted.
#define BOUNDS_MOST 1000000000
#define BOUNDS_FIELDS                                                                              \
    {.key = "at_least",                                                                            \
     .type = FIELD_INTEGER,                                                                        \
     .least = 0,                                                                                   \
     .most = BOUNDS_MOST,                                                                          \
     .help = "this many or more"},                                                                 \
        {.key = "at_most",                                                                         \
         .type = FIELD_INTEGER,                                                                    \
         .least = 0,                                                                               \
         .most = BOUNDS_MOST,                                                                      \
         .help = "this many or fewer"},                                                            \
    {                                                                                              \
        .key = "exactly", .type = FIELD_INTEGER, .least = 0, .most = BOUNDS_MOST,                  \
        .help = "this many"                                                                        \
    }

static const struct field bounds_fields[] = {BOUNDS_FIELDS, {.key = NULL}};

static const struct field count_fields[] = {
    {.key = "pattern", .type = FIELD_PATTERN, .help = "matches of this pattern"},
    {.key = "value", .type = FIELD_TEXT, .help = "or: places where this value stands"},
    {.key = "of",
     .type = FIELD_OBJECT,
     .shape = SHAPE_LIST,
     .flags = FIELD_AGAIN,
     .items_least = 1,
     .shared = "check",
     .fields = check_fields,
     .help = "or: how many of these checks hold"},
    BOUNDS_FIELDS,
    {.key = NULL},
};

static const struct field paragraphs_fields[] = {
    {.key = "separator",
     .type = FIELD_PATTERN,
     .help = "pattern of what parts them; otherwise a blank line"},
    BOUNDS_FIELDS,
    {.key = NULL},
};

#define PART_FIELDS                                                                                \
    {.key = "number",                                                                              \
     .type = FIELD_INTEGER,                                                                        \
     .flags = FIELD_REQUIRED,                                                                      \
     .least = -1000000,                                                                            \
     .most = 1000000,                                                                              \
     .help = "which: 1 is the first, -1 the last"},                                                \
        {.key = "pattern", .type = FIELD_PATTERN, .help = "pattern that it matches"}, {            \
        .key = "check", .type = FIELD_OBJECT, .flags = FIELD_OPTIONAL | FIELD_AGAIN,               \
        .shared = "check", .fields = check_fields, .help = "or: a check that holds for it alone"   \
    }

static const struct field line_fields[] = {PART_FIELDS, {.key = NULL}};
static const struct field paragraph_fields[] = {
    PART_FIELDS,
    {.key = "separator",
     .type = FIELD_PATTERN,
     .help = "pattern of what parts them; otherwise a blank line"},
    {.key = NULL},
};

#define POINTER_FIELDS                                                                             \
    {.key = "pointer",                                                                             \
     .type = FIELD_TEXT,                                                                           \
     .fallback = "",                                                                               \
     .help = "JSON pointer (RFC 6901) such as /items/0/name; empty: the whole value"},             \
        {.key = "exists", .type = FIELD_BOOLEAN, .help = "false: nothing may stand there"},        \
        {.key = "type", .type = FIELD_WORD, .words = check_types, .help = "what stands there"},    \
        {.key = "equals",                                                                          \
         .type = FIELD_TEXT,                                                                       \
         .help = "the string that stands there, or a number, true, false or null as JSON "         \
                 "writes it"},                                                                     \
    {                                                                                              \
        .key = "pattern", .type = FIELD_PATTERN,                                                   \
        .help = "pattern that the string or the number there matches"                              \
    }

static const struct field pointer_fields[] = {POINTER_FIELDS, {.key = NULL}};
static const struct field json_fields[] = {
    {.key = "where",
     .type = FIELD_WORD,
     .words = json_words,
     .fallback = "whole",
     .help =
         "whole: the reply is JSON, alone or in one code fence; block: a fenced block of it is"},
    POINTER_FIELDS,
    {.key = NULL},
};

static const struct field tool_call_fields[] = {
    {.key = "name",
     .type = FIELD_TEXT,
     .flags = FIELD_REQUIRED,
     .help = "of the tool, letter by letter"},
    {.key = "arguments",
     .type = FIELD_OBJECT,
     .shape = SHAPE_LIST,
     .fallback = "",
     .fields = pointer_fields,
     .help = "what its arguments hold"},
    {.key = NULL},
};

static const struct field number_fields[] = {
    {.key = "equals",
     .type = FIELD_TEXT,
     .flags = FIELD_REQUIRED,
     .help = "digits, with a sign and a point where it has them"},
    {.key = "within",
     .type = FIELD_DECIMAL,
     .fallback = "0",
     .least = 0,
     .most = 999999999000000,
     .help = "how far off it may be"},
    {.key = NULL},
};

#define CHECKS_FIELD(name, least_items, text)                                                      \
    {                                                                                              \
        .key = (name), .type = FIELD_OBJECT, .shape = SHAPE_LIST, .flags = FIELD_AGAIN,            \
        .items_least = (least_items), .shared = "check", .fields = check_fields, .help = (text)    \
    }
#define COUNT_FIELD(name, table, text)                                                             \
    {                                                                                              \
        .key = (name), .type = FIELD_OBJECT, .flags = FIELD_OPTIONAL, .fields = (table),           \
        .help = (text)                                                                             \
    }

const struct field check_fields[] = {
    CHECKS_FIELD("all", 1, "every one of these checks holds"),
    CHECKS_FIELD("any", 1, "at least one of these checks holds"),
    {.key = "not",
     .type = FIELD_OBJECT,
     .flags = FIELD_OPTIONAL | FIELD_AGAIN,
     .shared = "check",
     .fields = check_fields,
     .help = "this check does not hold; needs a finished reply"},
    CHECKS_FIELD("order", 2, "patterns and values, each found behind the one before"),
    {.key = "pattern", .type = FIELD_PATTERN, .help = "pattern (PCRE2) that the reply matches"},
    {.key = "value", .type = FIELD_TEXT, .help = "the reply holds this value as a whole"},
    COUNT_FIELD("number", number_fields, "a number, however it is written"),
    COUNT_FIELD("count", count_fields, "how often a pattern, a value or checks are met"),
    COUNT_FIELD("line", line_fields, "one line that is not blank"),
    COUNT_FIELD("paragraph", paragraph_fields, "one paragraph"),
    COUNT_FIELD("words", bounds_fields, "how many words"),
    COUNT_FIELD("sentences", bounds_fields, "how many sentences"),
    COUNT_FIELD("paragraphs", paragraphs_fields, "how many paragraphs"),
    COUNT_FIELD("lines", bounds_fields, "how many lines that are not blank"),
    COUNT_FIELD("letters", bounds_fields, "how many letters"),
    COUNT_FIELD("json", json_fields, "the reply is JSON, and what stands in it"),
    COUNT_FIELD("tool_call", tool_call_fields, "the reply calls a tool"),
    {.key = "ignore_case",
     .type = FIELD_BOOLEAN,
     .help = "here and below; otherwise as for the constraint"},
    {.key = "multiline",
     .type = FIELD_BOOLEAN,
     .help = "here and below; otherwise as for the constraint"},
    {.key = "dotall",
     .type = FIELD_BOOLEAN,
     .help = "here and below; otherwise as for the constraint"},
    {.key = "normalize",
     .type = FIELD_WORD,
     .shape = SHAPE_LIST,
     .items_least = 1,
     .words = check_rewritings,
     .help = "how the text is rewritten before it is looked at, here and below"},
    {.key = NULL},
};

// The fields of a variable, under `vars` of the experiment or of a constraint.
#include "evals/experiment_fields.h"

#include <stdint.h>

static const char *const variable_words[] = {"digits", "letters", "choice", "number",
                                             "words",  "uuid",    NULL};

static const char *const script_words[] = {"latin",      "arabic",    "persian",
                                           "devanagari", "fullwidth", NULL};

const struct field variable_fields[] = {
    {.key = "kind",
     .type = FIELD_WORD,
     .words = variable_words,
     .flags = FIELD_REQUIRED,
     .example = "digits",
     .help = "digits, letters, choice, number, words (two of them: amber-lantern) or uuid"},
    {.key = "count",
     .type = FIELD_INTEGER,
     .least = 1,
     .most = 1000,
     .example = "5",
     .help = "digits, letters: how many"},
    {.key = "script",
     .type = FIELD_WORD,
     .words = script_words,
     .help = "digits: how they are written; latin (0-9) unless said"},
    {.key = "choices",
     .type = FIELD_TEXT,
     .shape = SHAPE_LIST,
     .items_least = 1,
     .help = "choice: one of these"},
    {.key = "least",
     .type = FIELD_INTEGER,
     .least = 0,
     .most = 999999999999999999,
     .help = "number: the smallest"},
    {.key = "most",
     .type = FIELD_INTEGER,
     .least = 0,
     .most = 999999999999999999,
     .help = "number: the greatest"},
    {.key = NULL},
};

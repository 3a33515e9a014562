// The fields of `prompt` and `cases`.
#include "evals/experiment_fields.h"

#include <stdint.h>

static const char *const filler_words[] = {"prose",        "noise",          "files",
                                           "pairs",        "chat",           "json_pairs",
                                           "common_words", "frequent_words", NULL};
static const char *const unit_words[] = {"sentence", "paragraph", "document", NULL};

static const char *const role_instead[] = {"file", NULL};
static const char *const text_instead[] = {"text_file", "file", NULL};

static const struct field call_fields[] = {
    {.key = "name", .type = FIELD_TEXT, .flags = FIELD_REQUIRED, .help = "of the tool"},
    {.key = "arguments", .type = FIELD_TEXT, .flags = FIELD_REQUIRED, .help = "as JSON"},
    {.key = NULL},
};

static const struct field message_fields[] = {
    {.key = "role",
     .type = FIELD_NAME,
     .flags = FIELD_REQUIRED,
     .instead = role_instead,
     .example = "user",
     .help = "system, user, assistant or tool; chat: where filler of kind chat goes"},
    {.key = "text",
     .type = FIELD_TEXT,
     .flags = FIELD_REQUIRED,
     .instead = text_instead,
     .example = "\"{{filler}}\\n\\nWrite a short reply to the customer. State the order number "
                "given in the text.\"",
     .help = "{{filler}} once over all messages; {{column}} for a column of the cases; {{tools}}"},
    {.key = "text_file",
     .type = FIELD_TEXT_FILE,
     .help = "instead of text: a file, taken byte for byte"},
    {.key = "file",
     .type = FIELD_PATH,
     .help = "instead of role and text: turns from JSON lines, {\"role\", \"content\"} each"},
    {.key = "tool_calls",
     .type = FIELD_OBJECT,
     .shape = SHAPE_LIST,
     .flags = FIELD_STORED,
     .fields = call_fields,
     .help = "of an assistant's turn from a file"},
    {.key = NULL},
};

static const struct field distractor_fields[] = {
    {.key = "like",
     .type = FIELD_NAME,
     .flags = FIELD_REQUIRED,
     .example = "order",
     .help = "a constraint of kind state: its text with other values"},
    {.key = "per_1k_tokens",
     .type = FIELD_INTEGER,
     .flags = FIELD_REQUIRED,
     .least = 1,
     .most = 1000,
     .example = "3",
     .help = "how many stand in 1000 tokens of filler"},
    {.key = "vary",
     .type = FIELD_NAME,
     .shape = SHAPE_LIST,
     .fallback = "",
     .help = "the variables that are drawn anew; else all of the constraint's own"},
    {.key = NULL},
};

static const struct field filler_fields[] = {
    {.key = "kind",
     .type = FIELD_WORD,
     .words = filler_words,
     .fallback = "prose",
     .example = "prose",
     .help = "prose (generated), noise (fixed sentences), files (your texts), pairs (key-value), "
             "chat (your conversations), json_pairs (of UUIDs), common_words or frequent_words "
             "(lists)"},
    {.key = "language",
     .type = FIELD_NAME,
     .fallback = "en",
     .help = "of prose, of noise and of the words that make the length exact"},
    {.key = "sentences",
     .type = FIELD_TEXT,
     .shape = SHAPE_LIST,
     .fallback = "",
     .help = "noise: the sentences; without any, the built-in ones"},
    {.key = "paths",
     .type = FIELD_PATH,
     .shape = SHAPE_LIST,
     .fallback = "",
     .help = "files, chat: your texts or JSON lines, in this order"},
    {.key = "unit",
     .type = FIELD_WORD,
     .words = unit_words,
     .fallback = "sentence",
     .help = "files: what is never cut"},
    {.key = "shuffle",
     .type = FIELD_BOOLEAN,
     .fallback = "false",
     .help = "files, chat: draw the order of the units for every repeat"},
    {.key = "wrapper",
     .type = FIELD_TEXT,
     .fallback = "",
     .help = "files: text around each unit, with {{text}} and {{n}}"},
    {.key = "may_match",
     .type = FIELD_BOOLEAN,
     .fallback = "false",
     .help = "allow texts that satisfy a check by themselves"},
    {.key = "distractors",
     .type = FIELD_OBJECT,
     .shape = SHAPE_LIST,
     .fallback = "",
     .fields = distractor_fields,
     .help = "sentences of a constraint's shape with other values, among the filler's own"},
    {.key = NULL},
};

const struct field prompt_fields[] = {
    {.key = "messages",
     .type = FIELD_OBJECT,
     .shape = SHAPE_LIST,
     .flags = FIELD_REQUIRED,
     .items_least = 1,
     .fields = message_fields,
     .help = "the conversation, in order"},
    {.key = "tools_file",
     .type = FIELD_PATH,
     .help = "tools the model may call: a JSON list of OpenAI's function definitions"},
    {.key = "tools",
     .type = FIELD_TEXT,
     .shape = SHAPE_LIST,
     .flags = FIELD_STORED,
     .help = "the definitions of that file"},
    {.key = "filler",
     .type = FIELD_OBJECT,
     .fields = filler_fields,
     .help = "the long text around the constraints"},
    {.key = NULL},
};

const struct field cases_fields[] = {
    {.key = "file",
     .type = FIELD_PATH,
     .flags = FIELD_REQUIRED,
     .help = "CSV or JSON lines; its columns are variables"},
    {.key = "id",
     .type = FIELD_TEXT,
     .flags = FIELD_REQUIRED,
     .help = "the column that names a case"},
    {.key = NULL},
};

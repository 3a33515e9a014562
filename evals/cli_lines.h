// Standard input of the model verbs: one JSON value a line, a text or an array of token ids.
#ifndef LACUNA_EVALS_CLI_LINES_H
#define LACUNA_EVALS_CLI_LINES_H

#include "engine/base/json.h"
#include "engine/tokenizer.h"

#include <stdio.h>

struct cli_lines {
    FILE *from;
    char *line;
    size_t capacity;
    int64_t number; // of the line read last, from 1
};

void cli_lines_close(struct cli_lines *l);

// The next line's value; blank lines are passed over. The caller owns *out. *any false at the end.
int cli_lines_next(struct cli_lines *l, json_t **out, bool *any, struct err *e);

// Ids of an array of numbers, or of a text: control spellings count only with `special`, the start
// token is put in front only with `bos`. An empty input is an error.
int cli_line_ids(const struct cli_lines *l, const json_t *value, const struct tokenizer *t,
                 bool bos, bool special, struct token_list *out, struct err *e);

// A decimal number of an option; `text` NULL gives `otherwise`.
int cli_number(const char *option, const char *text, double otherwise, double *out, struct err *e);

#endif

#include "evals/cli_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

void cli_lines_close(struct cli_lines *l) {
    free(l->line);
    l->line = NULL;
}

int cli_lines_next(struct cli_lines *l, json_t **out, bool *any, struct err *e) {
    *any = false;
    struct str text;
    do {
        errno = 0;
        ssize_t n = getline(&l->line, &l->capacity, l->from);
        if (n < 0) {
            if (ferror(l->from)) FAIL(e, ERR_IO, "standard input cannot be read");
            return 0;
        }
        l->number++;
        text = str_trim((struct str){l->line, (size_t)n});
    } while (text.n == 0);
    char where[48];
    snprintf(where, sizeof where, "line %" PRId64, l->number);
    // The parser takes documents, and a bare text is none; inside brackets it is.
    struct buf wrapped = {0};
    buf_add_char(&wrapped, '[');
    buf_add_str(&wrapped, text);
    buf_add_char(&wrapped, ']');
    json_t *document;
    int result = json_parse(buf_str(&wrapped), where, &document, e);
    buf_free(&wrapped);
    TRY(result);
    if (json_array_size(document) != 1) {
        json_decref(document);
        FAIL(e, ERR_INPUT, "%s: one JSON value a line is expected", where);
    }
    *out = json_incref(json_array_get(document, 0));
    json_decref(document);
    *any = true;
    return 0;
}

static int ids_of_array(const struct cli_lines *l, const json_t *value, struct token_list *out,
                        struct err *e) {
    size_t i;
    json_t *item;
    json_array_foreach(value, i, item) {
        json_int_t id = json_is_integer(item) ? json_integer_value(item) : -1;
        if (id < 0 || id > INT32_MAX)
            FAIL(e, ERR_INPUT, "line %" PRId64 ": element %zu is not a token id", l->number, i);
        token_list_add(out, (int32_t)id);
    }
    return 0;
}

int cli_line_ids(const struct cli_lines *l, const json_t *value, const struct tokenizer *t,
                 bool bos, bool special, struct token_list *out, struct err *e) {
    if (bos) {
        if (tokenizer_bos(t) < 0) FAIL(e, ERR_CONFIG, "--bos: the model file names no start token");
        token_list_add(out, tokenizer_bos(t));
    }
    if (json_is_array(value)) {
        TRY(ids_of_array(l, value, out, e));
    } else if (json_is_string(value)) {
        struct str text = {json_string_value(value), json_string_length(value)};
        TRY(tokenizer_encode(t, text, special, out, e));
    } else {
        FAIL(e, ERR_INPUT, "line %" PRId64 ": neither a text nor an array of token ids", l->number);
    }
    if (out->count == 0) FAIL(e, ERR_INPUT, "line %" PRId64 ": no tokens", l->number);
    return 0;
}

int cli_number(const char *option, const char *text, double otherwise, double *out, struct err *e) {
    *out = otherwise;
    if (text == NULL) return 0;
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0')
        FAIL(e, ERR_USAGE, "%s takes a number, not \"%s\"", option, text);
    return 0;
}

// lacuna tokenize: text to ids and back, line by line, for people who compare tokenizers and for
// scripts.
#include "evals/cli.h"

#include "engine/base/json.h"
#include "engine/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tokenize_job {
    const struct tokenizer *tokenizer;
    bool bos, special, decode;
    long line;
    struct arena *scratch; // reset after each line
    struct buf out;
};

// One JSON value of any kind; jansson's NUL check is off because a text may hold U+0000.
static int line_parse(const struct tokenize_job *job, struct str line, json_t **out,
                      struct err *e) {
    json_error_t why;
    if (line.n == 0) {
        FAIL(e, ERR_INPUT, "stdin, line %ld: is empty; an empty text is \"\"", job->line);
    }
    *out =
        json_loadb(line.p, line.n, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
    if (*out != NULL) return 0;
    FAIL(e, ERR_INPUT, "stdin, line %ld: not JSON: %s (column %d)", job->line, why.text,
         why.column);
}

// A JSON string, or {"text_base64": ...} for bytes that are not UTF-8, as --decode writes them.
static int text_read(const struct tokenize_job *job, const json_t *value, struct str *out,
                     struct err *e) {
    if (json_is_string(value)) {
        *out = (struct str){json_string_value(value), json_string_length(value)};
        return 0;
    }
    if (!json_is_object(value)) {
        FAIL(e, ERR_INPUT, "stdin, line %ld: expected a JSON string", job->line);
    }
    return json_get_bytes(value, "text", arena_printf(job->scratch, "stdin, line %ld", job->line),
                          job->scratch, out, e);
}

static int line_encode(struct tokenize_job *job, const json_t *value, struct err *e) {
    struct str text;
    TRY(text_read(job, value, &text, e));
    struct token_list ids = {0};
    if (job->bos) token_list_add(&ids, tokenizer_bos(job->tokenizer));
    int rc = tokenizer_encode(job->tokenizer, text, job->special, &ids, e);
    if (rc != 0) err_prefix(e, "stdin, line %ld", job->line);
    buf_add_c(&job->out, "[");
    for (size_t i = 0; i < ids.count; i++) {
        buf_printf(&job->out, "%s%d", i > 0 ? "," : "", ids.ids[i]);
    }
    buf_add_c(&job->out, "]\n");
    token_list_free(&ids);
    return rc;
}

static int id_read(const struct tokenize_job *job, const json_t *value, size_t index, int32_t *id,
                   struct err *e) {
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    if (number < 0 || number >= (json_int_t)tokenizer_size(job->tokenizer)) {
        FAIL(e, ERR_INPUT, "stdin, line %ld: entry %zu is not an id from 0 to %u", job->line,
             index + 1, tokenizer_size(job->tokenizer) - 1);
    }
    *id = (int32_t)number;
    return 0;
}

static int line_decode(struct tokenize_job *job, const json_t *value, struct err *e) {
    if (!json_is_array(value)) {
        FAIL(e, ERR_INPUT, "stdin, line %ld: expected a JSON array of ids", job->line);
    }
    struct buf text = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(value); i++) {
        int32_t id = 0;
        rc = id_read(job, json_array_get(value, i), i, &id, e);
        if (rc == 0) buf_add_str(&text, tokenizer_bytes(job->tokenizer, id));
    }
    if (rc == 0) {
        json_t *answer;
        if (utf8_valid(buf_str(&text))) {
            answer = json_text(buf_str(&text));
        } else {
            answer = json_object();
            json_put_bytes(answer, "text", buf_str(&text));
        }
        json_compact(answer, &job->out);
        buf_add_c(&job->out, "\n");
        json_decref(answer);
    }
    buf_free(&text);
    return rc;
}

static int line_answer(struct tokenize_job *job, struct str line, struct err *e) {
    json_t *value;
    TRY(line_parse(job, line, &value, e));
    buf_clear(&job->out);
    int rc = job->decode ? line_decode(job, value, e) : line_encode(job, value, e);
    json_decref(value);
    arena_reset(job->scratch);
    TRY(rc);
    // Each answer goes out at once, so that a program at the other end may wait for it.
    if (fwrite(job->out.p, 1, job->out.n, stdout) != job->out.n || fflush(stdout) != 0) {
        FAIL(e, ERR_IO, "the answer to line %ld cannot be written to stdout", job->line);
    }
    return 0;
}

static int stdin_answer(struct tokenize_job *job, struct err *e) {
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int rc = 0;
    while (rc == 0 && (n = getline(&line, &room, stdin)) >= 0) {
        job->line++;
        rc = line_answer(job, str_trim((struct str){line, (size_t)n}), e);
    }
    if (rc == 0 && ferror(stdin)) rc = ERR_SET(e, ERR_IO, "stdin cannot be read");
    free(line);
    return rc;
}

static int tokenize(const char *path, const char *pre, struct tokenize_job *job, struct arena *a,
                    struct err *e) {
    struct gguf *g;
    TRY(gguf_open(path, a, &g, e));
    struct tokenizer *t = NULL;
    int rc = tokenizer_open(g, pre, a, &t, e);
    job->tokenizer = t;
    if (rc == 0 && job->bos && tokenizer_bos(t) < 0) {
        rc = ERR_SET(e, ERR_MODEL, "%s: --bos: the file names no start token", path);
    }
    if (rc == 0) rc = stdin_answer(job, e);
    tokenizer_close(t);
    gguf_close(g);
    return rc;
}

int cli_tokenize(int argc, char **argv) {
    struct tokenize_job job = {0};
    const char *pre = NULL, *path;
    const struct cli_option options[] = {
        {.name = "--decode", .help = "ids to text", .flag = &job.decode},
        {.name = "--bos", .help = "put the model's start token first", .flag = &job.bos},
        {.name = "--special",
         .help = "spellings of control tokens become those tokens",
         .flag = &job.special},
        {.name = "--pre-tokenizer",
         .value = "NAME",
         .help = "use this rule instead of the file's own",
         .text = &pre},
    };
    int count;
    bool helped;
    struct err e = {0};
    if (cli_parse(argc, argv, options, sizeof options / sizeof options[0], &path, 1, 1, &count,
                  &helped, &e) != 0) {
        return cli_fail(argv[0], &e);
    }
    if (helped) return EXIT_DONE;
    if (job.decode && (job.bos || job.special)) {
        ERR_SET(&e, ERR_USAGE, "--bos and --special have no meaning with --decode");
        return cli_fail(argv[0], &e);
    }
    struct arena *a = arena_create("model");
    job.scratch = arena_create("line");
    int rc = tokenize(path, pre, &job, a, &e);
    buf_free(&job.out);
    arena_destroy(job.scratch);
    arena_destroy(a);
    return rc == 0 ? EXIT_DONE : cli_fail(argv[0], &e);
}

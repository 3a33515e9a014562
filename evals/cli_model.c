// lacuna model FILE: what is in a model file, its identity, and the memory that lengths take.
#include "engine/model_describe.h"
#include "evals/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int read_lengths(const struct cli_list *list, uint64_t *lengths, struct err *e) {
    for (int i = 0; i < list->count; i++) {
        char *end;
        intmax_t n = strtoimax(list->items[i], &end, 10);
        if (end == list->items[i] || *end != '\0' || n < 1 || (uint64_t)n > MODEL_MOST_TOKENS)
            FAIL(e, ERR_USAGE,
                 "--length takes a number of tokens from 1 to %" PRIu64 ", not \"%s\"",
                 MODEL_MOST_TOKENS, list->items[i]);
        lengths[i] = (uint64_t)n;
    }
    return 0;
}

// What the CPU takes, which no table of ops changes.
static int describe(const struct model *m, const uint64_t *lengths, size_t count, bool json,
                    struct buf *out, struct err *e) {
    struct backend *b;
    TRY(backend_cpu_open(&(struct backend_options){.op_table = "c"}, &b, e));
    if (json) {
        json_t *value = model_describe_json(m, b, lengths, count);
        json_pretty(value, out);
        buf_add_char(out, '\n');
        json_decref(value);
    } else {
        model_describe_text(m, b, lengths, count, out);
    }
    backend_close(b);
    return 0;
}

static int print_model(const char *path, const struct cli_list *list, bool json, struct arena *a,
                       struct err *e) {
    uint64_t lengths[CLI_LIST_MOST];
    _Static_assert(CLI_LIST_MOST >= MODEL_MOST_LENGTHS, "room for the usual lengths");
    struct model *m;
    TRY(read_lengths(list, lengths, e));
    TRY(model_open(path, a, &m, e));
    size_t count = list->count ? (size_t)list->count : model_usual_lengths(m, lengths);
    struct buf out = {0};
    int result = model_identify(m, e);
    if (result == 0) result = describe(m, lengths, count, json, &out, e);
    bool written = fwrite(out.p, 1, out.n, stdout) == out.n && fflush(stdout) == 0;
    buf_free(&out);
    model_close(m);
    TRY(result);
    if (!written) FAIL(e, ERR_IO, "standard output cannot be written");
    return 0;
}

int cli_model(int argc, char **argv) {
    struct err e = {0};
    struct cli_list lengths = {0};
    bool json = false, helped = false;
    const char *path = NULL;
    int count = 0;
    const struct cli_option options[] = {
        {.name = "--length",
         .value = "N",
         .help = "tell the memory for N tokens; may be given again",
         .list = &lengths},
        {.name = "--json", .help = "one JSON object instead of text", .flag = &json},
    };
    int option_count = (int)(sizeof options / sizeof *options);
    if (cli_parse(argc, argv, options, option_count, &path, 1, 1, &count, &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    struct arena *a = arena_create("model");
    int result = print_model(path, &lengths, json, a, &e);
    arena_destroy(a);
    return result == 0 ? EXIT_DONE : cli_fail(argv[0], &e);
}

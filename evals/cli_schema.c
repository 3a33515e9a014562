#include "evals/cli.h"
#include "evals/experiment.h"

#include <stdio.h>

int cli_schema(int argc, char **argv) {
    struct err e = {0};
    bool helped;
    int count;
    if (cli_parse(argc, argv, NULL, 0, NULL, 0, 0, &count, &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    json_t *schema = experiment_schema();
    struct buf out = {0};
    json_pretty(schema, &out);
    puts(out.p);
    buf_free(&out);
    json_decref(schema);
    return EXIT_DONE;
}

// lacuna report: the four reports of a run again, from its record alone.
#include "evals/cli.h"
#include "evals/run.h"

#include <stdio.h>

int cli_report(int argc, char **argv) {
    const char *folder = NULL;
    int count, exit_code = EXIT_DONE;
    bool helped;
    struct err e = {0};
    if (cli_parse(argc, argv, NULL, 0, &folder, 1, 1, &count, &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    struct arena *a = arena_create("report");
    struct buf terminal = {0};
    int result = run_report(folder, a, &exit_code, &terminal, &e);
    if (result == 0) printf(STR_FMT "%s/report.html\n", STR_ARG(buf_str(&terminal)), folder);
    buf_free(&terminal);
    arena_destroy(a);
    return result == 0 ? exit_code : cli_fail(argv[0], &e);
}

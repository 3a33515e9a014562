// lacuna report: the four reports of a run again, from its record alone.
#include "evals/cli.h"
#include "evals/run.h"

#include <stdio.h>

int cli_report(int argc, char **argv) {
    const char *folder = NULL;
    struct report_options o = {0};
    const struct cli_option options[] = {
        {.name = "--output",
         .short_name = "-o",
         .value = "FOLDER",
         .text = &o.folder,
         .help = "where they go; into the run's folder otherwise"},
        {.name = "--without-text",
         .flag = &o.without_texts,
         .help = "with no text of a prompt, a constraint, a variable or a reply"},
    };
    int count, exit_code = EXIT_DONE;
    bool helped;
    struct err e = {0};
    if (cli_parse(argc, argv, options, 2, &folder, 1, 1, &count, &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    struct arena *a = arena_create("report");
    struct buf terminal = {0};
    int result = run_report(folder, &o, a, &exit_code, &terminal, &e);
    if (result == 0)
        printf(STR_FMT "%s/report.html\n", STR_ARG(buf_str(&terminal)),
               o.folder != NULL ? o.folder : folder);
    buf_free(&terminal);
    arena_destroy(a);
    return result == 0 ? exit_code : cli_fail(argv[0], &e);
}

// lacuna merge: one record out of shards, partial runs of one experiment.
#include "evals/cli.h"
#include "evals/run.h"
#include "evals/run_setup.h"

#include "engine/base/log.h"

#include <stdio.h>

static int merge(struct run_options *options, struct arena *a, int *exit_code, struct err *e) {
    struct record *first;
    struct experiment *x = NULL;
    struct run_result r = {0};
    TRY(record_open(options->shards[0], a, &first, e));
    int result = run_whole_experiment(first, a, &x, e);
    record_close(first);
    if (result == 0) result = run_experiment(x, options, a, &r, e);
    experiment_close(x);
    TRY(result);
    if (r.done < r.planned)
        log_info("%s: has %lld of %lld trials; `lacuna run EXPERIMENT -o %s` computes the rest",
                 r.folder, (long long)r.done, (long long)r.planned, r.folder);
    struct buf terminal = {0};
    result = run_report(r.folder, NULL, a, exit_code, &terminal, e);
    if (result == 0) printf(STR_FMT "%s/report.html\n", STR_ARG(buf_str(&terminal)), r.folder);
    buf_free(&terminal);
    return result;
}

int cli_merge(int argc, char **argv) {
    struct run_options options = {.runs_folder = "runs"};
    const char *folders[CLI_LIST_MOST];
    const struct cli_option table[] = {
        {.name = "--output",
         .short_name = "-o",
         .value = "RUN",
         .text = &options.folder,
         .help = "the merged run's folder; runs/NAME-HASH otherwise"},
    };
    int exit_code = EXIT_DONE;
    bool helped;
    struct err e = {0};
    if (cli_parse(argc, argv, table, 1, folders, 1, CLI_LIST_MOST, &options.shard_count, &helped,
                  &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    options.shards = folders;
    struct arena *a = arena_create("merge");
    int result = merge(&options, a, &exit_code, &e);
    arena_destroy(a);
    return result == 0 ? exit_code : cli_fail(argv[0], &e);
}

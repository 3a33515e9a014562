// lacuna run: runs an experiment or resumes its run, then reports.
#include "evals/cli_experiment.h"
#include "evals/cost.h"
#include "evals/experiment_scalar.h"
#include "evals/run.h"

#include "engine/base/file.h"
#include "engine/base/log.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

struct settings {
    struct run_options run;
    struct cli_overrides overrides;
    const char *experiment;
};

// The first Ctrl-C ends the run cleanly, the second one at once.
static void on_signal(int number) {
    (void)number;
    run_interrupt();
}

// A terminal that is closed ends a run as cleanly (unless nohup asked for the contrary); a reader
// of the progress that went away (`2>&1 | head`) does not end it at all.
static void handle_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void print_word(FILE *out, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./=,:@%+";
    if (word[0] != '\0' && strspn(word, plain) == strlen(word)) {
        fprintf(out, " %s", word);
        return;
    }
    fputs(" '", out);
    for (const char *p = word; *p != '\0'; p++)
        if (*p == '\'')
            fputs("'\\''", out);
        else
            fputc(*p, out);
    fputc('\'', out);
}

static void say_how_to_resume(int argc, char **argv, const struct run_result *r) {
    fprintf(stderr, "lacuna: interrupted after %lld of %lld trials; resume with\n  lacuna",
            (long long)r->done, (long long)r->planned);
    for (int i = 0; i < argc; i++) print_word(stderr, argv[i]);
    fputc('\n', stderr);
}

static int run_and_report(int argc, char **argv, const struct settings *s, struct arena *a,
                          int *exit_code, struct err *e) {
    struct experiment *x = NULL;
    struct run_result r = {0};
    TRY(cli_experiment_load(s->experiment, &s->overrides, a, &x, e));
    for (int i = 0; i < x->warning_count; i++) log_warn("%s", x->warnings[i]);
    handle_signals();
    int result = run_experiment(x, &s->run, a, &r, e);
    experiment_close(x);
    if (result != 0 && e->code == ERR_IO && r.folder != NULL && file_is_directory(r.folder))
        log_info("what was recorded stays; once the cause is gone, the same command goes on");
    TRY(result);
    if (r.over_cost) {
        fprintf(stderr,
                "lacuna: stopped at %lld of %lld trials: the next one could cost more than "
                "--max-cost leaves; the same command with a higher one goes on\n",
                (long long)r.done, (long long)r.planned);
        *exit_code = EXIT_ERROR;
        return 0;
    }
    if (r.interrupted) {
        say_how_to_resume(argc, argv, &r);
        *exit_code = EXIT_ERROR;
        return 0;
    }
    if (r.was_complete) log_info("%s: is complete; nothing was run again", r.folder);
    struct buf terminal = {0};
    result = run_report(r.folder, NULL, a, exit_code, &terminal, e);
    if (result == 0) printf(STR_FMT "%s/report.html\n", STR_ARG(buf_str(&terminal)), r.folder);
    buf_free(&terminal);
    return result;
}

// "2.50" in units of evals/cost.h; NULL: no bound.
static int read_cost(const char *text, int64_t *out, struct err *e) {
    int64_t millionths;
    *out = 0;
    if (text == NULL) return 0;
    if (scalar_decimal(str_from(text), 6, &millionths) != 0 || millionths <= 0 ||
        millionths > INT64_MAX / (COST_UNIT / 1000000))
        FAIL(e, ERR_USAGE, "--max-cost takes an amount above 0 such as 2.50, not '%.40s'", text);
    *out = millionths * (COST_UNIT / 1000000);
    return 0;
}

static int check_settings(const struct settings *s, int64_t threads, struct err *e) {
    if (threads < 0 || threads > 4096)
        FAIL(e, ERR_USAGE, "--threads %lld is not between 0 and 4096", (long long)threads);
    if (s->run.folder != NULL && s->run.folder[0] == '\0')
        FAIL(e, ERR_USAGE, "-o: the name of the run's folder is empty");
    return 0;
}

int cli_run(int argc, char **argv) {
    struct settings s = {
        .run = {.runs_folder = "runs", .cache = cli_cache_folder(), .variable = cli_variable},
        .overrides = CLI_NO_OVERRIDES};
    int64_t threads = 0;
    const char *max_cost = NULL;
    struct cli_list reuse = {0};
    bool helped;
    const struct cli_option options[] = {
        {.name = "--output",
         .short_name = "-o",
         .value = "RUN",
         .text = &s.run.folder,
         .help = "the run's folder; runs/NAME-HASH otherwise"},
        CLI_OVERRIDE_OPTIONS(s.overrides),
        {.name = "--threads",
         .value = "N",
         .number = &threads,
         .help = "threads for the engine; 0: all that the machine has"},
        {.name = "--op-table",
         .value = "NAME",
         .text = &s.run.op_table,
         .help = "c, avx2, avx512f, avx512_bf16 (same bits); the fastest otherwise"},
        CLI_MEMORY_OPTION("what it may take beside the weights", &s.run.memory_bytes),
        {.name = "--max-cost",
         .value = "AMOUNT",
         .text = &max_cost,
         .help = "stops before served models could cost more (models[].price)"},
        {.name = "--retry-errors",
         .flag = &s.run.retry_errors,
         .help = "tries trials that ended in error again"},
        CLI_REUSE_OPTION(reuse),
    };
    int count, exit_code = EXIT_DONE;
    struct err e = {0};
    if (cli_parse(argc, argv, options, sizeof options / sizeof *options, &s.experiment, 1, 1,
                  &count, &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    int result = check_settings(&s, threads, &e);
    if (result == 0) result = read_cost(max_cost, &s.run.cost_most, &e);
    s.run.threads = (int)threads;
    s.run.reuse = reuse.items;
    s.run.reuse_count = reuse.count;
    struct arena *a = arena_create("run");
    if (result == 0) result = run_and_report(argc, argv, &s, a, &exit_code, &e);
    arena_destroy(a);
    return result == 0 ? exit_code : cli_fail(argv[0], &e);
}

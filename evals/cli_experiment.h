// What the verbs that take an EXPERIMENT share: its overrides.
#ifndef LACUNA_EVALS_CLI_EXPERIMENT_H
#define LACUNA_EVALS_CLI_EXPERIMENT_H

#include "evals/cli.h"
#include "evals/experiment.h"

struct cli_overrides {
    struct cli_list set;
    const char *only;
    int64_t limit; // CLI_NO_LIMIT: not given
};
#define CLI_NO_LIMIT INT64_MIN
#define CLI_NO_OVERRIDES                                                                           \
    { .limit = CLI_NO_LIMIT }

// The three options of `plan`, `run` and `prompt`; put them into the verb's own list.
#define CLI_OVERRIDE_OPTIONS(o)                                                                    \
    {.name = "--set",                                                                              \
     .value = "KEY=VALUE",                                                                         \
     .help = "changes a key of the file, e.g. generation.max_tokens=8; may be given again",        \
     .list = &(o).set},                                                                            \
        {.name = "--only",                                                                         \
         .value = "FIELD=VALUE,...",                                                               \
         .help = "only these trials, e.g. length=1024,depth=middle (a partial run)",               \
         .text = &(o).only},                                                                       \
    {                                                                                              \
        .name = "--limit", .value = "N",                                                           \
        .help = "only the first N trials of the plan (a partial run)", .number = &(o).limit        \
    }

// Of `plan` and `run`.
#define CLI_REUSE_OPTION(l)                                                                        \
    {                                                                                              \
        .name = "--reuse", .value = "RUN",                                                         \
        .help = "takes replies to the same prompts from an older run; may be given again",         \
        .list = &(l)                                                                               \
    }

int cli_experiment_load(const char *path, const struct cli_overrides *o, struct arena *a,
                        struct experiment **out, struct err *e);

#endif

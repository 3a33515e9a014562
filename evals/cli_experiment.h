// What the verbs that take an EXPERIMENT share: its overrides, and a provider for each model.
#ifndef LACUNA_EVALS_CLI_EXPERIMENT_H
#define LACUNA_EVALS_CLI_EXPERIMENT_H

#include "engine/provider.h"
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
     .help = "override a key of the file; may be given again",                                     \
     .list = &(o).set},                                                                            \
        {.name = "--only",                                                                         \
         .value = "FIELD=VALUE,...",                                                               \
         .help = "only trials with these fields of the key (a partial run)",                       \
         .text = &(o).only},                                                                       \
    {                                                                                              \
        .name = "--limit", .value = "N", .help = "only the first N trials (a partial run)",        \
        .number = &(o).limit                                                                       \
    }

// `limit` of a command line as experiment_load takes it.
int cli_limit_check(int64_t limit, int64_t *out, struct err *e);

int cli_experiment_load(const char *path, const struct cli_overrides *o, struct arena *a,
                        struct experiment **out, struct err *e);

// One provider a model, in file order; with `plan_only` weights stay closed. Close with
// cli_providers_close, which takes NULL and lists that were opened in part.
int cli_providers_open(const struct experiment *x, bool plan_only, struct arena *a,
                       struct provider ***out, struct err *e);
void cli_providers_close(const struct experiment *x, struct provider **list);

#endif

// The command line: one file cli_<verb>.c a verb, dispatched by cli.c. Only these files may exit,
// read the environment or print to stdout.
#ifndef LACUNA_EVALS_CLI_H
#define LACUNA_EVALS_CLI_H

#include "engine/base/err.h"
#include "engine/base/json.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Exit codes (DESIGN section 8): the first that applies of 2, 1, 100, 3, 0.
enum { EXIT_DONE = 0, EXIT_ERROR = 1, EXIT_USAGE = 2, EXIT_UNDECIDED = 3, EXIT_GATE = 100 };

// An option of a verb. Exactly one of the targets is set; `flag` options take no value.
struct cli_option {
    const char *name;       // "--limit"
    const char *short_name; // "-o", or NULL
    const char *value;      // "N", shown in the help; NULL: a flag
    const char *help;
    bool *flag;
    const char **text;
    int64_t *number;
    uint64_t *bytes;       // a whole number, or one of KiB, MiB or GiB: "512M", "2GiB"
    struct cli_list *list; // may be given several times
};
// Options of the verbs that open a model themselves; `o` has numerics, weights and backend.
#define CLI_MODEL_OPTIONS(o, threads_out)                                                          \
    {.name = "--numerics",                                                                         \
     .value = "ID",                                                                                \
     .help = "bf16-1 (default) or f32",                                                            \
     .text = &(o)->numerics},                                                                      \
        {.name = "--weights",                                                                      \
         .value = "HOW",                                                                           \
         .help = "auto, unpacked or stored",                                                       \
         .text = &(o)->weights},                                                                   \
        {.name = "--backend",                                                                      \
         .value = "NAME",                                                                          \
         .help = "auto, cpu or cuda",                                                              \
         .text = &(o)->backend},                                                                   \
    {                                                                                              \
        .name = "--threads", .value = "N", .help = "default: all cores", .number = (threads_out)   \
    }
// Of the verbs that plan or take memory; `what` it bounds.
#define CLI_MEMORY_OPTION(what, out)                                                               \
    {                                                                                              \
        .name = "--memory", .value = "SIZE",                                                       \
        .help = what ", in bytes or as 512M, 2G; 0: by the machine", .bytes = (out)                \
    }
#define CLI_LIST_MOST 64
struct cli_list {
    const char *items[CLI_LIST_MOST];
    int count;
};

struct cli_verb {
    const char *name;
    const char *arguments;             // "EXPERIMENT [KEY]"
    const char *summary;               // one line
    const char *detail;                // further paragraphs for --help, or NULL
    int (*run)(int argc, char **argv); // argv[0] is the verb; returns the exit code
};
extern const struct cli_verb cli_verbs[]; // ends with name NULL

// Parses options anywhere among the arguments; positional ones go to `positional` (at most `most`,
// at least `least`). `--help` prints the verb's help and sets *helped. "-h" too; "--" ends options.
int cli_parse(int argc, char **argv, const struct cli_option *options, int option_count,
              const char **positional, int least, int most, int *count, bool *helped,
              struct err *e);

struct cli_range {
    const char *name; // of the option
    int64_t value, least, most;
};
// Refuses the first value that is out of its range, by name.
int cli_check_ranges(const struct cli_range *ranges, int count, struct err *e);

// Prints "lacuna: <verb>: text" to stderr and returns the exit code for the error.
int cli_fail(const char *verb, const struct err *e);

// One line to stdout; the value is released. What cannot be written is found when the program ends.
void cli_print_json(json_t *value);
// Results of gates: [{"id","result","measured","why"}].
struct summary_gate;
json_t *cli_gates_json(const struct summary_gate *gates, int count);

// Puts another CUDA plug-in in force than the installed one.
int cli_use_plugin(const char *path, struct err *e);

// The folder of what later runs may use again; NULL: there is no place for it.
const char *cli_cache_folder(void);

// A variable of the environment; NULL: it is not set.
const char *cli_variable(const char *name);

// Text that may come from outside, as escape_terminal gives it.
void cli_print_clean(FILE *out, const char *text);

// One prototype a verb.
int cli_new(int argc, char **argv);
int cli_plan(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_prompt(int argc, char **argv);
int cli_repeat(int argc, char **argv);
int cli_try(int argc, char **argv);
int cli_score(int argc, char **argv);
int cli_review(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_view(int argc, char **argv);
int cli_compare(int argc, char **argv);
int cli_agree(int argc, char **argv);
int cli_baseline(int argc, char **argv);
int cli_merge(int argc, char **argv);
int cli_verify(int argc, char **argv);
int cli_model(int argc, char **argv);
int cli_tokenize(int argc, char **argv);
int cli_score_text(int argc, char **argv);
int cli_generate(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_schema(int argc, char **argv);

#endif

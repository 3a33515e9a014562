// lacuna's entry point: finds the verb, parses its options, turns errors into exit codes.
#include "evals/cli.h"

#include "engine/base/str.h"
#include "reports/escape.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct cli_verb cli_verbs[] = {
    {"new", "[NAME]", "a commented experiment file to start from",
     "Writes NAME.yaml, or to stdout without a NAME. A file that is there is never overwritten.",
     cli_new},
    {"plan", "EXPERIMENT", "what would run: trials, tokens, memory, time, power, gates",
     "Builds every prompt with the models' own tokenizers, so that whatever an experiment cannot\n"
     "give (a length that cannot be hit, a check that the filler meets) is an error here and not\n"
     "after hours. Nothing is written, and without --measure no weights are read.",
     cli_plan},
    {"run", "EXPERIMENT", "run or resume an experiment, then report",
     "Plans everything first, stores all prompts, then runs the trials and appends each outcome,\n"
     "synced, to the record. What prompts begin with in common is computed once, and replies grow\n"
     "together, as many as memory allows. A run that was interrupted or killed goes on with the\n"
     "same command; a complete one is reported again and not repeated. Ctrl-C ends it cleanly.\n"
     "With --reuse, trials whose token ids, model, numerics, backend, generation settings and\n"
     "(unless greedy) sampling stream an older run had take its replies, which are judged anew;\n"
     "the record equals that of a run without it.",
     cli_run},
    {"prompt", "EXPERIMENT|RUN KEY", "the exact prompt of a trial, with the constraints marked",
     "KEY is model/arm/length/placement@depth/repeat/sample, '-' where a field does not apply, as\n"
     "`lacuna plan --json` and plan.jsonl list them. The prompt of a run comes from its record,\n"
     "byte for byte; that of an experiment is built with the model's tokenizer.",
     cli_prompt},
    {"repeat", "RUN KEY", "run one trial again and compare",
     "Takes the prompt from the record. Exit code 1 when the reply is another one, or where the\n"
     "record has evidence, when the model looked elsewhere. A served model may well reply "
     "otherwise;\n"
     "when another model or fingerprint answers than then, that is told.",
     cli_repeat},
    {"try", "EXPERIMENT CONSTRAINT", "judge a reply given on stdin: verdict, match, why",
     "Reads the reply from stdin (one line break at its end is left out) and judges it as a run\n"
     "would, with the variables that a repeat draws or with those given.",
     cli_try},
    {"score", "RUN", "score again from the record",
     "Judges the recorded replies again, with the recorded checks or with those of --experiment,\n"
     "and writes the verdicts to RUN/scores-<12 hex>.jsonl. The ledger is never changed.",
     cli_score},
    {"review", "RUN", "a blind sample of replies for a person to judge",
     "Writes a CSV of replies and constraints without verdict, depth, length or model; somebody "
     "fills\n"
     "in its column human (met, omitted, violated, unsure). --import, with the same --sample and\n"
     "--seed, prints how far the checks agree and keeps it in RUN/reviews/; reports then say so.",
     cli_review},
    {"report", "RUN", "write the reports again, from the record alone", NULL, cli_report},
    {"view", "RUN", "serve the reports on 127.0.0.1",
     "Prints the address. Beside the four reports there is a page of facts that no report reads:\n"
     "build, machine, sessions and timings.",
     cli_view},
    {"compare", "BASELINE RUN", "did it become worse? two runs, trial by trial",
     "BASELINE is a run's folder or a file of `lacuna baseline`. Lists what differs besides the\n"
     "replies (each field needs --allow), which replies are identical, and paired tests with one\n"
     "of four answers: regressed (exit code 100), improved, no difference shown, underpowered (3).",
     cli_compare},
    {"agree", "LOCAL SERVED", "how far do the verdicts of two engines agree?",
     "Two runs of one experiment, of a local model and of a server, say. Trials with equal "
     "prompts\n"
     "(token ids or, where not both are known, messages) are pairs. Of each constraint and of "
     "all:\n"
     "how often both met it, one alone, or neither, with an interval, Cohen's kappa and Gwet's "
     "AC1;\n"
     "then the trials that are apart, and the noise of a server that was asked twice. Records of\n"
     "different checks or without an equal prompt are refused (exit code 3).",
     cli_agree},
    {"baseline", "RUN", "a small file of a run, to commit and compare with",
     "The identity, and of each trial its key, verdicts and hashes of prompt and reply. A run\n"
     "that is partial or not finished is refused. Equal runs give equal bytes.",
     cli_baseline},
    {"merge", "RUN...", "one record out of shards",
     "Shards are runs of one experiment that --only or --limit cut, perhaps on several machines.\n"
     "The whole plan is made again, and each trial takes over the reply of a shard with the same\n"
     "key, prompt and model; the record is then that of one run. What is missing, `run` computes.",
     cli_merge},
    {"verify", "RUN", "is the record whole and true?",
     "Checks the chain from the identity to the last line, that every planned trial has exactly\n"
     "one first attempt, that prompts hash to what is recorded, and that scoring the replies\n"
     "again gives the recorded verdicts. Shows starts, interruptions and resumes.",
     cli_verify},
    {"model", "FILE", "what is in a model file; KV bytes a token; memory at a length",
     "Prints the shape, the identity (SHA-256 of the file, its tokenizer and its chat template), "
     "the\n"
     "tensor types, the rotation, and a table of memory in bytes.",
     cli_model},
    {"tokenize", "MODEL", "text to token ids and back, line by line",
     "Reads one JSON string a line from stdin and writes one JSON array of ids a line; with\n"
     "--decode it is the other way round. Bytes that are not UTF-8 are written as\n"
     "{\"text_base64\": ...}, which the first direction reads too. Without --bos and --special\n"
     "there is no start token, and spellings of control tokens are plain text.",
     cli_tokenize},
    {"score-text", "MODEL", "log probabilities of given tokens",
     "Reads one JSON array of token ids, or a text, a line from stdin. Writes one JSON line each:\n"
     "ids, the log probability of each behind those before it (null for the first), and with\n"
     "--top K the K best [id, log probability] after each position.",
     cli_score_text},
    {"generate", "MODEL", "replies to raw prompts or conversations",
     "Reads one JSON value a line from stdin: a text, an array of token ids, or with --chat an\n"
     "array of {\"role\", \"content\"}. Writes one JSON line each, in input order: text, ids,\n"
     "number of tokens, and what ended the reply (stop, stop_string, length).",
     cli_generate},
    {"bench", "MODEL", "prefill, decode and batch speed beside the machine's ceiling",
     "ppN reads a prompt of N tokens, tgN writes N tokens of a reply, x B as B replies at once.\n"
     "Each test stands beside the speed that the ceiling which holds it allows: compute\n"
     "(multiply-adds as the op table's products use them), memory (reading what the test reads),\n"
     "or for few rows issue (the same op on data in the cores' own caches). Ceilings are measured\n"
     "again before and after each test, tests run in rounds, and medians are told.",
     cli_bench},
    {"schema", "", "the JSON schema of the experiment file", NULL, cli_schema},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char exit_codes[] =
    "Exit codes: 0 done and gates passed; 1 error (engine, file, or trials beyond `tolerate`);\n"
    "2 usage or experiment file; 3 cannot decide; 100 a gate failed; the first that applies of\n"
    "2, 1, 100, 3, 0.\n";

static const struct cli_verb *find_verb(const char *name) {
    for (const struct cli_verb *v = cli_verbs; v->name != NULL; v++)
        if (strcmp(v->name, name) == 0) return v;
    return NULL;
}

static void print_overview(FILE *out) {
    fprintf(out, "lacuna " LACUNA_VERSION ": which constraints of a long prompt does a model leave "
                 "out, and where?\n\nUsage: lacuna VERB ...\n\n");
    for (const struct cli_verb *v = cli_verbs; v->name != NULL; v++) {
        char call[64];
        snprintf(call, sizeof call, "%s %s", v->name, v->arguments);
        fprintf(out, "  %-30s %s\n", call, v->summary);
    }
    fprintf(out, "\n`lacuna VERB --help` explains a verb. %s", exit_codes);
}

static void print_verb_help(const char *name, const struct cli_option *options, int count) {
    const struct cli_verb *v = find_verb(name);
    printf("Usage: lacuna %s %s%s\n\n%s\n", v->name, v->arguments, count > 0 ? " [OPTIONS]" : "",
           v->summary);
    if (v->detail != NULL) printf("\n%s\n", v->detail);
    if (count > 0) printf("\nOptions:\n");
    for (int i = 0; i < count; i++) {
        const struct cli_option *o = &options[i];
        char spelling[64];
        snprintf(spelling, sizeof spelling, "%s%s%s%s%s", o->short_name ? o->short_name : "",
                 o->short_name ? ", " : "", o->name, o->value ? " " : "", o->value ? o->value : "");
        printf("  %-28s %s\n", spelling, o->help);
    }
    printf("\n%s", exit_codes);
}

static int parse_number(const struct cli_option *o, const char *text, struct err *e) {
    char *end;
    errno = 0;
    intmax_t value = strtoimax(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0')
        FAIL(e, ERR_USAGE, "%s %s takes a whole number, not \"%s\"", o->name, o->value, text);
    *o->number = value;
    return 0;
}

static int parse_bytes(const struct cli_option *o, const char *text, struct err *e) {
    static const struct {
        const char *name;
        int shift;
    } units[] = {{"", 0},     {"K", 10},   {"M", 20},   {"G", 30},
                 {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {NULL, 0}};
    char *unit = NULL;
    int i = 0;
    errno = 0;
    uintmax_t value = strtoumax(text, &unit, 10);
    while (units[i].name != NULL && strcmp(units[i].name, unit) != 0) i++;
    if (strspn(text, "0123456789") == 0 || units[i].name == NULL)
        FAIL(e, ERR_USAGE,
             "%s takes a whole number of bytes, or of KiB, MiB or GiB with K, M or G behind it, "
             "not \"%s\"",
             o->name, text);
    if (errno != 0 || value > (uintmax_t)INT64_MAX >> units[i].shift)
        FAIL(e, ERR_USAGE, "%s %s is more than any machine has", o->name, text);
    *o->bytes = (uint64_t)value << units[i].shift;
    return 0;
}

static int store_value(const struct cli_option *o, const char *value, struct err *e) {
    if (o->text != NULL) {
        *o->text = value;
        return 0;
    }
    if (o->number != NULL) return parse_number(o, value, e);
    if (o->bytes != NULL) return parse_bytes(o, value, e);
    if (o->list->count == CLI_LIST_MOST)
        FAIL(e, ERR_USAGE, "%s is given more than %d times", o->name, CLI_LIST_MOST);
    o->list->items[o->list->count++] = value;
    return 0;
}

static int unknown_option(const char *word, const struct cli_option *options, int count,
                          struct err *e) {
    const char *names[64];
    int n = 0;
    for (int i = 0; i < count && n < 63; i++) names[n++] = options[i].name;
    names[n++] = "--help";
    const char *near = str_nearest(word, names, (size_t)n);
    FAIL(e, ERR_USAGE, "unknown option %s%s%s%s; see --help", word, near ? " (did you mean " : "",
         near ? near : "", near ? "?)" : "");
}

// Handles argv[*at], an option; moves *at over a separate value.
static int parse_option(int argc, char **argv, int *at, const struct cli_option *options, int count,
                        struct err *e) {
    const char *word = argv[*at], *equals = strchr(word, '=');
    size_t n = equals != NULL ? (size_t)(equals - word) : strlen(word);
    for (int i = 0; i < count; i++) {
        const struct cli_option *o = &options[i];
        bool is_long = strlen(o->name) == n && strncmp(o->name, word, n) == 0;
        bool is_short = o->short_name != NULL && strcmp(o->short_name, word) == 0;
        if (!is_long && !is_short) continue;
        if (o->flag != NULL) {
            if (equals != NULL) FAIL(e, ERR_USAGE, "%s takes no value", o->name);
            *o->flag = true;
            return 0;
        }
        if (is_long && equals != NULL) return store_value(o, equals + 1, e);
        if (*at + 1 >= argc) FAIL(e, ERR_USAGE, "%s needs a value (%s)", o->name, o->value);
        return store_value(o, argv[++*at], e);
    }
    return unknown_option(word, options, count, e);
}

int cli_parse(int argc, char **argv, const struct cli_option *options, int option_count,
              const char **positional, int least, int most, int *count, bool *helped,
              struct err *e) {
    *count = 0;
    *helped = false;
    bool options_ended = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        bool is_option = !options_ended && word[0] == '-' && word[1] != '\0';
        if (is_option && strcmp(word, "--") == 0) {
            options_ended = true;
        } else if (is_option && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            print_verb_help(argv[0], options, option_count);
            *helped = true;
            return 0;
        } else if (is_option) {
            TRY(parse_option(argc, argv, &i, options, option_count, e));
        } else {
            if (*count == most) FAIL(e, ERR_USAGE, "unexpected argument \"%s\"; see --help", word);
            positional[(*count)++] = word;
        }
    }
    if (*count < least)
        FAIL(e, ERR_USAGE, "an argument is missing: usage: lacuna %s %s", argv[0],
             find_verb(argv[0])->arguments);
    return 0;
}

int cli_check_ranges(const struct cli_range *ranges, int count, struct err *e) {
    for (int i = 0; i < count; i++) {
        const struct cli_range *r = &ranges[i];
        if (r->value < r->least || r->value > r->most)
            FAIL(e, ERR_USAGE, "%s %" PRId64 " is not between %" PRId64 " and %" PRId64, r->name,
                 r->value, r->least, r->most);
    }
    return 0;
}

void cli_print_clean(FILE *out, const char *text) {
    struct buf clean = {0};
    escape_terminal(&clean, str_from(text));
    if (clean.n > 0) fwrite(clean.p, 1, clean.n, out);
    buf_free(&clean);
}

int cli_fail(const char *verb, const struct err *e) {
    fprintf(stderr, "lacuna: %s: ", verb);
    cli_print_clean(stderr, e->text); // it may quote a hostile file
    fputc('\n', stderr);
    switch (e->code) {
    case ERR_USAGE:
    case ERR_CONFIG: return EXIT_USAGE;
    case ERR_UNDECIDED: return EXIT_UNDECIDED;
    default: return EXIT_ERROR;
    }
}

// A file that is opened while 0, 1 or 2 is free would get that number, and what is printed would go
// into it. The wrong direction makes reading and printing fail as on a closed descriptor.
static void fill_standard_descriptors(void) {
    static const int modes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) < 0) abort();
}

// Results that did not arrive are an error, whatever they said.
static int end_output(int code) {
    bool lost = fflush(stdout) != 0 || ferror(stdout);
    if (!lost || code == EXIT_ERROR || code == EXIT_USAGE) return code;
    fprintf(stderr, "lacuna: standard output cannot be written; what was printed is not whole\n");
    return EXIT_ERROR;
}

static int run_program(int argc, char **argv) {
    struct err e;
    if (argc > 2 && strcmp(argv[1], "--cuda-plugin") == 0) {
        if (cli_use_plugin(argv[2], &e) != 0) return cli_fail("--cuda-plugin", &e);
        argc -= 2;
        argv += 2;
    }
    if (argc < 2) {
        print_overview(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_overview(stdout);
        return EXIT_DONE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("lacuna " LACUNA_VERSION "\n");
        return EXIT_DONE;
    }
    const struct cli_verb *verb = find_verb(argv[1]);
    if (verb != NULL) return verb->run(argc - 1, argv + 1);
    const char *names[64];
    size_t count = 0;
    for (const struct cli_verb *v = cli_verbs; v->name != NULL; v++) names[count++] = v->name;
    const char *near = str_nearest(argv[1], names, count);
    fprintf(stderr, "lacuna: unknown verb \"%s\"%s%s%s; `lacuna --help` lists them\n", argv[1],
            near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
    return EXIT_USAGE;
}

int main(int argc, char **argv) {
    fill_standard_descriptors();
    return end_output(run_program(argc, argv));
}

// lacuna agree: how far the verdicts of two runs of one experiment agree.
#include "evals/agree.h"
#include "evals/cli.h"

#include <stdio.h>
#include <string.h>

enum { APART_SHOWN = 20 };

struct agreeing {
    const char *words[2]; // LOCAL SERVED
    const char *models;   // "ID,ID", or NULL
    bool json;
    struct record *records[2];
    struct baseline sides[2];
    bool open[2];
    struct agreement result;
};

static const char letters[] = "AB";

// ---- text ----

static const char *identity_word(const struct baseline *b, const char *key) {
    const char *text = json_string_value(json_object_get(b->identity, key));
    return text != NULL ? text : "?";
}

static void print_sides(const struct agreeing *g) {
    for (int i = 0; i < 2; i++) {
        const struct baseline *b = &g->sides[i];
        printf("%c  ", letters[i]);
        cli_print_clean(stdout, b->path);
        printf("  (%s, numerics %s)\n", identity_word(b, "backend"), identity_word(b, "numerics"));
    }
}

static void print_pairs(const struct agreement *g) {
    printf("pairs: %lld trials with equal prompts (%lld by token ids, %lld by their messages)\n",
           (long long)g->pairs, (long long)g->by_ids, (long long)(g->pairs - g->by_ids));
    const struct {
        int64_t count;
        const char *why;
    } left_out[] = {{g->only_first, "only in A"},
                    {g->only_second, "only in B"},
                    {g->other_prompt, "in both, with other prompts"},
                    {g->not_ok, "invalid or ended in an error in one of the two"}};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (left_out[i].count > 0)
            printf("  not paired: %lld %s\n", (long long)left_out[i].count, left_out[i].why);
    printf("replies: %lld of %lld have the same text\n", (long long)g->same_text,
           (long long)g->pairs);
}

static void print_rows(const struct agreement *g) {
    printf("\n%-20s %8s %8s %7s %7s %8s  %-26s %6s %6s %13s\n", "verdicts", "pairs", "both met",
           "only A", "only B", "neither", "agree on met, 95 %", "kappa", "AC1", "same verdict");
    for (int i = 0; i < g->row_count; i++) {
        const struct agree_row *r = &g->rows[i];
        char kappa[16] = "-", rate[32];
        if (r->has_kappa) snprintf(kappa, sizeof kappa, "%.2f", r->kappa);
        snprintf(rate, sizeof rate, "%.1f %% (%.1f to %.1f)", 100 * r->rate, 100 * r->interval.low,
                 100 * r->interval.high);
        printf("%-20s %8d %8d %7d %7d %8d  %-26s %6s %6.2f %13d\n", r->constraint, r->pairs,
               r->both_met, r->only_first, r->only_second, r->neither, rate, kappa, r->ac1,
               r->same_verdict);
    }
    printf("\n%-20s %9s %9s %9s %9s\n", "A \\ B", "met", "omitted", "violated", "unscored");
    for (int i = 0; i < AGREE_CLASSES; i++) {
        const int *of = g->rows[0].table[i];
        printf("%-20s %9d %9d %9d %9d\n", verdict_name((enum verdict)i), of[0], of[1], of[2],
               of[3]);
    }
}

static void print_apart(const struct agreement *g) {
    printf("\n");
    for (int64_t i = 0; i < g->apart_count && i < APART_SHOWN; i++) {
        const struct agree_apart *d = &g->apart[i];
        printf("apart: %s  %s: A %s, B %s\n", d->key, d->constraint, verdict_name(d->first),
               verdict_name(d->second));
    }
    if (g->apart_count > APART_SHOWN)
        printf("  ... and %lld more (--json lists all)\n",
               (long long)(g->apart_count - APART_SHOWN));
    if (g->apart_count == 0) printf("apart: no verdict\n");
}

static void print_noise(const struct agreeing *g) {
    for (int i = 0; i < 2; i++) {
        const struct baseline *b = &g->sides[i];
        for (int m = 0; m < b->model_count; m++) {
            const struct record_noise *n = &b->noise[m];
            if (n->asked > 0)
                printf("noise of %c: %s gave another text to %d and other verdicts to %d of %d "
                       "requests that were sent twice\n",
                       letters[i], b->models[m], n->asked - n->same_text,
                       n->asked - n->same_verdicts, n->asked);
        }
    }
}

static void print_text(const struct agreeing *g) {
    print_sides(g);
    print_pairs(&g->result);
    print_rows(&g->result);
    print_apart(&g->result);
    print_noise(g);
    for (int i = 0; i < g->result.warning_count; i++) {
        printf("warning: ");
        cli_print_clean(stdout, g->result.warnings[i]);
        putchar('\n');
    }
}

// ---- JSON ----

static json_t *row_json(const struct agree_row *r) {
    json_t *o = json_object(), *table = json_array();
    json_put(o, "constraint", json_text_c(r->constraint));
    json_put(o, "pairs", json_integer(r->pairs));
    json_put(o, "repeats", json_integer(r->repeats));
    json_put(o, "both_met", json_integer(r->both_met));
    json_put(o, "only_first", json_integer(r->only_first));
    json_put(o, "only_second", json_integer(r->only_second));
    json_put(o, "neither", json_integer(r->neither));
    json_put(o, "same_verdict", json_integer(r->same_verdict));
    json_put(o, "agree_ppm", json_ppm(r->rate));
    json_put(o, "low_ppm", json_ppm(r->interval.low));
    json_put(o, "high_ppm", json_ppm(r->interval.high));
    json_put(o, "kappa_ppm", r->has_kappa ? json_ppm(r->kappa) : json_null());
    json_put(o, "ac1_ppm", json_ppm(r->ac1));
    for (int i = 0; i < AGREE_CLASSES; i++) {
        const int *of = r->table[i];
        json_array_append_new(table, json_pack("[i,i,i,i]", of[0], of[1], of[2], of[3]));
    }
    json_put(o, "table", table);
    return o;
}

static json_t *apart_json(const struct agreement *g) {
    json_t *list = json_array();
    for (int64_t i = 0; i < g->apart_count; i++) {
        json_t *o = json_object();
        json_put(o, "key", json_text_c(g->apart[i].key));
        json_put(o, "constraint", json_text_c(g->apart[i].constraint));
        json_put(o, "first", json_text_c(verdict_name(g->apart[i].first)));
        json_put(o, "second", json_text_c(verdict_name(g->apart[i].second)));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *noise_json(const struct agreeing *g) {
    json_t *list = json_array();
    for (int i = 0; i < 2; i++) {
        const struct baseline *b = &g->sides[i];
        for (int m = 0; m < b->model_count; m++) {
            const struct record_noise *n = &b->noise[m];
            if (n->asked == 0) continue;
            json_t *o = json_object();
            json_put(o, "of", json_text_c(i == 0 ? "first" : "second"));
            json_put(o, "model", json_text_c(b->models[m]));
            json_put(o, "requests", json_integer(n->asked));
            json_put(o, "same_text", json_integer(n->same_text));
            json_put(o, "same_verdicts", json_integer(n->same_verdicts));
            json_array_append_new(list, o);
        }
    }
    return list;
}

static void print_json(const struct agreeing *g) {
    const struct agreement *r = &g->result;
    json_t *o = json_object(), *rows = json_array(), *warnings = json_array();
    for (int i = 0; i < r->row_count; i++) json_array_append_new(rows, row_json(&r->rows[i]));
    for (int i = 0; i < r->warning_count; i++)
        json_array_append_new(warnings, json_text_c(r->warnings[i]));
    json_put_bytes(o, "first", str_from(g->words[0]));
    json_put_bytes(o, "second", str_from(g->words[1]));
    json_put(o, "pairs", json_integer(r->pairs));
    json_put(o, "pairs_by_ids", json_integer(r->by_ids));
    json_put(o, "only_in_first", json_integer(r->only_first));
    json_put(o, "only_in_second", json_integer(r->only_second));
    json_put(o, "other_prompts", json_integer(r->other_prompt));
    json_put(o, "not_ok", json_integer(r->not_ok));
    json_put(o, "same_text", json_integer(r->same_text));
    json_put(o, "agreement", rows);
    json_put(o, "apart", apart_json(r));
    json_put(o, "noise", noise_json(g));
    json_put(o, "warnings", warnings);
    cli_print_json(o);
}

// ---- the verb ----

static int read_models(const struct agreeing *g, struct arena *a, const char *models[2],
                       struct err *e) {
    struct str text = str_from(g->models);
    size_t comma = str_find(text, STR(","), 0);
    if (comma == STR_NONE || comma == 0 || comma + 1 == text.n)
        FAIL(e, ERR_USAGE, "--models takes two ids with a comma between them, not \"%s\"",
             g->models);
    models[0] = str_to_c(a, str_slice(text, 0, comma));
    models[1] = str_to_c(a, str_slice(text, comma + 1, text.n));
    return 0;
}

static int agree(struct agreeing *g, struct arena *a, struct err *e) {
    const char *models[2];
    if (g->models != NULL) TRY(read_models(g, a, models, e));
    for (int i = 0; i < 2; i++) {
        TRY(record_open(g->words[i], a, &g->records[i], e));
        TRY(baseline_of_record(g->records[i], a, &g->sides[i], e));
        g->open[i] = true;
    }
    if (g->models == NULL &&
        strcmp(g->sides[0].identity_sha256, g->sides[1].identity_sha256) == 0 &&
        strcmp(g->sides[0].ledger_sha256, g->sides[1].ledger_sha256) == 0)
        FAIL(e, ERR_USAGE,
             "%s and %s are one record, which agrees with itself; name two of its models with "
             "--models",
             g->words[0], g->words[1]);
    TRY(agree_runs(&g->sides[0], &g->sides[1], g->models != NULL ? models : NULL, a, &g->result,
                   e));
    if (g->json)
        print_json(g);
    else
        print_text(g);
    if (fflush(stdout) != 0) FAIL(e, ERR_IO, "standard output cannot be written");
    return 0;
}

int cli_agree(int argc, char **argv) {
    struct agreeing g = {0};
    const struct cli_option options[] = {
        {.name = "--models",
         .value = "ID,ID",
         .text = &g.models,
         .help = "which model of either run is meant; by equal ids otherwise"},
        {.name = "--json", .flag = &g.json, .help = "one JSON object instead of text"},
    };
    int count;
    bool helped;
    struct err e = {0};
    if (cli_parse(argc, argv, options, sizeof options / sizeof *options, g.words, 2, 2, &count,
                  &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    struct arena *a = arena_create("agree");
    int result = agree(&g, a, &e);
    for (int i = 0; i < 2; i++) {
        if (g.open[i]) baseline_close(&g.sides[i]);
        record_close(g.records[i]);
    }
    arena_destroy(a);
    return result == 0 ? EXIT_DONE : cli_fail(argv[0], &e);
}

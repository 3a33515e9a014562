// lacuna review: a blind sample of replies for a person to judge, and what the answers say.
#include "evals/cli.h"
#include "evals/judge.h"
#include "evals/review.h"
#include "evals/run_setup.h"

#include "engine/base/file.h"
#include "engine/base/log.h"

#include <stdio.h>

#define ROWS_MOST 1000000

struct reviewing {
    const char *folder, *output, *import;
    int64_t sample, seed;
    bool json;
};

// ---- out ----

static int write_sample(const struct reviewing *v, const struct record *r,
                        const struct experiment *x, const struct review_rows *rows, struct arena *a,
                        struct err *e) {
    struct buf csv = {0};
    if (v->output != NULL && file_exists(v->output))
        FAIL(e, ERR_USAGE,
             "%s: is there already; what somebody may have filled in is not written over",
             v->output);
    int result = review_csv(r, x, rows, a, &csv, e);
    if (result == 0 && v->output == NULL) fwrite(csv.p, 1, csv.n, stdout);
    if (result == 0 && v->output != NULL) result = file_write_atomic(v->output, buf_str(&csv), e);
    buf_free(&csv);
    if (result == 0)
        log_info("%d rows; fill the column 'human' with met, omitted, violated or unsure, then "
                 "lacuna review %s --import FILE --sample %lld --seed %lld",
                 rows->count, v->folder, (long long)v->sample, (long long)v->seed);
    return result;
}

// ---- in ----

static void print_agreement(const char *name, const struct review_agreement *g) {
    printf("  %-20s %d of %d", name, g->agreed, g->judged);
    if (g->unsure > 0) printf(" (%d unsure)", g->unsure);
    if (g->judged > 0)
        printf("; of all verdicts %.1f %%, 95 %% interval %.1f to %.1f %%", 100 * g->share,
               100 * g->interval.low, 100 * g->interval.high);
    if (g->has_kappa) printf("; kappa %.2f", g->kappa);
    if (g->judged > 0 && g->covered < 1)
        printf("; %.1f %% of its verdicts are of kinds that no judged row stands for",
               100 * (1 - g->covered));
    putchar('\n');
}

static void print_text(const struct experiment *x, const struct review_rows *rows, const char *path,
                       bool written) {
    struct review_agreement all, one;
    review_agree(rows, x->constraint_count, -1, &all);
    printf("checks agree with a human on\n");
    print_agreement("all", &all);
    for (int i = 0; i < x->constraint_count; i++) {
        review_agree(rows, x->constraint_count, i, &one);
        if (one.rows > 0) print_agreement(x->constraints[i].id, &one);
    }
    printf("\n  %-20s %10s %10s %10s\n", "check \\ human", "met", "omitted", "violated");
    for (int i = 0; i < REVIEW_CLASSES; i++)
        printf("  %-20s %10d %10d %10d\n", review_label_name((enum review_label)i), all.table[i][0],
               all.table[i][1], all.table[i][2]);
    printf("%s%s\n`lacuna report` writes it into the reports\n", path,
           written ? "" : " (was there already)");
}

static json_t *agreement_json(const char *name, const struct review_agreement *g) {
    json_t *o = json_object(), *table = json_array();
    json_put(o, "constraint", json_text_c(name));
    json_put(o, "rows", json_integer(g->rows));
    json_put(o, "unsure", json_integer(g->unsure));
    json_put(o, "judged", json_integer(g->judged));
    json_put(o, "agreed", json_integer(g->agreed));
    if (g->judged > 0) {
        json_put(o, "share_ppm", json_ppm(g->share));
        json_put(o, "low_ppm", json_ppm(g->interval.low));
        json_put(o, "high_ppm", json_ppm(g->interval.high));
        json_put(o, "covered_ppm", json_ppm(g->covered));
    }
    for (int i = 0; i < REVIEW_CLASSES; i++)
        json_array_append_new(table,
                              json_pack("[i,i,i]", g->table[i][0], g->table[i][1], g->table[i][2]));
    json_put(o, "table", table);
    return o;
}

static void print_json(const struct experiment *x, const struct review_rows *rows,
                       const char *path) {
    struct review_agreement g;
    json_t *o = json_object(), *list = json_array();
    review_agree(rows, x->constraint_count, -1, &g);
    json_put(o, "file", json_text_c(path));
    json_put(o, "all", agreement_json(NULL, &g));
    for (int i = 0; i < x->constraint_count; i++) {
        review_agree(rows, x->constraint_count, i, &g);
        if (g.rows > 0) json_array_append_new(list, agreement_json(x->constraints[i].id, &g));
    }
    json_put(o, "constraints", list);
    cli_print_json(o);
}

static int import_sample(const struct reviewing *v, const struct record *r,
                         const struct experiment *x, struct review_rows *rows, struct arena *a,
                         struct err *e) {
    char hex[HASH_HEX_SIZE];
    const char *path;
    bool written;
    TRY(review_read(v->import, rows, a, e));
    TRY(hash_file(v->import, hex, e));
    TRY(review_store(r, x, rows, (uint64_t)v->seed, hex, a, &path, &written, e));
    if (v->json)
        print_json(x, rows, path);
    else
        print_text(x, rows, path, written);
    return 0;
}

static int review(const struct reviewing *v, struct arena *a, struct err *e) {
    struct record *r;
    struct experiment *x = NULL;
    struct review_rows rows;
    if (v->sample < 1 || v->sample > ROWS_MOST)
        FAIL(e, ERR_USAGE, "--sample %lld: not between 1 and %d", (long long)v->sample, ROWS_MOST);
    if (v->seed < 0) FAIL(e, ERR_USAGE, "--seed %lld: is negative", (long long)v->seed);
    if (v->import != NULL && v->output != NULL)
        FAIL(e, ERR_USAGE, "--import reads and --output writes: give one of them");
    TRY(record_open(v->folder, a, &r, e));
    int result = judge_need(r, "there is nothing for a person to judge", e);
    if (result == 0) result = run_recorded_experiment(r, v->folder, a, &x, e);
    if (result == 0) result = judge_trust(r, x, e);
    if (result == 0) result = review_draw(r, x, (int)v->sample, (uint64_t)v->seed, a, &rows, e);
    if (result == 0)
        result = v->import != NULL ? import_sample(v, r, x, &rows, a, e)
                                   : write_sample(v, r, x, &rows, a, e);
    experiment_close(x);
    record_close(r);
    return result;
}

int cli_review(int argc, char **argv) {
    struct reviewing v = {.sample = 60, .seed = 1};
    const struct cli_option options[] = {
        {.name = "--sample",
         .value = "N",
         .number = &v.sample,
         .help = "rows, in equal shares over constraints and verdicts; 60 otherwise"},
        {.name = "--seed", .value = "N", .number = &v.seed, .help = "of the draw; 1 otherwise"},
        {.name = "--output",
         .short_name = "-o",
         .value = "FILE",
         .text = &v.output,
         .help = "the CSV goes to this file instead of stdout"},
        {.name = "--import",
         .value = "FILE",
         .text = &v.import,
         .help = "the filled-in CSV: prints the agreement and keeps it in the record"},
        {.name = "--json", .flag = &v.json, .help = "with --import: one JSON object"},
    };
    int count;
    bool helped;
    struct err e = {0};
    if (cli_parse(argc, argv, options, sizeof options / sizeof *options, &v.folder, 1, 1, &count,
                  &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    struct arena *a = arena_create("review");
    int result = review(&v, a, &e);
    arena_destroy(a);
    return result == 0 ? EXIT_DONE : cli_fail(argv[0], &e);
}

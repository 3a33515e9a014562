// lacuna score: the replies of a record judged again, with the recorded checks or with other ones.
#include "evals/cli.h"
#include "evals/judge.h"
#include "evals/run_setup.h"
#include "evals/score.h"
#include "evals/summarize.h"

#include <stdio.h>
#include <string.h>

enum { CHANGES_SHOWN = 20 };

struct scoring {
    const char *folder, *experiment;
    bool json;
    struct score_result result;
    struct summary summary;
};

static int load(const struct scoring *s, const struct record *r, struct arena *a,
                struct experiment **x, struct err *e) {
    bool own = s->experiment == NULL;
    if (own) {
        TRY(run_recorded_experiment(r, s->folder, a, x, e));
    } else {
        if (r->resolved == NULL) FAIL(e, ERR_RECORD, "%s/resolved.json: is missing", s->folder);
        const struct experiment_overrides none = {.limit = -1};
        TRY(experiment_load(s->experiment, &none, a, x, e));
    }
    int result = own ? judge_trust(r, *x, e) : score_compatible(r->resolved, (*x)->resolved, e);
    if (result == 0) return 0;
    experiment_close(*x);
    *x = NULL;
    return own ? -1 : err_prefix(e, "%s", s->experiment);
}

static void print_text(const struct scoring *s) {
    const struct score_result *r = &s->result;
    struct buf table = {0};
    report_terminal(&s->summary, &table);
    fputs(table.p != NULL ? table.p : "", stdout);
    buf_free(&table);
    for (int64_t i = 0; i < r->change_count && i < CHANGES_SHOWN; i++)
        printf("%s  %s: %s, was %s\n", r->changes[i].key, r->changes[i].constraint,
               verdict_name(r->changes[i].now), verdict_name(r->changes[i].before));
    if (r->change_count > CHANGES_SHOWN)
        printf("... and %lld more\n", (long long)(r->change_count - CHANGES_SHOWN));
    printf("%lld trials scored, %lld verdicts changed\n%s%s\n", (long long)r->scored,
           (long long)r->change_count, r->path, r->written ? "" : " (was there already)");
}

static void print_json(const struct scoring *s) {
    const struct score_result *r = &s->result;
    json_t *o = json_object(), *changes = json_array();
    for (int64_t i = 0; i < r->change_count; i++) {
        json_t *change = json_object();
        json_put(change, "key", json_text_c(r->changes[i].key));
        json_put(change, "constraint", json_text_c(r->changes[i].constraint));
        json_put(change, "before", json_text_c(verdict_name(r->changes[i].before)));
        json_put(change, "now", json_text_c(verdict_name(r->changes[i].now)));
        json_array_append_new(changes, change);
    }
    json_put(o, "file", json_text_c(r->path));
    json_put(o, "written", json_boolean(r->written));
    json_put(o, "sha256", json_text_c(r->sha256));
    json_put(o, "scored", json_integer(r->scored));
    json_put(o, "changes", changes);
    json_put(o, "gates", cli_gates_json(s->summary.gates, s->summary.gate_count));
    cli_print_json(o);
}

static int score(struct scoring *s, struct arena *a, struct err *e) {
    struct record *r;
    struct experiment *x = NULL;
    TRY(record_open(s->folder, a, &r, e));
    int result = judge_need(r, "its replies cannot be judged again", e);
    if (result == 0) result = load(s, r, a, &x, e);
    if (result == 0) result = score_record(r, x, a, &s->result, e);
    if (result == 0) result = summarize(r, x, a, &s->summary, e);
    if (result == 0 && s->json) print_json(s);
    if (result == 0 && !s->json) print_text(s);
    experiment_close(x);
    record_close(r);
    return result;
}

int cli_score(int argc, char **argv) {
    struct scoring s = {0};
    const struct cli_option options[] = {
        {.name = "--experiment",
         .value = "FILE",
         .text = &s.experiment,
         .help = "an experiment with changed checks, gates, primary, tolerate or effective_level"},
        {.name = "--json", .flag = &s.json, .help = "one JSON object instead of text"},
    };
    int count;
    bool helped;
    struct err e = {0};
    if (cli_parse(argc, argv, options, 2, &s.folder, 1, 1, &count, &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    struct arena *a = arena_create("score");
    int result = score(&s, a, &e), exit_code = result == 0 ? summary_exit_code(&s.summary) : 0;
    arena_destroy(a);
    return result == 0 ? exit_code : cli_fail(argv[0], &e);
}

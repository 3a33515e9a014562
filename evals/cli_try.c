// lacuna try: one reply from stdin, judged by one constraint's checks.
#include "evals/cli.h"
#include "evals/answer.h"
#include "evals/explain.h"
#include "evals/judge.h"
#include "evals/plan_internal.h"

#include "engine/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REPLY_BYTES_MOST ((size_t)64 << 20)

struct trying {
    const char *arguments[2]; // EXPERIMENT CONSTRAINT
    int64_t repeat;
    struct cli_list vars, set;
    const char *finish;
    bool json;
};

static int read_reply(struct arena *a, struct str *out, struct err *e) {
    if (isatty(STDIN_FILENO)) log_info("type the reply, then Ctrl-D");
    struct buf b = {0};
    char block[65536];
    size_t n;
    while ((n = fread(block, 1, sizeof block, stdin)) > 0 && b.n <= REPLY_BYTES_MOST)
        buf_add(&b, block, n);
    bool failed = ferror(stdin) != 0, too_long = b.n > REPLY_BYTES_MOST;
    // echo and editors add a line break that is none of the reply.
    if (b.n > 0 && b.p[b.n - 1] == '\n') b.n--;
    *out = buf_take(&b, a);
    if (failed) FAIL(e, ERR_IO, "stdin: %s", strerror(errno));
    if (too_long) FAIL(e, ERR_INPUT, "stdin: more than %zu bytes", REPLY_BYTES_MOST);
    return 0;
}

static int find_constraint(const struct experiment *x, const char *id, int *out, struct err *e) {
    struct buf known = {0};
    *out = experiment_constraint_index(x, id);
    if (*out >= 0) return 0;
    for (int i = 0; i < x->constraint_count; i++)
        buf_printf(&known, "%s%s", i > 0 ? ", " : "", x->constraints[i].id);
    ERR_SET(e, ERR_USAGE, "there is no constraint '%s'; there are %s", id, known.p);
    buf_free(&known);
    return -1;
}

// Its own variables and those that all constraints share.
static bool is_var_of(const struct record_var *v, const char *constraint) {
    return strcmp(v->constraint, constraint) == 0 || strcmp(v->constraint, RECORD_SHARED_VARS) == 0;
}

// "--var name=value" replaces what the repeat has drawn for this constraint.
static int override_vars(const struct trying *t, const char *constraint, struct repeat_draw *d,
                         struct err *e) {
    for (int i = 0; i < t->vars.count; i++) {
        const char *item = t->vars.items[i], *equals = strchr(item, '=');
        if (equals == NULL) FAIL(e, ERR_USAGE, "--var %s: expected NAME=VALUE", item);
        struct str name = {item, (size_t)(equals - item)};
        bool found = false;
        for (int k = 0; k < d->var_count; k++) {
            if (!is_var_of(&d->vars[k], constraint)) continue;
            if (!str_equal_c(name, d->vars[k].name)) continue;
            d->vars[k].value = str_from(equals + 1);
            found = true;
        }
        if (!found)
            FAIL(e, ERR_USAGE, "--var %s: the constraint '%s' has no variable '" STR_FMT "'", item,
                 constraint, STR_ARG(name));
    }
    return 0;
}

static int draw(const struct trying *t, const struct experiment *x, int constraint, struct arena *a,
                struct repeat_draw *d, struct err *e) {
    struct case_table cases = {0};
    if (x->cases_path != NULL) TRY(cases_load(x->cases_path, x->cases_id, a, &cases, e));
    int most = cases.row_count > 0 ? cases.row_count : INT32_MAX;
    if (t->repeat < 0 || t->repeat >= most)
        FAIL(e, ERR_USAGE, "--repeat %lld: not between 0 and %d", (long long)t->repeat, most - 1);
    TRY(repeat_draw(x, &cases, (int)t->repeat, a, a, d, e));
    return override_vars(t, x->constraints[constraint].id, d, e);
}

// How `check` and `violated_check` came to their outcomes.
static const char *const tree_keys[] = {"check", "violated_check"};

static const char *truth_word(const struct check_step *s) {
    return s->truth == CHECK_HOLDS ? "yes" : s->truth == CHECK_FAILS ? "no " : "?  ";
}

static void print_trace(const char *key, const struct check_trace *t) {
    if (t->count > 0) printf("  %s\n", key);
    for (int i = 0; i < t->count; i++)
        printf("    %*s%s %s%s\n", 2 * t->steps[i].depth, "", truth_word(&t->steps[i]),
               t->steps[i].text,
               t->steps[i].settled || t->steps[i].truth == CHECK_ERRED
                   ? ""
                   : " (more text could change it)");
}

static json_t *trace_json(const struct check_trace *t) {
    json_t *list = json_array();
    for (int i = 0; i < t->count; i++) {
        const struct check_step *s = &t->steps[i];
        json_t *o = json_object();
        json_put(o, "depth", json_integer(s->depth));
        json_put(o, "holds",
                 s->truth == CHECK_ERRED ? json_null() : json_boolean(s->truth == CHECK_HOLDS));
        json_put(o, "settled", json_boolean(s->settled));
        json_put_bytes(o, "text", str_from(s->text));
        json_array_append_new(list, o);
    }
    return list;
}

static void print_text(const struct experiment_constraint *c, const struct repeat_draw *d,
                       const struct record_verdict *v, const struct check_trace traces[2],
                       const char *why) {
    printf("%s: %s%s%s%s\n  %s\n", c->id, verdict_name(v->verdict), v->reason ? " (" : "",
           v->reason ? v->reason : "", v->reason ? ")" : "", why);
    for (int i = 0; i < 2; i++) print_trace(tree_keys[i], &traces[i]);
    for (int i = 0; i < v->near_count; i++)
        printf("%s" STR_FMT "%s", i == 0 ? "  near misses: " : ", ", STR_ARG(v->near[i]),
               i + 1 == v->near_count ? "\n" : "");
    for (int i = 0; i < d->var_count; i++)
        if (is_var_of(&d->vars[i], c->id))
            printf("  with %s = " STR_FMT "\n", d->vars[i].name, STR_ARG(d->vars[i].value));
}

static void print_json(const struct experiment_constraint *c, const struct repeat_draw *d,
                       const struct record_verdict *v, const struct check_trace traces[2],
                       const struct reply *reply, const char *why) {
    json_t *o = json_object(), *vars = json_object();
    json_put(o, "constraint", json_text_c(c->id));
    json_put(o, "verdict", json_text_c(verdict_name(v->verdict)));
    json_put(o, "reason", json_text_c(v->reason));
    json_put(o, "by", json_text_c(v->by));
    if (v->has_match) {
        json_put(o, "match", json_pack("[I,I]", (json_int_t)v->match[0], (json_int_t)v->match[1]));
        json_put_bytes(o, "matched", str_slice(reply->text, v->match[0], v->match[1]));
    }
    if (v->near_count > 0) {
        json_t *near = json_array();
        for (int i = 0; i < v->near_count; i++) json_array_append_new(near, json_text(v->near[i]));
        json_put(o, "near", near);
    }
    for (int i = 0; i < d->var_count; i++)
        if (is_var_of(&d->vars[i], c->id)) json_put_bytes(vars, d->vars[i].name, d->vars[i].value);
    json_put(o, "vars", vars);
    json_put_bytes(o, "why", str_from(why)); // it quotes the reply, which may hold any bytes
    for (int i = 0; i < 2; i++)
        if (traces[i].count > 0) json_put(o, tree_keys[i], trace_json(&traces[i]));
    cli_print_json(o);
}

static int try_reply(const struct trying *t, const struct experiment *x, struct arena *a,
                     struct err *e) {
    int constraint, count;
    struct repeat_draw d;
    struct str text;
    TRY(find_constraint(x, t->arguments[1], &constraint, e));
    TRY(draw(t, x, constraint, a, &d, e));
    TRY(read_reply(a, &text, e));
    const struct record_trial trial = {.vars = d.vars, .var_count = d.var_count};
    struct reply reply = {.text = text, .finish = t->finish};
    answer_find(&x->models[0].reasoning, text, reply.answer);
    reply.thought = str_slice(text, 0, reply.answer[0]);
    struct check_set *checks = check_set_open();
    struct record_verdict *verdicts;
    struct check_trace traces[2];
    int result = judge_reply(x, checks, &trial, &reply, a, &verdicts, &count, e);
    for (int i = 0; i < 2 && result == 0; i++)
        result = judge_explain(x, checks, &trial, constraint, &reply, i == 1, a, &traces[i], e);
    if (result == 0) {
        const struct experiment_constraint *c = &x->constraints[constraint];
        const struct record_verdict *v = &verdicts[constraint];
        const char *why = explain_verdict(c, v, &reply, a);
        if (t->json)
            print_json(c, &d, v, traces, &reply, why);
        else
            print_text(c, &d, v, traces, why);
    }
    check_set_close(checks);
    return result;
}

static int try_experiment(const struct trying *t, struct arena *a, struct err *e) {
    if (strcmp(t->finish, "stop") != 0 && strcmp(t->finish, "length") != 0)
        FAIL(e, ERR_USAGE, "--finish %s: expected stop or length", t->finish);
    const struct experiment_overrides overrides = {
        .set = t->set.items, .set_count = t->set.count, .limit = -1};
    struct experiment *x;
    TRY(experiment_load(t->arguments[0], &overrides, a, &x, e));
    int result = try_reply(t, x, a, e);
    experiment_close(x);
    return result;
}

int cli_try(int argc, char **argv) {
    struct trying t = {.finish = "stop"};
    const struct cli_option options[] = {
        {.name = "--repeat",
         .value = "N",
         .number = &t.repeat,
         .help = "with the variables that repeat N draws; 0 otherwise"},
        {.name = "--var",
         .value = "NAME=VALUE",
         .list = &t.vars,
         .help = "a variable of the constraint; may be given again"},
        {.name = "--finish",
         .value = "HOW",
         .text = &t.finish,
         .help = "stop: the reply ended by itself (default); length: it was cut"},
        {.name = "--set",
         .value = "KEY=VALUE",
         .list = &t.set,
         .help = "override a key of the file; may be given again"},
        {.name = "--json", .flag = &t.json, .help = "one JSON object instead of text"},
    };
    int count;
    bool helped;
    struct err e = {0};
    if (cli_parse(argc, argv, options, sizeof options / sizeof *options, t.arguments, 2, 2, &count,
                  &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    struct arena *a = arena_create("try");
    int result = try_experiment(&t, a, &e);
    arena_destroy(a);
    return result == 0 ? EXIT_DONE : cli_fail(argv[0], &e);
}

// lacuna repeat: one trial again, from its stored prompt, compared with what is recorded.
#include "evals/cli.h"
#include "evals/evidence.h"
#include "evals/run_setup.h"
#include "evals/served.h"

#include "engine/base/json.h"
#include "engine/base/log.h"

#include <stdio.h>
#include <string.h>

// Another model may well give the same reply; that it is another has to be said.
static void compare_models(const struct record *r, const struct provider *p, int model) {
    const json_t *then = json_array_get(json_object_get(r->identity, "models"), (size_t)model);
    const char *before = json_string_value(json_object_get(then, "sha256"));
    const char *now = json_string_value(json_object_get(p->what.identity, "sha256"));
    if (before != NULL && now != NULL && strcmp(before, now) != 0)
        log_warn("the model is another one than the record's: sha256 %.12s... then, %.12s... now",
                 before, now);
}

static void compare_served(const struct record_outcome *o, const struct provider_completion *c,
                           struct arena *a) {
    const struct record_server now = served_by(c->served);
    if (c->served != NULL && !served_same(&o->server, &now))
        log_warn("%s answered then, %s now", served_words(&o->server, a), served_words(&now, a));
}

// What the provider said, and what a record would keep of where the model looked (NULL: nothing).
struct repeated {
    struct provider_completion c;
    const struct record_evidence *evidence;
};

static int compute(const struct experiment *x, const struct record *r, const struct record_trial *t,
                   const struct run_options *options, struct arena *a, struct repeated *out,
                   struct err *e) {
    struct provider_completion *c = &out->c;
    const int model = experiment_model_index(x, t->model);
    if (model < 0)
        FAIL(e, ERR_RECORD, "%s: the plan names the model %s, the experiment none", r->folder,
             t->model);
    struct provider *p;
    struct run_offer offer;
    bool accepted = false, any = false;
    const uint32_t watched = evidence_spans_most(x, t, 1, t->model);
    TRY(run_provider_open(x, model, options, false, watched, &p, e));
    compare_models(r, p, model);
    int result = run_offer_make(x, r, p, t, 0, a, &offer, e);
    if (result == 0) result = p->ops->submit(p, &offer.request, &accepted, e);
    if (result == 0 && accepted) result = p->ops->next(p, a, c, &any, e);
    if (result == 0 && !any) result = ERR_SET(e, ERR_PROVIDER, "the provider gave no reply");
    if (result == 0 && !c->ok)
        result = ERR_SET(e, ERR_PROVIDER, "%s: %s", c->reason_code, c->reason_text);
    if (result == 0) { // outlives the provider
        out->evidence = evidence_keep(x, t, c, a);
        c->text = str_copy(a, c->text);
        c->reasoning = str_copy(a, c->reasoning);
        if (c->ids.ids != NULL)
            c->ids.ids =
                (int32_t *)(void *)arena_memdup(a, c->ids.ids, c->ids.count * sizeof *c->ids.ids);
    }
    p->ops->close(p);
    return result;
}

static bool is_same(const struct record_outcome *o, const struct provider_completion *c) {
    const struct record_outcome now = {.reply = c->text, .reasoning = c->reasoning};
    if (!record_same_words(o, &now)) return false;
    if (strcmp(o->finish, provider_finish_name(c->finish)) != 0) return false;
    if (o->ids == NULL || c->ids.ids == NULL) return true;
    return o->id_count == c->ids.count &&
           memcmp(o->ids, c->ids.ids, o->id_count * sizeof *o->ids) == 0;
}

// A reply on one line, as JSON writes it.
static void print_reply(const char *when, struct str text, int tokens, const char *finish) {
    json_t *holder = json_object();
    json_put_bytes(holder, "text", text);
    struct buf line = {0};
    json_compact(holder, &line);
    if (tokens >= 0)
        printf("%s: %d tokens, %s: %s\n", when, tokens, finish, line.p);
    else
        printf("%s: %s: %s\n", when, finish, line.p);
    buf_free(&line);
    json_decref(holder);
}

static void show(const struct record_outcome *o, const struct provider_completion *c) {
    if (o->forgotten)
        printf("recorded: not kept, %zu bytes, %s\n", o->reply_bytes, o->finish);
    else
        print_reply("recorded", o->reply, o->tokens, o->finish);
    print_reply("now", c->text, c->tokens, provider_finish_name(c->finish));
    size_t same = 0;
    while (same < o->id_count && same < c->ids.count && o->ids[same] == c->ids.ids[same]) same++;
    if (is_same(o, c))
        printf("the replies are the same\n");
    else if (o->ids != NULL && c->ids.ids != NULL)
        printf("the replies differ from token %zu on\n", same);
    else
        printf("the replies differ%s\n",
               c->served != NULL ? " (a server's bits are not under our control)" : "");
}

// `then`: of the record, NULL where it keeps nothing of this trial.
static bool compare_evidence(const struct record_evidence *then,
                             const struct record_evidence *now) {
    if (then == NULL) return true;
    bool same = now != NULL && record_same_evidence(then, now);
    printf("the shares of attention %s\n", same ? "are the same" : "differ");
    return same;
}

static int repeat(const char *folder, const char *key, const struct run_options *options,
                  struct arena *a, bool *same, struct err *e) {
    struct record *r;
    struct experiment *x = NULL;
    TRY(record_open(folder, a, &r, e));
    int64_t trial = record_find(r, key);
    int result = 0;
    if (trial < 0)
        result = ERR_SET(e, ERR_USAGE, "%s: the plan has no trial with the key %s", folder, key);
    else if (r->outcomes[trial] == NULL || r->outcomes[trial]->status != STATUS_OK)
        result = ERR_SET(e, ERR_RECORD, "%s: the trial %s has no recorded reply", folder, key);
    if (result == 0) result = run_recorded_experiment(r, run_origin(r, a), a, &x, e);
    struct repeated now;
    const struct record_evidence *then = NULL;
    if (result == 0) result = record_get_evidence(r, trial, a, &then, e);
    if (result == 0) result = compute(x, r, &r->trials[trial], options, a, &now, e);
    if (result == 0) {
        compare_served(r->outcomes[trial], &now.c, a);
        show(r->outcomes[trial], &now.c);
        bool looked_alike = compare_evidence(then, now.evidence);
        *same = is_same(r->outcomes[trial], &now.c) && looked_alike;
    }
    experiment_close(x);
    record_close(r);
    return result;
}

int cli_repeat(int argc, char **argv) {
    const char *words[2];
    int64_t threads = 0;
    int count;
    bool helped, same = false;
    const struct cli_option options[] = {
        {.name = "--threads",
         .value = "N",
         .number = &threads,
         .help = "threads for the engine; 0: all that the machine has"},
    };
    struct err e = {0};
    if (cli_parse(argc, argv, options, 1, words, 2, 2, &count, &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    if (threads < 0 || threads > 4096) {
        ERR_SET(&e, ERR_USAGE, "--threads %lld is not between 0 and 4096", (long long)threads);
        return cli_fail(argv[0], &e);
    }
    struct run_options run = {
        .threads = (int)threads, .cache = cli_cache_folder(), .variable = cli_variable};
    struct arena *a = arena_create("repeat");
    int result = repeat(words[0], words[1], &run, a, &same, &e);
    arena_destroy(a);
    if (result != 0) return cli_fail(argv[0], &e);
    return same ? EXIT_DONE : EXIT_ERROR;
}

// lacuna plan EXPERIMENT: what would run, and what it could show, before anything runs.
#include "evals/cli_experiment.h"
#include "evals/cost.h"
#include "evals/gates.h"
#include "evals/plan.h"
#include "evals/plan_cost.h"
#include "evals/reach.h"
#include "evals/reuse.h"
#include "evals/run_setup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct view {
    struct arena *arena;
    struct experiment *x;
    struct provider **providers;
    struct plan plan;
    struct design_outlook design;
    struct run_options options;  // threads and memory as for the run
    int64_t *groups;             // [trial]
    struct plan_speed *speeds;   // [model]
    struct reuse *reuse;         // older records; NULL: none were named
    struct reuse_reply *replies; // [trial] what they have
};

// ---- facts of a plan ----

// Of all trials, or of those alone whose replies no older record has.
static struct plan_tokens tokens_of(const struct view *v, int model, bool rest) {
    return plan_tokens(&v->plan, v->x->models[model].id, rest ? v->replies : NULL);
}

static struct provider_memory memory_of(const struct view *v, int model) {
    return plan_memory(v->x, &v->plan, model, v->providers[model], v->options.memory_bytes);
}

static int64_t kv_bytes_per_token(const struct view *v, int model) { // 0: not known
    const json_t *manifest = v->providers[model]->what.manifest;
    return json_integer_value(json_object_get(manifest, "kv_bytes_per_token"));
}

static int64_t arm_trials(const struct plan *p, enum arm arm) {
    int64_t n = 0;
    for (int64_t i = 0; i < p->trial_count; i++) n += strcmp(p->trials[i].arm, arm_name(arm)) == 0;
    return n;
}

// ---- text ----

// 1234567 as "1,234,567".
static const char *grouped(int64_t n, char out[32]) {
    char digits[24];
    int count = snprintf(digits, sizeof digits, "%" PRId64, n), k = 0;
    for (int i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0) out[k++] = ',';
        out[k++] = digits[i];
    }
    out[k] = '\0';
    return out;
}

// How many constraints of the placed arm stand where a sliding window keeps them out of a reply.
struct reach_counts {
    struct reach reach;
    int64_t constraints, at[REACH_NONE + 1];
};

static struct reach_counts reach_counts(const struct view *v, int model) {
    struct reach_counts c = {.reach = reach_of(v->providers[model]->what.identity)};
    for (int64_t i = 0; i < v->plan.trial_count; i++) {
        const struct record_trial *t = &v->plan.trials[i];
        if (strcmp(t->model, v->x->models[model].id) != 0) continue;
        if (strcmp(t->arm, arm_name(ARM_PLACED)) != 0) continue;
        for (int k = 0; k < t->span_count; k++) c.at[reach_place(&c.reach, t, &t->spans[k])]++;
        c.constraints += t->span_count;
    }
    return c;
}

static void print_reach(const struct view *v, int model) {
    char a[32], b[32], c[32], d[32];
    struct reach_counts r = reach_counts(v, model);
    if (r.reach.window == 0) return;
    printf("  window    %s tokens in each of %" PRId64 " layers, so a reply depends on the last %s "
           "tokens of its prompt\n",
           grouped(r.reach.window, a), r.reach.layers, grouped(reach_tokens(&r.reach) + 1, b));
    printf("            of %s placed constraints %s stand beyond that, and %s beyond one window\n",
           grouped(r.constraints, c), grouped(r.at[REACH_NONE], a),
           grouped(r.at[REACH_RELAYED], d));
}

static double mib(uint64_t bytes) {
    return (double)bytes / (1 << 20);
}

static void print_memory(const struct view *v, int model) {
    struct provider_memory memory = memory_of(v, model), *m = &memory;
    if (m->least_bytes == 0) return;
    printf("            %.1f MiB of weights (%s), and beside them at least %.1f MiB; ",
           mib(m->weights_bytes), m->weights, mib(m->least_bytes));
    if (m->planned_bytes == 0)
        printf("this does not fit here\n");
    else
        printf("%.1f MiB here, for %d whole repl%s at once\n", mib(m->planned_bytes), m->replies,
               m->replies == 1 ? "y" : "ies");
}

static void print_time(const struct plan_tokens *f, const struct plan_speed *speed) {
    if (!speed->known) {
        printf("  time      not known; --measure loads the model and times one trial\n");
        return;
    }
    int64_t seconds = plan_seconds_most(f, speed);
    printf("  time      at most %" PRId64 " min %02" PRId64
           " s, by one trial's %.1f prompt tokens a second and %.1f of %d repl%s at once\n",
           seconds / 60, seconds % 60, speed->prefill, speed->decode, speed->together,
           speed->together == 1 ? "y" : "ies");
}

static struct cost_again again_of(const struct view *v, int model) {
    return cost_again(v->x, model, v->plan.trials, v->plan.trial_count);
}

static void print_again(const struct view *v, int model) {
    char a[32], b[32], c[32];
    const struct cost_again again = again_of(v, model);
    if (again.requests == 0) return;
    printf("  twice     %s of the requests are sent a second time, for the server's own noise: %s "
           "prompt tokens and at most %s reply tokens more\n",
           grouped(again.requests, a), grouped(again.prompt, b), grouped(again.reply, c));
}

// At the most: replies of full length.
static void print_cost(const struct view *v, int model) {
    const struct experiment_model *m = &v->x->models[model];
    char all[32], input[32], output[32];
    if (m->price_input == 0 && m->price_output == 0) return;
    struct plan_tokens f = tokens_of(v, model, v->reuse != NULL);
    const struct cost_again again = again_of(v, model);
    f.prompt += again.prompt;
    f.reply += again.reply;
    cost_text(cost_of(m, f.prompt, f.reply), all);
    cost_text(cost_of(m, f.prompt, 0), input);
    cost_text(cost_of(m, 0, f.reply), output);
    printf("  cost      at most %s (%s of prompts, %s of replies)\n", all, input, output);
}

static void print_reuse(const struct view *v, int model) {
    char a[32], b[32], c[32];
    const struct plan_speed *speed = &v->speeds[model];
    if (v->reuse == NULL) return;
    struct plan_tokens all = tokens_of(v, model, false), rest = tokens_of(v, model, true);
    printf("  reuse     %s of the trials have replies, which saves %s prompt tokens and at most %s "
           "reply tokens\n",
           grouped(all.trials - rest.trials, a), grouped(all.computed - rest.computed, b),
           grouped(all.reply - rest.reply, c));
    if (!speed->known) return;
    int64_t seconds = plan_seconds_most(&rest, speed);
    printf("            what is left takes at most %" PRId64 " min %02" PRId64 " s\n", seconds / 60,
           seconds % 60);
}

static void print_sources(const struct view *v) {
    const struct reuse_source *s;
    for (int i = 0; (s = reuse_source_at(v->reuse, i)) != NULL; i++)
        printf("reuse: %s\n", reuse_words(s, v->arena));
}

static void print_reasoning(const struct view *v, int model) {
    const struct experiment_model *m = &v->x->models[model];
    if (m->reasoning_tokens == 0) return;
    printf("  reasoning %d tokens of each reply, beside %d of the answer; %s\n",
           m->reasoning_tokens, v->x->generation.max_tokens,
           m->endpoint.url != NULL ? "the server is sent the sum and divides it as it likes"
                                   : "counted apart, exactly");
}

static void print_model(const struct view *v, int model) {
    char a[32], b[32], c[32];
    struct plan_tokens f = tokens_of(v, model, false);
    int64_t kv = kv_bytes_per_token(v, model);
    int64_t shared = f.prompt - f.computed;
    const bool served = v->x->models[model].endpoint.url != NULL;
    printf("%s: %s trial%s\n", v->x->models[model].id, grouped(f.trials, a),
           f.trials == 1 ? "" : "s");
    if (served)
        printf("  prompts   %s tokens, %s; sent to %s\n", grouped(f.prompt, a),
               provider_length_word(v->providers[model]), v->x->models[model].endpoint.url);
    else
        printf("  prompts   %s tokens, %s of them shared with the trial before (%.0f %%)\n",
               grouped(f.prompt, a), grouped(shared, b),
               f.prompt > 0 ? 100.0 * (double)shared / (double)f.prompt : 0.0);
    printf("  replies   at most %s tokens\n", grouped(f.reply, a));
    print_reasoning(v, model);
    if (kv > 0)
        printf("  memory    %s bytes of KV a token; %.1f MiB for the longest trial (%s tokens)\n",
               grouped(kv, b), (double)(kv * f.longest) / (1 << 20), grouped(f.longest, c));
    print_memory(v, model);
    print_reach(v, model);
    if (!served) print_time(&f, &v->speeds[model]);
    print_reuse(v, model);
    print_again(v, model);
    print_cost(v, model);
}

static void print_design(const struct view *v) {
    const struct design_outlook *d = &v->design;
    if (d->sentence != NULL) printf("power: %s\n", d->sentence);
    for (int i = 0; i < d->gate_count; i++)
        printf("gate %s: %s\n  %s\n", d->gates[i].id, d->gates[i].text, d->gates[i].why);
}

#define GROUPS_SHOWN 5
static void print_groups(const struct view *v) {
    if (v->plan.equal_groups == 0) return;
    printf("equal: %" PRId64 " groups of trials have the same prompt and sampling stream; each is "
           "computed once\n",
           v->plan.equal_groups);
    for (int64_t g = 0; g < v->plan.equal_groups && g < GROUPS_SHOWN; g++) {
        printf(" ");
        for (int64_t i = 0; i < v->plan.trial_count; i++)
            if (v->groups[i] == g) printf(" %s", v->plan.trials[i].key);
        printf("\n");
    }
    if (v->plan.equal_groups > GROUPS_SHOWN)
        printf("  ... and %" PRId64 " more (--json lists all)\n",
               v->plan.equal_groups - GROUPS_SHOWN);
}

static void print_text(const struct view *v) {
    const struct experiment *x = v->x;
    char n[32];
    printf("%s: %s trial%s", x->name, grouped(v->plan.trial_count, n),
           v->plan.trial_count == 1 ? "" : "s");
    for (int arm = ARM_PLACED; arm <= ARM_SHORT; arm++) {
        int64_t count = arm_trials(&v->plan, (enum arm)arm);
        if (count > 0)
            printf("%s %s %s", arm == 0 ? " =" : " +", grouped(count, n), arm_name((enum arm)arm));
    }
    printf("; %d repeat%s, %d sample%s each%s\n", x->repeats, x->repeats == 1 ? "" : "s",
           x->generation.samples, x->generation.samples == 1 ? "" : "s",
           v->plan.partial ? "; partial (--only or --limit)" : "");
    for (int m = 0; m < x->model_count; m++) print_model(v, m);
    print_sources(v);
    print_groups(v);
    print_design(v);
    for (int i = 0; i < x->warning_count; i++) printf("%s\n", x->warnings[i]);
    for (int i = 0; i < v->plan.warning_count; i++) printf("warning: %s\n", v->plan.warnings[i]);
}

// ---- JSON ----

static json_t *reach_json(const struct view *v, int model) {
    struct reach_counts r = reach_counts(v, model);
    if (r.reach.window == 0) return json_null();
    json_t *o = json_object();
    json_put(o, "layers", json_integer(r.reach.layers));
    json_put(o, "tokens", json_integer(r.reach.window));
    json_put(o, "reach_tokens", json_integer(reach_tokens(&r.reach)));
    json_put(o, "constraints", json_integer(r.constraints));
    json_put(o, "out_of_reach", json_integer(r.at[REACH_NONE]));
    json_put(o, "relayed", json_integer(r.at[REACH_RELAYED]));
    return o;
}

static json_t *bytes_json(uint64_t bytes) {
    return json_integer((json_int_t)bytes);
}

// Of one model: what older records save.
static json_t *saved_json(const struct view *v, int model) {
    const struct plan_speed *speed = &v->speeds[model];
    if (v->reuse == NULL) return json_null();
    struct plan_tokens all = tokens_of(v, model, false), rest = tokens_of(v, model, true);
    json_t *o = json_object();
    json_put(o, "trials", json_integer(all.trials - rest.trials));
    json_put(o, "prompt_tokens", json_integer(all.computed - rest.computed));
    json_put(o, "reply_tokens_most", json_integer(all.reply - rest.reply));
    json_put(o, "seconds_most_left",
             speed->known ? json_integer(plan_seconds_most(&rest, speed)) : json_null());
    return o;
}

static json_t *sources_json(const struct view *v) {
    json_t *list = json_array();
    const struct reuse_source *s;
    for (int i = 0; (s = reuse_source_at(v->reuse, i)) != NULL; i++) {
        json_t *o = json_object(), *notes = json_array();
        for (int k = 0; k < s->note_count; k++)
            json_array_append_new(notes, json_text_c(s->notes[k]));
        json_put_bytes(o, "run", str_from(s->folder));
        json_put(o, "trials", json_integer(s->taken));
        json_put(o, "notes", notes);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *cost_json(const struct view *v, int model) {
    const struct experiment_model *m = &v->x->models[model];
    char text[32];
    if (m->price_input == 0 && m->price_output == 0) return json_null();
    struct plan_tokens f = tokens_of(v, model, v->reuse != NULL);
    const struct cost_again again = again_of(v, model);
    cost_text(cost_of(m, f.prompt + again.prompt, f.reply + again.reply), text);
    return json_text_c(text);
}

static json_t *again_json(const struct view *v, int model) {
    const struct cost_again again = again_of(v, model);
    if (again.requests == 0) return json_null();
    json_t *o = json_object();
    json_put(o, "requests", json_integer(again.requests));
    json_put(o, "prompt_tokens", json_integer(again.prompt));
    json_put(o, "reply_tokens_most", json_integer(again.reply));
    return o;
}

static json_t *models_json(const struct view *v) {
    json_t *list = json_array();
    for (int m = 0; m < v->x->model_count; m++) {
        struct plan_tokens f = tokens_of(v, m, false);
        int64_t kv = kv_bytes_per_token(v, m);
        json_t *o = json_object();
        json_put(o, "id", json_text_c(v->x->models[m].id));
        json_put(o, "trials", json_integer(f.trials));
        json_put(o, "prompt_tokens", json_integer(f.prompt));
        json_put(o, "shared_tokens", json_integer(f.prompt - f.computed));
        json_put(o, "reply_tokens_most", json_integer(f.reply));
        json_put(o, "longest_tokens", json_integer(f.longest));
        json_put(o, "kv_bytes_per_token", kv > 0 ? json_integer(kv) : json_null());
        struct provider_memory memory = memory_of(v, m);
        bool known = memory.least_bytes > 0;
        json_put(o, "weights", json_text_c(memory.weights));
        json_put(o, "weights_bytes", known ? bytes_json(memory.weights_bytes) : json_null());
        json_put(o, "memory_least_bytes", known ? bytes_json(memory.least_bytes) : json_null());
        json_put(o, "memory_planned_bytes",
                 memory.planned_bytes > 0 ? bytes_json(memory.planned_bytes) : json_null());
        json_put(o, "replies_at_once", known ? json_integer(memory.replies) : json_null());
        const struct plan_speed *speed = &v->speeds[m];
        json_put(o, "seconds_most",
                 speed->known ? json_integer(plan_seconds_most(&f, speed)) : json_null());
        json_put(o, "repeat_check", again_json(v, m));
        json_put(o, "cost_most", cost_json(v, m));
        json_put(o, "window", reach_json(v, m));
        json_put(o, "saved", saved_json(v, m));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *groups_json(const struct view *v) {
    json_t *list = json_array();
    for (int64_t g = 0; g < v->plan.equal_groups; g++) {
        json_t *keys = json_array();
        for (int64_t i = 0; i < v->plan.trial_count; i++)
            if (v->groups[i] == g) json_array_append_new(keys, json_text_c(v->plan.trials[i].key));
        json_array_append_new(list, keys);
    }
    return list;
}

// Null: no difference can be found with so few repeats.
static json_t *difference(double d) {
    return d > 1 ? json_null() : json_ppm(d);
}

static json_t *gates_json(const struct design_outlook *d) {
    json_t *list = json_array();
    for (int i = 0; i < d->gate_count; i++) {
        const struct gate_outlook *g = &d->gates[i];
        json_t *o = json_object();
        json_put(o, "id", json_text_c(g->id));
        json_put(o, "text", json_text_c(g->text));
        json_put(o, "trials", json_integer(g->trials));
        json_put(o, "possible", json_boolean(g->possible));
        json_put(o, "pass_probability_ppm", json_ppm(g->pass_probability));
        json_put(o, "why", json_text_c(g->why));
        json_array_append_new(list, o);
    }
    return list;
}

static void print_json(const struct view *v) {
    const struct plan *p = &v->plan;
    json_t *o = json_object(), *warnings = json_array(), *keys = json_array();
    for (int i = 0; i < v->x->warning_count; i++)
        json_array_append_new(warnings, json_text_c(v->x->warnings[i]));
    for (int i = 0; i < p->warning_count; i++)
        json_array_append_new(warnings, json_text_c(p->warnings[i]));
    for (int64_t i = 0; i < p->trial_count; i++)
        json_array_append_new(keys, json_text_c(p->trials[i].key));
    json_put(o, "experiment", json_text_c(v->x->name));
    json_put(o, "trials", json_integer(p->trial_count));
    json_put(o, "partial", json_boolean(p->partial));
    json_put(o, "prompt_tokens", json_integer(p->prompt_tokens));
    json_put(o, "shared_tokens", json_integer(p->shared_tokens));
    json_put(o, "reply_tokens_most", json_integer(p->reply_tokens_most));
    json_put(o, "models", models_json(v));
    json_put(o, "equal_groups", groups_json(v));
    json_put(o, "reuse", sources_json(v));
    json_put(o, "detectable_ppm", difference(v->design.detectable));
    json_put(o, "detectable_best_ppm", difference(v->design.detectable_best));
    json_put(o, "gates", gates_json(&v->design));
    json_put(o, "warnings", warnings);
    json_put(o, "keys", keys);
    struct buf text = {0};
    json_pretty(o, &text);
    printf("%s\n", text.p);
    buf_free(&text);
    json_decref(o);
}

// ---- older records ----

static int look_for_replies(struct view *v, const struct cli_list *runs, struct err *e) {
    if (runs->count == 0) return 0;
    int64_t count = v->plan.trial_count;
    int64_t *all = arena_array(v->arena, (size_t)count + 1, sizeof *all);
    for (int64_t i = 0; i < count; i++) all[i] = i;
    json_t *identity = run_identity(v->x, v->providers, NULL, NULL);
    int result = reuse_open(v->x, v->providers, identity, NULL, runs->items, runs->count, v->arena,
                            &v->reuse, e);
    json_decref(identity);
    TRY(result);
    return reuse_find(v->reuse, v->x, v->plan.trials, count, all, count, v->arena, &v->replies, e);
}

// ---- the verb ----

static int run(const char *path, const struct cli_overrides *o, const struct cli_list *reuse,
               bool measure, bool json, struct view *v, struct err *e) {
    struct arena *a = v->arena;
    TRY(cli_experiment_load(path, o, a, &v->x, e));
    TRY(run_providers_open(v->x, &v->options, a, &v->providers, e));
    TRY(plan_make(v->x, v->providers, NULL, a, &v->plan, e));
    TRY(gates_plan(v->x, v->plan.trials, v->plan.trial_count, a, &v->design, e));
    v->groups = arena_array(a, (size_t)v->plan.trial_count + 1, sizeof *v->groups);
    plan_equal_groups(v->plan.trials, v->plan.trial_count, v->groups);
    v->speeds = arena_array(a, (size_t)v->x->model_count + 1, sizeof *v->speeds);
    for (int m = 0; measure && m < v->x->model_count; m++)
        if (v->x->models[m].endpoint.url == NULL) // asking a server may cost money
            TRY(plan_measure(v->x, v->providers, &v->plan, m, &v->options, a, &v->speeds[m], e));
    TRY(look_for_replies(v, reuse, e));
    if (json)
        print_json(v);
    else
        print_text(v);
    if (fflush(stdout) != 0) FAIL(e, ERR_IO, "standard output cannot be written");
    return 0;
}

int cli_plan(int argc, char **argv) {
    struct err e = {0};
    struct cli_overrides overrides = CLI_NO_OVERRIDES;
    struct cli_list reuse = {0};
    bool json = false, measure = false, helped = false;
    const char *path = NULL;
    int count = 0;
    struct run_options run_options = {.cache = cli_cache_folder(), .variable = cli_variable};
    const struct cli_option options[] = {
        CLI_OVERRIDE_OPTIONS(overrides),
        CLI_MEMORY_OPTION("what run may take beside the weights", &run_options.memory_bytes),
        {.name = "--measure",
         .help = "load the models and time one trial each, for the time estimate",
         .flag = &measure},
        CLI_REUSE_OPTION(reuse),
        {.name = "--json", .help = "one JSON object, with the keys of all trials", .flag = &json},
    };
    int option_count = (int)(sizeof options / sizeof *options);
    if (cli_parse(argc, argv, options, option_count, &path, 1, 1, &count, &helped, &e) != 0)
        return cli_fail(argv[0], &e);
    if (helped) return EXIT_DONE;
    struct arena *a = arena_create("plan");
    struct view v = {.arena = a, .options = run_options};
    int result = run(path, &overrides, &reuse, measure, json, &v, &e);
    reuse_close(v.reuse);
    run_providers_close(v.x, v.providers);
    experiment_close(v.x);
    arena_destroy(a);
    return result == 0 ? EXIT_DONE : cli_fail(argv[0], &e);
}

#include "evals/run_internal.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "evals/answer.h"
#include "evals/evidence.h"
#include "evals/judge.h"
#include "evals/plan_cost.h"
#include "evals/run_setup.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

// ---- interruption ------------------------------------------------------------------------------

// A signal handler reaches nothing but what is global. `entered` keeps a provider from being closed
// while a handler, perhaps on another thread, is still inside its cancel.
static atomic_bool interrupted;
static _Atomic(struct provider *) current;
static atomic_int entered;

void run_interrupt(void) {
    atomic_store(&interrupted, true);
    atomic_fetch_add(&entered, 1);
    struct provider *p = atomic_load(&current);
    if (p != NULL) p->ops->cancel(p);
    atomic_fetch_sub(&entered, 1);
}

static void close_current(struct provider *p) {
    atomic_store(&current, NULL);
    while (atomic_load(&entered) > 0) sched_yield();
    p->ops->close(p);
}

// ---- one run -----------------------------------------------------------------------------------

// Trials with equal ids, sampling stream and spans: computed once, a line for each.
struct group {
    int64_t *trials; // ascending
    int64_t count;
};

bool run_is_interrupted(void) {
    return atomic_load(&interrupted);
}

// Of two trials with one prompt.
static bool same_reply_asked(const struct record_trial *a, const struct record_trial *b) {
    return plan_same_stream(a, b) && evidence_same_spans(a, b);
}

// ---- outcomes ----------------------------------------------------------------------------------

static json_t *per_second(int64_t tokens, double ms) {
    return ms > 0 && tokens > 0 ? json_integer((json_int_t)((double)tokens * 1000.0 / ms))
                                : json_null();
}

json_t *run_timing(const struct run *r, const struct record_trial *t) {
    char now[32];
    clock_iso(now);
    json_t *o = json_object();
    json_put(o, "trial", json_integer(t->trial));
    json_put(o, "key", json_text_c(t->key));
    json_put(o, "time", json_text_c(now));
    json_put(o, "host", json_text_c(r->host));
    return o;
}

static json_t *make_timing(const struct run *r, const struct record_trial *t,
                           const struct provider_completion *c, const struct record_trial *same) {
    json_t *o = run_timing(r, t);
    if (same != NULL) { // nothing was computed for it
        json_put(o, "same_as", json_text_c(same->key));
        return o;
    }
    int64_t prefilled = (int64_t)t->prompt_tokens - c->shared_tokens;
    json_put(o, "wall_us", json_integer((json_int_t)(c->wall_ms * 1000.0)));
    json_put(o, "cpu_us", json_integer((json_int_t)(c->cpu_ms * 1000.0)));
    if (c->served != NULL) json_put(o, "attempts", json_integer(c->served->attempts));
    json_put(o, "shared_tokens", json_integer(c->shared_tokens));
    json_put(o, "prefill_tokens_per_second", per_second(prefilled, c->prefill_ms));
    json_put(o, "decode_tokens_per_second", per_second(c->tokens, c->decode_ms));
    return o;
}

int run_record_one(struct run *r, const struct record_trial *t, struct record_outcome *o,
                   const json_t *timing, struct arena *a, struct err *e) {
    o->trial = t->trial;
    o->key = t->key;
    if (o->status == STATUS_OK) {
        check_set_next(&r->patterns);
        struct reply reply = judge_reply_of(o);
        TRY(judge_reply(r->x, r->patterns, t, &reply, a, &o->verdicts, &o->verdict_count, e));
    }
    struct record_outcome kept = *o;
    record_forget_reply(&kept, r->x->drops_prompts, r->x->drops_replies, a);
    if (r->again)
        TRY(run_again_put(r, &kept, e));
    else
        TRY(record_put_outcome(r->writer, &kept, timing, e));
    r->work_done += r->work != NULL ? r->work[t->trial] : 1;
    progress_update(&r->progress, r->work_done, (uint64_t)++r->trials_done);
    return 0;
}

// `c` has the facts of the computation (NULL: there are none); `like` is the recorded trial whose
// reply is used again, if one is.
static int record_group(struct run *r, const struct group *g, struct record_outcome *o,
                        const struct provider_completion *c, const struct record_trial *like,
                        struct arena *a, struct err *e) {
    const struct record_trial *trials = r->record->trials, *first = &trials[g->trials[0]];
    for (int64_t i = 0; i < g->count; i++) {
        const struct record_trial *t = &trials[g->trials[i]];
        const struct record_trial *same = like != NULL ? like : i > 0 ? first : NULL;
        if (c != NULL) o->evidence = evidence_keep(r->x, t, c, a);
        json_t *timing = c == NULL && like == NULL ? NULL : make_timing(r, t, c, same);
        int result = run_record_one(r, t, o, timing, a, e);
        json_decref(timing);
        TRY(result);
    }
    return run_reuse_due(r, e);
}

static const char *valid_text(struct arena *a, const char *text, const char *otherwise) {
    return text != NULL && text[0] != '\0' ? arena_strdup(a, text) : otherwise;
}

void run_find_answer(const struct experiment_model *m, const struct record_trial *t,
                     struct record_outcome *o) {
    struct reasoning_tags tags = plan_reasoning_tags(m, t);
    if (o->reasoning.n > 0) tags.opened = false; // the server has taken apart what was opened
    answer_find(&tags, o->reply, o->answer);
}

static void outcome_of(const struct provider_completion *c, const struct experiment_model *m,
                       const struct record_trial *t, struct arena *a, struct record_outcome *o) {
    *o = (struct record_outcome){0};
    if (!c->ok) {
        o->status = c->undelivered ? STATUS_INVALID : STATUS_ERROR;
        o->reason_code = valid_text(a, c->reason_code, "provider");
        o->reason_text = valid_text(a, c->reason_text, "the provider gave no reason");
        return;
    }
    o->reply = c->text;
    o->reasoning = c->reasoning;
    o->ids = c->ids.ids;
    o->id_count = c->ids.count;
    o->tokens = c->tokens;
    o->reasoning_counted = c->reasoning_counted;
    o->reasoning_tokens = c->reasoning_tokens;
    if (c->served != NULL && c->served->prompt_tokens > 0)
        o->served_prompt_tokens = (uint32_t)c->served->prompt_tokens;
    o->server = served_by(c->served);
    o->finish = provider_finish_name(c->finish);
    run_find_answer(m, t, o);
}

// ---- offering ----------------------------------------------------------------------------------

// What a provider refuses to take is an outcome of that trial, not the end of the run.
static int record_refusal(struct run *r, const struct group *g, const struct err *why,
                          struct err *e) {
    struct arena *a = arena_create("trial");
    struct record_outcome o = {
        .status = STATUS_ERROR, .reason_code = "refused", .reason_text = why->text};
    int result = record_group(r, g, &o, NULL, NULL, a, e);
    arena_destroy(a);
    return result;
}

// An equal trial that is recorded already lends its reply.
static int reuse(struct run *r, const struct group *g, bool *reused, struct err *e) {
    const struct record_trial *plan = r->record->trials, *t = &plan[g->trials[0]];
    *reused = false;
    if (r->again) return 0;
    for (int64_t at = t->trial - 1; at >= 0 && plan_same_prompt(&plan[at], t); at--) {
        const struct record_outcome *known = r->record->outcomes[at];
        if (known == NULL || known->status != STATUS_OK || known->forgotten ||
            !same_reply_asked(&plan[at], t))
            continue;
        struct arena *a = arena_create("trial");
        struct record_outcome o = *known;
        int result = record_get_evidence(r->record, at, a, &o.evidence, e);
        if (result == 0) result = record_group(r, g, &o, NULL, &plan[at], a, e);
        arena_destroy(a);
        *reused = true;
        return result;
    }
    return 0;
}

// ---- the loop ----------------------------------------------------------------------------------

struct loop {
    struct run *run;
    const struct experiment_model *model;
    struct provider *provider;
    const struct group *groups;
    int64_t group_count, next; // next: the first group not yet taken
    int64_t in_flight;
    struct arena *arena;    // of the offer
    struct run_offer offer; // groups[next], when it is ready
    bool ready;
};

// Offers groups in plan order for as long as the provider takes them.
static int offer_groups(struct loop *l, struct err *e) {
    struct run *r = l->run;
    while (l->next < l->group_count && !atomic_load(&interrupted)) {
        const struct group *g = &l->groups[l->next];
        if (!l->ready) {
            bool reused;
            TRY(reuse(r, g, &reused, e));
            l->next += reused ? 1 : 0;
            if (reused) continue;
            const struct record_trial *t = &r->record->trials[g->trials[0]];
            arena_reset(l->arena);
            TRY(run_offer_make(r->x, r->record, l->provider, t, l->next, l->arena, &l->offer, e));
            l->ready = true;
        }
        bool accepted = false;
        struct err why = {0};
        const struct record_trial *first = &r->record->trials[g->trials[0]];
        if (!run_cost_reserve(r, first)) {
            r->over_cost = l->in_flight == 0; // else a cheaper reply may leave enough
            return 0;
        }
        int refused = l->provider->ops->submit(l->provider, &l->offer.request, &accepted, &why);
        if (refused || !accepted) run_cost_settle(r, first, NULL);
        if (refused) {
            TRY(record_refusal(r, g, &why, e));
        } else if (accepted) {
            l->in_flight++;
        } else if (l->in_flight == 0 && !atomic_load(&interrupted)) {
            FAIL(e, ERR_PROVIDER, "the provider takes no request though none is in flight");
        } else {
            return 0;
        }
        l->ready = false;
        l->next++;
    }
    return 0;
}

static int take_completion(struct loop *l, struct arena *a, bool *any, struct err *e) {
    struct provider_completion c;
    TRY(l->provider->ops->next(l->provider, a, &c, any, e));
    if (!*any || (!c.ok && atomic_load(&interrupted))) {
        if (atomic_load(&interrupted)) *any = false;
        if (!*any && !atomic_load(&interrupted))
            FAIL(e, ERR_PROVIDER, "the provider lost %lld requests", (long long)l->in_flight);
        return 0;
    }
    if (c.ticket < 0 || c.ticket >= l->next)
        FAIL(e, ERR_PROVIDER, "the provider completed a request that it was not given (%lld)",
             (long long)c.ticket);
    l->in_flight--;
    struct record_outcome o;
    const struct record_trial *first = &l->run->record->trials[l->groups[c.ticket].trials[0]];
    outcome_of(&c, l->model, first, a, &o);
    run_cost_settle(l->run, first, &o);
    TRY(run_served_check(l->run, first, &o, a, e));
    return record_group(l->run, &l->groups[c.ticket], &o, &c, NULL, a, e);
}

static int run_groups(struct run *r, const struct experiment_model *model, struct provider *p,
                      const struct group *groups, int64_t count, struct err *e) {
    struct loop l = {
        .run = r, .model = model, .provider = p, .groups = groups, .group_count = count};
    l.arena = arena_create("offer");
    struct arena *a = arena_create("trial");
    int result = offer_groups(&l, e);
    bool any = true;
    while (result == 0 && any && l.in_flight > 0) {
        arena_reset(a);
        result = take_completion(&l, a, &any, e);
        if (result == 0 && any) result = offer_groups(&l, e);
    }
    arena_destroy(a);
    arena_destroy(l.arena);
    return result;
}

// Groups in the order of their first trials; returns how many there are.
static int64_t make_groups(struct run *r, const int64_t *trials, int64_t count, struct arena *a,
                           struct group **out) {
    const struct record_trial *plan = r->record->trials;
    struct group *groups = arena_array(a, (size_t)count, sizeof *groups);
    int64_t *owner = arena_array(a, (size_t)count, sizeof *owner), n = 0;
    for (int64_t i = 0; i < count; i++) {
        const struct record_trial *t = &plan[trials[i]];
        int64_t k = i - 1;
        while (k >= 0 && plan_same_prompt(&plan[trials[k]], t) &&
               !same_reply_asked(&plan[trials[k]], t))
            k--;
        owner[i] = k >= 0 && plan_same_prompt(&plan[trials[k]], t) ? owner[k] : n++;
        groups[owner[i]].count++;
    }
    int64_t *members = arena_array(a, (size_t)count, sizeof *members);
    for (int64_t i = 0; i < n; i++) {
        groups[i].trials = members;
        members += groups[i].count;
        groups[i].count = 0;
    }
    for (int64_t i = 0; i < count; i++) {
        struct group *g = &groups[owner[i]];
        g->trials[g->count++] = trials[i];
    }
    *out = groups;
    return n;
}

// What serves a GPU's matrix products is known only now; it stands in sessions.jsonl.
static int note_products(struct run *r, const struct provider *p, struct err *e) {
    const json_t *products = json_object_get(p->what.manifest, "products");
    if (products == NULL) return 0;
    struct buf text = {0};
    json_compact(products, &text);
    int result = record_note_session(r->writer, "products", text.p, e);
    buf_free(&text);
    return result;
}

static int run_model(struct run *r, int model, const int64_t *trials, int64_t count,
                     struct err *e) {
    struct provider *p;
    const struct record_trial *plan = r->record->trials;
    const uint32_t watched =
        evidence_spans_most(r->x, plan, r->record->trial_count, r->x->models[model].id);
    TRY(run_provider_open(r->x, model, r->options, false, watched, &p, e));
    atomic_store(&current, p);
    if (note_products(r, p, e) != 0) {
        close_current(p);
        return -1;
    }
    struct arena *a = arena_create("model");
    struct group *groups;
    int64_t group_count = make_groups(r, trials, count, a, &groups);
    int result = run_groups(r, &r->x->models[model], p, groups, group_count, e);
    close_current(p);
    arena_destroy(a);
    return result;
}

int run_models(struct run *r, const int64_t *trials, int64_t count, struct err *e) {
    const struct record_trial *plan = r->record->trials;
    for (int64_t at = 0, end; at < count && !run_is_interrupted() && !r->over_cost; at = end) {
        const char *id = plan[trials[at]].model;
        for (end = at; end < count && strcmp(plan[trials[end]].model, id) == 0;) end++;
        const int model = experiment_model_index(r->x, id);
        if (model < 0)
            FAIL(e, ERR_RECORD, "%s: the plan names the model %s, the experiment none",
                 r->record->folder, id);
        TRY(run_model(r, model, &trials[at], end - at, e));
    }
    return 0;
}

// Splits off the trials that are to be computed, and sums their tokens: what a prompt shares with
// the computed one before it is not computed again.
static int64_t take_apart(struct run *r, const int64_t *missing, int64_t count, int64_t *left,
                          uint64_t *work, struct arena *a) {
    const struct record_trial *plan = r->record->trials;
    int64_t before = -1, n = 0;
    *work = 0;
    r->work = arena_array(a, (size_t)r->record->trial_count, sizeof *r->work);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = missing[i];
        if (r->replies != NULL && r->replies[at].outcome != NULL) continue;
        uint32_t shared = plan_shared_tokens(plan, before, at);
        r->work[at] =
            (uint64_t)(plan[at].prompt_tokens - shared) + (uint64_t)plan[at].reply_tokens_max;
        *work += r->work[at];
        left[n++] = before = at;
    }
    return n;
}

static int run_pass(struct run *r, bool errors, struct err *e) {
    struct arena *a = arena_create("pass");
    int64_t *missing, count = record_missing(r->writer, errors, a, &missing);
    int64_t *left = arena_array(a, (size_t)count + 1, sizeof *left);
    uint64_t work;
    int64_t left_count = take_apart(r, missing, count, left, &work, a);
    r->work_done = 0;
    r->trials_done = 0;
    progress_start(&r->progress, errors ? "again" : "run", work, (uint64_t)count);
    int result = errors ? run_reuse_again(r, missing, count, e) : run_reuse_due(r, e);
    if (result == 0) result = run_models(r, left, left_count, e);
    progress_finish(&r->progress);
    r->work = NULL;
    arena_destroy(a);
    return result;
}

// ---- from the experiment to the loop -----------------------------------------------------------

struct setup {
    struct provider **providers;
    json_t *identity, *manifest, *resolved;
    char request_sha256[HASH_HEX_SIZE];
    struct record_writer *writer;
    enum record_state state;
    struct plan plan; // of a run that planned, or whose record keeps no prompts
    bool done;        // nothing is left to do
    struct reuse *reuse;
};

static bool is_selected(const struct experiment *x, const char *model) {
    bool named = false;
    for (int i = 0; i < x->only_count; i++) {
        if (!str_starts(x->only[i], STR("model="))) continue;
        if (str_equal_c(str_slice(x->only[i], strlen("model="), x->only[i].n), model)) return true;
        named = true;
    }
    return !named;
}

// Planning may take long, and a bound that lets no prompt through is known before it (`plan` NULL),
// but for what the evidence of the planned trials takes. With --limit only the first model is sure
// to have trials.
static int check_memory(const struct experiment *x, struct provider *const *providers,
                        const struct plan *plan, uint64_t bound, struct err *e) {
    for (int i = 0; bound > 0 && i < x->model_count; i++) {
        uint64_t without = providers[i]->can.memory.least_bytes, least = without;
        if (!is_selected(x, x->models[i].id)) continue;
        if (plan != NULL) least = plan_memory(x, plan, i, providers[i], bound).least_bytes;
        if (least > bound)
            FAIL(e, ERR_MEMORY,
                 "model %s: one prompt at a time takes %.1f MiB beside the weights, and --memory "
                 "allows %.1f MiB; allow at least %lldM, or lower context_tokens%s",
                 x->models[i].id, (double)least / (1 << 20), (double)bound / (1 << 20),
                 (long long)((least + (1 << 20) - 1) >> 20),
                 least > without ? ", or set evidence to off" : "");
        if (x->limit >= 0) break;
    }
    return 0;
}

static int make_plan(const struct experiment *x, struct setup *s, uint64_t bound, struct arena *a,
                     struct err *e) {
    char plan_sha256[HASH_HEX_SIZE];
    TRY(plan_make(x, s->providers, s->writer, a, &s->plan, e));
    TRY(check_memory(x, s->providers, &s->plan, bound, e));
    for (int i = 0; i < s->plan.warning_count; i++) log_warn("%s", s->plan.warnings[i]);
    TRY(record_plan_done(s->writer, plan_sha256, e));
    json_decref(s->identity);
    s->identity = run_identity(x, s->providers, s->request_sha256, plan_sha256);
    return record_begin(s->writer, s->identity, s->manifest, e);
}

// Why a model whose backend was left open runs on the processor.
static void tell_backends(const struct experiment *x, struct provider *const *providers) {
    const char *told = "";
    for (int i = 0; i < x->model_count; i++) {
        const json_t *note = json_object_get(providers[i]->what.manifest, "backend_note");
        if (note == NULL || strcmp(told, json_string_value(note)) == 0) continue;
        told = json_string_value(note);
        log_info("model %s runs on the CPU: %s", x->models[i].id, told);
    }
}

static int set_up(const struct experiment *x, const struct run_options *options, const char *folder,
                  struct setup *s, struct arena *a, struct err *e) {
    s->identity = run_identity(x, s->providers, s->request_sha256, NULL);
    s->manifest = run_manifest(x, s->providers);
    s->resolved = experiment_kept(x);
    tell_backends(x, s->providers);
    if (options->reuse_count > 0)
        TRY(reuse_open(x, s->providers, s->identity, folder, options->reuse, options->reuse_count,
                       a, &s->reuse, e));
    bool computes = options->reuse_count == 0 && options->shard_count == 0;
    if (computes && !file_exists(path_join(a, folder, "identity.json")))
        TRY(check_memory(x, s->providers, NULL, options->memory_bytes, e));
    if (!file_exists(folder) && options->reuse_count == 0)
        run_hint_at_score(x, options, s->identity, a);
    struct record_header header = {.folder = folder,
                                   .experiment_yaml =
                                       x->drops_prompts ? (struct str){0} : x->source,
                                   .drops_prompts = x->drops_prompts,
                                   .resolved = s->resolved,
                                   .identity = s->identity};
    TRY(run_read_baselines(x, a, &header, e));
    TRY(record_writer_open(&header, s->request_sha256, &s->writer, &s->state, e));
    if (s->state == RECORD_NEW || s->state == RECORD_PLANNING)
        return make_plan(x, s, computes ? options->memory_bytes : 0, a, e);
    if (s->state == RECORD_COMPLETE && !options->retry_errors) {
        bool left = false;
        if (options->shard_count == 0) TRY(run_again_left(x, folder, a, &left, e));
        s->done = !left;
    }
    if (s->done) return 0;
    if (x->drops_prompts) TRY(plan_make(x, s->providers, NULL, a, &s->plan, e));
    return record_resume(s->writer, s->identity, s->manifest, e);
}

int run_record_open(struct run *r, const char *folder, struct arena *a, struct err *e) {
    struct record *record;
    TRY(record_open(folder, a, &record, e));
    if (r->plan != NULL &&
        record_take_plan(record, r->plan->trials, r->plan->prompts, r->plan->trial_count, e) != 0) {
        record_close(record);
        return -1;
    }
    r->record = record;
    return 0;
}

static int run_all(struct run *r, const char *folder, struct arena *a, struct run_result *out,
                   struct err *e) {
    TRY(run_record_open(r, folder, a, e));
    bool merging = r->options->shard_count > 0;
    int result = run_cost_begin(r, e);
    if (result == 0) result = run_served_begin(r, a, e);
    if (result == 0) result = run_reuse_find(r, a, e);
    if (result == 0) result = merging ? run_take_shards(r, e) : run_pass(r, false, e);
    if (result == 0 && !merging && r->options->retry_errors && !atomic_load(&interrupted))
        result = run_pass(r, true, e);
    if (result == 0 && !merging && !r->over_cost && !atomic_load(&interrupted))
        result = run_again(r, a, e);
    out->planned = r->record->trial_count;
    int64_t *missing;
    out->done = out->planned - record_missing(r->writer, false, a, &missing);
    record_close(r->record);
    out->interrupted = result == 0 && atomic_load(&interrupted);
    out->over_cost = r->over_cost;
    if (result == 0) result = run_cost_note(r, e);
    if (result == 0)
        return record_note_session(r->writer,
                                   out->interrupted           ? "interrupted"
                                   : out->over_cost           ? "cost limit"
                                   : out->done < out->planned ? "merged"
                                                              : "complete",
                                   NULL, e);
    // What went wrong counts, whether or not it can be noted. Messages may quote texts.
    const bool quotes = r->x->drops_prompts || r->x->drops_replies;
    record_note_session(r->writer, "error", e != NULL && !quotes ? e->text : NULL, NULL);
    return -1;
}

static int count_complete(const char *folder, struct arena *a, struct run_result *out,
                          struct err *e) {
    struct record *record;
    TRY(record_open(folder, a, &record, e));
    out->was_complete = true;
    out->done = out->planned = record->trial_count;
    record_close(record);
    return 0;
}

int run_experiment(const struct experiment *x, const struct run_options *options, struct arena *a,
                   struct run_result *out, struct err *e) {
    *out = (struct run_result){0};
    struct setup s = {0};
    TRY(run_cost_check(x, options, e));
    TRY(run_providers_open(x, options, a, &s.providers, e));
    int result = experiment_request_sha256(x, s.providers, s.request_sha256, e);
    if (result == 0) {
        out->folder = run_folder(x, options, s.request_sha256, a);
        result = set_up(x, options, out->folder, &s, a, e);
    }
    run_providers_close(x, s.providers); // the loop opens one at a time, with its weights
    if (result == 0 && s.done) {
        result = count_complete(out->folder, a, out, e);
    } else if (result == 0) {
        struct run r = {
            .x = x, .options = options, .writer = s.writer, .reuse = s.reuse, .arena = a};
        if (x->drops_prompts) r.plan = &s.plan;
        if (gethostname(r.host, sizeof r.host - 1) != 0 || !utf8_valid(str_from(r.host)))
            r.host[0] = '\0';
        r.patterns = check_set_open();
        result = run_all(&r, out->folder, a, out, e);
        check_set_close(r.patterns);
    }
    reuse_close(s.reuse);
    record_writer_close(s.writer);
    json_decref(s.identity);
    json_decref(s.manifest);
    json_decref(s.resolved);
    atomic_store(&interrupted, false);
    return result;
}

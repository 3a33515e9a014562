#include "evals/reuse.h"

#include "evals/evidence.h"
#include "evals/plan.h"
#include "reports/escape.h"
#include "reports/record_map.h"

#include <stdlib.h>
#include <string.h>

struct source {
    struct reuse_source shown;
    int *partner;                // [models of the experiment] the equal model there, or -1
    struct record_map **prompts; // [models of the experiment] hash of a prompt: its first trial
    int64_t same_prompt, same_stream, elsewhere, unanswered; // trials of the plan
};

struct reuse {
    struct source *sources;
    int source_count;
    // of the experiment
    int model_count;
    bool *exact_ids, *reads_key, *deterministic; // [model]
    const char **evidence;                       // [model] what the record is to keep of it
    bool greedy;
};

static void add_note(struct reuse_source *s, struct arena *a, const char *note) {
    s->notes = arena_more(a, s->notes, (size_t)s->note_count, sizeof *s->notes);
    s->notes[s->note_count++] = note;
}

// ---- opening -----------------------------------------------------------------------------------

static bool same_place(const char *left, const char *right) {
    char *l = realpath(left, NULL), *r = realpath(right, NULL);
    bool same = l != NULL && r != NULL && strcmp(l, r) == 0;
    free(l);
    free(r);
    return same;
}

static const char *model_id(const json_t *identity, size_t model) {
    const json_t *models = json_object_get(identity, "models");
    const char *id = json_string_value(json_object_get(json_array_get(models, model), "id"));
    return id != NULL ? id : "";
}

// The model there that is this one; else `why` says what is not alike, first of the model with the
// same name, or of the only one.
static int find_partner(const json_t *then, const json_t *now, int model, bool by_name,
                        const char **why, struct arena *a) {
    const char *name = model_id(now, (size_t)model);
    size_t count = json_array_size(json_object_get(then, "models"));
    *why = NULL;
    for (size_t i = 0; i < count; i++) {
        bool named = strcmp(model_id(then, i), name) == 0;
        if (by_name && !named) continue;
        const char *difference = reuse_difference(then, (int)i, now, model, a);
        if (difference == NULL) return (int)i;
        if (named || (*why == NULL && count == 1)) *why = difference;
    }
    if (*why == NULL) *why = "it has no such model";
    return -1;
}

// Equal prompts of a model are neighbours in a plan, so the first stands for all.
static struct record_map *index_prompts(const struct record *r, const char *model, bool exact_ids) {
    struct record_map *map = record_map_open();
    for (int64_t i = 0; i < r->trial_count; i++) {
        const struct record_trial *t = &r->trials[i];
        const char *hash = exact_ids ? t->ids_sha256 : t->prompt_sha256;
        if (hash[0] != '\0' && strcmp(t->model, model) == 0) record_map_put(map, hash, i);
    }
    return map;
}

static void look_at_models(struct reuse *u, struct source *s, struct provider *const *providers,
                           const json_t *identity, struct arena *a) {
    const json_t *then = s->shown.record->identity;
    s->partner = arena_array(a, (size_t)u->model_count, sizeof *s->partner);
    s->prompts = arena_array(a, (size_t)u->model_count, sizeof(struct record_map *));
    for (int m = 0; m < u->model_count; m++) {
        const char *why = "its provider does not promise equal replies to equal requests";
        s->partner[m] = -1;
        if (providers[m]->can.deterministic)
            s->partner[m] = find_partner(then, identity, m, u->reads_key[m], &why, a);
        if (s->partner[m] < 0)
            add_note(&s->shown, a,
                     arena_printf(a, "model %s: %s", model_id(identity, (size_t)m), why));
        else
            s->prompts[m] = index_prompts(s->shown.record, model_id(then, (size_t)s->partner[m]),
                                          u->exact_ids[m]);
    }
}

int reuse_open(const struct experiment *x, struct provider *const *providers,
               const json_t *identity, const char *own, const char *const *folders, int count,
               struct arena *a, struct reuse **out, struct err *e) {
    struct reuse *u = arena_alloc(a, sizeof *u);
    u->sources = arena_array(a, (size_t)count, sizeof *u->sources);
    u->model_count = x->model_count;
    u->exact_ids = arena_array(a, (size_t)x->model_count, sizeof *u->exact_ids);
    u->reads_key = arena_array(a, (size_t)x->model_count, sizeof *u->reads_key);
    u->deterministic = arena_array(a, (size_t)x->model_count, sizeof *u->deterministic);
    u->evidence = arena_array(a, (size_t)x->model_count, sizeof(const char *));
    u->greedy = x->generation.temperature == 0;
    for (int m = 0; m < x->model_count; m++) {
        u->exact_ids[m] = providers[m]->can.exact_ids;
        u->reads_key[m] = providers[m]->can.reads_key;
        u->deterministic[m] = providers[m]->can.deterministic;
        u->evidence[m] = evidence_word(x, providers[m]);
    }
    int result = 0;
    for (int i = 0; result == 0 && i < count; i++) {
        struct source *s = &u->sources[u->source_count++];
        s->shown.folder = folders[i];
        if (own != NULL && same_place(own, folders[i]))
            result = ERR_SET(e, ERR_USAGE,
                             "--reuse %s: is the folder of this very run, which goes on from what "
                             "it has without being told",
                             folders[i]);
        if (result == 0) result = record_open(folders[i], a, &s->shown.record, e);
        if (result == 0 && s->shown.record->drops_replies)
            result = ERR_SET(e, ERR_USAGE, "--reuse %s: the record keeps no replies (retain)",
                             folders[i]);
        if (result == 0) look_at_models(u, s, providers, identity, a);
    }
    if (result == 0)
        *out = u;
    else
        reuse_close(u);
    return result;
}

void reuse_close(struct reuse *u) {
    if (u == NULL) return;
    for (int i = 0; i < u->source_count; i++) {
        struct source *s = &u->sources[i];
        for (int m = 0; s->prompts != NULL && m < u->model_count; m++)
            record_map_close(s->prompts[m]);
        record_close(s->shown.record);
    }
}

const struct reuse_source *reuse_source_at(const struct reuse *u, int i) {
    return u != NULL && i < u->source_count ? &u->sources[i].shown : NULL;
}

// ---- one trial ---------------------------------------------------------------------------------

// The trial that a run computes for all with its prompt, stream and spans: the first of them.
static const struct record_trial *head_of(const struct record_trial *plan,
                                          const struct record_trial *t) {
    const struct record_trial *head = t;
    for (const struct record_trial *at = t; at-- > plan && plan_same_prompt(at, t);)
        if (plan_same_stream(at, t) && evidence_same_spans(at, t)) head = at;
    return head;
}

// Does a reply to `then` have the bytes that `t` would get? `head` is the trial that would be run.
static bool fits(const struct reuse *u, int model, const struct record *r,
                 const struct record_trial *then, const struct record_trial *t,
                 const struct record_trial *head) {
    if (then->reply_tokens_max != t->reply_tokens_max) return false;
    if (!u->reads_key[model]) return u->greedy || plan_same_stream(then, t);
    return plan_same_stream(then, t) && strcmp(then->key, head->key) == 0 &&
           strcmp(then->prompt_sha256, head->prompt_sha256) == 0 &&
           head_of(r->trials, then) == then;
}

// Does the record have what is to be known of where the model looked?
static bool watched_alike(const struct reuse *u, int model, const struct record_trial *then,
                          const struct record_trial *t) {
    return strcmp(u->evidence[model], "off") == 0 || evidence_same_spans(then, t);
}

// Of two replies to one request of a model that need not repeat itself the first one named counts.
static int take(const struct reuse *u, int model, struct reuse_reply *reply, const struct source *s,
                int64_t at, struct err *e) {
    const struct record_outcome *o = s->shown.record->outcomes[at];
    if (reply->outcome == NULL) {
        *reply = (struct reuse_reply){o, &s->shown.record->trials[at], s->shown.record};
    } else if (u->deterministic[model] && !record_same_reply(reply->outcome, o)) {
        FAIL(e, ERR_RECORD,
             "--reuse %s: the reply to %.200s is another one than that to %.200s in %s, though "
             "model, prompt and settings are the same; one of the two was edited or is of a faulty "
             "build: `lacuna repeat RUN KEY` tells which",
             s->shown.folder, s->shown.record->trials[at].key, reply->then->key,
             reply->from->folder);
    }
    return 0;
}

// Ids are recorded where the provider tells them; another's record is no use.
static bool has_other_ids(const struct reuse *u, int model, const struct record_outcome *o) {
    return o->tokens > 0 && (o->ids != NULL) != u->exact_ids[model];
}

static int look_for(struct reuse *u, struct source *s, int model, const struct record_trial *plan,
                    const struct record_trial *t, struct reuse_reply *reply, struct err *e) {
    if (s->partner[model] < 0) return 0;
    const struct record *r = s->shown.record;
    const char *hash = u->exact_ids[model] ? t->ids_sha256 : t->prompt_sha256;
    int64_t first = record_map_get(s->prompts[model], hash);
    if (first < 0) return 0;
    const struct record_trial *head = head_of(plan, t);
    bool fitting = false, elsewhere = false, answered = false, had = reply->outcome != NULL;
    for (int64_t i = first; i < r->trial_count; i++) {
        if (!plan_same_prompt(&r->trials[first], &r->trials[i])) break;
        if (!fits(u, model, r, &r->trials[i], t, head)) continue;
        fitting = true;
        if (!watched_alike(u, model, &r->trials[i], t)) {
            elsewhere = true;
            continue;
        }
        const struct record_outcome *o = r->outcomes[i];
        if (o == NULL || o->status != STATUS_OK || has_other_ids(u, model, o)) continue;
        answered = true;
        TRY(take(u, model, reply, s, i, e));
    }
    s->same_prompt++;
    s->same_stream += fitting;
    s->elsewhere += elsewhere && !answered;
    s->unanswered += fitting && !elsewhere && !answered;
    s->shown.taken += answered && !had;
    return 0;
}

// ---- all of them -------------------------------------------------------------------------------

// Why not more: at least one note where nothing was taken.
static void add_reasons(const struct reuse *u, struct source *s, const struct experiment *x,
                        struct arena *a) {
    bool any = false;
    for (int m = 0; m < u->model_count; m++) any |= s->partner[m] >= 0;
    if (s->unanswered > 0)
        add_note(&s->shown, a,
                 arena_printf(a, "%lld of its trials ended in error or have not run",
                              (long long)s->unanswered));
    if (s->elsewhere > 0)
        add_note(&s->shown, a,
                 arena_printf(a, "%lld of its trials were watched at other spans (evidence)",
                              (long long)s->elsewhere));
    if (s->shown.taken > 0 || !any || s->shown.note_count > 0) return;
    const char *seeds =
        reuse_value_difference("", "seed", json_object_get(s->shown.record->resolved, "seed"),
                               json_object_get(x->resolved, "seed"), a);
    if (s->same_prompt == 0)
        add_note(&s->shown, a, seeds != NULL ? seeds : "none of its prompts is one of the plan's");
    else if (s->same_stream == 0)
        add_note(&s->shown, a,
                 "its replies to these prompts were drawn from other sampling streams");
    else
        add_note(&s->shown, a, "the records named before it have all that it has");
}

int reuse_find(struct reuse *u, const struct experiment *x, const struct record_trial *trials,
               int64_t trial_count, const int64_t *wanted, int64_t wanted_count, struct arena *a,
               struct reuse_reply **replies, struct err *e) {
    *replies = arena_array(a, (size_t)trial_count + 1, sizeof **replies);
    for (int64_t i = 0; i < wanted_count; i++) {
        const struct record_trial *t = &trials[wanted[i]];
        int model = experiment_model_index(x, t->model);
        for (int k = 0; model >= 0 && k < u->source_count; k++)
            TRY(look_for(u, &u->sources[k], model, trials, t, &(*replies)[wanted[i]], e));
    }
    for (int k = 0; k < u->source_count; k++) add_reasons(u, &u->sources[k], x, a);
    return 0;
}

int reuse_evidence(const struct reuse *u, int model, const struct reuse_reply *reply,
                   struct arena *a, const struct record_evidence **out, struct err *e) {
    *out = NULL;
    if (strcmp(u->evidence[model], "off") == 0) return 0;
    TRY(record_get_evidence(reply->from, reply->then->trial, a, out, e));
    if (*out == NULL || strcmp(u->evidence[model], "full") == 0) return 0;
    struct record_evidence *v = arena_alloc(a, sizeof *v); // the summary of a full one
    *v = **out;
    v->attention = arena_array(a, (size_t)v->attention_count + 1, sizeof *v->attention);
    for (int i = 0; i < v->attention_count; i++) {
        v->attention[i] = (*out)->attention[i];
        v->attention[i].all = NULL;
    }
    *out = v;
    return 0;
}

const char *reuse_words(const struct reuse_source *s, struct arena *a) {
    struct buf words = {0}, clean = {0};
    if (s->taken > 0)
        buf_printf(&words, "%s: %lld repl%s taken over", s->folder, (long long)s->taken,
                   s->taken == 1 ? "y is" : "ies are");
    else
        buf_printf(&words, "%s: no reply can be taken over", s->folder);
    for (int i = 0; i < s->note_count; i++)
        buf_printf(&words, "%s%s",
                   i > 0          ? "; "
                   : s->taken > 0 ? "; for the rest: "
                                  : ": ",
                   s->notes[i]);
    escape_terminal(&clean, buf_str(&words));
    buf_free(&words);
    return buf_take(&clean, a).p;
}

#include "evals/plan_cost.h"

#include "evals/evidence.h"
#include "evals/run_setup.h"

#include <string.h>

#define MEASURED_REPLY_TOKENS 32

struct plan_tokens plan_tokens(const struct plan *p, const char *model,
                               const struct reuse_reply *replies) {
    struct plan_tokens sum = {0};
    int64_t before = -1;
    for (int64_t i = 0; i < p->trial_count; i++) {
        const struct record_trial *t = &p->trials[i];
        if (strcmp(t->model, model) != 0) continue;
        if (replies != NULL && replies[i].outcome != NULL) continue;
        int64_t tokens = (int64_t)t->prompt_tokens + t->reply_tokens_max;
        sum.trials++;
        sum.prompt += t->prompt_tokens;
        sum.computed += t->prompt_tokens - plan_shared_tokens(p->trials, before, i);
        before = i;
        sum.reply += t->reply_tokens_max;
        if (tokens > sum.longest) sum.longest = tokens;
    }
    return sum;
}

struct provider_memory plan_memory(const struct experiment *x, const struct plan *p, int model,
                                   const struct provider *provider, uint64_t bound) {
    struct provider_memory m = provider->can.memory;
    uint64_t evidence =
        m.span_bytes * evidence_spans_most(x, p->trials, p->trial_count, x->models[model].id);
    m.least_bytes += evidence;
    if (m.planned_bytes > 0) m.planned_bytes += evidence;
    if (bound > 0 && m.planned_bytes > bound) m.planned_bytes = bound;
    if (bound > 0 && m.least_bytes > bound) m.planned_bytes = 0;
    if (m.planned_bytes == 0) m.replies = 0;
    return m;
}

// Offers a request as often as the provider takes it at once and the plan has trials: its prompt is
// computed once, and the replies decode together as those of a run do.
static int time_request(struct provider *p, struct provider_request *request, int64_t trials,
                        struct arena *a, struct plan_speed *out, struct err *e) {
    int64_t offered = 0, reply_tokens = 0, prompt_tokens = 0;
    double prefill_ms = 0, decode_ms = 0;
    for (bool accepted = true; accepted && offered < trials; offered += accepted) {
        request->ticket = offered;
        TRY(p->ops->submit(p, request, &accepted, e));
    }
    for (int64_t i = 0; i < offered; i++) {
        struct provider_completion c;
        bool any;
        TRY(p->ops->next(p, a, &c, &any, e));
        if (!any || !c.ok)
            FAIL(e, ERR_PROVIDER, "the measured trial %s failed: %s", request->key,
                 any && c.reason_text ? c.reason_text : "no reply");
        prompt_tokens += (int64_t)request->ids.count - c.shared_tokens;
        reply_tokens += c.tokens;
        prefill_ms += c.prefill_ms;
        decode_ms += c.decode_ms;
    }
    out->known = prefill_ms > 0 && decode_ms > 0 && prompt_tokens > 0 && reply_tokens > 0;
    if (!out->known) return 0;
    out->prefill = 1000.0 * (double)prompt_tokens / prefill_ms;
    out->decode = 1000.0 * (double)reply_tokens / decode_ms;
    out->together = (int)offered;
    return 0;
}

static int time_trial(const struct experiment *x, struct provider *const *providers,
                      struct provider *p, const char *key, int64_t trials, struct arena *a,
                      struct plan_speed *out, struct err *e) {
    const struct experiment_generation *g = &x->generation;
    struct record_trial t;
    struct record_part *parts;
    size_t count;
    TRY(plan_prompt(x, providers, key, a, &t, &parts, &count, e));
    struct provider_piece *pieces = arena_array(a, count + 1, sizeof *pieces);
    for (size_t i = 0; i < count; i++)
        pieces[i] = (struct provider_piece){parts[i].text, parts[i].control};
    const struct provider_generation generation = {
        .max_tokens = g->max_tokens < MEASURED_REPLY_TOKENS ? g->max_tokens : MEASURED_REPLY_TOKENS,
        .temperature = g->temperature,
        .top_p = g->top_p,
        .stop = g->stop,
        .stop_count = g->stop_count};
    struct provider_request request = {.key = key,
                                       .pieces = pieces,
                                       .piece_count = count,
                                       .generation = &generation,
                                       .sampling = plan_sampling_stream(x, &t)};
    if (p->can.exact_ids) TRY(p->ops->tokenize(p, pieces, count, a, &request.ids, e));
    return time_request(p, &request, trials, a, out, e);
}

int plan_measure(const struct experiment *x, struct provider *const *providers,
                 const struct plan *p, int model, const struct run_options *options,
                 struct arena *a, struct plan_speed *out, struct err *e) {
    const char *id = x->models[model].id;
    const struct record_trial *t = p->trials, *end = t + p->trial_count;
    *out = (struct plan_speed){0};
    while (t < end && strcmp(t->model, id) != 0) t++;
    if (t == end) return 0;
    struct provider *loaded;
    TRY(run_provider_open(x, model, options, false, 0, &loaded, e));
    int64_t trials = plan_tokens(p, id, NULL).trials;
    int result = time_trial(x, providers, loaded, t->key, trials, a, out, e);
    loaded->ops->close(loaded);
    return result == 0 ? 0 : err_prefix(e, "model %s", id);
}

int64_t plan_seconds_most(const struct plan_tokens *t, const struct plan_speed *speed) {
    return (int64_t)((double)t->computed / speed->prefill + (double)t->reply / speed->decode + 0.5);
}

#include "engine/walk_internal.h"

#include "engine/base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define KEPT 4 // answered prompts that others may still share, while all others are in flight

void walk_session_options(struct session_options *o, uint32_t context_tokens, int in_flight) {
    uint32_t pages = kv_pages_of(context_tokens);
    o->sequences = (uint32_t)in_flight + KEPT;
    o->pages_least = pages;
    o->pages_most = pages * o->sequences;
}

static void *walk_array(size_t count, size_t size) {
    void *p = calloc(count, size);
    if (p == NULL) mem_exhausted("prompt walk", count * size);
    return p;
}

struct walk *walk_open(struct session *s, const struct continuation_vocabulary *v, int in_flight) {
    assert(in_flight >= 1 && session_plan(s)->sequences == (uint32_t)in_flight + KEPT);
    assert(session_plan(s)->chunk_tokens > (uint32_t)in_flight);
    struct walk *w = walk_array(1, sizeof *w);
    w->session = s;
    w->vocabulary = v;
    w->in_flight = in_flight;
    w->leaves = in_flight + KEPT;
    w->leaf = walk_array((size_t)w->leaves, sizeof *w->leaf);
    w->listed = walk_array((size_t)w->leaves, sizeof(struct leaf *));
    w->items = walk_array((size_t)w->leaves, sizeof *w->items);
    for (int i = 0; i < w->leaves; i++) w->leaf[i].arena = arena_create("trial");
    return w;
}

void walk_close(struct walk *w) {
    if (w == NULL) return;
    for (int i = 0; i < w->leaves; i++) {
        kv_sequence_close(session_kv(w->session), w->leaf[i].sequence);
        arena_destroy(w->leaf[i].arena);
    }
    free(w->leaf);
    free(w->listed);
    free(w->items);
    free(w);
}

int walk_leaves(struct walk *w, enum leaf_state state, struct leaf **out) {
    int n = 0;
    for (int i = 0; i < w->leaves; i++) {
        struct leaf *l = &w->leaf[i];
        if (l->state != state) continue;
        int at = n++;
        for (; at > 0 && out[at - 1]->order > l->order; at--) out[at] = out[at - 1];
        out[at] = l;
    }
    return n;
}

// A free leaf, or else the kept one that was used least recently; NULL when all are in flight.
static struct leaf *find_leaf(struct walk *w) {
    struct leaf *found = NULL;
    int in_flight = 0;
    for (int i = 0; i < w->leaves; i++) {
        struct leaf *l = &w->leaf[i];
        if (l->state != LEAF_FREE && l->state != LEAF_KEPT) {
            in_flight++;
        } else if (found == NULL || (found->state == LEAF_KEPT &&
                                     (l->state == LEAF_FREE || l->used < found->used))) {
            found = l;
        }
    }
    return in_flight < w->in_flight ? found : NULL;
}

static int check_request(const struct walk *w, const struct provider_request *r, struct err *e) {
    const struct provider_generation *g = r->generation;
    uint32_t context = session_plan(w->session)->context_tokens;
    if (r->ids.count == 0) FAIL(e, ERR_CONFIG, "%s: the prompt has no tokens", r->key);
    if (g->max_tokens < 1)
        FAIL(e, ERR_CONFIG, "%s: max_tokens is %d, it must be 1 or more", r->key, g->max_tokens);
    if (!(g->temperature >= 0) || !(g->top_p > 0 && g->top_p <= 1))
        FAIL(e, ERR_CONFIG,
             "%s: temperature is %g and top_p %g; temperature must be 0 or more and top_p in "
             "(0, 1]",
             r->key, g->temperature, g->top_p);
    if (g->reasoning_tokens < 0 || g->reasoning_tokens >= g->max_tokens)
        FAIL(e, ERR_CONFIG, "%s: of %d tokens %d are for the reasoning, which leaves no answer",
             r->key, g->max_tokens, g->reasoning_tokens);
    for (int i = 0; i < g->stop_count; i++)
        if (g->stop[i].n == 0) FAIL(e, ERR_CONFIG, "%s: stop string %d is empty", r->key, i + 1);
    if (r->ids.count > context || (uint64_t)r->ids.count + (uint64_t)g->max_tokens > context)
        FAIL(e, ERR_CONFIG,
             "%s: a prompt of %zu tokens and a reply of up to %d do not fit the context of %u "
             "tokens; nothing is cut: raise context_tokens, or lower the length or max_tokens",
             r->key, r->ids.count, g->max_tokens, context);
    uint32_t spans_most = session_plan(w->session)->watched / (uint32_t)w->in_flight;
    if (r->span_count < 0 || (uint32_t)r->span_count > spans_most)
        FAIL(e, ERR_CONFIG, "%s: %d spans are to be watched; the model is open for %u", r->key,
             r->span_count, spans_most);
    for (int i = 0; i < r->span_count; i++) {
        const struct provider_span *s = &r->spans[i];
        if (s->subject < 0 || s->subject >= r->subject_count ||
            (uint64_t)s->first_token + s->tokens > r->ids.count)
            FAIL(e, ERR_CONFIG, "%s: the watched span %d lies outside the prompt", r->key, i);
    }
    for (size_t i = 0; i < r->ids.count; i++)
        if (r->ids.ids[i] < 0 || (uint32_t)r->ids.ids[i] >= w->vocabulary->size)
            FAIL(e, ERR_INPUT, "%s: token id %d (number %zu) is outside the vocabulary of %u",
                 r->key, r->ids.ids[i], i, w->vocabulary->size);
    return 0;
}

int walk_submit(struct walk *w, const struct provider_request *request, bool *accepted,
                struct err *e) {
    TRY(check_request(w, request, e));
    struct leaf *l = find_leaf(w);
    *accepted = l != NULL;
    if (l == NULL) return 0;
    kv_sequence_close(session_kv(w->session), l->sequence);
    struct arena *a = l->arena;
    arena_reset(a);
    *l = (struct leaf){.state = LEAF_WAITING,
                       .order = w->submitted++,
                       .arena = a,
                       .ticket = request->ticket,
                       .generation = provider_generation_copy(request->generation, a),
                       .sampling = request->sampling};
    size_t count = request->ids.count;
    l->ids = (struct provider_ids){arena_array(a, count, sizeof *l->ids.ids), count};
    memcpy(l->ids.ids, request->ids.ids, count * sizeof *l->ids.ids);
    continuation_start(&l->reply, w->vocabulary, &l->generation, a);
    watch_start(&l->watch, session_model(w->session), request, a);
    return 0;
}

// The reply's part of the KV is of no use to others, the prompt's is.
void walk_leaf_end(struct walk *w, struct leaf *l) {
    uint32_t prompt = (uint32_t)l->ids.count;
    if (l->sequence->length > prompt) kv_truncate(session_kv(w->session), l->sequence, prompt);
    l->state = LEAF_ENDED;
}

static const char *reason_of(enum err_code code) {
    return code == ERR_NUMERIC ? "numeric" : code == ERR_MEMORY ? "memory" : "engine";
}

static void deliver(struct leaf *l, struct arena *a, struct provider_completion *out) {
    const struct continuation *r = &l->reply;
    uint64_t wall = l->prefill_ns + l->decode_ns;
    *out = (struct provider_completion){
        .ticket = l->ticket,
        .ok = !l->failed,
        .finish = l->failed ? FINISH_ERROR : r->finish,
        .text = str_copy(a, (struct str){r->text, r->bytes}),
        .ids = {arena_array(a, r->count, sizeof *r->ids), r->count},
        .tokens = (int)r->count,
        .stop_id = l->failed ? -1 : r->stop_id,
        .wall_ms = CLOCK_MS(wall),
        .cpu_ms = CLOCK_MS(l->cpu_ns),
        .prefill_ms = CLOCK_MS(l->prefill_ns),
        .decode_ms = CLOCK_MS(l->decode_ns),
        .shared_tokens = (int)l->shared_tokens,
    };
    if (!l->failed) {
        out->attention = watch_end(&l->watch, a);
        out->reasoning_counted = l->generation.reasoning != NULL;
        out->reasoning_tokens = (int)continuation_reasoning_tokens(r);
        out->layers = l->watch.model->L;
        out->heads = l->watch.model->H;
    }
    if (r->count > 0) memcpy(out->ids.ids, r->ids, r->count * sizeof *r->ids);
    if (l->failed) {
        out->reason_code = reason_of(l->failure.code);
        out->reason_text = arena_strdup(a, l->failure.text);
    }
    l->state = LEAF_KEPT;
}

bool walk_next(struct walk *w, struct arena *a, struct provider_completion *out) {
    for (;;) {
        if (walk_leaves(w, LEAF_ENDED, w->listed) > 0) {
            deliver(w->listed[0], a, out);
            return true;
        }
        walk_begin(w);
        if (walk_leaves(w, LEAF_GROWING, w->listed) + walk_leaves(w, LEAF_READING, w->listed) ==
            0) {
            // One prompt with its reply always fits an empty pool (walk_session_options).
            assert(walk_leaves(w, LEAF_WAITING, w->listed) == 0);
            return false;
        }
        if (!walk_pass(w)) return false;
    }
}

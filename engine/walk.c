#include "engine/walk.h"

#include "engine/base/clock.h"
#include "engine/sampler.h"
#include "engine/watch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum leaf_state { LEAF_FREE, LEAF_WAITING, LEAF_GROWING, LEAF_ENDED };

struct leaf {
    enum leaf_state state;
    uint64_t order; // of submission
    struct arena *arena;
    int64_t ticket;
    struct provider_ids ids;
    struct provider_generation generation;
    struct rng sampling;
    struct kv_sequence *sequence; // while growing
    struct continuation reply;
    struct watch watch;
    int32_t last;   // sampled, not yet passed
    int32_t chosen; // by the pass that runs; counts only when the pass succeeds
    bool failed;
    struct err failure;
    int shared_tokens;
    uint64_t begun_ns, prefill_ns, decode_ns, cpu_ns;
};

struct walk {
    struct session *session;
    const struct continuation_vocabulary *vocabulary;
    struct sampler *sampler;
    struct kv_sequence *trunk;
    int32_t *trunk_ids; // [context], of which trunk->length are in the cache
    struct leaf *leaf;
    int in_flight;
    uint64_t submitted;
    struct leaf **batch;        // [in_flight]
    struct session_item *items; // [in_flight]
};

void walk_session_options(struct session_options *o, uint32_t context_tokens, int in_flight) {
    uint32_t pages = kv_pages_of(context_tokens);
    o->sequences = (uint32_t)in_flight + 1;
    o->pages_least = pages + 1; // one prompt in the trunk, its reply beside it
    o->pages_most = pages * ((uint32_t)in_flight + 1) + 1;
}

static void *walk_array(size_t count, size_t size) {
    void *p = calloc(count, size);
    if (p == NULL) mem_exhausted("prompt walk", count * size);
    return p;
}

struct walk *walk_open(struct session *s, const struct continuation_vocabulary *v, int in_flight) {
    assert(in_flight >= 1 && session_plan(s)->sequences > (uint32_t)in_flight);
    struct walk *w = walk_array(1, sizeof *w);
    w->session = s;
    w->vocabulary = v;
    w->in_flight = in_flight;
    w->sampler = sampler_open(v->size);
    w->trunk_ids = walk_array(session_plan(s)->context_tokens, sizeof *w->trunk_ids);
    w->leaf = walk_array((size_t)in_flight, sizeof *w->leaf);
    w->batch = walk_array((size_t)in_flight, sizeof(struct leaf *));
    w->items = walk_array((size_t)in_flight, sizeof *w->items);
    for (int i = 0; i < in_flight; i++) w->leaf[i].arena = arena_create("trial");
    int result = kv_sequence_open(session_kv(s), &w->trunk, NULL);
    assert(result == 0);
    (void)result;
    return w;
}

void walk_close(struct walk *w) {
    if (w == NULL) return;
    struct kv_pool *kv = session_kv(w->session);
    for (int i = 0; i < w->in_flight; i++) {
        kv_sequence_close(kv, w->leaf[i].sequence);
        arena_destroy(w->leaf[i].arena);
    }
    kv_sequence_close(kv, w->trunk);
    sampler_close(w->sampler);
    free(w->trunk_ids);
    free(w->leaf);
    free(w->batch);
    free(w->items);
    free(w);
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
    struct leaf *l = NULL;
    for (int i = 0; i < w->in_flight && l == NULL; i++)
        if (w->leaf[i].state == LEAF_FREE) l = &w->leaf[i];
    *accepted = l != NULL;
    if (l == NULL) return 0;
    struct arena *a = l->arena;
    arena_reset(a);
    *l = (struct leaf){.state = LEAF_WAITING,
                       .order = w->submitted++,
                       .arena = a,
                       .ticket = request->ticket,
                       .generation = *request->generation,
                       .sampling = request->sampling};
    size_t count = request->ids.count;
    l->ids.ids = arena_array(a, count, sizeof *l->ids.ids);
    memcpy(l->ids.ids, request->ids.ids, count * sizeof *l->ids.ids);
    l->ids.count = count;
    struct str *stop = arena_array(a, (size_t)l->generation.stop_count, sizeof *stop);
    for (int i = 0; i < l->generation.stop_count; i++)
        stop[i] = str_copy(a, request->generation->stop[i]);
    l->generation.stop = stop;
    continuation_start(&l->reply, w->vocabulary, stop, l->generation.stop_count,
                       l->generation.max_tokens, a);
    watch_start(&l->watch, session_model(w->session), request, a);
    return 0;
}

// Leaves in one state, by order of submission. The array has room for all.
static int leaves_in(struct walk *w, enum leaf_state state, struct leaf **out) {
    int n = 0;
    for (int i = 0; i < w->in_flight; i++) {
        struct leaf *l = &w->leaf[i];
        if (l->state != state) continue;
        int at = n++;
        for (; at > 0 && out[at - 1]->order > l->order; at--) out[at] = out[at - 1];
        out[at] = l;
    }
    return n;
}

static void leaf_end(struct walk *w, struct leaf *l) {
    kv_sequence_close(session_kv(w->session), l->sequence);
    l->sequence = NULL;
    l->state = LEAF_ENDED;
}

// One call of the session: item i belongs to leaves[i].
struct pass {
    struct walk *walk;
    struct leaf **leaves;
};

static int take_token(void *context, struct session *s, const struct session_row *row,
                      struct err *e) {
    (void)e;
    const struct pass *p = context;
    struct leaf *l = p->leaves[row->item];
    l->chosen = row->greedy;
    if (l->generation.temperature > 0)
        l->chosen =
            sampler_draw(p->walk->sampler, session_row_logits(s, row), l->generation.temperature,
                         l->generation.top_p, &l->sampling, (uint64_t)l->reply.tokens);
    return 0;
}

static int run_pass(struct walk *w, struct leaf **leaves, int count, struct err *e) {
    struct pass pass = {w, leaves};
    struct session_sink sink = {take_token, &pass};
    return session_forward(w->session, w->items, (uint32_t)count, &sink, e);
}

// What a pass watches for a leaf.
static const struct session_watch *watched(const struct leaf *l) {
    return l->watch.item.count > 0 ? &l->watch.item : NULL;
}

// The chosen token becomes part of the reply.
static void leaf_add(struct walk *w, struct leaf *l) {
    watch_add(&l->watch);
    l->last = l->chosen;
    continuation_add(&l->reply, l->last);
    if (l->reply.ended) leaf_end(w, l);
}

// Pages that growing leaves may still take.
static uint64_t promised_pages(const struct walk *w) {
    uint64_t pages = 0;
    for (int i = 0; i < w->in_flight; i++) {
        const struct leaf *l = &w->leaf[i];
        if (l->state != LEAF_GROWING) continue;
        pages += kv_pages_needed(session_kv(w->session), l->sequence,
                                 (uint32_t)l->ids.count + (uint32_t)l->generation.max_tokens);
    }
    return pages;
}

// Cuts the trunk back to what it shares with the prompt; the last token is always computed, for its
// logits are wanted. Returns the shared length.
static uint32_t share_trunk(struct walk *w, const struct leaf *l) {
    uint32_t most = (uint32_t)l->ids.count - 1;
    if (w->trunk->length < most) most = w->trunk->length;
    uint32_t shared = 0;
    while (shared < most && w->trunk_ids[shared] == l->ids.ids[shared]) shared++;
    kv_truncate(session_kv(w->session), w->trunk, shared);
    return shared;
}

// Whether the pool has room for the prompt and its whole reply beside what is promised.
static bool has_room(const struct walk *w, const struct leaf *l) {
    const struct kv_pool *kv = session_kv(w->session);
    uint32_t count = (uint32_t)l->ids.count;
    uint32_t whole = count / BACKEND_PAGE;
    uint64_t needed = kv_pages_needed(kv, w->trunk, count);
    needed += kv_pages_of(count + (uint32_t)l->generation.max_tokens) - whole;
    return needed + promised_pages(w) <= kv->free_count;
}

static void leaf_fail(struct walk *w, struct leaf *l, const struct err *e) {
    l->failed = true;
    l->failure = *e;
    leaf_end(w, l);
}

// A failure belongs to the leaf alone, unless it is an interruption: that ends the call (-1) and
// leaves everything as it is.
static int pass_failed(struct walk *w, struct leaf *l, const struct err *failure) {
    if (failure->code == ERR_CANCELLED) return -1;
    leaf_fail(w, l, failure);
    return 0;
}

static int prefill(struct walk *w, struct leaf *l, uint32_t shared, struct err *e) {
    uint32_t count = (uint32_t)l->ids.count;
    memcpy(w->trunk_ids + shared, l->ids.ids + shared, (count - shared) * sizeof *l->ids.ids);
    w->items[0] = (struct session_item){.sequence = w->trunk,
                                        .ids = l->ids.ids + shared,
                                        .count = count - shared,
                                        .logits = SESSION_LAST,
                                        .watch = watched(l)};
    TRY(run_pass(w, &l, 1, e));
    return kv_fork(session_kv(w->session), w->trunk, &l->sequence, e);
}

static int begin_leaf(struct walk *w, struct leaf *l, uint32_t shared) {
    l->begun_ns = clock_ns();
    uint64_t cpu = clock_cpu_ns();
    l->shared_tokens = (int)shared;
    struct err failure = {0};
    int result = prefill(w, l, shared, &failure);
    l->prefill_ns = clock_ns() - l->begun_ns;
    l->cpu_ns = clock_cpu_ns() - cpu;
    if (result != 0) return pass_failed(w, l, &failure);
    l->state = LEAF_GROWING;
    leaf_add(w, l);
    return 0;
}

// Begins waiting leaves in order, as long as there is room for the next one.
static int begin_leaves(struct walk *w) {
    int waiting;
    while ((waiting = leaves_in(w, LEAF_WAITING, w->batch)) > 0) {
        struct leaf *next = w->batch[0];
        uint32_t shared = share_trunk(w, next);
        if (!has_room(w, next)) {
            // One prompt with its reply always fits an empty pool (walk_session_options).
            assert(leaves_in(w, LEAF_GROWING, w->batch) > 0);
            return 0;
        }
        TRY(begin_leaf(w, next, shared));
    }
    return 0;
}

// One token for each of the leaves.
static int grow(struct walk *w, struct leaf **leaves, int count, struct err *e) {
    uint64_t wall = clock_ns(), cpu = clock_cpu_ns();
    for (int i = 0; i < count; i++)
        w->items[i] = (struct session_item){.sequence = leaves[i]->sequence,
                                            .ids = &leaves[i]->last,
                                            .count = 1,
                                            .logits = SESSION_LAST,
                                            .watch = watched(leaves[i])};
    TRY(run_pass(w, leaves, count, e));
    wall = clock_ns() - wall;
    cpu = clock_cpu_ns() - cpu;
    for (int i = 0; i < count; i++) {
        leaves[i]->decode_ns += wall;
        leaves[i]->cpu_ns += cpu / (uint64_t)count;
        leaf_add(w, leaves[i]);
    }
    return 0;
}

static int grow_leaves(struct walk *w) {
    int count = leaves_in(w, LEAF_GROWING, w->batch);
    struct err failure = {0};
    if (count == 0 || grow(w, w->batch, count, &failure) == 0) return 0;
    if (failure.code == ERR_CANCELLED) return -1;
    // Each by itself, so that one reply that fails does not take the others with it.
    for (int i = 0; i < count; i++)
        if (grow(w, &w->batch[i], 1, &failure) != 0) TRY(pass_failed(w, w->batch[i], &failure));
    return 0;
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
        .shared_tokens = l->shared_tokens,
    };
    if (!l->failed) {
        out->attention = watch_end(&l->watch, a);
        out->layers = l->watch.model->L;
        out->heads = l->watch.model->H;
    }
    if (r->count > 0) memcpy(out->ids.ids, r->ids, r->count * sizeof *r->ids);
    if (l->failed) {
        out->reason_code = reason_of(l->failure.code);
        out->reason_text = arena_strdup(a, l->failure.text);
    }
    l->state = LEAF_FREE;
}

bool walk_next(struct walk *w, struct arena *a, struct provider_completion *out) {
    for (;;) {
        if (leaves_in(w, LEAF_ENDED, w->batch) > 0) {
            deliver(w->batch[0], a, out);
            return true;
        }
        if (begin_leaves(w) != 0) return false;
        if (leaves_in(w, LEAF_ENDED, w->batch) > 0) continue;
        if (leaves_in(w, LEAF_GROWING, w->batch) == 0) return false;
        if (grow_leaves(w) != 0) return false;
    }
}

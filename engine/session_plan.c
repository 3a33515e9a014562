// What a session takes, decided before anything is loaded.
#include "engine/session.h"

#include <stdio.h>
#include <string.h>

static double mib(uint64_t bytes) {
    return (double)bytes / 1048576.0;
}

int session_context_tokens(const struct model *m, uint32_t asked, bool beyond_trained,
                           uint32_t *out, struct err *e) {
    uint32_t trained = m->config.trained_context;
    *out = asked != 0 ? asked : trained;
    if (*out > trained && !beyond_trained)
        FAIL(e, ERR_CONFIG,
             "%s: a context of %u tokens is asked for and the model was trained for %u; lower "
             "context_tokens or say beyond_trained: true",
             m->file->path, *out, trained);
    return 0;
}

// `bound`: what the caller allows beside the weights; 0: what is free on the machine is too little.
static int fail_memory(const struct model *m, const struct session_options *o,
                       const struct session_plan *p, uint64_t bound, struct err *e) {
    char weights[40], lower[64];
    snprintf(weights, sizeof weights, "weights (%s)", backend_storage_name(p->storage));
    snprintf(lower, sizeof lower, "the context (now %u tokens)", p->context_tokens);
    bool stored = bound != 0 || p->storage == BACKEND_STORED; // nothing is won by that
    FAIL(e, ERR_MEMORY,
         "%s: does not fit in memory\n"
         "  %-29s %10.1f MiB\n"
         "  %-29s %10.1f MiB  (%u pages of %u positions, %.1f MiB each)\n"
         "  %-29s %10.1f MiB  (%u tokens a pass)\n"
         "  %-29s %10.1f MiB\n"
         "  %-29s %10.1f MiB\n"
         "  %-29s %10.1f MiB\n"
         "%s %s%s.",
         m->file->path, weights, mib(p->weights_bytes), "KV cache", mib(p->kv_bytes), p->pages,
         (unsigned)BACKEND_PAGE, mib(p->page_bytes), "activations", mib(p->activation_bytes),
         p->chunk_tokens, "working memory", mib(p->scratch_bytes), "together", mib(p->total_bytes),
         bound != 0 ? "bound beside weights" : "free on the machine",
         mib(bound != 0 ? bound : p->free_bytes),
         bound != 0 ? "Raise the bound, or lower" : "Lower", o->lower != NULL ? o->lower : lower,
         stored ? "" : ", or hold the weights stored");
}

static void plan_total(struct session_plan *p, uint64_t weights_bytes, uint32_t pages) {
    p->weights_bytes = weights_bytes;
    p->pages = pages;
    p->kv_bytes = p->page_bytes * pages;
    p->total_bytes = weights_bytes + p->kv_bytes + p->activation_bytes + p->scratch_bytes;
}

static int plan_storage(struct backend *b, const struct model *m, const struct session_options *o,
                        uint32_t least, struct session_plan *p, struct err *e) {
    const char *weights = o->weights != NULL ? o->weights : "auto";
    p->storage_why = "asked for";
    if (strcmp(weights, "stored") == 0) {
        p->storage = BACKEND_STORED;
    } else if (strcmp(weights, "unpacked") == 0) {
        p->storage = BACKEND_UNPACKED;
    } else if (strcmp(weights, "auto") == 0) {
        uint64_t unpacked = weights_bytes(b, m, BACKEND_UNPACKED);
        uint64_t both = weights_bytes(b, m, BACKEND_BOTH);
        plan_total(p, unpacked, least);
        bool fits = p->total_bytes <= p->free_bytes;
        // A second form for few rows only where memory is ample and it is another form at all.
        bool ample = both > unpacked && p->total_bytes + (both - unpacked) <= p->free_bytes / 2;
        p->storage = !fits ? BACKEND_STORED : ample ? BACKEND_BOTH : BACKEND_UNPACKED;
        p->storage_why = !fits   ? "unpacked weights do not fit in memory"
                         : ample ? "measured: the stored form is faster for few rows"
                                 : "unpacked weights fit in memory";
    } else {
        FAIL(e, ERR_CONFIG, "weights: '%s' is not known, it is auto, unpacked or stored", weights);
    }
    plan_total(p, weights_bytes(b, m, p->storage), least);
    return 0;
}

void session_plan_settle(struct backend *b, const struct model *m, enum backend_storage storage,
                         struct session_plan *p) {
    if (storage == p->storage) return;
    p->storage = storage;
    p->storage_why = "measured: faster than the stored form for any number of rows";
    plan_total(p, weights_bytes(b, m, storage), p->pages);
}

struct backend_limits session_limits(const struct model *m, const struct session_plan *p) {
    struct backend_limits l = forward_limits(&m->config, p->chunk_tokens);
    l.sequences = p->sequences < p->chunk_tokens ? p->sequences : p->chunk_tokens;
    l.positions = p->context_tokens;
    l.ranges = p->watched;
    return l;
}

int session_plan_make(struct backend *b, const struct model *m, const struct session_options *o,
                      struct session_plan *out, struct err *e) {
    struct session_plan p = {0};
    TRY(session_context_tokens(m, o->context_tokens, o->beyond_trained, &p.context_tokens, e));
    p.chunk_tokens = o->chunk_tokens != 0 ? o->chunk_tokens : b->pass_rows;
    p.sequences = o->sequences != 0 ? o->sequences : 1;
    p.watched = o->watched;
    TRY(b->ops->memory_free_bytes(b, &p.free_bytes, e));
    const struct model_config *c = &m->config;
    struct backend_limits limits = session_limits(m, &p);
    p.activation_bytes =
        forward_bytes(b, c, p.chunk_tokens, p.watched) + (uint64_t)c->V * sizeof(float);
    p.scratch_bytes = b->ops->scratch_bytes(b, &limits);
    p.page_bytes = (uint64_t)b->ops->kv_layer_bytes(b, c->G, c->E) * c->L;
    uint32_t least = o->pages_least != 0 ? o->pages_least : kv_pages_of(p.context_tokens) + 1;
    uint32_t most = o->pages_most > least ? o->pages_most : least;
    TRY(plan_storage(b, m, o, least, &p, e));
    *out = p;

    if (p.total_bytes > p.free_bytes) return fail_memory(m, o, &p, 0, e);
    uint64_t beside = p.total_bytes - p.weights_bytes;
    if (o->memory_bytes != 0 && beside > o->memory_bytes)
        return fail_memory(m, o, &p, o->memory_bytes, e);
    // Pages above the least: within the bound, or without one half of what would be left.
    uint64_t spare = (p.free_bytes - p.total_bytes) / 2;
    if (o->memory_bytes != 0 && o->memory_bytes - beside < spare) spare = o->memory_bytes - beside;
    uint64_t more = p.page_bytes > 0 ? spare / p.page_bytes : 0;
    if (more > most - least) more = most - least;
    plan_total(&p, p.weights_bytes, least + (uint32_t)more);
    *out = p;
    return 0;
}

#include "engine/session.h"

#include "engine/base/arena.h"

#include <assert.h>
#include <stdlib.h>

struct session {
    const struct model *model;
    struct backend *backend;
    struct session_plan plan;
    struct weights *weights;
    struct kv_pool *kv;
    struct forward *forward;
    const atomic_bool *cancel;
    float *logits; // host, [V]
    // One pass, [chunk_tokens] each.
    int32_t *ids;
    uint32_t *positions, *wanted, *row_item, *row_index;
    struct token_draw *draws; // of the wanted rows
    struct backend_span *spans, *wanted_spans;
    struct forward_watch *watches;
};

static void *host_array(size_t count, size_t size) {
    void *p = calloc(count, size);
    if (p == NULL) mem_exhausted("session", count * size);
    return p;
}

// Stored weights are unpacked in parts of other shapes.
static void expect_products(struct session *s) {
    struct backend_shape shapes[WEIGHTS_LAYER_MATRICES];
    for (int i = 0; i < WEIGHTS_LAYER_MATRICES; i++) {
        struct weights_stack stack = weights_stack_of(s->model, 0, (enum weights_matrix)i);
        shapes[i] = (struct backend_shape){stack.N, stack.K};
    }
    if (s->plan.storage != BACKEND_STORED)
        s->backend->ops->expect(s->backend, shapes, WEIGHTS_LAYER_MATRICES);
}

static int open_parts(struct session *s, const struct session_options *o, struct err *e) {
    const struct model_config *c = &s->model->config;
    struct backend_options options = {.name = o->backend,
                                      .numerics = o->numerics,
                                      .op_table = o->op_table,
                                      .threads = o->threads,
                                      .products = o->products,
                                      .cache = o->cache,
                                      .E = c->E,
                                      .no_graphs = o->no_graphs};
    TRY(backend_open(&options, &s->backend, e));
    struct backend *b = s->backend;
    TRY(session_plan_make(b, s->model, o, &s->plan, e));
    struct backend_limits limits = session_limits(s->model, &s->plan);
    TRY(b->ops->prepare(b, &limits, e));
    expect_products(s);
    TRY(kv_open(b, b->ops->kv_layer_bytes(b, c->G, c->E), c->L, s->plan.pages, s->plan.sequences,
                s->plan.context_tokens, &s->kv, e));
    TRY(weights_load(b, s->model, s->plan.storage, &s->weights, e));
    session_plan_settle(b, s->model, s->weights->storage, &s->plan);
    return forward_open(b, c, s->weights, s->plan.chunk_tokens, s->plan.watched, &s->forward, e);
}

int session_open(const struct model *m, const struct session_options *o, struct session **out,
                 struct err *e) {
    struct session *s = host_array(1, sizeof *s);
    s->model = m;
    s->cancel = o->cancel;
    if (open_parts(s, o, e) != 0) {
        session_close(s);
        return -1;
    }
    size_t rows = s->plan.chunk_tokens;
    s->logits = host_array(m->config.V, sizeof *s->logits);
    s->ids = host_array(rows, sizeof *s->ids);
    s->positions = host_array(rows, sizeof *s->positions);
    s->wanted = host_array(rows, sizeof *s->wanted);
    s->draws = host_array(rows, sizeof *s->draws);
    s->row_item = host_array(rows, sizeof *s->row_item);
    s->row_index = host_array(rows, sizeof *s->row_index);
    s->spans = host_array(rows, sizeof *s->spans);
    s->wanted_spans = host_array(rows, sizeof *s->wanted_spans);
    s->watches = host_array(rows, sizeof *s->watches);
    *out = s;
    return 0;
}

void session_close(struct session *s) {
    if (s == NULL) return;
    forward_close(s->forward);
    weights_close(s->weights);
    kv_close(s->kv);
    backend_close(s->backend);
    free(s->logits);
    free(s->ids);
    free(s->positions);
    free(s->wanted);
    free(s->draws);
    free(s->row_item);
    free(s->row_index);
    free(s->spans);
    free(s->wanted_spans);
    free(s->watches);
    free(s);
}

const struct session_plan *session_plan(const struct session *s) {
    return &s->plan;
}

const struct model_config *session_model(const struct session *s) {
    return &s->model->config;
}

struct backend *session_backend(const struct session *s) {
    return s->backend;
}

struct kv_pool *session_kv(const struct session *s) {
    return s->kv;
}

const struct weights *session_weights(const struct session *s) {
    return s->weights;
}

enum backend_storage session_storage(const struct session *s, uint32_t rows) {
    enum backend_storage storage = s->weights->storage;
    if (storage != BACKEND_BOTH) return storage;
    return rows <= s->weights->few_rows ? BACKEND_STORED : BACKEND_UNPACKED;
}

const float *session_row_logits(struct session *s, const struct session_row *row) {
    s->backend->ops->download(s->backend, s->logits, row->logits,
                              s->model->config.V * sizeof *s->logits);
    return s->logits;
}

float session_row_log_sum_exp(struct session *s, const struct session_row *row) {
    float out;
    s->backend->ops->log_sum_exp(s->backend, row->logits, 1, s->model->config.V, &out);
    return out;
}

static int check_items(const struct session *s, const struct session_item *items, uint32_t count,
                       struct err *e) {
    uint32_t watched = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct session_item *item = &items[i];
        assert(item->count >= 1 && item->sequence->used);
        assert(item->watch == NULL || item->logits != SESSION_NONE);
        watched += item->watch != NULL ? item->watch->count : 0;
        assert(watched <= s->plan.watched);
        for (uint32_t j = 0; j < i; j++) assert(items[j].sequence != item->sequence);
        uint64_t length = (uint64_t)item->sequence->length + item->count;
        if (length > s->plan.context_tokens)
            FAIL(e, ERR_CONFIG,
                 "%u tokens behind %u make %llu, more than the context of %u tokens; nothing is "
                 "cut: raise context_tokens or shorten the prompt",
                 item->count, item->sequence->length, (unsigned long long)length,
                 s->plan.context_tokens);
        for (uint32_t k = 0; k < item->count; k++)
            if (item->ids[k] < 0 || (uint32_t)item->ids[k] >= s->model->config.V)
                FAIL(e, ERR_INPUT, "token id %d (number %u) is outside the vocabulary of %u",
                     item->ids[k], k, s->model->config.V);
    }
    return 0;
}

// Where the walk over all items stands: the next pass begins with id `index` of item `item`.
struct cursor {
    uint32_t item, index;
};

// Adds the next rows of one item to the pass that is being built.
static void add_rows(struct session *s, const struct session_item *items, struct cursor at,
                     uint32_t rows, struct forward_batch *batch) {
    const struct session_item *item = &items[at.item];
    struct backend_pass *pass = &batch->pass;
    uint32_t first = pass->rows;
    struct backend_span span = {.first_row = first,
                                .rows = rows,
                                .first_position = item->sequence->length,
                                .pages = item->sequence->address};
    for (uint32_t i = 0; i < rows; i++) {
        s->ids[first + i] = item->ids[at.index + i];
        s->positions[first + i] = span.first_position + i;
        s->row_item[first + i] = at.item;
        s->row_index[first + i] = at.index + i;
    }
    bool ends = at.index + rows == item->count, all = item->logits == SESSION_ALL;
    struct backend_span *last = &s->spans[pass->span_count++];
    *last = span;
    pass->rows += rows;
    if (!all && !(ends && item->logits == SESSION_LAST)) return;
    uint32_t skip = all ? 0 : rows - 1;
    struct backend_span *wanted = &s->wanted_spans[pass->wanted_span_count++];
    *wanted = span;
    wanted->first_row += skip;
    wanted->first_position += skip;
    wanted->rows -= skip;
    for (uint32_t i = skip; i < rows; i++) {
        s->draws[pass->wanted_count] = ends && i == rows - 1 ? item->draw : (struct token_draw){0};
        s->wanted[pass->wanted_count++] = first + i;
    }
    if (!ends || item->watch == NULL) return;
    struct forward_watch *watch = &s->watches[batch->watch_count++];
    watch->of_span = (struct backend_watch){
        .ranges = item->watch->ranges, .count = item->watch->count, .row = rows - 1};
    watch->of_wanted = watch->of_span;
    watch->of_wanted.row -= skip;
    watch->shares = item->watch->shares;
    last->watch = &watch->of_span;
    wanted->watch = &watch->of_wanted;
}

// Fills a pass from the cursor on. The sequences' lengths advance only after the pass.
static struct cursor build_pass(struct session *s, const struct session_item *items, uint32_t count,
                                struct cursor at, struct forward_batch *batch) {
    *batch = (struct forward_batch){.pass = {.ids = s->ids,
                                             .positions = s->positions,
                                             .spans = s->spans,
                                             .wanted = s->wanted,
                                             .wanted_spans = s->wanted_spans},
                                    .draws = s->draws,
                                    .watches = s->watches};
    while (at.item < count && batch->pass.rows < s->plan.chunk_tokens) {
        uint32_t left = items[at.item].count - at.index;
        uint32_t room = s->plan.chunk_tokens - batch->pass.rows;
        uint32_t rows = left < room ? left : room;
        add_rows(s, items, at, rows, batch);
        at.index += rows;
        if (rows == left) at = (struct cursor){at.item + 1, 0};
    }
    return at;
}

struct relay {
    struct session *session;
    const struct session_sink *sink; // NULL: nobody looks
};

static int relay_row(void *context, uint32_t row, int32_t chosen, const float *logits,
                     struct err *e) {
    struct relay *r = context;
    struct session *s = r->session;
    if (r->sink == NULL) return 0;
    struct session_row out = {.item = s->row_item[row],
                              .index = s->row_index[row],
                              .position = s->positions[row],
                              .chosen = chosen,
                              .logits = logits};
    return r->sink->take(r->sink->context, s, &out, e);
}

// `done` is where the next pass would begin, also after a failure.
static int run_passes(struct session *s, const struct session_item *items, uint32_t count,
                      const struct session_sink *sink, struct cursor *done, struct err *e) {
    struct relay relay = {s, sink};
    struct forward_sink forward_sink = {relay_row, &relay};
    while (done->item < count) {
        if (s->cancel != NULL && atomic_load(s->cancel)) FAIL(e, ERR_CANCELLED, "interrupted");
        struct forward_batch batch;
        struct cursor next = build_pass(s, items, count, *done, &batch);
        TRY(forward_run(s->forward, &batch, &forward_sink, e));
        *done = next;
        for (uint32_t i = 0; i < batch.pass.span_count; i++) {
            const struct backend_span *span = &batch.pass.spans[i];
            items[s->row_item[span->first_row]].sequence->length += span->rows;
        }
    }
    return 0;
}

int session_forward(struct session *s, const struct session_item *items, uint32_t count,
                    const struct session_sink *sink, struct err *e) {
    TRY(check_items(s, items, count, e));
    uint32_t reserved = 0;
    int result = 0;
    for (; reserved < count && result == 0; reserved++) {
        struct kv_sequence *q = items[reserved].sequence;
        result = kv_reserve(s->kv, q, q->length + items[reserved].count, e);
    }
    struct cursor done = {0, 0};
    if (result == 0) result = run_passes(s, items, count, sink, &done, e);
    if (result == 0) return 0;
    for (uint32_t i = 0; i < reserved; i++) {
        struct kv_sequence *q = items[i].sequence;
        uint32_t passed = i < done.item ? items[i].count : i == done.item ? done.index : 0;
        kv_truncate(s->kv, q, q->length - passed);
    }
    return -1;
}

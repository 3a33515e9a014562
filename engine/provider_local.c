#include "engine/provider_local.h"

#include "engine/backend_products.h"
#include "engine/chat.h"
#include "engine/model.h"
#include "engine/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct local {
    struct provider base;
    struct arena *arena; // the model's lifetime
    struct model *model;
    struct tokenizer *tokenizer;
    const struct chat_template *chat; // NULL: `no_chat` says why
    struct err no_chat;
    struct continuation_vocabulary vocabulary;
    struct session *session; // NULL when only planning
    struct walk *walk;
    atomic_bool cancelled;
};

static struct local *local_of(struct provider *p) {
    return (struct local *)p;
}

static int local_render(struct provider *p, const struct provider_message *messages, size_t count,
                        struct arena *a, struct provider_piece **pieces, size_t *piece_count,
                        struct err *e) {
    struct local *l = local_of(p);
    if (l->chat == NULL) {
        if (e != NULL) *e = l->no_chat;
        return -1;
    }
    return chat_render(l->chat, l->tokenizer, messages, count, a, pieces, piece_count, e);
}

static int local_tokenize(struct provider *p, const struct provider_piece *pieces, size_t count,
                          struct arena *a, struct provider_ids *out, struct err *e) {
    struct token_list list = {0};
    int result = chat_tokenize(local_of(p)->tokenizer, pieces, count, &list, e);
    if (result == 0) {
        out->ids = arena_array(a, list.count, sizeof *out->ids);
        out->count = list.count;
        if (list.count > 0) memcpy(out->ids, list.ids, list.count * sizeof *out->ids);
    }
    token_list_free(&list);
    return result;
}

static struct str local_id_bytes(struct provider *p, int32_t id) {
    return tokenizer_bytes(local_of(p)->tokenizer, id);
}

static int local_submit(struct provider *p, const struct provider_request *request, bool *accepted,
                        struct err *e) {
    struct local *l = local_of(p);
    *accepted = false;
    if (l->walk == NULL)
        FAIL(e, ERR_PROVIDER, "%s: opened for planning only, so it answers nothing",
             l->model->file->path);
    return walk_submit(l->walk, request, accepted, e);
}

static int local_next(struct provider *p, struct arena *a, struct provider_completion *out,
                      bool *any, struct err *e) {
    (void)e;
    struct local *l = local_of(p);
    *any = l->walk != NULL && walk_next(l->walk, a, out);
    return 0;
}

static void local_cancel(struct provider *p) {
    atomic_store(&local_of(p)->cancelled, true);
}

static void local_close(struct provider *p) {
    struct local *l = local_of(p);
    walk_close(l->walk);
    session_close(l->session);
    if (l->tokenizer != NULL) tokenizer_close(l->tokenizer);
    if (l->model != NULL) model_close(l->model);
    json_decref(p->what.identity);
    json_decref(p->what.manifest);
    arena_destroy(l->arena);
    free(l);
}

static const struct provider_ops LOCAL_OPS = {
    .kind = "local",
    .render = local_render,
    .tokenize = local_tokenize,
    .id_bytes = local_id_bytes,
    .submit = local_submit,
    .next = local_next,
    .cancel = local_cancel,
    .close = local_close,
};

static struct str vocabulary_bytes(const void *context, int32_t id) {
    return tokenizer_bytes(context, id);
}

static int open_files(struct local *l, const struct provider_options *o, struct err *e) {
    TRY(model_open(o->path, l->arena, &l->model, e));
    TRY(tokenizer_open(l->model->file, o->pre_tokenizer, l->arena, &l->tokenizer, e));
    // A model without a template that is known here can still continue raw text, so the error waits
    // until a conversation is to be rendered.
    if (chat_find(l->model->file, o->chat_template, &l->chat, &l->no_chat) != 0) l->chat = NULL;
    struct continuation_vocabulary *v = &l->vocabulary;
    *v = (struct continuation_vocabulary){
        .bytes = vocabulary_bytes, .context = l->tokenizer, .size = l->model->config.V};
    v->stops = tokenizer_stops(l->tokenizer, &v->stop_count);
    for (uint32_t i = 0; i < tokenizer_size(l->tokenizer); i++) {
        size_t n = tokenizer_bytes(l->tokenizer, (int32_t)i).n;
        if (n > v->longest_bytes) v->longest_bytes = n;
    }
    return model_identify(l->model, e);
}

static json_t *identity_of(const struct local *l, const struct provider_options *o,
                           uint32_t context_tokens) {
    const struct model *m = l->model;
    json_t *j = json_object();
    json_put(j, "id", json_text_c(o->id));
    json_put(j, "sha256", json_text_c(m->file_sha256));
    json_put(j, "tokenizer_sha256", json_text_c(m->tokenizer_sha256));
    json_put(j, "template_sha256", json_text_c(m->template_sha256));
    json_put(j, "architecture", json_text_c(m->config.architecture));
    json_put_bytes(j, "name", m->config.name);
    json_put(j, "tensor_types", model_tensor_types(m));
    // What a report needs to tell how far back a reply can depend on its prompt.
    if (m->config.window != 0) {
        json_put(j, "layers", json_integer(m->config.L));
        json_put(j, "window", json_integer(m->config.window));
    }
    // What the user put in place of the file's own, and what the model was not trained for.
    if (o->chat_template != NULL) json_put(j, "template", json_text_c(o->chat_template));
    if (o->pre_tokenizer != NULL) json_put(j, "pre_tokenizer", json_text_c(o->pre_tokenizer));
    if (context_tokens > m->config.trained_context) json_put(j, "beyond_trained", json_true());
    return j;
}

static json_t *cuda_version(int version) {
    char text[32];
    snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    return json_text_c(text);
}

static json_t *cublaslt_version(int version) {
    char text[40];
    snprintf(text, sizeof text, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    return version > 0 ? json_text_c(text) : json_null();
}

static void put_device(json_t *j, const struct backend_device *d) {
    char capability[32];
    snprintf(capability, sizeof capability, "%d.%d", d->capability / 10, d->capability % 10);
    json_put(j, "device", json_text_c(d->name));
    json_put(j, "compute_capability", json_text_c(capability));
    json_put(j, "device_memory_bytes", json_integer((json_int_t)d->memory_bytes));
    json_put(j, "driver", json_text_c(d->driver_name));
    json_put(j, "driver_cuda", cuda_version(d->driver));
    json_put(j, "runtime_cuda", cuda_version(d->runtime));
    json_put(j, "cublaslt", cublaslt_version(d->cublaslt));
}

static json_t *manifest_of(const struct local *l, const struct provider_options *o,
                           const struct backend *b, uint32_t context_tokens) {
    const struct model *m = l->model;
    json_t *j = json_object();
    json_put(j, "id", json_text_c(o->id));
    json_put_bytes(j, "path", str_from(o->path));
    json_put(j, "bytes", json_integer((json_int_t)m->file->map.bytes));
    json_put(j, "parameters", json_integer((json_int_t)m->config.parameters));
    json_put(j, "trained_context", json_integer(m->config.trained_context));
    json_put(j, "context_tokens", json_integer(context_tokens));
    json_put(j, "position_scaling", json_text_c(m->config.rope_scaling));
    json_put(j, "kv_bytes_per_token", json_integer((json_int_t)m->config.kv_bytes_per_token));
    json_put(j, "op_table", json_text_c(b->op_table));
    json_put(j, "threads", json_integer(b->threads));
    if (b->note[0] != '\0') json_put(j, "backend_note", json_text_c(b->note));
    if (b->device != NULL) put_device(j, b->device);
    if (b->products != NULL && l->session != NULL)
        json_put(j, "products", backend_products_json(b->products));
    return j;
}

static void describe(struct local *l, const struct provider_options *o, const struct backend *b,
                     uint32_t context_tokens) {
    l->base.can = (struct provider_capabilities){.exact_ids = true,
                                                 .evidence = true,
                                                 .deterministic = true,
                                                 .in_flight = WALK_IN_FLIGHT,
                                                 .context_tokens = context_tokens};
    if (tokenizer_adds_bos(l->tokenizer))
        l->base.can.start_text = tokenizer_bytes(l->tokenizer, tokenizer_bos(l->tokenizer));
    l->base.what = (struct provider_identity){
        .identity = identity_of(l, o, context_tokens),
        .manifest = manifest_of(l, o, b, context_tokens),
        .numerics = b->numerics,
        .backend = b->name,
    };
    if (l->session == NULL) return;
    const struct session_plan *plan = session_plan(l->session);
    json_put(l->base.what.manifest, "weights", json_text_c(backend_storage_name(plan->storage)));
    json_put(l->base.what.manifest, "weights_why", json_text_c(plan->storage_why));
}

static struct session_options session_options_of(struct local *l, const struct provider_options *o,
                                                 uint32_t context) {
    struct session_options options = {.backend = o->backend,
                                      .numerics = o->numerics,
                                      .weights = o->weights,
                                      .threads = o->threads,
                                      .op_table = o->op_table,
                                      .cache = o->cache,
                                      .context_tokens = context,
                                      .beyond_trained = o->beyond_trained,
                                      .memory_bytes = o->memory_bytes,
                                      .cancel = &l->cancelled};
    walk_session_options(&options, context, WALK_IN_FLIGHT);
    options.watched = WALK_IN_FLIGHT * o->watched_spans;
    return options;
}

// What does not fit is no error of planning: the run may be for another machine.
static int forecast_memory(struct local *l, struct backend *b, const struct session_options *o,
                           struct err *e) {
    struct session_plan plan = {0};
    struct err why = {0};
    int result = session_plan_make(b, l->model, o, &plan, &why);
    if (result != 0 && why.code != ERR_MEMORY) {
        if (e != NULL) *e = why;
        return -1;
    }
    uint64_t kv = plan.page_bytes * o->pages_least, beside = plan.total_bytes - plan.weights_bytes;
    uint32_t replies = plan.pages / o->pages_least;
    l->base.can.memory =
        (struct provider_memory){.weights = backend_storage_name(plan.storage),
                                 .weights_bytes = plan.weights_bytes,
                                 .least_bytes = kv + plan.activation_bytes + plan.scratch_bytes,
                                 .span_bytes = (uint64_t)WALK_IN_FLIGHT * l->model->config.L *
                                               l->model->config.H * sizeof(float),
                                 .planned_bytes = result == 0 ? beside : 0,
                                 .replies = result != 0                ? 0
                                            : replies < WALK_IN_FLIGHT ? (int)replies
                                                                       : WALK_IN_FLIGHT};
    return 0;
}

static int open_planning(struct local *l, const struct provider_options *o,
                         const struct session_options *session, struct err *e) {
    struct backend_options options = {.name = o->backend,
                                      .numerics = o->numerics,
                                      .op_table = o->op_table,
                                      .threads = o->threads,
                                      .E = l->model->config.E,
                                      .products = "own"};
    struct backend *b;
    TRY(backend_open(&options, &b, e));
    describe(l, o, b, session->context_tokens);
    int result = forecast_memory(l, b, session, e);
    backend_close(b);
    return result;
}

static int open_session(struct local *l, const struct provider_options *o, struct err *e) {
    uint32_t context;
    TRY(session_context_tokens(l->model, o->context_tokens, o->beyond_trained, &context, e));
    struct session_options options = session_options_of(l, o, context);
    if (o->plan_only) return open_planning(l, o, &options, e);
    TRY(session_open(l->model, &options, &l->session, e));
    l->walk = walk_open(l->session, &l->vocabulary, WALK_IN_FLIGHT);
    describe(l, o, session_backend(l->session), context);
    return 0;
}

int provider_local_open(const struct provider_options *options, struct provider **out,
                        struct err *e) {
    struct local *l = calloc(1, sizeof *l);
    if (l == NULL) mem_exhausted("provider", sizeof *l);
    l->base.ops = &LOCAL_OPS;
    l->arena = arena_create("model");
    atomic_init(&l->cancelled, false);
    if (open_files(l, options, e) != 0 || open_session(l, options, e) != 0) {
        local_close(&l->base);
        return -1;
    }
    *out = &l->base;
    return 0;
}

#include "evals/run_setup.h"

#include "engine/base/file.h"
#include "evals/evidence.h"
#include "evals/gates.h"
#include "evals/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPERIMENT_BYTES_MOST ((size_t)64 << 20)

// ---- providers ---------------------------------------------------------------------------------

int run_provider_open(const struct experiment *x, int model, const struct run_options *options,
                      bool plan_only, uint32_t watched_spans, struct provider **out,
                      struct err *e) {
    const struct experiment_model *m = &x->models[model];
    struct provider_endpoint endpoint = m->endpoint;
    if (endpoint.key_variable != NULL && options->variable != NULL)
        endpoint.key = options->variable(endpoint.key_variable);
    if (endpoint.ca_file == NULL && options->variable != NULL)
        endpoint.ca_file = options->variable("SSL_CERT_FILE");
    struct provider_options o = {.id = m->id,
                                 .path = m->path,
                                 .endpoint = endpoint.url != NULL ? &endpoint : NULL,
                                 .fixture = m->fixture,
                                 .simulated = m->simulated,
                                 .backend = m->backend,
                                 .numerics = m->numerics,
                                 .weights = m->weights,
                                 .chat_template = m->chat_template,
                                 .pre_tokenizer = m->pre_tokenizer,
                                 .context_tokens = m->context_tokens,
                                 .beyond_trained = m->beyond_trained,
                                 .threads = options->threads,
                                 .op_table = options->op_table,
                                 .cache = options->cache,
                                 .memory_bytes = options->memory_bytes,
                                 .watched_spans = watched_spans,
                                 .plan_only = plan_only};
    if (provider_open(&o, out, e) != 0) return err_prefix(e, "model %s", m->id);
    return 0;
}

void run_providers_close(const struct experiment *x, struct provider **providers) {
    for (int i = 0; providers != NULL && i < x->model_count; i++)
        if (providers[i] != NULL) providers[i]->ops->close(providers[i]);
}

int run_providers_open(const struct experiment *x, const struct run_options *options,
                       struct arena *a, struct provider ***out, struct err *e) {
    struct provider **providers = arena_array(a, (size_t)x->model_count, sizeof(struct provider *));
    for (int i = 0; i < x->model_count; i++) {
        if (run_provider_open(x, i, options, true, 0, &providers[i], e) == 0) continue;
        providers[i] = NULL;
        run_providers_close(x, providers);
        return -1;
    }
    *out = providers;
    return 0;
}

// ---- identity ----------------------------------------------------------------------------------

// The shortest spelling that reads back as the same number: exact things are no JSON numbers.
static json_t *number_text(double value) {
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    return json_text_c(text);
}

static json_t *identity_generation(const struct experiment_generation *g) {
    json_t *o = json_object();
    json_put(o, "max_tokens", json_integer(g->max_tokens));
    json_put(o, "temperature", number_text(g->temperature));
    json_put(o, "top_p", number_text(g->top_p));
    json_put(o, "samples", json_integer(g->samples));
    json_t *stop = json_array();
    for (int i = 0; i < g->stop_count; i++) json_array_append_new(stop, json_text(g->stop[i]));
    json_put(o, "stop", stop);
    return o;
}

// One word when all models agree, else the models' words in file order.
static json_t *identity_word(const struct experiment *x, struct provider *const *providers,
                             const char *(*word)(const struct experiment *x,
                                                 const struct provider *p)) {
    struct buf text = {0};
    bool agree = true;
    for (int i = 1; i < x->model_count; i++)
        agree = agree && strcmp(word(x, providers[0]), word(x, providers[i])) == 0;
    for (int i = 0; i < (agree ? 1 : x->model_count); i++)
        buf_printf(&text, "%s%s", i == 0 ? "" : ",", word(x, providers[i]));
    json_t *value = json_text(buf_str(&text));
    buf_free(&text);
    return value;
}

static const char *numerics_of(const struct experiment *x, const struct provider *p) {
    (void)x;
    return p->what.numerics;
}
static const char *backend_of(const struct experiment *x, const struct provider *p) {
    (void)x;
    return p->what.backend;
}

// Of each gate that has one, in file order: the file as named, and its hash, null while it is not
// there. They are read again from the record's own copies.
static void put_baselines(json_t *o, const struct experiment *x) {
    json_t *list = json_array();
    for (int i = 0; i < x->gate_count; i++) {
        const struct experiment_gate *g = &x->gates[i];
        char hex[HASH_HEX_SIZE];
        if (g->baseline == NULL) continue;
        json_t *entry = json_object();
        bool there = file_exists(g->baseline) && hash_file(g->baseline, hex, NULL) == 0;
        json_put(entry, "file", json_text_c(g->baseline_name));
        json_put(entry, "sha256", json_text_c(there ? hex : NULL));
        json_array_append_new(list, entry);
    }
    if (json_array_size(list) > 0)
        json_put(o, "baselines", list);
    else
        json_decref(list);
}

// With a budget of its own the reasoning's tags decide where a reply ends.
static json_t *identity_model(const struct experiment_model *m, const struct provider *p) {
    json_t *o = json_copy(p->what.identity), *reasoning;
    if (m->reasoning_tokens == 0) return o;
    reasoning = json_object();
    if (m->reasoning.open.n > 0) {
        json_put(reasoning, "open", json_text(m->reasoning.open));
        json_put(reasoning, "close", json_text(m->reasoning.close));
    }
    json_put(reasoning, "max_tokens", json_integer(m->reasoning_tokens));
    json_put(o, "reasoning", reasoning);
    return o;
}

// Only what is not kept is said.
static void put_retain(json_t *o, const struct experiment *x) {
    if (!x->drops_prompts && !x->drops_replies) return;
    json_t *retain = json_object();
    json_put(retain, "prompts", json_text_c(x->drops_prompts ? "none" : "all"));
    json_put(retain, "replies", json_text_c(x->drops_replies ? "none" : "all"));
    json_put(o, "retain", retain);
}

json_t *run_identity(const struct experiment *x, struct provider *const *providers,
                     const char *request_sha256, const char *plan_sha256) {
    char hex[HASH_HEX_SIZE];
    json_t *o = json_object();
    json_put(o, "format", json_integer(RECORD_FORMAT));
    json_put(o, "experiment", json_text_c(x->name));
    json_put(o, "request_sha256", json_text_c(request_sha256));
    if (plan_sha256 != NULL) json_put(o, "plan_sha256", json_text_c(plan_sha256));
    experiment_checks_sha256(x, hex);
    json_put(o, "checks_sha256", json_text_c(hex));
    experiment_analysis_sha256(x, hex);
    json_put(o, "analysis_sha256", json_text_c(hex));
    put_baselines(o, x);
    put_retain(o, x);
    json_put(o, "generation", identity_generation(&x->generation));
    json_put(o, "evidence", identity_word(x, providers, evidence_word));
    json_put(o, "numerics", identity_word(x, providers, numerics_of));
    json_put(o, "backend", identity_word(x, providers, backend_of));
    json_t *models = json_array();
    for (int i = 0; i < x->model_count; i++)
        json_array_append_new(models, identity_model(&x->models[i], providers[i]));
    json_put(o, "models", models);
    json_put(o, "partial", json_boolean(x->only_count > 0 || x->limit >= 0));
    return o;
}

int run_read_baselines(const struct experiment *x, struct arena *a, struct record_header *header,
                       struct err *e) {
    struct str *texts = arena_array(a, (size_t)x->gate_count + 1, sizeof *texts);
    header->baselines = texts;
    for (int i = 0; i < x->gate_count; i++) {
        const struct experiment_gate *g = &x->gates[i];
        if (g->baseline == NULL || !file_exists(g->baseline)) continue;
        TRY(gates_check_baseline(g, e));
        TRY(file_read(g->baseline, (size_t)1 << 30, a, &texts[header->baseline_count++], e));
    }
    return 0;
}

// ---- manifest ----------------------------------------------------------------------------------

json_t *run_program_json(void) {
    json_t *o = json_object();
    json_put(o, "version", json_text_c(LACUNA_VERSION));
    json_put(o, "commit", json_text_c(LACUNA_COMMIT));
#ifdef __clang__
    json_put(o, "compiler", json_text_c(__VERSION__));
#else
    json_put(o, "compiler", json_text_c("gcc " __VERSION__));
#endif
    return o;
}

json_t *run_processor_json(void) {
    char line[512], *name = NULL;
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f != NULL && name == NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "model name", 10) == 0) name = strchr(line, ':');
    if (f != NULL) fclose(f);
    if (name == NULL) return json_null();
    struct str text = str_trim(str_from(name + 1));
    return utf8_valid(text) ? json_text(text) : json_null();
}

// "jansson 2.14,zstd 1.5.4": what the build found, by name.
static json_t *manifest_libraries(void) {
    json_t *o = json_object();
    struct str list = str_from(LACUNA_LIBRARIES);
    for (size_t at = 0; at < list.n;) {
        size_t end = str_find(list, STR(","), at);
        if (end == STR_NONE) end = list.n;
        size_t space = str_find(list, STR(" "), at);
        if (space < end) {
            char name[64];
            snprintf(name, sizeof name, STR_FMT, STR_ARG(str_slice(list, at, space)));
            json_put(o, name, json_text(str_slice(list, space + 1, end)));
        }
        at = end + 1;
    }
    return o;
}

// The table of ops is one fact of the machine, not of a model.
static void put_models(json_t *o, const struct experiment *x, struct provider *const *providers) {
    json_t *models = json_array();
    for (int i = 0; i < x->model_count; i++) {
        json_t *model = json_copy(providers[i]->what.manifest);
        json_object_del(model, "op_table");
        json_array_append_new(models, model);
    }
    json_put(o, "models", models);
}

static json_t *find_fact(const struct experiment *x, struct provider *const *providers,
                         const char *key) {
    for (int i = 0; i < x->model_count; i++) {
        json_t *value = json_object_get(providers[i]->what.manifest, key);
        if (value != NULL) return json_incref(value);
    }
    return json_null();
}

// Where the paths of the experiment file start from, for `repeat` and `score`.
static void put_path(json_t *o, const char *path) {
    char *whole = realpath(path, NULL);
    json_put_bytes(o, "experiment_path", str_from(whole != NULL ? whole : path));
    free(whole);
}

json_t *run_manifest(const struct experiment *x, struct provider *const *providers) {
    char hex[HASH_HEX_SIZE];
    json_t *o = json_object();
    json_put(o, "program", run_program_json());
    json_put(o, "op_table", find_fact(x, providers, "op_table"));
    json_put(o, "processor", run_processor_json());
    json_put(o, "device", find_fact(x, providers, "device"));
    json_put(o, "driver", find_fact(x, providers, "driver"));
    json_put(o, "libraries", manifest_libraries());
    put_path(o, x->path);
    hash_bytes(x->source.p, x->source.n, hex);
    json_put(o, "experiment_file_sha256", json_text_c(hex));
    struct buf resolved = {0};
    json_t *kept = experiment_kept(x);
    json_pretty(kept, &resolved);
    json_decref(kept);
    buf_add_char(&resolved, '\n'); // as the record writes it
    hash_bytes(resolved.p, resolved.n, hex);
    buf_free(&resolved);
    json_put(o, "resolved_sha256", json_text_c(hex));
    put_models(o, x, providers);
    return o;
}

const char *run_origin(const struct record *r, struct arena *a) {
    const char *path = json_string_value(json_object_get(r->manifest, "experiment_path"));
    return path != NULL ? path_folder(a, path) : r->folder;
}

// Gates of a record look at the record's copies of their baselines.
static void take_baselines(const struct record *r, struct experiment *x, struct arena *a) {
    const json_t *list = json_object_get(r->identity, "baselines");
    size_t next = 0;
    for (int i = 0; i < x->gate_count; i++) {
        if (x->gates[i].baseline == NULL) continue;
        const json_t *entry = json_array_get(list, next++);
        const char *hex = json_string_value(json_object_get(entry, "sha256"));
        bool kept = hex != NULL && hash_is_hex(str_from(hex));
        x->gates[i].baseline = record_baseline_path(r->folder, kept ? hex : "none", a);
    }
}

int run_recorded_experiment(const struct record *r, const char *folder, struct arena *a,
                            struct experiment **out, struct err *e) {
    if (r->resolved == NULL) FAIL(e, ERR_RECORD, "%s/resolved.json: is missing", r->folder);
    TRY(experiment_from_json(r->resolved, path_join(a, r->folder, "experiment.yaml"), folder, a,
                             out, e));
    take_baselines(r, *out, a);
    return 0;
}

int run_whole_experiment(const struct record *r, struct arena *a, struct experiment **out,
                         struct err *e) {
    struct str source;
    if (r->resolved == NULL) FAIL(e, ERR_RECORD, "%s/resolved.json: is missing", r->folder);
    TRY(judge_need(r, "it cannot be merged from it", e));
    const char *said = json_string_value(json_object_get(r->manifest, "experiment_path"));
    const char *copy = path_join(a, r->folder, "experiment.yaml");
    TRY(file_read(copy, EXPERIMENT_BYTES_MOST, a, &source, e));
    json_t *resolved = json_deep_copy(r->resolved);
    json_put(resolved, "only", json_array());
    json_put(resolved, "limit", json_integer(-1));
    const char *path = said != NULL ? arena_strdup(a, said) : copy;
    int result = experiment_from_json(resolved, path, run_origin(r, a), a, out, e);
    json_decref(resolved);
    TRY(result);
    (*out)->source = source;
    take_baselines(r, *out, a);
    return 0;
}

const char *run_folder(const struct experiment *x, const struct run_options *options,
                       const char *request_sha256, struct arena *a) {
    if (options->folder != NULL) return options->folder;
    const char *name = arena_printf(a, "%s-%.12s", x->name, request_sha256);
    return path_join(a, options->runs_folder, name);
}

// What a run is, in one number: the request and two parts of the identity.
#include "evals/experiment.h"

#include "engine/base/file.h"
#include "engine/provider.h"

#include <string.h>

static void hash_json(const json_t *value, char hex[HASH_HEX_SIZE]) {
    struct buf text = {0};
    json_compact(value, &text);
    hash_bytes(text.p, text.n, hex);
    buf_free(&text);
}

// Puts the hash of the file's content where its path was.
static int replace_path(json_t *object, const char *key, const char *path, struct err *e) {
    char hex[HASH_HEX_SIZE];
    if (path == NULL) return 0;
    TRY(hash_file(path, hex, e));
    json_put(object, key, json_text_c(hex));
    return 0;
}

// A baseline that is not there yet is a gate that cannot decide.
static int replace_baselines(const struct experiment *x, json_t *gates, struct err *e) {
    for (int i = 0; i < x->gate_count; i++) {
        const char *path = x->gates[i].baseline;
        json_t *gate = json_array_get(gates, (size_t)i);
        if (path == NULL) continue;
        if (file_exists(path))
            TRY(replace_path(gate, "baseline", path, e));
        else
            json_put(gate, "baseline", json_null());
    }
    return 0;
}

static int replace_paths(const struct experiment *x, json_t *resolved, struct err *e) {
    json_t *models = json_object_get(resolved, "models");
    for (int i = 0; i < x->model_count; i++) {
        json_t *model = json_array_get(models, (size_t)i);
        TRY(replace_path(model, "path", x->models[i].path, e));
        TRY(replace_path(model, "fixture", x->models[i].fixture, e));
        TRY(replace_path(model, "simulated", x->models[i].simulated, e));
        TRY(replace_path(model, "count", x->models[i].endpoint.count_file, e));
        // The class that computes, not how it was asked for; named behind the rest. How patiently a
        // server is asked changes no reply.
        static const char *const left_out[] = {"backend",  "api_key_env",   "in_flight",
                                               "attempts", "reply_seconds", "stall_seconds",
                                               "stream",   "ca_file",       "price"};
        for (size_t k = 0; k < sizeof left_out / sizeof *left_out; k++)
            json_object_del(model, left_out[k]);
    }
    TRY(replace_path(json_object_get(resolved, "cases"), "file", x->cases_path, e));
    TRY(replace_baselines(x, json_object_get(resolved, "gates"), e));
    json_t *filler = json_object_get(json_object_get(resolved, "prompt"), "filler");
    json_t *paths = json_object_get(filler, "paths");
    for (int i = 0; i < x->filler.path_count; i++) {
        char hex[HASH_HEX_SIZE];
        TRY(hash_file(x->filler.paths[i], hex, e));
        json_array_set_new(paths, (size_t)i, json_text_c(hex));
    }
    return 0;
}

int experiment_request_sha256(const struct experiment *x, struct provider *const *providers,
                              char hex[HASH_HEX_SIZE], struct err *e) {
    json_t *resolved = json_deep_copy(x->resolved);
    if (replace_paths(x, resolved, e) != 0) {
        json_decref(resolved);
        return -1;
    }
    struct buf text = {0};
    json_compact(resolved, &text);
    for (int i = 0; i < x->model_count; i++) {
        const struct experiment_model *m = &x->models[i];
        const struct provider_identity *what = &providers[i]->what;
        bool scripted = m->fixture != NULL || m->simulated != NULL; // numerics say nothing of these
        buf_printf(&text, "\n%s %s", scripted ? m->numerics : what->numerics, what->backend);
    }
    hash_bytes(text.p, text.n, hex);
    buf_free(&text);
    json_decref(resolved);
    return 0;
}

static void copy_keys(json_t *to, const json_t *from, const char *const *keys) {
    for (; *keys != NULL; keys++) {
        json_t *value = json_object_get(from, *keys);
        if (value != NULL) json_put(to, *keys, json_incref(value));
    }
}

void experiment_checks_sha256(const struct experiment *x, char hex[HASH_HEX_SIZE]) {
    static const char *const keys[] = {"id",       "kind",     "value",          "met",
                                       "violated", "answered", "ignore_case",    "multiline",
                                       "dotall",   "check",    "violated_check", "look_in",
                                       NULL};
    const json_t *constraints = json_object_get(x->resolved, "constraints");
    json_t *checks = json_array();
    for (size_t i = 0; i < json_array_size(constraints); i++) {
        json_t *check = json_object();
        copy_keys(check, json_array_get(constraints, i), keys);
        json_array_append_new(checks, check);
    }
    hash_json(checks, hex);
    json_decref(checks);
}

void experiment_analysis_sha256(const struct experiment *x, char hex[HASH_HEX_SIZE]) {
    static const char *const keys[] = {"tolerate", "effective_level", "primary", "gates", NULL};
    json_t *analysis = json_object();
    copy_keys(analysis, x->resolved, keys);
    hash_json(analysis, hex);
    json_decref(analysis);
}

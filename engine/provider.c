#include "engine/provider.h"

#include "engine/backend.h"
#include "engine/base/arena.h"
#include "engine/model.h"
#include "engine/provider_endpoint.h"
#include "engine/provider_fixture.h"
#include "engine/provider_local.h"
#include "engine/provider_simulated.h"

#include <assert.h>
#include <string.h>

const char *provider_finish_name(enum provider_finish f) {
    switch (f) {
    case FINISH_STOP: return "stop";
    case FINISH_LENGTH: return "length";
    case FINISH_REASONING: return "reasoning_length";
    case FINISH_STOP_STRING: return "stop_string";
    case FINISH_FILTER: return "filter";
    case FINISH_ERROR: return "error";
    }
    assert(!"a finish that has a name");
    return "error";
}

struct provider_generation provider_generation_copy(const struct provider_generation *g,
                                                    struct arena *a) {
    struct provider_generation copy = *g;
    struct str *stop = arena_array(a, (size_t)g->stop_count, sizeof *stop);
    for (int i = 0; i < g->stop_count; i++) stop[i] = str_copy(a, g->stop[i]);
    copy.stop = stop;
    if (g->reasoning == NULL) return copy;
    struct reasoning_tags *tags = arena_alloc(a, sizeof *tags);
    *tags = *g->reasoning;
    tags->open = str_copy(a, tags->open);
    tags->close = str_copy(a, tags->close);
    copy.reasoning = tags;
    return copy;
}

// Elements of the model's heads; 0 when its file cannot be read, which opening it will tell.
static uint32_t head_elements(const char *path) {
    struct arena *a = arena_create("model");
    struct model *m;
    uint32_t E = 0;
    if (model_open(path, a, &m, NULL) == 0) {
        E = m->config.E;
        model_close(m);
    }
    arena_destroy(a);
    return E;
}

struct provider_class provider_class_of(const struct provider_options *options) {
    struct backend_options o = {.name = options->backend, .numerics = options->numerics};
    struct backend *b;
    if (options->endpoint != NULL) return (struct provider_class){"served", "none"};
    if (options->fixture != NULL) return (struct provider_class){"fixture", options->numerics};
    if (options->simulated != NULL) return (struct provider_class){"simulated", options->numerics};
    if (strcmp(o.name, "cpu") != 0) o.E = head_elements(options->path);
    if (backend_open(&o, &b, NULL) != 0)
        return (struct provider_class){strcmp(o.name, "cuda") == 0 ? "cuda" : "cpu", o.numerics};
    struct provider_class class = {b->name, b->numerics};
    backend_close(b);
    return class;
}

const char *provider_length_word(const struct provider *p) {
    const char *word = json_string_value(json_object_get(p->what.identity, "length"));
    if (word != NULL) return word;
    return p->can.exact_ids ? "exact" : "estimated";
}

int provider_open(const struct provider_options *options, struct provider **out, struct err *e) {
    const struct {
        const void *given;
        int (*open)(const struct provider_options *options, struct provider **out, struct err *e);
    } rows[] = {
        {options->path, provider_local_open},
        {options->endpoint, provider_endpoint_open},
        {options->fixture, provider_fixture_open},
        {options->simulated, provider_simulated_open},
    };
    const char *id = options->id != NULL ? options->id : "";
    int chosen = -1;
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
        if (rows[i].given == NULL) continue;
        if (chosen >= 0)
            FAIL(e, ERR_CONFIG,
                 "model %s: give one of a model file, an endpoint, a fixture and a simulated "
                 "subject",
                 id);
        chosen = i;
    }
    if (chosen < 0)
        FAIL(e, ERR_CONFIG,
             "model %s: no model file, endpoint, fixture or simulated subject is given", id);
    return rows[chosen].open(options, out, e);
}

#include "engine/provider.h"

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

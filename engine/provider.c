#include "engine/provider.h"

#include "engine/provider_fixture.h"
#include "engine/provider_local.h"

#include <assert.h>

const char *provider_finish_name(enum provider_finish f) {
    switch (f) {
    case FINISH_STOP: return "stop";
    case FINISH_LENGTH: return "length";
    case FINISH_STOP_STRING: return "stop_string";
    case FINISH_ERROR: return "error";
    }
    assert(!"a finish that has a name");
    return "error";
}

int provider_open(const struct provider_options *options, struct provider **out, struct err *e) {
    const char *id = options->id != NULL ? options->id : "";
    if (options->path != NULL && options->fixture != NULL)
        FAIL(e, ERR_CONFIG, "model %s: give either a model file or a fixture, not both", id);
    if (options->fixture != NULL) return provider_fixture_open(options, out, e);
    if (options->path != NULL) return provider_local_open(options, out, e);
    FAIL(e, ERR_CONFIG, "model %s: neither a model file nor a fixture is given", id);
}

// lacuna --cuda-plugin FILE VERB ...: kernels from another file than the installed one, such as
// those that run in the emulator. For developers, so no help shows it.
#include "engine/backend_plugin.h"
#include "evals/cli.h"

int cli_use_plugin(const char *path, struct err *e) {
    return backend_plugin_load(path, e);
}

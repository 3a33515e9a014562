#include "engine/backend_plugin.h"

#include "kernels/cuda/ops.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLUGIN "liblacuna-cuda.so"

#ifndef LACUNA_PLUGIN_DIR
#define LACUNA_PLUGIN_DIR "/usr/local/lib/lacuna"
#endif

static const struct cuda_ops *in_force;

// The folder of the running program, without the last slash.
static void program_folder(char *out, size_t size) {
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(out, '/');
    if (slash != NULL) *slash = '\0';
}

static int find_plugin(char *out, size_t size, struct err *e) {
    char folder[2048];
    program_folder(folder, sizeof folder);
    const char *const places[][2] = {
        {folder, ""}, {folder, "/../lib/lacuna"}, {LACUNA_PLUGIN_DIR, ""}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(out, size, "%s%s/" PLUGIN, places[i][0], places[i][1]);
        if (access(out, F_OK) == 0) return 0;
    }
    FAIL(e, ERR_PROVIDER,
         "there is no CUDA plug-in: " PLUGIN " is not in %s, %s/../lib/lacuna or " LACUNA_PLUGIN_DIR
         " (it is built where the CUDA Toolkit >= 13.0 is found when the program is configured)",
         folder, folder);
}

int backend_plugin_load(const char *path, struct err *e) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) FAIL(e, ERR_PROVIDER, "the CUDA plug-in cannot be loaded: %s", dlerror());
    cuda_ops_function *ops;
    *(void **)&ops = dlsym(library, CUDA_OPS_SYMBOL);
    if (ops == NULL) {
        dlclose(library);
        FAIL(e, ERR_PROVIDER, "%s is no CUDA plug-in of this program", path);
    }
    in_force = ops();
    return 0;
}

void backend_plugin_use(const struct cuda_ops *table) {
    in_force = table;
}

int backend_plugin_table(const struct cuda_ops **out, struct err *e) {
    char path[4096];
    if (in_force == NULL) {
        TRY(find_plugin(path, sizeof path, e));
        TRY(backend_plugin_load(path, e));
    }
    if (in_force->version != CUDA_OPS_VERSION)
        FAIL(e, ERR_PROVIDER, "the CUDA plug-in is of another version of the program (%d, not %d)",
             in_force->version, CUDA_OPS_VERSION);
    *out = in_force;
    return 0;
}

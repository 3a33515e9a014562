#include "kernels/cuda/lt_library.h"

#ifdef __CUDACC__

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

// As the loader finds it, then where the toolkit puts it.
static const char *const PLACES[] = {"libcublasLt.so.13", "libcublasLt.so",
                                     "/usr/local/cuda/lib64/libcublasLt.so.13"};

static bool find_call(struct lt_library *l, const char *name, void *to, char why[256]) {
    void *call = dlsym(l->loaded, name);
    memcpy(to, &call, sizeof call);
    if (call == NULL) snprintf(why, 256, "cuBLASLt has no %s", name);
    return call != NULL;
}

bool lt_library_find(struct lt_library *out, char why[256]) {
    *out = {};
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES && out->loaded == NULL; i++)
        out->loaded = dlopen(PLACES[i], RTLD_NOW | RTLD_LOCAL);
    if (out->loaded == NULL) {
        snprintf(why, 256, "%s is not installed", PLACES[0]);
        return false;
    }
#define LT_FIND(call)                                                                              \
    if (!find_call(out, #call, &out->call, why)) return false;
    LT_CALLS(LT_FIND)
    return true;
}

#else

// The emulator's stand-in is linked.
bool lt_library_find(struct lt_library *out, char *) {
#define LT_ADDRESS(call) &::call,
    *out = {nullptr, LT_CALLS(LT_ADDRESS)};
    return true;
}

#endif

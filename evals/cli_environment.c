// What the program takes from its environment: the folder of what later runs may use again
// ($XDG_CACHE_HOME/lacuna, by the XDG Base Directory Specification), and keys of served models.
#include "evals/cli.h"

#include <stdio.h>
#include <stdlib.h>

const char *cli_variable(const char *name) {
    return getenv(name);
}

const char *cli_cache_folder(void) {
    static char folder[4096];
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache != NULL && cache[0] == '/')
        snprintf(folder, sizeof folder, "%s/lacuna", cache);
    else if (home != NULL && home[0] == '/')
        snprintf(folder, sizeof folder, "%s/.cache/lacuna", home);
    else
        return NULL;
    return folder;
}

#include "tests/support/fast_folder.h"

#include "tests/support/support.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[] = "/dev/shm/lacuna-test-XXXXXX";
static const char *chosen;
static pid_t owner;

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

void fast_folder_drop(const char *path) {
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void drop_at_exit(void) {
    if (getpid() == owner) fast_folder_drop(folder);
}

const char *fast_folder(void) {
    if (chosen != NULL) return chosen;
    if (mkdtemp(folder) == NULL) {
        chosen = test_folder();
        return chosen;
    }
    owner = getpid();
    atexit(drop_at_exit);
    chosen = folder;
    return chosen;
}

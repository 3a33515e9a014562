#include "tests/support/support.h"

#include "engine/backend_plugin.h"
#include "engine/base/file.h"
#include "kernels/cuda/ops.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/lacuna-test-XXXXXX";
static pid_t owner;

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

// A forked child that exits must not take its parent's folder away.
static void remove_folder(void) {
    if (getpid() == owner) nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *test_folder(void) {
    if (owner == 0) {
        if (mkdtemp(folder) == NULL) fail_msg("no temporary folder below /tmp");
        owner = getpid();
        atexit(remove_folder);
    }
    return folder;
}

static int open_nothing(struct cuda_device **out, struct cuda_facts *facts, char why[256]) {
    (void)out;
    (void)facts;
    snprintf(why, 256, "no NVIDIA driver is installed");
    return -1;
}

// Tests compute on the processor whatever the machine has, but for those that say otherwise.
__attribute__((constructor)) static void use_no_gpu(void) {
    static const struct cuda_ops none = {.version = CUDA_OPS_VERSION, .open = open_nothing};
    backend_plugin_use(&none);
}

struct arena *test_arena;

int test_arena_open(void **state) {
    (void)state;
    test_arena = arena_create("test");
    return 0;
}

int test_arena_close(void **state) {
    (void)state;
    arena_destroy(test_arena);
    test_arena = NULL;
    return 0;
}

char *test_data(struct arena *a, const char *relative) {
    const char *carried = getenv("LACUNA_TESTS"); // where there is no source
    if (carried != NULL) return path_join(a, carried, relative);
    return arena_printf(a, "%s/tests/%s", LACUNA_SOURCE_DIR, relative);
}

void test_write(const char *path, struct str content) {
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(content.p, 1, content.n, f) != content.n || fclose(f) != 0)
        fail_msg("%s: not written", path);
}

struct str test_read(struct arena *a, const char *path) {
    struct str text;
    struct err e = {0};
    ASSERT_OK(file_read(path, (size_t)1 << 30, a, &text, &e), e);
    return text;
}
